//! Threads that share jobs out: each takes the next one that nobody has.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use fulgurite_twin::Runner;
use fulgurite_twin::engine::{self, System};
use fulgurite_twin::experiment::{Job, JobResult, JobRunner};

/// As many threads as there are processors, unless somebody says otherwise.
pub(super) fn thread_count(asked: Option<NonZero<usize>>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    asked.map_or_else(processors, NonZero::get)
}

/// Does `work` with the numbers below `count`, and hands over each result as it comes.
pub(super) fn share<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    done: &mut dyn FnMut(usize, T),
) {
    let next = AtomicUsize::new(0);
    let (results, received) = sync_channel(threads.max(1));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            let (results, next, work) = (results.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || results.send((index, work(index))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        while let Ok((index, result)) = received.recv() {
            done(index, result);
        }
    });
}

/// Runs the twin's jobs on threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads(pub(super) usize);

impl Runner for Threads {
    fn for_each(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        share(self.0, count, job, &mut |_, ()| {});
    }
}

impl<S: System> JobRunner<S> for Threads {
    fn run(&self, jobs: &[Job<S::Scenario>], done: &mut dyn FnMut(usize, JobResult<S::Result>)) {
        let work = |index: usize| {
            let job = &jobs[index];
            engine::run::<S>(&job.scenario, job.seed).map_err(|error| error.to_string())
        };
        share(self.0, jobs.len(), work, done);
    }
}
