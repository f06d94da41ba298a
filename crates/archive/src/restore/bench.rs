//! Work for restores that takes a processor and no drive: shards put together out of a set, bodies
//! copied that are still staged. What is due first is done first.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fulgurite_units::UnixTime;

/// A piece of work.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Jobs that wait, by when they are due and then in their order.
#[derive(Default)]
struct Waiting {
    jobs: BTreeMap<(UnixTime, u64), Job>,
    sequence: u64,
    is_closed: bool,
}

/// Where jobs wait for whoever does them. Closed when it is dropped: what waits then is not done.
#[derive(Default)]
pub(super) struct Bench {
    shared: Arc<Shared>,
}

#[derive(Default)]
pub(super) struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until the bench is closed.
    pub(super) fn run(&self) {
        loop {
            let mut waiting = self.lock();
            let job = loop {
                if waiting.is_closed {
                    return;
                }
                if let Some((_, job)) = waiting.jobs.pop_first() {
                    break job;
                }
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            };
            drop(waiting);
            job();
        }
    }
}

impl Bench {
    /// For those who work.
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Has a job done.
    pub(super) fn add(&self, due: UnixTime, job: Job) {
        let mut waiting = self.shared.lock();
        let sequence = waiting.sequence;
        waiting.sequence += 1;
        waiting.jobs.insert((due, sequence), job);
        self.shared.changed.notify_one();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("waiting", &self.shared.lock().jobs.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_is_due_first_is_done_first_and_a_closed_bench_ends_its_workers() {
        let (bench, (said, heard)) = (Bench::default(), channel());
        for (due, name) in [(3, "late"), (1, "soon"), (2, "later"), (1, "soon too")] {
            let said = said.clone();
            bench.add(UnixTime::from_millis(due), Box::new(move || said.send(name).unwrap()));
        }
        let shared = bench.shared();
        let worker = std::thread::spawn(move || shared.run());
        let order: Vec<&str> = heard.iter().take(4).collect();
        assert_eq!(order, ["soon", "soon too", "later", "late"]);
        drop(bench);
        worker.join().unwrap();
    }
}
