//! A worker pool for restores that need a CPU and no drive: reconstructing shards from a set, and
//! copying bodies that are still staged. The earliest due time goes first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_units::UnixTime;

use crate::jobs::{Bell, Failed, Job, Next, Pace, Turn};
use crate::limits::{JOB_REST_MAX, JOB_TICK};

/// A work item, which sends its outcome as a message.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// A waiting work item, ordered by due time, then by arrival.
#[derive(Default)]
struct Waiting {
    work: BTreeMap<(UnixTime, u64), Work>,
    sequence: u64,
}

/// The queue of the worker pool. Clones share it.
#[derive(Clone)]
pub(super) struct Bench(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    /// One for each worker's job.
    bells: Vec<Bell>,
}

/// A worker of the pool.
#[derive(Debug)]
pub(super) struct BenchWorker {
    bench: Bench,
    number: u32,
}

impl Bench {
    /// Creates a pool for the jobs of these handles.
    pub(super) fn new(bells: Vec<Bell>) -> Self {
        Self(Arc::new(Shared { waiting: Mutex::default(), bells }))
    }

    /// Returns the job of one worker.
    pub(super) fn worker(&self, number: u32) -> BenchWorker {
        BenchWorker { bench: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a work item.
    pub(super) fn add(&self, due: UnixTime, work: Work) {
        {
            let mut waiting = self.lock();
            let sequence = waiting.sequence;
            waiting.sequence += 1;
            waiting.work.insert((due, sequence), work);
        }
        // A busy worker checks the queue again after its current item.
        self.0.bells.iter().for_each(Bell::ring);
    }

    fn take(&self) -> Option<Work> {
        self.lock().work.pop_first().map(|(_, work)| work)
    }
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("waiting", &self.lock().work.len()).finish()
    }
}

impl Job for BenchWorker {
    fn name(&self) -> String {
        format!("restore-bench-{}", self.number)
    }

    fn pace(&self) -> Pace {
        Pace { tick: None, rest: JOB_TICK, rest_max: JOB_REST_MAX }
    }

    fn failing(&self) -> &'static str {
        "a piece of a restore was dropped"
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed> {
        let Some(work) = self.bench.take() else { return Ok(Next::Tick) };
        turn.doing("putting a restored copy together");
        work();
        Ok(Next::Again)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use fulgurite_platters::Panics;
    use fulgurite_units::ManualClock;

    use super::*;
    use crate::jobs::Runner;

    #[test]
    fn what_is_due_first_is_done_first() {
        let clock = ManualClock::at(UnixTime::from_millis(0)).clock();
        let bell = Bell::new(&clock);
        let (bench, (said, heard)) = (Bench::new(vec![bell.clone()]), channel());
        for (due, name) in [(3, "late"), (1, "soon"), (2, "later"), (1, "soon too")] {
            let said = said.clone();
            bench.add(UnixTime::from_millis(due), Box::new(move || said.send(name).unwrap()));
        }
        let runner = Runner::new(&clock, &Arc::<Panics>::default());
        runner.start_at(&bell, bench.worker(1)).unwrap();
        let order: Vec<&str> = heard.iter().take(4).collect();
        assert_eq!(order, ["soon", "soon too", "later", "late"]);
        bench.add(UnixTime::from_millis(0), Box::new(move || said.send("rung").unwrap()));
        assert_eq!(heard.recv().unwrap(), "rung");
        runner.stop();
        assert_eq!(runner.join(), 0);
    }
}
