//! The search over racks, on the common search.

use super::trial::{Trial, evaluate};
use super::{Candidate, Plan, PlanRequest};
use crate::Error;
use crate::engine::run;
use crate::plan_search::{self, SearchProblem, SearchResult};
use crate::rack::result::RunResult;
use crate::rack::run::Rack;
use crate::runner::Runner;

impl SearchProblem for PlanRequest {
    type Candidate = Candidate;
    type Run = RunResult;
    type Trial = Trial;

    fn candidates(&self) -> Vec<Candidate> {
        Self::candidates(self)
    }

    fn cost_lower_bound(&self, candidate: &Candidate) -> f64 {
        self.costs.cost_lower_bound(self, candidate)
    }

    fn run(&self, candidate: &Candidate, seed: u64) -> Result<RunResult, Error> {
        run::<Rack>(&self.scenario(candidate), seed)
    }

    fn evaluate(&self, candidate: &Candidate, runs: &[RunResult]) -> Trial {
        evaluate(self, candidate, runs)
    }

    fn outcome(trial: &Trial) -> (f64, bool) {
        (trial.cost, trial.is_enough())
    }

    fn rules_out(trial: &Trial, candidate: &Candidate) -> bool {
        trial.rules_out_smaller() && trial.candidate.covers(candidate)
    }

    fn seeds(&self) -> u32 {
        self.seeds
    }

    fn runs_max(&self) -> u32 {
        self.runs_max
    }
}

/// Searches for the cheapest candidates.
pub(super) fn search(
    request: &PlanRequest,
    runner: &dyn Runner,
    on_trial: &mut dyn FnMut(&Trial),
) -> Result<Plan, Error> {
    let found = plan_search::search(request, runner, on_trial)?;
    let SearchResult { best, runner_up, runs, candidates, is_cut_short, tried } = found;
    Ok(Plan {
        best,
        runner_up,
        objective_s: request.objective.as_secs_f64(),
        user_bytes: request.user_bytes(),
        raw_bytes: request.raw_bytes(),
        seeds: request.seeds,
        runs,
        candidates,
        is_cut_short,
        currency: request.costs.currency.clone(),
        assumed: request.costs.assumed(),
        tried,
    })
}
