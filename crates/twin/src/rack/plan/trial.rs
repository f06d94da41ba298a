//! One candidate, run and judged.

use serde::Serialize;

use super::{Candidate, Constraints, PlanRequest};
use crate::constraints::Summary;
use crate::rack::result::RunResult;

/// A candidate and the results of its runs: the worst over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The candidate.
    pub candidate: Candidate,
    /// Whether first bytes take longer than the objective.
    pub is_late: bool,
    /// The constraints that are met, next to the tail.
    pub constraints: Summary,
    /// Capital and energy over the years of service.
    pub cost: f64,
    /// Cost of the machines alone.
    pub capital: f64,
    /// Energy per day.
    pub kwh_per_day: f64,
    /// Maximum power that the domains of a rack must supply, servers included, in watts.
    pub supplied_w: f64,
    /// Maximum power that the disks of a rack drew, in watts.
    pub power_w_max: f64,
    /// 99th percentile to the first byte, in seconds.
    pub tail_s: f64,
    /// Mean to the first byte, in seconds.
    pub mean_s: f64,
    /// Unused share of the objective.
    pub margin: f64,
    /// Share of reads that were rejected.
    pub refused: f64,
    /// Mean spin-ups per disk and day.
    pub spin_ups_a_day: f64,
    /// Share of the capacity in use at the given age.
    pub used: f64,
    /// Number of seeds it was run with.
    pub seeds: u32,
}

impl Trial {
    /// Returns whether it meets all requirements.
    #[must_use]
    pub const fn is_enough(&self) -> bool {
        !self.is_late && self.constraints.is_met()
    }

    /// Returns whether no candidate with less of anything can meet the requirements: it is late, or
    /// rejects reads.
    #[must_use]
    pub fn rules_out_smaller(&self) -> bool {
        self.is_late || self.refused > 0.0
    }
}

/// Judges a candidate by its runs.
pub(super) fn evaluate(request: &PlanRequest, candidate: &Candidate, runs: &[RunResult]) -> Trial {
    let most = |value: &dyn Fn(&RunResult) -> f64| runs.iter().map(value).fold(0.0, f64::max);
    let costs = &request.costs;
    let objective = request.objective.as_secs_f64();
    let tail_s = most(&|run| run.first_byte.p99);
    let capital = costs.capital(candidate, &request.disks);
    let kwh_per_day = most(&|run| costs.kwh_of_run(candidate, run));
    #[expect(clippy::cast_precision_loss, reason = "a disk is below 2^53 bytes")]
    let room = candidate.disk.get() as f64 * f64::from(candidate.disks());
    Trial {
        candidate: candidate.clone(),
        is_late: tail_s > objective,
        constraints: Constraints::for_candidate(request, candidate).summary(runs),
        cost: costs.total(capital, kwh_per_day),
        capital,
        kwh_per_day,
        supplied_w: costs.supplied_w(candidate, &request.disks),
        power_w_max: most(&|run| run.power_max),
        tail_s,
        mean_s: most(&|run| run.first_byte.mean),
        margin: 1.0 - tail_s / objective,
        refused: most(&|run| run.reject_rate),
        spin_ups_a_day: most(&|run| run.spin_ups / 365.25),
        used: request.raw_bytes() / room,
        seeds: u32::try_from(runs.len()).unwrap_or(u32::MAX),
    }
}
