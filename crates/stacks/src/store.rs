//! An open rack: its index, its disks with their driver, and the object store over both.
//!
//! ```text
//! DIR/index      the index: which objects exist, and where
//! DIR/staging    bytes on their way to a blob; empty after a start
//! DIR/ledger     which disks were spun up, and why
//! ```
//!
//! What is written together is stored together: blobs go to one group until it is full, so reading
//! them again spins up one group.

mod identify;
mod mends;
mod objects;
mod open;
mod pipe;
mod progress;
mod reading;
mod repair;
mod staging;
mod upload;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fulgurite_disks::GroupId;
use fulgurite_keyed::Failure as _;
use fulgurite_units::{BlobId, ByteCount, Clock, RackId};
use futures::future::BoxFuture;
use tokio::sync::oneshot;

pub use open::{Entropy, RackOptions};
pub use progress::RepairProgress;
pub use repair::Report;

use self::mends::Mends;
use self::staging::{Source, Staged, Staging};
use crate::driver::{Driver, Kind, Seen, Snapshot, Task};
use crate::error::LostStack;
use crate::format::Coding;
use crate::index::{Index, Mode, Object, ObjectRow};
use crate::limits::INLINE_BYTES_MAX;
use crate::work::{Group, Job, Shop, mend, sweep, write};
use crate::{Result, StacksError};

/// A rack as an object store. Clones refer to the same rack.
#[derive(Clone, Debug)]
pub struct RackStore(Arc<Inner>);

/// Shared state of an open rack.
#[derive(Debug)]
pub(crate) struct Inner {
    shop: Arc<Shop>,
    driver: Driver,
    staging: Staging,
    clock: Clock,
    entropy: Entropy,
    coding: Coding,
    groups: Vec<GroupId>,
    writes: Mutex<Writes>,
    mends: Mends,
}

/// Where new blobs go.
#[derive(Debug, Default)]
struct Writes {
    /// Index of the current group.
    at: usize,
    /// Groups that lacked space or disks at the last attempt.
    full: BTreeSet<GroupId>,
}

impl RackStore {
    fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// Id of the rack.
    #[must_use]
    pub fn rack(&self) -> RackId {
        self.0.rack()
    }

    /// Whether every place has a disk that belongs to the rack, according to the index. Accesses no
    /// disk.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.shop.places.new_count() == 0
    }

    /// Returns a snapshot. Accesses no disk.
    ///
    /// # Errors
    /// When it is stopping.
    pub fn status(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(self.0.driver.snapshot())
    }

    /// Whether no read is running or waiting.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.0.driver.is_calm()
    }

    /// Adds a subscriber. It gets a snapshot of the rack, and then each event of its controller
    /// with the commands, until it returns false. The rack waits for it, so it must not block.
    ///
    /// # Errors
    /// When it is stopping.
    pub fn watch(&self, watcher: impl FnMut(Seen<'_>) -> bool + Send + 'static) -> Result<()> {
        self.0.driver.watch(Box::new(watcher))
    }

    /// Stops the rack: running operations finish, and all disks are spun down.
    pub fn stop(&self) {
        self.0.driver.stop();
    }
}

impl Inner {
    fn rack(&self) -> RackId {
        self.shop.rack
    }

    fn shop(&self) -> &Shop {
        &self.shop
    }

    fn index(&self) -> &Index {
        &self.shop.index
    }

    fn driver(&self) -> &Driver {
        &self.driver
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn writes(&self) -> MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up a key.
    fn object(&self, key: &str) -> Result<ObjectRow> {
        let missing = || StacksError::NotFound { key: key.to_owned() };
        self.index().object(key)?.ok_or_else(missing)
    }

    /// Puts an object. Returns its sequence once it is durable.
    async fn put(
        self: &Arc<Self>,
        key: &str,
        source: Source,
        length: u64,
        attributes: Vec<(String, String)>,
        mode: Mode,
    ) -> Result<u64> {
        let modified_ms = self.clock.now().as_millis();
        let object = Object { key: key.to_owned(), modified_ms, attributes };
        // An object with attributes becomes a blob even if small, so that it can be recovered from
        // the disks.
        if length <= INLINE_BYTES_MAX && object.attributes.is_empty() {
            let mut bytes = Vec::new();
            let read = std::io::Read::read_to_end(&mut source.open(), &mut bytes);
            read.map_err(|error| StacksError::Internal { what: error.to_string() })?;
            return self.index().put_inline(object, bytes, mode).await;
        }
        self.refuse_early(key, mode)?;
        self.put_blob(object, source, ByteCount::new(length), mode).await
    }

    /// Checks the condition before the bytes are written; the commit checks it again.
    fn refuse_early(&self, key: &str, mode: Mode) -> Result<()> {
        let found = self.index().object(key)?;
        if mode.is_met(found.map(|row| row.sequence)) {
            return Ok(());
        }
        Err(StacksError::refused(mode, key))
    }

    /// Writes a blob to the current group, or to the next if that one has no space.
    async fn put_blob(
        self: &Arc<Self>,
        object: Object,
        source: Source,
        length: ByteCount,
        mode: Mode,
    ) -> Result<u64> {
        let mut refused = Vec::new();
        let mut tried = BTreeSet::new();
        while let Some(group) = self.next_group(&tried) {
            tried.insert(group);
            let blob = BlobId::from_random(self.entropy.draw());
            let (object, bytes) = (object.clone(), source.open());
            let job = Job { blob, coding: self.coding, object, mode, length, bytes };
            match self.write_to(group, job, length).await {
                // Not the group's fault: every group would fail the same way, and all would be spun
                // up.
                Err(error) if error.is_exhausted() => return Err(error),
                Err(error @ (StacksError::Full { .. } | StacksError::TooFewStacks { .. })) => {
                    tracing::warn!(%group, "a group takes no blobs: {error}");
                    self.writes().full.insert(group);
                    refused.push(error.to_string());
                }
                ended => {
                    if ended.is_ok() {
                        self.writes().full.remove(&group);
                    }
                    return ended;
                }
            }
        }
        let what = match refused.last() {
            Some(last) => format!("no group takes a blob of {length}; the last said: {last}"),
            None => format!("no group takes a blob of {length}"),
        };
        Err(StacksError::Full { what })
    }

    /// Returns the group for the next blob. Groups that rejected blobs come last; they may have
    /// space by now.
    fn next_group(&self, tried: &BTreeSet<GroupId>) -> Option<GroupId> {
        let mut writes = self.writes();
        let count = self.groups.len();
        let from = writes.at;
        let next = (from..from + count).map(|at| at % count);
        let mut open = next.filter(|&at| !tried.contains(&self.groups[at]));
        let at = open.clone().find(|&at| !writes.full.contains(&self.groups[at]));
        let at = at.or_else(|| open.next())?;
        writes.at = at;
        Some(self.groups[at])
    }

    async fn write_to(self: &Arc<Self>, group: GroupId, job: Job, bytes: ByteCount) -> Result<u64> {
        let (send, written) = oneshot::channel();
        let inner = Arc::clone(self);
        let work = move |ready: Result<&Group>| {
            let done = ready.and_then(|ready| {
                let done = write(inner.shop(), ready, job);
                inner.sweep(ready);
                done
            });
            // The caller may have given up; the blob is committed all the same.
            let _ = send.send(done);
        };
        self.driver.submit(Task {
            group,
            kind: Kind::Write,
            bytes,
            due: None,
            needs: None,
            work: Box::new(work),
        })?;
        written.await.unwrap_or(Err(StacksError::Stopping))
    }

    /// Garbage-collects a group that spins anyway. A failure is logged, and retried next time.
    fn sweep(&self, group: &Group) {
        match sweep(self.shop(), group) {
            Ok(swept) if swept.stacks > 0 => {
                self.writes().full.remove(&group.id);
                tracing::debug!(group = %group.id, stacks = swept.stacks, "swept");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(group = %group.id, "a sweep failed: {error}"),
        }
    }

    /// Removes an object. Idempotent.
    async fn delete(&self, key: &str) -> Result<()> {
        self.index().delete(key).await.map(|_| ())
    }

    /// Schedules a repair of a blob after a read found faulty stacks (read repair).
    fn suspect(self: &Arc<Self>, group: GroupId, blob: BlobId, lost: &[LostStack]) {
        if lost.iter().all(|lost| lost.fault.may_pass()) {
            // Their disks are away and will come back or be given up.
            return;
        }
        if !self.mends.begin(blob, self.clock.passed()) {
            return;
        }
        let what = crate::error::list(lost);
        tracing::warn!(%group, %blob, "stacks of a blob are lost: {what}");
        let inner = Arc::clone(self);
        let work = move |ready: Result<&Group>| {
            let mended = ready.and_then(|ready| mend(inner.shop(), ready, blob));
            let is_well = match &mended {
                Ok(mended) => mended.as_ref().is_none_or(|mended| mended.still_lost() == 0),
                Err(_) => false,
            };
            inner.mends.end(blob, is_well, inner.clock.passed());
            inner.shop.unmended.set_count(inner.mends.in_vain());
            match mended {
                Ok(Some(mended)) if mended.still_lost() > 0 => {
                    let lost = mended.still_lost();
                    tracing::error!(%group, %blob, lost, "a blob stays below its redundancy");
                    let what = crate::error::list(&mended.lost);
                    let what = format!("it stays below its redundancy: {what}");
                    inner.shop.unmended.found(group, blob, what);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%group, %blob, "a blob is not mended: {error}");
                    inner.shop.unmended.found(group, blob, error.to_string());
                }
            }
        };
        let (kind, bytes, work) = (Kind::Rebuild, ByteCount::ZERO, Box::new(work));
        let task = Task { group, kind, bytes, due: None, needs: None, work };
        if let Err(error) = self.driver.submit(task) {
            // A later read or a verification finds the blob again.
            self.mends.end(blob, false, self.clock.passed());
            tracing::warn!(%group, %blob, "a blob is not mended now: {error}");
        }
    }

    /// Writes pieces to a staged file.
    async fn stage(self: &Arc<Self>, pieces: Vec<Bytes>) -> Result<Arc<Staged>> {
        let inner = Arc::clone(self);
        let staged = tokio::task::spawn_blocking(move || inner.staging.stage(pieces));
        let panicked = |error| StacksError::Internal { what: format!("staging: {error}") };
        staged.await.map_err(panicked)?
    }
}
