//! The interface that runs jobs. The binary runs them on all cores, a test one after the other.

use std::sync::Arc;

use crate::engine::System;

/// One run of the twin: a pure function of its fields.
#[derive(Clone, Debug)]
pub struct Job<C> {
    /// The scenario.
    pub scenario: Arc<C>,
    /// The seed.
    pub seed: u64,
}

/// The result of a run, or why it failed.
pub type JobResult<R> = Result<R, String>;

/// Runs jobs.
pub trait JobRunner<S: System> {
    /// Runs every job once, in any order. Passes each result to `done` as it arrives, with the
    /// index of its job.
    fn run(&self, jobs: &[Job<S::Scenario>], done: &mut dyn FnMut(usize, JobResult<S::Result>));
}

/// How many jobs are finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Finished jobs.
    pub done: usize,
    /// All jobs.
    pub jobs: usize,
}
