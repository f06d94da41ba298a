//! A worker pool for restores that need a CPU and no drive: reconstructing shards from a set, and
//! copying bodies that are still staged. The earliest due time goes first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_units::UnixTime;

use crate::jobs::{Failed, Job, JobHandle, JobRun, Next, Pace};
use crate::limits::{JOB_BACKOFF_MAX, JOB_TICK};

/// A work item, which sends its outcome as a message.
pub(super) type WorkItem = Box<dyn FnOnce() + Send>;

/// A waiting work item, ordered by due time, then by arrival.
#[derive(Default)]
struct Waiting {
    work: BTreeMap<(UnixTime, u64), WorkItem>,
    sequence: u64,
}

/// The queue of the worker pool. Clones share it.
#[derive(Clone)]
pub(super) struct WorkerPool(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    /// One for each worker's job.
    job_handles: Vec<JobHandle>,
}

/// A worker of the pool.
#[derive(Debug)]
pub(super) struct PoolWorker {
    worker_pool: WorkerPool,
    number: u32,
}

impl WorkerPool {
    /// Creates a pool for the jobs of these handles.
    pub(super) fn new(job_handles: Vec<JobHandle>) -> Self {
        Self(Arc::new(Shared { waiting: Mutex::default(), job_handles }))
    }

    /// Returns the job of one worker.
    pub(super) fn worker(&self, number: u32) -> PoolWorker {
        PoolWorker { worker_pool: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a work item.
    pub(super) fn add(&self, due: UnixTime, work: WorkItem) {
        {
            let mut waiting = self.lock();
            let sequence = waiting.sequence;
            waiting.sequence += 1;
            waiting.work.insert((due, sequence), work);
        }
        // A busy worker checks the queue again after its current item.
        self.0.job_handles.iter().for_each(JobHandle::notify);
    }

    fn take(&self) -> Option<WorkItem> {
        self.lock().work.pop_first().map(|(_, work)| work)
    }
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").field("waiting", &self.lock().work.len()).finish()
    }
}

impl Job for PoolWorker {
    fn name(&self) -> String {
        format!("restore-bench-{}", self.number)
    }

    fn pace(&self) -> Pace {
        Pace { tick: None, backoff: JOB_TICK, backoff_max: JOB_BACKOFF_MAX }
    }

    fn failing(&self) -> &'static str {
        "a piece of a restore was dropped"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        let Some(work) = self.worker_pool.take() else { return Ok(Next::Tick) };
        run.doing("putting a restored copy together");
        work();
        Ok(Next::Again)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use fulgurite_glass::Panics;
    use fulgurite_units::ManualClock;

    use super::*;
    use crate::jobs::Runner;

    #[test]
    fn earliest_due_item_runs_first() {
        let clock = ManualClock::at(UnixTime::from_millis(0)).clock();
        let handle = JobHandle::new(&clock);
        let (worker_pool, (sender, receiver)) = (WorkerPool::new(vec![handle.clone()]), channel());
        for (due, name) in [(3, "late"), (1, "soon"), (2, "later"), (1, "soon too")] {
            let sender = sender.clone();
            worker_pool
                .add(UnixTime::from_millis(due), Box::new(move || sender.send(name).unwrap()));
        }
        let runner = Runner::new(&clock, &Arc::<Panics>::default());
        runner.start_at(&handle, worker_pool.worker(1)).unwrap();
        let order: Vec<&str> = receiver.iter().take(4).collect();
        assert_eq!(order, ["soon", "soon too", "later", "late"]);
        worker_pool
            .add(UnixTime::from_millis(0), Box::new(move || sender.send("notified").unwrap()));
        assert_eq!(receiver.recv().unwrap(), "notified");
        runner.stop();
        assert_eq!(runner.join(), 0);
    }
}
