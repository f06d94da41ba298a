//! The search for a plan, of any system: candidates in the order of their lower bound of cost,
//! until no remaining one can change the plan.
//!
//! The first seed of a candidate runs alone, because most misses show at once; then the others run
//! together. Parallelism changes no result.

use super::{Plan, Planner};
use crate::Error;
use crate::runner::{Runner, collect};

/// A planner whose candidates are searched one by one.
pub(crate) trait SearchProblem: Planner {
    /// A candidate.
    type Candidate: Ord + Sync;
    /// The measurements of one run.
    type Run: Send + Sync;

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

    /// Returns whether a trial shows that a candidate cannot meet the requirements. By default, no
    /// candidate rules out another.
    fn rules_out(_: &Self::Trial, _: &Self::Candidate) -> bool {
        false
    }
}

/// Searches for the cheapest candidates.
pub(crate) fn search<S: SearchProblem>(
    problem: &S,
    runs_max: u32,
    runner: &dyn Runner,
    on_trial: &mut dyn FnMut(&S::Trial),
) -> Result<Plan<S::Trial>, Error> {
    let mut candidates: Vec<(f64, S::Candidate)> = problem
        .candidates()
        .into_iter()
        .map(|candidate| (problem.cost_lower_bound(&candidate), candidate))
        .collect();
    candidates.sort_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.cmp(other)));
    let (mut tried, mut runs): (Vec<S::Trial>, u32) = (Vec::new(), 0);
    for (cost_lower_bound, candidate) in &candidates {
        // All later candidates cost at least as much.
        let second = two_cheapest(problem, &tried)[1]
            .map_or(f64::INFINITY, |trial| problem.verdict(trial).cost);
        if *cost_lower_bound >= second || runs >= runs_max {
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
    let [best, runner_up] = two_cheapest(problem, &tried).map(Option::<&S::Trial>::cloned);
    let (candidates, is_cut_short) = (candidates.len() as u64, runs >= runs_max);
    Ok(Plan { best, runner_up, runs, candidates, is_cut_short, tried })
}

/// Runs a candidate with all seeds, or only with the first if that misses.
pub(crate) fn examine<S: SearchProblem>(
    problem: &S,
    candidate: &S::Candidate,
    runner: &dyn Runner,
) -> Result<Vec<S::Run>, Error> {
    let mut results = vec![problem.run(candidate, 1)?];
    if problem.verdict(&problem.evaluate(candidate, &results)).is_enough {
        let others = problem.seeds().saturating_sub(1) as usize;
        for result in collect(runner, others, |number| problem.run(candidate, number as u64 + 2)) {
            results.push(result?);
        }
    }
    Ok(results)
}

/// Returns the two cheapest trials that meet the requirements.
fn two_cheapest<'a, S: SearchProblem>(
    problem: &S,
    tried: &'a [S::Trial],
) -> [Option<&'a S::Trial>; 2] {
    let verdicts = tried.iter().map(|trial| (problem.verdict(trial), trial));
    let mut enough: Vec<_> = verdicts.filter(|(verdict, _)| verdict.is_enough).collect();
    enough.sort_by(|(a, _), (b, _)| a.cost.total_cmp(&b.cost));
    [0, 1].map(|place| enough.get(place).map(|(_, trial)| *trial))
}
