//! Who runs the jobs. The binary runs them on all cores, a test one after the other.

use std::sync::Arc;

use crate::engine::System;

/// One run of the twin: a pure function of the two.
#[derive(Clone, Debug)]
pub struct Job<C> {
    /// What is simulated.
    pub scenario: Arc<C>,
    /// The seed.
    pub seed: u64,
}

/// What a run measured, or why there was none.
pub type JobResult<R> = Result<R, String>;

/// Runs jobs.
pub trait JobRunner<S: System> {
    /// Runs every job once, in any order, and hands over each result as it comes, with the index of
    /// its job.
    fn run(&self, jobs: &[Job<S::Scenario>], done: &mut dyn FnMut(usize, JobResult<S::Result>));
}

/// How far the jobs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Jobs that are done.
    pub done: usize,
    /// All jobs.
    pub jobs: usize,
}
