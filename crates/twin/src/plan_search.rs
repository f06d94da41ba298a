//! The search for a plan, of any system: candidates in the order of their lower bound of cost,
//! until no remaining one can change the plan.
//!
//! The first seed of a candidate runs alone, because most misses show at once; then the others run
//! together. Parallelism changes no result.

use crate::Error;
use crate::runner::{Runner, collect};

/// A problem to search.
pub(crate) trait SearchProblem: Sync {
    /// A candidate.
    type Candidate: Ord + Sync;
    /// The measurements of one run.
    type Run: Send + Sync;
    /// A candidate after its runs, with its verdict.
    type Trial: Clone;

    /// Returns all candidates that are worth a run.
    fn candidates(&self) -> Vec<Self::Candidate>;

    /// Returns a lower bound of a candidate's cost.
    fn cost_lower_bound(&self, candidate: &Self::Candidate) -> f64;

    /// Runs a candidate.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn run(&self, candidate: &Self::Candidate, seed: u64) -> Result<Self::Run, Error>;

    /// Judges a candidate by its runs.
    fn evaluate(&self, candidate: &Self::Candidate, runs: &[Self::Run]) -> Self::Trial;

    /// Returns the cost, and whether the requirements are met.
    fn outcome(trial: &Self::Trial) -> (f64, bool);

    /// Returns whether a trial shows that a candidate cannot meet the requirements.
    fn rules_out(trial: &Self::Trial, candidate: &Self::Candidate) -> bool;

    /// Returns the number of seeds, all of which must meet the requirements.
    fn seeds(&self) -> u32;

    /// Returns the number of runs after which the search stops.
    fn runs_max(&self) -> u32;
}

/// The result of a search.
#[derive(Debug)]
pub(crate) struct SearchResult<T> {
    pub(crate) best: Option<T>,
    pub(crate) runner_up: Option<T>,
    pub(crate) runs: u32,
    pub(crate) candidates: usize,
    pub(crate) is_cut_short: bool,
    pub(crate) tried: Vec<T>,
}

/// Searches for the cheapest candidates.
pub(crate) fn search<S: SearchProblem>(
    problem: &S,
    runner: &dyn Runner,
    on_trial: &mut dyn FnMut(&S::Trial),
) -> Result<SearchResult<S::Trial>, Error> {
    let mut candidates: Vec<(f64, S::Candidate)> = problem
        .candidates()
        .into_iter()
        .map(|candidate| (problem.cost_lower_bound(&candidate), candidate))
        .collect();
    candidates.sort_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.cmp(other)));
    let (mut tried, mut runs): (Vec<S::Trial>, u32) = (Vec::new(), 0);
    for (cost_lower_bound, candidate) in &candidates {
        // All later candidates cost at least as much.
        let second =
            two_cheapest::<S>(&tried)[1].map_or(f64::INFINITY, |trial| S::outcome(trial).0);
        if *cost_lower_bound >= second || runs >= problem.runs_max() {
            break;
        }
        if tried.iter().any(|trial| S::rules_out(trial, candidate)) {
            continue;
        }
        let results = examine(problem, candidate, runner)?;
        runs += u32::try_from(results.len()).unwrap_or(u32::MAX);
        let trial = problem.evaluate(candidate, &results);
        on_trial(&trial);
        tried.push(trial);
    }
    let [best, runner_up] = two_cheapest::<S>(&tried).map(Option::<&S::Trial>::cloned);
    let (candidates, is_cut_short) = (candidates.len(), runs >= problem.runs_max());
    Ok(SearchResult { best, runner_up, runs, candidates, is_cut_short, tried })
}

/// Runs a candidate with all seeds, or only with the first if that misses.
pub(crate) fn examine<S: SearchProblem>(
    problem: &S,
    candidate: &S::Candidate,
    runner: &dyn Runner,
) -> Result<Vec<S::Run>, Error> {
    let mut results = vec![problem.run(candidate, 1)?];
    if S::outcome(&problem.evaluate(candidate, &results)).1 {
        let others = problem.seeds().saturating_sub(1) as usize;
        for result in collect(runner, others, |number| problem.run(candidate, number as u64 + 2)) {
            results.push(result?);
        }
    }
    Ok(results)
}

/// Returns the two cheapest trials that meet the requirements.
fn two_cheapest<S: SearchProblem>(tried: &[S::Trial]) -> [Option<&S::Trial>; 2] {
    let mut enough: Vec<&S::Trial> = tried.iter().filter(|trial| S::outcome(trial).1).collect();
    enough.sort_by(|a, b| S::outcome(a).0.total_cmp(&S::outcome(b).0));
    [enough.first().copied(), enough.get(1).copied()]
}
