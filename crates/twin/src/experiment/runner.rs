//! Who runs the jobs. The binary runs them on all cores, a test one after the other.

use std::sync::Arc;

use crate::glass::result::RunResult;
use crate::glass::scenario::Scenario;

/// One run of the twin: a pure function of the two.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is simulated.
    pub scenario: Arc<Scenario>,
    /// The seed.
    pub seed: u64,
}

/// What a run measured, or why there was none.
pub type JobResult = Result<RunResult, String>;

/// Runs jobs.
pub trait JobRunner {
    /// Runs every job once, in any order, and hands over each result as it comes, with the index of
    /// its job.
    fn run(&self, jobs: &[Job], done: &mut dyn FnMut(usize, JobResult));
}

/// How far the jobs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Jobs that are done.
    pub done: usize,
    /// All jobs.
    pub jobs: usize,
}
