//! One candidate, run and judged.

use fulgurite_glass_core::control::Policy;
use serde::Serialize;

use super::{Candidate, PlanRequest};
use crate::Error;
use crate::constraints::Summary;
use crate::glass::constraints::{Constraint, Finding};
use crate::glass::fleet::{Fleet, FleetResult, Stop};
use crate::glass::result::DriveTime;
use crate::glass::scenario::{Recovery, Scenario, SystemTag, Writes};
use crate::runner::Runner;

/// A requirement that a candidate misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Miss {
    /// Reads take longer than the objective.
    Tail,
    /// Some reads could not be answered at all.
    Failed,
    /// Drives verify less than is written.
    Verification,
}

/// A candidate and the results of its runs. Tail, median and margins are those of the worst seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The candidate.
    pub candidate: Candidate,
    /// The requirements it misses; empty if it meets them all.
    pub misses: Vec<Miss>,
    /// Capital and energy over the years of service.
    pub cost: f64,
    /// Cost of the machines alone.
    pub capital: f64,
    /// Energy per day.
    pub kwh_per_day: f64,
    /// 99.9th percentile of completion, in seconds.
    pub tail_s: f64,
    /// Median of completion, in seconds.
    pub median_s: f64,
    /// Unused share of the objective.
    pub margin: f64,
    /// Bytes verified in the measured window, over the bytes that must be.
    pub verify_margin: f64,
    /// Share of the drives' time taken by reads, switches and the verification needed.
    pub utilization: f64,
    /// Shares of the drives' time when verification takes all that is left.
    pub drive_time: DriveTime,
    /// The constraints that are met, next to the tail. A plan's drives always have a new platter
    /// waiting, so the bounds on platter age and on two days of verification do not apply. Instead
    /// the verification in the measured window, the busiest, is compared with the ingest.
    pub constraints: Summary,
    /// Reads that could not be answered.
    pub failed: u64,
    /// Number of seeds it was run with.
    pub seeds: u32,
    /// When a run was stopped because a miss was certain, in simulated seconds. The tail is then a
    /// lower bound, and energy and shares are those up to there.
    pub given_up_s: Option<f64>,
}

impl Trial {
    /// Returns whether it meets all requirements.
    #[must_use]
    pub const fn is_enough(&self) -> bool {
        self.misses.is_empty()
    }

    /// Returns whether its reads are so slow that no candidate with less of anything can meet the
    /// requirements. One that only verifies too little may have too many shuttles, whose customer
    /// reads occupy the drives.
    #[must_use]
    pub fn rules_out_smaller(&self) -> bool {
        self.misses.iter().any(|miss| matches!(miss, Miss::Tail | Miss::Failed))
    }

    /// Returns whether its reads were seen to be fast enough in complete runs.
    pub(super) fn is_fast_enough(&self) -> bool {
        !self.rules_out_smaller() && self.given_up_s.is_none()
    }
}

/// What a run must decide; it ends once the result is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// All measurements, even if it misses.
    Whole,
    /// Whether reads are fast enough; all measurements if they are.
    Tail,
    /// Whether it misses anything. Verification is checked first, because that needs only a run to
    /// the end of the window.
    Verification,
}

/// Runs a candidate with one seed, as far as `depth` requires.
pub(super) fn examine(
    request: &PlanRequest,
    candidate: &Candidate,
    seed: u32,
    depth: Depth,
    runner: &dyn Runner,
) -> Result<FleetResult, Error> {
    let run = |stop| simulate(request, candidate, seed, stop, runner);
    let stop = Stop::Above(request.objective);
    match depth {
        Depth::Whole => run(Stop::Never),
        Depth::Tail => run(stop),
        Depth::Verification => {
            let window = run(Stop::WindowEnd)?;
            let misses = verify_margin(request, window.verified_bytes) < 1.0;
            if misses { Ok(window) } else { run(stop) }
        }
    }
}

/// Runs a candidate with one seed, up to where `stop` says.
pub(super) fn simulate(
    request: &PlanRequest,
    candidate: &Candidate,
    seed: u32,
    stop: Stop,
    runner: &dyn Runner,
) -> Result<FleetResult, Error> {
    let [measure_from, measure_until] = request.demand.window();
    let glass = &request.glass;
    let platters = request.platters().div_ceil(u64::from(candidate.libraries));
    let each = Scenario {
        system: SystemTag::Glass,
        library: candidate.shape(request),
        policy: Policy::named(&candidate.policy)?,
        mechanics: request.mechanics,
        throughput: candidate.throughput,
        track_size: glass.track_size,
        platters: u32::try_from(platters).unwrap_or(u32::MAX),
        shard_size: glass.shard_size,
        unavailable: request.unavailable,
        recovery_reads: glass.set.information,
        recovery: Recovery::Anywhere,
        workload: request.demand.workload(),
        writes: Writes::Saturated { platter_size: glass.platter_size },
        faults: Vec::new(),
        restores: None,
        battery: None,
        measure_from,
        measure_until,
    };
    let (demand, seed) = (&request.demand, u64::from(seed));
    let fleet = Fleet { each, libraries: candidate.libraries };
    fleet.run_reads(seed, demand.expected(), stop, || demand.reads(seed), runner)
}

/// Returns the bytes verified in the window over those that must be.
fn verify_margin(request: &PlanRequest, verified_bytes: u64) -> f64 {
    let [from, until] = request.demand.window().map(|at| at.as_secs_f64());
    let needed = request.verify_per_day() * (until - from) / 86_400.0;
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let margin = if needed > 0.0 { verified_bytes as f64 / needed } else { f64::MAX };
    margin
}

/// Checks the constraints. A run that was stopped within the window cannot
/// show how much it would have verified.
fn constraints(request: &PlanRequest, runs: &[FleetResult]) -> Summary {
    let [from, until] = request.demand.window().map(|at| at.as_secs_f64());
    let needed = request.verify_per_day() * (until - from) / 86_400.0;
    #[expect(clippy::cast_precision_loss, reason = "bytes and reads of a run are below 2^53")]
    let findings = |run: &FleetResult| {
        let saw_window = run.stopped.is_none_or(|at| at >= until);
        let missing = saw_window.then(|| (needed - run.verified_bytes as f64).max(0.0));
        [
            Finding { constraint: Constraint::VerifyWithin, missed_by: None },
            Finding { constraint: Constraint::VerifyAsMuch, missed_by: missing },
            Finding { constraint: Constraint::AnswerAll, missed_by: Some(run.failed as f64) },
        ]
    };
    let all: Vec<[Finding; 3]> = runs.iter().map(findings).collect();
    Summary::from_findings(&all, Some("a new platter always waits"))
}

/// Judges the runs of a candidate by the requirements.
pub(super) fn evaluate(
    request: &PlanRequest,
    candidate: &Candidate,
    runs: &[FleetResult],
) -> Trial {
    assert!(!runs.is_empty(), "a trial has at least one run");
    let worst = |value: fn(&FleetResult) -> f64| runs.iter().map(value).fold(0.0, f64::max);
    let count = f64::from(u32::try_from(runs.len()).unwrap_or(u32::MAX));
    let mean = |of: fn(&FleetResult) -> f64| runs.iter().map(of).sum::<f64>() / count;
    let verified = |runs: &mut dyn Iterator<Item = &FleetResult>| {
        runs.map(|run| verify_margin(request, run.verified_bytes)).reduce(f64::min)
    };
    // A run that was stopped within the window might have verified enough in the rest of it.
    let until = request.demand.window()[1].as_secs_f64();
    let saw_window = |run: &&FleetResult| run.stopped.is_none_or(|at| at >= until);
    let certain = verified(&mut runs.iter().filter(saw_window));
    let verify_margin = certain.or_else(|| verified(&mut runs.iter())).unwrap_or(0.0);
    let drive_time = DriveTime {
        read: mean(|run| run.drive_time.read),
        verify: mean(|run| run.drive_time.verify),
        switch: mean(|run| run.drive_time.switch),
        idle: mean(|run| run.drive_time.idle),
    };
    let verify = drive_time.verify / verify_margin.max(1.0);
    let utilization = (drive_time.read + drive_time.switch + verify).min(1.0);
    let constraints = constraints(request, runs);
    let costs = &request.costs;
    let kwh = |run| costs.kwh_per_day(candidate, run, utilization);
    let kwh_per_day = runs.iter().map(kwh).sum::<f64>() / count;
    let capital = costs.capital(candidate);
    let tail_s = worst(|run| run.completion.p999);
    let failed = runs.iter().map(|run| run.failed).sum();
    let objective = request.objective.as_secs_f64();
    let misses = [
        (Miss::Tail, tail_s > objective),
        (Miss::Failed, failed > 0 || runs.iter().any(|run| run.reads == 0)),
        (Miss::Verification, certain.is_some_and(|margin| margin < 1.0)),
    ];
    Trial {
        candidate: candidate.clone(),
        misses: misses.into_iter().filter(|(_, is)| *is).map(|(miss, _)| miss).collect(),
        cost: costs.total(capital, kwh_per_day),
        capital,
        kwh_per_day,
        tail_s,
        median_s: worst(|run| run.completion.p50),
        margin: 1.0 - tail_s / objective,
        verify_margin,
        utilization,
        drive_time,
        constraints,
        failed,
        seeds: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        given_up_s: runs.iter().filter_map(|run| run.stopped).reduce(f64::min),
    }
}
