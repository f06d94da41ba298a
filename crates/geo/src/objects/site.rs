//! A site as one program sees it: its table, its blobs, its recent health, and its traffic.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_geo_core::{
    Answer, Command, Image, Request, Row, SiteIndex, SiteState, StepQuery, Verdict, Version,
    decode_answer, step_bytes,
};
use fulgurite_units::error_chain;
use tokio::time::Instant;

use crate::objects::limits::{DOWN_AFTER_FAILURES, DOWN_FOR, HEDGE_MIN, ROWS_CACHED_MAX};
use crate::objects::notification_queue::NotificationQueue;
use crate::stores::{
    Backoff, Blob, BlobError, Certainty, Decision, Entropy, Guess, Key, RemoteExecutor,
    Row as Stored, Table, TransactError, transact,
};

/// A site of a map.
pub(crate) struct Site {
    pub(crate) index: SiteIndex,
    pub(crate) name: String,
    pub(crate) table: Option<Arc<dyn Table>>,
    pub(crate) blobs: Option<Arc<dyn Blob>>,
    pub(crate) state: SiteState,
    health: Mutex<Health>,
    /// Rows as last written or read: if a row has not changed, a write takes one call.
    rows: Mutex<RowCache>,
    pub(crate) counts: Counts,
    pub(crate) notifications: NotificationQueue,
    /// Whether its table is an older copy, which is not used; and likewise for its blobs.
    is_table_older: AtomicBool,
    are_blobs_older: AtomicBool,
}

/// Cache of rows in two generations: when the younger one is full, the older one is dropped.
#[derive(Debug, Default)]
struct RowCache {
    young: BTreeMap<Key, Stored>,
    old: BTreeMap<Key, Stored>,
}

impl RowCache {
    fn get(&self, key: &Key) -> Option<Stored> {
        self.young.get(key).or_else(|| self.old.get(key)).cloned()
    }

    fn update(&mut self, key: &Key, row: Option<Stored>) {
        self.old.remove(key);
        match row {
            Some(row) => self.young.insert(key.clone(), row),
            None => self.young.remove(key),
        };
        if self.young.len() >= ROWS_CACHED_MAX {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("index", &self.index).field("name", &self.name).finish()
    }
}

/// Recent health of a site.
#[derive(Debug, Default)]
struct Health {
    /// Failures since the last answer.
    failures: u32,
    failed: Option<Instant>,
    /// The error of the last failure.
    last_error: Option<String>,
    /// Typical latency of rows, and of fragments, in seconds.
    row: Option<f64>,
    blob: Option<f64>,
}

/// Calls to a site and bytes moved since the program started.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) rows: AtomicU64,
    pub(crate) row_calls: AtomicU64,
    pub(crate) row_failures: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) blob_failures: AtomicU64,
}

impl Counts {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// Moving average of latencies: a new value has a weight of one eighth.
fn moving_average(before: Option<f64>, seconds: f64) -> f64 {
    before.map_or(seconds, |before| before + (seconds - before) / 8.0)
}

impl Site {
    pub(crate) fn new(
        (index, name): (SiteIndex, String),
        table: Option<Arc<dyn Table>>,
        blobs: Option<Arc<dyn Blob>>,
        state: SiteState,
    ) -> Self {
        let (health, rows, counts) = Default::default();
        let notifications = NotificationQueue::new();
        let (is_table_older, are_blobs_older) = Default::default();
        Self {
            index,
            name,
            table,
            blobs,
            state,
            health,
            rows,
            counts,
            notifications,
            is_table_older,
            are_blobs_older,
        }
    }

    /// Returns its table, unless that is an older copy, which has forgotten its promises.
    pub(crate) fn current_table(&self) -> Option<&dyn Table> {
        self.table.as_deref().filter(|_| !self.is_table_older())
    }

    /// Whether its table is an older copy.
    pub(crate) fn is_table_older(&self) -> bool {
        self.is_table_older.load(Ordering::SeqCst)
    }

    /// Whether its blobs are an older copy.
    pub(crate) fn are_blobs_older(&self) -> bool {
        self.are_blobs_older.load(Ordering::SeqCst)
    }

    /// Sets whether its table is an older copy. Returns whether that changed.
    pub(crate) fn set_table_older(&self, is_older: bool) -> bool {
        self.is_table_older.swap(is_older, Ordering::SeqCst) != is_older
    }

    /// Sets whether its blobs are an older copy. Returns whether that changed.
    pub(crate) fn set_blobs_older(&self, is_older: bool) -> bool {
        self.are_blobs_older.swap(is_older, Ordering::SeqCst) != is_older
    }

    fn health(&self) -> std::sync::MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it failed several times lately, or must not be used.
    pub(crate) fn is_down(&self) -> bool {
        if self.is_table_older() {
            return true;
        }
        let health = self.health();
        let lately = health.failed.is_some_and(|failed| failed.elapsed() < DOWN_FOR);
        health.failures >= DOWN_AFTER_FAILURES && lately
    }

    /// Its last error, while it is down.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.is_down().then(|| self.health().last_error.clone()).flatten()
    }

    /// Its distance: the typical latency of its rows.
    pub(crate) fn distance(&self) -> f64 {
        let health = self.health();
        health.row.or(health.blob).unwrap_or(0.0)
    }

    /// Returns the time after which another fragment is requested as well (hedged read).
    pub(crate) fn hedge_after(&self) -> std::time::Duration {
        let moving_average = self.health().blob.unwrap_or(0.0);
        std::time::Duration::from_secs_f64(moving_average * 3.0).max(HEDGE_MIN)
    }

    /// Records an answer and its latency, or a failure.
    fn record(&self, began: Instant, failure: Option<String>, is_row_call: bool) {
        let mut health = self.health();
        if failure.is_some() {
            health.failures = health.failures.saturating_add(1);
            health.failed = Some(Instant::now());
            health.last_error = failure;
            return;
        }
        health.failures = 0;
        let seconds = began.elapsed().as_secs_f64();
        let before = if is_row_call { &mut health.row } else { &mut health.blob };
        *before = Some(moving_average(*before, seconds));
    }

    /// Records the result of a blob call. A refusal counts as an answer.
    pub(crate) fn record_blob<T>(&self, began: Instant, done: &Result<T, BlobError>) {
        let failed = done.as_ref().err().filter(|error| error.certainty() != Certainty::Refused);
        if failed.is_some() {
            Counts::add(&self.counts.blob_failures, 1);
        }
        self.record(began, failed.map(|error| error_chain(error)), false);
    }

    /// Guesses a row before reading it: unchanged since last time or, for the first version of an
    /// object, missing.
    fn guess(&self, key: &Key, request: &Request) -> Guess {
        let known = self.rows.lock().unwrap_or_else(PoisonError::into_inner).get(key);
        match (&request.command, known) {
            // It has to be read in any case.
            (Command::Read, _) => Guess::Nothing,
            (_, Some(row)) => Guess::Row(row),
            (Command::PreAccept { version: Version(1), .. }, None) => Guess::Absent,
            (
                Command::PreAccept { .. }
                | Command::Learn
                | Command::Prepare { .. }
                | Command::Accept { .. }
                | Command::Restore { .. },
                None,
            ) => Guess::Nothing,
        }
    }

    /// Applies a request to a row: reads it, steps, and writes it back if it is still the same.
    /// None if the outcome is unknown, or the row is unreadable.
    pub(crate) async fn apply(
        &self,
        key: &Key,
        request: &Request,
        env: (&dyn Backoff, &Entropy),
    ) -> Option<(Verdict, Row)> {
        let table = self.current_table()?;
        let began = Instant::now();
        Counts::add(&self.counts.rows, 1);
        let done = match table.remote_executor() {
            Some(remote_executor) => self.transact_remotely(remote_executor, key, request).await,
            None => self.transact(table, key, request, env).await,
        };
        self.record(began, done.as_ref().err().map(|error| error_chain(error)), true);
        match done {
            Ok((answer, calls)) => {
                Counts::add(&self.counts.row_calls, u64::from(calls));
                match answer {
                    Ok(answer) => Some(answer),
                    Err(error) => {
                        let site = &*self.name;
                        tracing::error!(site, row = %key, %error, "a row is unreadable");
                        None
                    }
                }
            }
            Err(error) => {
                Counts::add(&self.counts.row_failures, 1);
                if !matches!(error, TransactError::Contended { .. }) {
                    let error = error_chain(&error);
                    tracing::warn!(site = %self.name, row = %key, %error, "a site did not answer");
                }
                None
            }
        }
    }

    /// Runs the transaction from here: one round trip per call to the table.
    async fn transact(
        &self,
        table: &dyn Table,
        key: &Key,
        request: &Request,
        (backoff, entropy): (&dyn Backoff, &Entropy),
    ) -> Result<(Answer, u32), TransactError> {
        let decide = |bytes: Option<&[u8]>| decide(bytes, request, self.state, entropy);
        let done = transact(table, key, self.guess(key, request), backoff, decide).await;
        let row = done.as_ref().ok().and_then(|done| done.row.clone());
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).update(key, row);
        done.map(|done| (done.result, done.calls))
    }

    /// Lets a node next to the table run the transaction: one round trip.
    async fn transact_remotely(
        &self,
        remote_executor: &dyn RemoteExecutor,
        key: &Key,
        request: &Request,
    ) -> Result<(Answer, u32), TransactError> {
        let is_likely_new = matches!(self.guess(key, request), Guess::Absent);
        let (request, standing) = (request.clone(), self.state);
        let query = StepQuery { request, standing, is_likely_new }.encode();
        let reply = remote_executor.transact(key, Bytes::from(query)).await?;
        let answer = decode_answer(&reply.answer).unwrap_or_else(Err);
        Ok((answer, reply.trips))
    }
}

fn decide(
    bytes: Option<&[u8]>,
    request: &Request,
    state: SiteState,
    entropy: &Entropy,
) -> Decision<Answer> {
    let nonce = || u128::from_le_bytes(entropy.draw());
    match step_bytes(bytes, request, state, nonce) {
        Ok(Image { stepped, bytes: Some(bytes) }) => {
            Decision::Write(Bytes::from(bytes), Ok((stepped.verdict, stepped.row)))
        }
        Ok(Image { stepped, bytes: None }) => Decision::Leave(Ok((stepped.verdict, stepped.row))),
        Err(error) => Decision::Leave(Err(error)),
    }
}
