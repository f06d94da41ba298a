//! The search: candidates in the order of what they cost at least, until nothing left can change
//! the plan.

use super::trial::{Trial, judge};
use super::{Candidate, Plan, PlanRequest};
use crate::Error;
use crate::engine::run;
use crate::rack::result::RunResult;
use crate::rack::run::Rack;
use crate::runner::{Runner, collect};

/// Searches. Of a candidate the first seed is run alone, for most of what is not enough shows at
/// once, and then the others together. Their number changes no result.
pub(super) fn search(
    request: &PlanRequest,
    runner: &dyn Runner,
    tell: &mut dyn FnMut(&Trial),
) -> Result<Plan, Error> {
    let mut candidates: Vec<(f64, Candidate)> = request
        .candidates()
        .into_iter()
        .map(|candidate| (request.costs.least(request, &candidate), candidate))
        .collect();
    candidates.sort_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.cmp(other)));
    let (mut tried, mut runs): (Vec<Trial>, u32) = (Vec::new(), 0);
    for (least, candidate) in &candidates {
        // All that follow cost at least as much.
        if *least >= two_cheapest(&tried)[1].map_or(f64::INFINITY, |trial| trial.cost) {
            break;
        }
        if runs >= request.runs_max {
            break;
        }
        let too_slow =
            |trial: &Trial| trial.rules_out_smaller() && trial.candidate.covers(candidate);
        if tried.iter().any(too_slow) {
            continue;
        }
        let results = examine(request, candidate, runner)?;
        runs += u32::try_from(results.len()).unwrap_or(u32::MAX);
        let trial = judge(request, candidate, &results);
        tell(&trial);
        tried.push(trial);
    }
    let [best, runner_up] = two_cheapest(&tried).map(Option::<&Trial>::cloned);
    Ok(Plan {
        best,
        runner_up,
        objective_s: request.objective.as_secs_f64(),
        user_bytes: request.user_bytes(),
        raw_bytes: request.raw_bytes(),
        seeds: request.seeds,
        runs,
        candidates: candidates.len(),
        is_cut_short: runs >= request.runs_max,
        currency: request.costs.currency.clone(),
        assumed: request.costs.assumed(),
        tried,
    })
}

/// Runs a candidate: with all seeds, or with the first, if that misses.
pub(super) fn examine(
    request: &PlanRequest,
    candidate: &Candidate,
    runner: &dyn Runner,
) -> Result<Vec<RunResult>, Error> {
    let scenario = request.scenario(candidate);
    let mut results = vec![run::<Rack>(&scenario, 1)?];
    if judge(request, candidate, &results).is_enough() {
        let others = request.seeds.saturating_sub(1) as usize;
        let more = collect(runner, others, |number| run::<Rack>(&scenario, number as u64 + 2));
        for result in more {
            results.push(result?);
        }
    }
    Ok(results)
}

/// The two cheapest that are enough.
fn two_cheapest(tried: &[Trial]) -> [Option<&Trial>; 2] {
    let mut enough: Vec<&Trial> = tried.iter().filter(|trial| trial.is_enough()).collect();
    enough.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    [enough.first().copied(), enough.get(1).copied()]
}
