//! Monthly costs of a candidate.

use super::{Candidate, PlanRequest, PricedSite};
use crate::geo::result::RunResult;
use crate::geo::site::SiteUsage;

const GB: f64 = 1e9;

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 of anything are counted")]
const fn to_f64(count: u64) -> f64 {
    count as f64
}

/// Cost of a month, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Cost {
    /// Stored bytes.
    pub stored: f64,
    /// Requests.
    pub requests: f64,
    /// Bytes sent between sites.
    pub sent: f64,
}

impl Cost {
    pub(super) fn total(&self) -> f64 {
        self.stored + self.requests + self.sent
    }
}

impl PlanRequest {
    fn at(&self, place: u8) -> &PricedSite {
        &self.site[usize::from(place)]
    }

    /// Returns a lower bound of the monthly cost: the stored fragments, each written once, and one
    /// change of each row. All else comes from the counts of a run.
    pub(super) fn cost_lower_bound(&self, candidate: &Candidate) -> f64 {
        let fragments = to_f64(self.demand.stored.get()) / f64::from(candidate.data) / GB;
        let stored: f64 =
            candidate.holders.iter().map(|site| fragments * self.at(*site).gb_month).sum();
        let written: f64 = candidate.holders.iter().map(|site| self.at(*site).writes_1000).sum();
        let rows: f64 = candidate.voters.iter().map(|site| self.at(*site).row_updates_1000).sum();
        stored + self.demand.puts / 1e3 * (written + rows)
    }

    /// Returns the monthly cost from the counts of a run, in which each write is read once. Only
    /// reads fetch fragments. Both read rows: `row_reads` separates the rows queried by reads from
    /// the row that a write reads first.
    pub(super) fn cost_of(&self, candidate: &Candidate, run: &RunResult) -> Cost {
        let (puts, gets) = (to_f64(run.puts.max(1)), to_f64(run.gets.max(1)));
        let demand = &self.demand;
        let objects = to_f64(demand.stored.get()) / to_f64(demand.object.get().max(1));
        let mut cost = Cost::default();
        for (place, used) in (0_u8..).zip(&run.sites) {
            let site = self.at(place);
            let each = |count: u64, operations: f64| to_f64(count) / operations;
            cost.stored += objects / puts * (to_f64(used.fragment_bytes) + to_f64(used.row_bytes))
                / GB
                * site.gb_month;
            let written = each(used.fragment_writes, puts) * site.writes_1000
                + each(used.row_updates, puts) * site.row_updates_1000;
            let read = each(used.fragment_reads, gets) * site.reads_1000;
            cost.requests += (demand.puts * written + demand.gets * read) / 1e3;
            let (by_puts, by_gets) = self.row_reads(place, candidate, used, (puts, gets));
            cost.requests +=
                (demand.puts * by_puts + demand.gets * by_gets) / 1e3 * site.row_reads_1000;
            cost.sent += (demand.puts * to_f64(used.sent_by_puts) / puts
                + demand.gets * to_f64(used.sent - used.sent_by_puts) / gets)
                / GB
                * site.gb_sent;
        }
        cost
    }

    /// Returns the rows read at a site per write and per read: a read queries all voters.
    fn row_reads(
        &self,
        place: u8,
        candidate: &Candidate,
        used: &SiteUsage,
        per: (f64, f64),
    ) -> (f64, f64) {
        let (puts, gets) = per;
        let by_gets = if candidate.voters.contains(&place) { 1.0 } else { 0.0 };
        let by_puts = (to_f64(used.row_reads) - by_gets * gets).max(0.0) / puts;
        (by_puts, by_gets)
    }
}
