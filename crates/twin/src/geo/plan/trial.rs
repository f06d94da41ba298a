//! A candidate, run and judged.

use serde::Serialize;

use super::costs::Cost;
use super::{Candidate, PlanRequest};
use crate::geo::durability::losses_a_year;
use crate::geo::result::RunResult;

/// A candidate and the results of its runs: the worst over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The candidate.
    pub candidate: Candidate,
    /// Whether it meets all requirements.
    pub is_enough: bool,
    /// Monthly cost.
    pub cost: f64,
    /// The cost by purpose.
    pub of: Cost,
    /// 99th percentile of writes, in seconds.
    pub put_s: f64,
    /// Median of writes, in seconds.
    pub put_median_s: f64,
    /// 99th percentile of reads, in seconds.
    pub get_s: f64,
    /// Median of reads, in seconds.
    pub get_median_s: f64,
    /// Losses a year.
    pub losses_a_year: f64,
    /// Number of sites that may be unavailable while a write ends in one round.
    pub fast_with_away: u8,
    /// Number of sites that may be unavailable while writes and reads continue.
    pub goes_with_away: u8,
    /// Bytes stored for each user byte.
    pub stored: f64,
    /// Bytes sent between sites for each byte written.
    pub put_crossed: f64,
    /// Bytes sent between sites for each byte read.
    pub get_crossed: f64,
    /// Writes and reads that failed.
    pub failed: u64,
    /// Seeds it was run with.
    pub seeds: u32,
}

/// Judges a candidate by its runs.
pub(super) fn evaluate(request: &PlanRequest, candidate: &Candidate, runs: &[RunResult]) -> Trial {
    let most = |value: &dyn Fn(&RunResult) -> f64| runs.iter().map(value).fold(0.0, f64::max);
    let (put_s, get_s) = (most(&|run| run.put.p99), most(&|run| run.get.p99));
    let failed = runs.iter().map(|run| run.failed).max().unwrap_or(0);
    let costs = runs.iter().map(|run| request.cost_of(candidate, run));
    let cost = costs.max_by(|a, b| a.total().total_cmp(&b.total())).unwrap_or_default();
    let rates: Vec<f64> = candidate
        .holders
        .iter()
        .map(|site| request.site[usize::from(*site)].losses_a_year)
        .collect();
    let objective = &request.objective;
    let in_time = put_s <= objective.put.as_secs_f64() && get_s <= objective.get.as_secs_f64();
    let (fast_with_away, goes_with_away) = away(candidate);
    Trial {
        candidate: candidate.clone(),
        is_enough: in_time && failed == 0,
        cost: cost.total(),
        of: cost,
        put_s,
        put_median_s: most(&|run| run.put.p50),
        get_s,
        get_median_s: most(&|run| run.get.p50),
        losses_a_year: losses_a_year(&rates, objective.rebuild_days, candidate.parity)
            .unwrap_or(f64::INFINITY),
        fast_with_away,
        goes_with_away,
        stored: most(&|run| run.stored),
        put_crossed: most(&|run| run.put_crossed),
        get_crossed: most(&|run| run.get_crossed),
        failed,
        seeds: u32::try_from(runs.len()).unwrap_or(u32::MAX),
    }
}

/// Returns how many sites may be unavailable while a write ends in one round, and while writes and
/// reads continue.
fn away(candidate: &Candidate) -> (u8, u8) {
    let Ok(quorums) =
        fulgurite_geo_core::Quorums::new(candidate.voters.len(), candidate.sizes.get())
    else {
        return (0, 0);
    };
    let fragments = usize::from(candidate.parity) - usize::from(candidate.parity > 1);
    let rows = quorums.promise().max(quorums.classic()).max(quorums.read());
    let goes = (quorums.sites() - rows).min(fragments);
    let fast = (quorums.sites() - quorums.fast()).min(fragments);
    (u8::try_from(fast).unwrap_or(0), u8::try_from(goes).unwrap_or(0))
}
