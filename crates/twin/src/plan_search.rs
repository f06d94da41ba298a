//! The search for a plan, of any system: candidates in the order of what they cost at least, until
//! nothing left can change the plan.
//!
//! Of a candidate the first seed is run alone, for most of what is not enough shows at once, and
//! then the others together. Their number changes no result.

use crate::Error;
use crate::runner::{Runner, collect};

/// What is searched.
pub(crate) trait Searched: Sync {
    /// One way to build.
    type Candidate: Ord + Sync;
    /// What one run measures.
    type Run: Send + Sync;
    /// One that was run and judged.
    type Trial: Clone;

    /// Everything that is worth a run.
    fn candidates(&self) -> Vec<Self::Candidate>;

    /// What one costs at least.
    fn least(&self, of: &Self::Candidate) -> f64;

    /// Runs one.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn run(&self, of: &Self::Candidate, seed: u64) -> Result<Self::Run, Error>;

    /// Judges one by its runs.
    fn judge(&self, of: &Self::Candidate, runs: &[Self::Run]) -> Self::Trial;

    /// What it costs, and whether it is enough.
    fn outcome(trial: &Self::Trial) -> (f64, bool);

    /// Whether a trial shows that a candidate cannot be enough.
    fn rules_out(trial: &Self::Trial, candidate: &Self::Candidate) -> bool;

    /// Seeds that must all be enough.
    fn seeds(&self) -> u32;

    /// Runs after which the search ends.
    fn runs_max(&self) -> u32;
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) best: Option<T>,
    pub(crate) runner_up: Option<T>,
    pub(crate) runs: u32,
    pub(crate) candidates: usize,
    pub(crate) is_cut_short: bool,
    pub(crate) tried: Vec<T>,
}

/// Searches.
pub(crate) fn search<S: Searched>(
    of: &S,
    runner: &dyn Runner,
    tell: &mut dyn FnMut(&S::Trial),
) -> Result<Found<S::Trial>, Error> {
    let mut candidates: Vec<(f64, S::Candidate)> =
        of.candidates().into_iter().map(|candidate| (of.least(&candidate), candidate)).collect();
    candidates.sort_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.cmp(other)));
    let (mut tried, mut runs): (Vec<S::Trial>, u32) = (Vec::new(), 0);
    for (least, candidate) in &candidates {
        // All that follow cost at least as much.
        let second =
            two_cheapest::<S>(&tried)[1].map_or(f64::INFINITY, |trial| S::outcome(trial).0);
        if *least >= second || runs >= of.runs_max() {
            break;
        }
        if tried.iter().any(|trial| S::rules_out(trial, candidate)) {
            continue;
        }
        let results = examine(of, candidate, runner)?;
        runs += u32::try_from(results.len()).unwrap_or(u32::MAX);
        let trial = of.judge(candidate, &results);
        tell(&trial);
        tried.push(trial);
    }
    let [best, runner_up] = two_cheapest::<S>(&tried).map(Option::<&S::Trial>::cloned);
    let (candidates, is_cut_short) = (candidates.len(), runs >= of.runs_max());
    Ok(Found { best, runner_up, runs, candidates, is_cut_short, tried })
}

/// Runs a candidate: with all seeds, or with the first, if that misses.
pub(crate) fn examine<S: Searched>(
    of: &S,
    candidate: &S::Candidate,
    runner: &dyn Runner,
) -> Result<Vec<S::Run>, Error> {
    let mut results = vec![of.run(candidate, 1)?];
    if S::outcome(&of.judge(candidate, &results)).1 {
        let others = of.seeds().saturating_sub(1) as usize;
        for result in collect(runner, others, |number| of.run(candidate, number as u64 + 2)) {
            results.push(result?);
        }
    }
    Ok(results)
}

/// The two cheapest that are enough.
fn two_cheapest<S: Searched>(tried: &[S::Trial]) -> [Option<&S::Trial>; 2] {
    let mut enough: Vec<&S::Trial> = tried.iter().filter(|trial| S::outcome(trial).1).collect();
    enough.sort_by(|a, b| S::outcome(a).0.total_cmp(&S::outcome(b).0));
    [enough.first().copied(), enough.get(1).copied()]
}
