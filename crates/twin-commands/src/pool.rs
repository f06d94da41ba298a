//! The thread pool of simulations.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use fulgurite_twin::Runner;

/// Returns the number asked for, or by default the number of processors.
pub(super) fn thread_count(requested: Option<NonZero<usize>>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    requested.map_or_else(processors, NonZero::get)
}

/// Runs the twin's jobs on this many threads: each takes the next job that is not taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadPool(pub(super) usize);

impl Runner for ThreadPool {
    fn for_each(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.0.clamp(1, count.max(1)) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            return;
                        }
                        job(index);
                    }
                });
            }
        });
    }
}
