//! Tests the committer over a store in which the test lets each batch succeed, fail or panic. So
//! groups form where the test wants them, and no test waits for a clock.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::limits::{GROUP_BYTES_MAX, GROUP_CLOSURES_MAX, QUEUE_CLOSURES_MAX, REOPEN_BACKOFF_MIN};
use crate::{
    Batch, CatalogError, Committer, Direction, ErrorKind, KeyRange, KeyValue, MemoryStore,
    ReadView, Space, Ticket, Transaction, Visitor,
};

const ROWS: Space = Space::new("rows");

/// Outcome of the next batch.
enum BatchOutcome {
    Durable,
    Fails,
    Panics,
}

/// Requests of the committer to its store.
#[derive(Debug, PartialEq, Eq)]
enum StoreCall {
    /// Write a batch of this many rows.
    Batch(usize),
    /// Reopen.
    Reopen,
}

/// A store that reports each batch and each reopen, and blocks until the test decides its outcome.
/// Its check fails while `is_broken`.
struct GatedStore {
    inner: MemoryStore,
    arrived: Sender<StoreCall>,
    outcomes: Mutex<Receiver<BatchOutcome>>,
    is_broken: AtomicBool,
}

/// The test's side of a [`GatedStore`].
struct Gate {
    arrived: Receiver<StoreCall>,
    outcomes: Sender<BatchOutcome>,
}

impl Gate {
    /// Waits until a batch is at the gate. Returns its number of rows.
    fn batch(&self) -> usize {
        match self.arrived.recv().unwrap() {
            StoreCall::Batch(rows) => rows,
            StoreCall::Reopen => panic!("a batch, not a reopening"),
        }
    }

    /// Waits until the store is asked to reopen.
    fn reopening(&self) {
        assert_eq!(self.arrived.recv().unwrap(), StoreCall::Reopen);
    }

    fn open(&self, outcome: BatchOutcome) {
        self.outcomes.send(outcome).unwrap();
    }
}

fn gated() -> (Arc<GatedStore>, Gate) {
    let ((arrived, at_gate), (outcomes, decided)) = (channel(), channel());
    let inner = MemoryStore::new(&[ROWS]);
    let (fates_decided, is_broken) = (Mutex::new(decided), AtomicBool::new(false));
    let store = GatedStore { inner, arrived, outcomes: fates_decided, is_broken };
    (Arc::new(store), Gate { arrived: at_gate, outcomes })
}

impl ReadView for GatedStore {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        self.inner.get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        self.inner.scan(space, range, direction, visit)
    }
}

impl KeyValue for GatedStore {
    fn spaces(&self) -> &[Space] {
        self.inner.spaces()
    }

    fn snapshot(&self) -> Box<dyn ReadView> {
        self.inner.snapshot()
    }

    fn apply(&self, batch: Batch) -> Result<(), CatalogError> {
        self.arrived.send(StoreCall::Batch(batch.row_count())).unwrap();
        self.await_outcome()?;
        self.inner.apply(batch)
    }

    fn check(&self) -> Result<(), CatalogError> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(CatalogError::Poisoned { reason: "a flush failed".to_owned() });
        }
        Ok(())
    }

    fn reopen(&self) -> Result<(), CatalogError> {
        // A finished test does not receive any more.
        let _ = self.arrived.send(StoreCall::Reopen);
        self.await_outcome()?;
        self.is_broken.store(false, Ordering::SeqCst);
        Ok(())
    }
}

impl GatedStore {
    fn await_outcome(&self) -> Result<(), CatalogError> {
        // The lock is released first: a panic would poison it.
        let outcome = self.outcomes.lock().unwrap().recv();
        match outcome {
            Ok(BatchOutcome::Durable) => Ok(()),
            Ok(BatchOutcome::Fails) | Err(_) => {
                let source = Arc::new(std::io::Error::other("disk on fire"));
                Err(CatalogError::Io { action: "write a batch", source })
            }
            Ok(BatchOutcome::Panics) => panic!("engine on fire"),
        }
    }
}

/// Stands for the error type of a crate above, which closures return.
#[derive(Debug)]
enum UpperError {
    Catalog(CatalogError),
    Refused,
}

impl From<CatalogError> for UpperError {
    fn from(error: CatalogError) -> Self {
        Self::Catalog(error)
    }
}

fn put(committer: &Committer, key: &'static str) -> Ticket<(), CatalogError> {
    committer.submit_blocking(move |rows| rows.put(ROWS, key, key))
}

fn keys(view: &dyn ReadView) -> Vec<String> {
    let rows = view.range(ROWS, &KeyRange::all(), Direction::Ascending, usize::MAX).unwrap();
    rows.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn waiting_closures_share_one_durable_batch() {
    let (store, gate) = gated();
    let committer = Committer::start(Arc::clone(&store) as Arc<dyn KeyValue>).unwrap();
    let mut first = put(&committer, "first");
    assert_eq!(gate.batch(), 1);
    let mut rest: Vec<_> = ["a", "b", "c"].map(|key| put(&committer, key)).into();
    assert!(poll_once(&mut first).is_pending(), "no answer before the batch is durable");
    gate.open(BatchOutcome::Durable);
    first.wait().unwrap();

    assert_eq!(gate.batch(), 3, "waiting closures form one batch");
    assert!(rest.iter_mut().all(|ticket| poll_once(ticket).is_pending()));
    assert_eq!(keys(&*store), ["first"]);
    gate.open(BatchOutcome::Durable);
    rest.into_iter().for_each(|ticket| ticket.wait().unwrap());
    assert_eq!(keys(&*store), ["a", "b", "c", "first"]);

    let counts = committer.metrics().counts();
    assert_eq!((counts.groups, counts.groups_synced, counts.closures, counts.rows), (2, 2, 4, 4));
    assert_eq!(counts.group_sizes[..3], [1, 1, 0]);
}

#[test]
fn rejected_closure_leaves_no_trace() {
    let (store, gate) = gated();
    let committer = Committer::start(Arc::clone(&store) as Arc<dyn KeyValue>).unwrap();
    let first = put(&committer, "first");
    gate.batch();
    let accepted = put(&committer, "accepted");
    let rejected: Ticket<(), _> = committer.submit_blocking(|rows| {
        rows.put(ROWS, "rejected", "")?;
        rows.delete(ROWS, "accepted")?;
        Err(UpperError::Refused)
    });
    let panicked: Ticket<(), UpperError> = committer.submit_blocking(|rows| {
        rows.put(ROWS, "panicked", "")?;
        panic!("bug in {}", "a closure")
    });
    let seen = committer.submit_blocking(|rows| Ok::<_, CatalogError>(keys(rows)));
    gate.open(BatchOutcome::Durable);
    first.wait().unwrap();
    assert_eq!(gate.batch(), 1);
    gate.open(BatchOutcome::Durable);

    accepted.wait().unwrap();
    assert!(matches!(rejected.wait(), Err(UpperError::Refused)));
    let Err(UpperError::Catalog(error)) = panicked.wait() else { panic!("an error") };
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(error.to_string(), "transaction closure panicked: bug in a closure");
    assert_eq!(seen.wait().unwrap(), ["accepted", "first"]);
    assert_eq!(keys(&*store), ["accepted", "first"]);
    let counts = committer.metrics().counts();
    assert_eq!((counts.closures, counts.closures_rejected, counts.closures_panicked), (5, 2, 1));
}

/// Starts a committer that may reopen its store only while the flag is set.
fn with_reopen_gate(store: Arc<GatedStore>) -> (Committer, Arc<AtomicBool>) {
    let may_reopen = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&may_reopen);
    let before = Box::new(move |_: &CatalogError| flag.load(Ordering::SeqCst));
    (Committer::start_with(store, before).unwrap(), may_reopen)
}

#[test]
fn failed_batch_refuses_closures_until_reopen() {
    for (outcome, kind) in
        [(BatchOutcome::Fails, ErrorKind::Unavailable), (BatchOutcome::Panics, ErrorKind::Internal)]
    {
        let (store, gate) = gated();
        let (committer, may_reopen) = with_reopen_gate(Arc::clone(&store));
        let first = put(&committer, "first");
        gate.batch();
        let writer = put(&committer, "lost");
        let reader = committer.submit_blocking(|rows| rows.get(ROWS, b"lost"));
        let rejected = committer.submit_blocking(|_| Err::<(), _>(UpperError::Refused));
        gate.open(BatchOutcome::Durable);
        first.wait().unwrap();
        assert_eq!(committer.refusal(), None);
        gate.batch();
        gate.open(outcome);

        let lost = writer.wait().unwrap_err();
        assert!(lost.kind() == kind && lost.is_outcome_unknown(), "{lost}");
        assert_eq!(reader.wait().unwrap_err().kind(), kind, "it read a row that is lost");
        let Err(UpperError::Catalog(error)) = rejected.wait() else { panic!("the error") };
        assert_eq!(error.kind(), kind);
        let reason = committer.refusal().unwrap();
        assert!(reason.contains("on fire"), "{reason}");
        let later = put(&committer, "later").wait().unwrap_err();
        assert_eq!(later.kind(), ErrorKind::Unavailable, "no further batch is tried");
        assert!(!later.is_outcome_unknown() && later.to_string().contains("on fire"), "{later}");
        assert_eq!(keys(&*store), ["first"]);

        may_reopen.store(true, Ordering::SeqCst);
        gate.reopening();
        gate.open(BatchOutcome::Fails);
        gate.reopening();
        gate.open(BatchOutcome::Durable);
        // Queued behind the reopen, whose success the committer publishes before it runs this.
        let again = put(&committer, "again");
        assert_eq!(gate.batch(), 1);
        assert_eq!(committer.refusal(), None);
        gate.open(BatchOutcome::Durable);
        again.wait().unwrap();
        assert_eq!(keys(&*store), ["again", "first"]);
        let counts = committer.metrics().counts();
        assert_eq!((counts.groups_failed, counts.failures, counts.reopens), (1, 1, 1));
    }
}

#[test]
fn background_failure_reopens_an_idle_store() {
    let (store, gate) = gated();
    let committer = Committer::start(Arc::clone(&store) as Arc<dyn KeyValue>).unwrap();
    store.is_broken.store(true, Ordering::SeqCst);
    gate.reopening();
    assert!(committer.refusal().unwrap().contains("a flush failed"));
    gate.open(BatchOutcome::Durable);
    let ticket = put(&committer, "key");
    assert_eq!(gate.batch(), 1);
    gate.open(BatchOutcome::Durable);
    ticket.wait().unwrap();
    assert_eq!(committer.refusal(), None);
}

#[test]
fn repeated_failures_after_reopen_back_off() {
    let (store, gate) = gated();
    let committer = Committer::start(store).unwrap();
    for pause in [0, 1, 2, 4] {
        let ticket = put(&committer, "lost");
        gate.batch();
        let failed = Instant::now();
        gate.open(BatchOutcome::Fails);
        ticket.wait().unwrap_err();
        gate.reopening();
        assert!(failed.elapsed() >= REOPEN_BACKOFF_MIN * pause, "{pause} pauses: {failed:?}");
        gate.open(BatchOutcome::Durable);
    }
}

#[test]
fn requested_reopen_follows_queued_closures() {
    let (store, gate) = gated();
    let committer = Arc::new(Committer::start(store).unwrap());
    let first = put(&committer, "first");
    gate.batch();
    let before = put(&committer, "before");
    std::thread::scope(|scope| {
        let reopened = scope.spawn(|| committer.reopen_blocking());
        gate.open(BatchOutcome::Durable);
        first.wait().unwrap();
        assert_eq!(gate.batch(), 1);
        gate.open(BatchOutcome::Durable);
        before.wait().unwrap();
        gate.reopening();
        let after = put(&committer, "after");
        gate.open(BatchOutcome::Durable);
        reopened.join().unwrap().unwrap();
        assert_eq!(gate.batch(), 1);
        gate.open(BatchOutcome::Durable);
        after.wait().unwrap();
    });
    assert_eq!(committer.metrics().counts().failures, 0);
}

#[test]
fn group_without_writes_needs_no_batch() {
    let (store, gate) = gated();
    let committer = Committer::start(store).unwrap();
    let read = committer.commit_blocking(|rows| rows.get(ROWS, b"absent"));
    assert_eq!(read.unwrap(), None);
    assert!(gate.arrived.try_recv().is_err(), "no batch arrived");
    let counts = committer.metrics().counts();
    assert_eq!((counts.groups, counts.groups_synced), (1, 0));
}

#[test]
fn group_ends_at_its_byte_limit() {
    let (store, gate) = gated();
    let committer = Committer::start(store).unwrap();
    let first = put(&committer, "first");
    gate.batch();
    let tickets: Vec<_> = ["a", "b", "c"]
        .map(|key| {
            let value = vec![0; GROUP_BYTES_MAX * 2 / 3];
            committer.submit_blocking(move |rows| rows.put(ROWS, key, value))
        })
        .into();
    gate.open(BatchOutcome::Durable);
    first.wait().unwrap();
    for rows in [2, 1] {
        assert_eq!(gate.batch(), rows);
        gate.open(BatchOutcome::Durable);
    }
    tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
}

#[test]
fn full_queue_blocks_submitters() {
    let (store, gate) = gated();
    let committer = Committer::start(store).unwrap();
    let first = put(&committer, "first");
    gate.batch();
    let work = |rows: &mut Transaction<'_>| rows.put(ROWS, "key", "value");
    let mut tickets = Vec::new();
    for _ in 0..QUEUE_CLOSURES_MAX {
        let mut submit = Box::pin(committer.submit(work));
        let Poll::Ready(ticket) = poll_once(&mut submit) else { panic!("room in the queue") };
        tickets.push(ticket);
    }
    let mut waiting = Box::pin(committer.submit(work));
    assert!(poll_once(&mut waiting).is_pending());
    let mut given_up = Box::pin(committer.submit(work));
    assert!(poll_once(&mut given_up).is_pending());
    drop(given_up);

    let groups = QUEUE_CLOSURES_MAX.div_ceil(GROUP_CLOSURES_MAX) + 2;
    (0..groups).for_each(|_| gate.open(BatchOutcome::Durable));
    first.wait().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tickets.push(runtime.block_on(waiting));
    tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
    let answered = QUEUE_CLOSURES_MAX + 2;
    assert_eq!(
        committer.metrics().counts().closures,
        answered as u64,
        "abandoned closures are not counted"
    );
}

#[test]
fn dropping_the_committer_runs_queued_closures() {
    let store = Arc::new(MemoryStore::new(&[ROWS]));
    let committer = Committer::start(Arc::clone(&store) as Arc<dyn KeyValue>).unwrap();
    let tickets: Vec<_> = (0..500_u32)
        .map(|row| committer.submit_blocking(move |rows| rows.put(ROWS, row.to_le_bytes(), "")))
        .collect();
    let unwatched = put(&committer, "unwatched");
    drop(unwatched);
    drop(committer);
    tickets.into_iter().for_each(|ticket: Ticket<(), CatalogError>| ticket.wait().unwrap());
    assert_eq!(
        store.range(ROWS, &KeyRange::all(), Direction::Ascending, 1_000).unwrap().len(),
        501
    );
    assert_eq!(Arc::strong_count(&store), 1, "the thread dropped the store");
}

#[test]
fn closure_may_drop_the_last_handle() {
    let store = Arc::new(MemoryStore::new(&[ROWS]));
    let committer = Arc::new(Committer::start(store).unwrap());
    let (release, released) = channel::<()>();
    let handle = Arc::clone(&committer);
    let ticket = committer.submit_blocking(move |rows| {
        released.recv().unwrap();
        let counts = handle.metrics().counts();
        drop(handle);
        rows.put(ROWS, "key", "value")?;
        Ok::<_, CatalogError>(counts.closures)
    });
    drop(committer);
    release.send(()).unwrap();
    assert_eq!(ticket.wait().unwrap(), 0);
}

/// Reads a number and writes the next one, which reveals lost updates.
fn increment(rows: &mut Transaction<'_>) -> Result<u64, CatalogError> {
    let bytes = rows.get(ROWS, b"count")?.unwrap_or_else(|| vec![0; 8]);
    let count = u64::from_le_bytes(bytes.try_into().unwrap()) + 1;
    rows.put(ROWS, "count", count.to_le_bytes())?;
    Ok(count)
}

#[test]
fn closures_from_threads_and_tasks_run_serially() {
    let store = Arc::new(MemoryStore::new(&[ROWS]));
    let committer = Arc::new(Committer::start(store).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..100).for_each(|_| {
                    committer.commit_blocking(increment).unwrap();
                })
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut counts = runtime.block_on(async {
        let tasks: Vec<_> = (0..32)
            .map(|_| {
                let committer = Arc::clone(&committer);
                tokio::spawn(async move { committer.commit(increment).await.unwrap() })
            })
            .collect();
        let mut counts = Vec::new();
        for task in tasks {
            counts.push(task.await.unwrap());
        }
        counts
    });
    counts.sort_unstable();
    assert_eq!(counts, (401..=432).collect::<Vec<_>>(), "each closure saw the previous write");
}
