//! The interface that runs jobs: the twin owns no threads, so the caller provides a runner.

use std::sync::OnceLock;

/// Runs independent jobs.
pub trait Runner: Sync {
    /// Calls `job` once with each number below `count`, in any order, on any threads. Returns when
    /// all calls have returned.
    fn for_each(&self, count: usize, job: &(dyn Fn(usize) + Sync));
}

/// Runs one job after another, on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Runner for Serial {
    fn for_each(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(job);
    }
}

/// Returns the results of jobs, in the order of their numbers, whatever order they ran in.
///
/// # Panics
/// When the runner does not call a job exactly once.
pub(crate) fn collect<T: Send + Sync>(
    runner: &dyn Runner,
    count: usize,
    job: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let cells: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    runner.for_each(count, &|number| {
        let first = cells[number].set(job(number)).is_ok();
        assert!(first, "job {number} runs once");
    });
    let results: Vec<T> = cells.into_iter().filter_map(OnceLock::into_inner).collect();
    assert_eq!(results.len(), count, "every job runs");
    results
}
