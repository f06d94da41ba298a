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

mod body;
mod identify;
mod objects;
mod open;
mod pipe;
mod read_repairs;
mod repair;
mod staging;
mod upload;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fulgurite_disks::GroupId;
use fulgurite_tier::watch::Watch;
use fulgurite_tier::{NewObject, ObjectStoreError as _};
use fulgurite_units::{BlobId, ByteCount, Clock, RackId};
use futures::future::BoxFuture;
use tokio::sync::oneshot;

pub use open::RackOptions;
pub use repair::Report;

use self::read_repairs::ReadRepairs;
use self::staging::{Source, Staged, Staging};
use crate::driver::{Driver, Kind, Notification, Snapshot, Task};
use crate::error::LostStack;
use crate::format::Coding;
use crate::index::{Index, Mode, Object, ObjectRow};
use crate::limits::INLINE_BYTES_MAX;
use crate::work::{DiskContext, Group, Job, gc, repair_blob, write};
use crate::{Entropy, RackError, Result};

/// A rack as an object store. Clones refer to the same rack.
#[derive(Clone, Debug)]
pub struct RackStore(Arc<Inner>);

/// Shared state of an open rack.
#[derive(Debug)]
pub(crate) struct Inner {
    ctx: Arc<DiskContext>,
    driver: Driver,
    staging: Staging,
    clock: Clock,
    entropy: Entropy,
    coding: Coding,
    groups: Vec<GroupId>,
    writes: Mutex<Writes>,
    read_repairs: ReadRepairs,
}

/// Chooses the group for new blobs.
#[derive(Debug, Default)]
struct Writes {
    /// Index of the current group.
    group_index: usize,
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
        self.0.ctx.places.new_count() == 0
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
    /// with the commands. The rack does not wait for it: it learns what it missed.
    ///
    /// # Errors
    /// When it is stopping.
    pub async fn watch(&self) -> Result<Watch<Notification>> {
        self.0.driver.watch().await
    }

    /// Stops the rack: running operations finish, and all disks are spun down.
    pub fn stop(&self) {
        self.0.driver.stop();
    }
}

impl Inner {
    fn rack(&self) -> RackId {
        self.ctx.rack
    }

    fn ctx(&self) -> &DiskContext {
        &self.ctx
    }

    fn index(&self) -> &Index {
        &self.ctx.index
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
        let missing = || RackError::NotFound { key: key.to_owned() };
        self.index().object(key)?.ok_or_else(missing)
    }

    /// Puts an object. Returns its sequence once it is durable.
    async fn put(self: &Arc<Self>, object: NewObject, source: Source, length: u64) -> Result<u64> {
        let NewObject { key, attributes, mode, .. } = object;
        let modified_ms = self.clock.now().as_millis();
        let object = Object { key, modified_ms, attributes };
        // An object with attributes becomes a blob even if small, so that it can be recovered from
        // the disks.
        if length <= INLINE_BYTES_MAX && object.attributes.is_empty() {
            let mut bytes = Vec::new();
            let read = std::io::Read::read_to_end(&mut source.open(), &mut bytes);
            read.map_err(|error| RackError::Internal { detail: error.to_string() })?;
            return self.index().put_inline(object, bytes, mode).await;
        }
        self.check_precondition(&object.key, mode)?;
        self.put_blob(object, source, ByteCount::new(length), mode).await
    }

    /// Checks the condition before the bytes are written; the commit checks it again.
    fn check_precondition(&self, key: &str, mode: Mode) -> Result<()> {
        let found = self.index().object(key)?;
        if mode.is_met(found.map(|row| row.sequence)) {
            return Ok(());
        }
        Err(RackError::refused(mode, key))
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
                Err(error @ (RackError::Full { .. } | RackError::TooFewStacks { .. })) => {
                    tracing::warn!(%group, "a group accepts no blobs: {error}");
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
        let detail = match refused.last() {
            Some(last) => {
                format!("no group has space for a blob of {length}; the last error: {last}")
            }
            None => format!("no group has space for a blob of {length}"),
        };
        Err(RackError::Full { detail })
    }

    /// Returns the group for the next blob. Groups that rejected blobs come last; they may have
    /// space by now.
    fn next_group(&self, tried: &BTreeSet<GroupId>) -> Option<GroupId> {
        let mut writes = self.writes();
        let count = self.groups.len();
        let from = writes.group_index;
        let next = (from..from + count).map(|at| at % count);
        let mut open = next.filter(|&at| !tried.contains(&self.groups[at]));
        let at = open.clone().find(|&at| !writes.full.contains(&self.groups[at]));
        let at = at.or_else(|| open.next())?;
        writes.group_index = at;
        Some(self.groups[at])
    }

    async fn write_to(self: &Arc<Self>, group: GroupId, job: Job, bytes: ByteCount) -> Result<u64> {
        let (send, written) = oneshot::channel();
        let inner = Arc::clone(self);
        let work = move |ready: Result<&Group>| {
            let done = ready.and_then(|ready| {
                let done = write(inner.ctx(), ready, job);
                inner.gc(ready);
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
        written.await.unwrap_or(Err(RackError::Stopping))
    }

    /// Garbage-collects a group that spins anyway. A failure is logged, and retried next time.
    fn gc(&self, group: &Group) {
        match gc(self.ctx(), group) {
            Ok(collected) if collected.stacks > 0 => {
                self.writes().full.remove(&group.id);
                tracing::debug!(group = %group.id, stacks = collected.stacks, "garbage-collected");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(group = %group.id, "garbage collection failed: {error}"),
        }
    }

    /// Removes an object. Idempotent.
    async fn delete(&self, key: &str) -> Result<()> {
        self.index().delete(key).await.map(|_| ())
    }

    /// Schedules a repair of a blob after a read found faulty stacks (read repair).
    fn schedule_read_repair(self: &Arc<Self>, group: GroupId, blob: BlobId, lost: &[LostStack]) {
        if lost.iter().all(|lost| lost.fault.may_pass()) {
            // Their disks are away and will come back or be given up.
            return;
        }
        if !self.read_repairs.begin(blob, self.clock.passed()) {
            return;
        }
        let detail = crate::error::list(lost);
        tracing::warn!(%group, %blob, "stacks of a blob are lost: {detail}");
        let inner = Arc::clone(self);
        let work = move |ready: Result<&Group>| {
            let repaired = ready.and_then(|ready| repair_blob(inner.ctx(), ready, blob));
            let is_well = match &repaired {
                Ok(repaired) => repaired.as_ref().is_none_or(|repaired| repaired.still_lost() == 0),
                Err(_) => false,
            };
            inner.read_repairs.end(blob, is_well, inner.clock.passed());
            inner.ctx.unrepaired.set_count(inner.read_repairs.failed_count());
            match repaired {
                Ok(Some(repaired)) if repaired.still_lost() > 0 => {
                    let lost = repaired.still_lost();
                    tracing::error!(%group, %blob, lost, "a blob still lacks redundancy");
                    let detail = crate::error::list(&repaired.lost);
                    let detail = format!("it still lacks redundancy: {detail}");
                    inner.ctx.unrepaired.record(group, blob, detail);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%group, %blob, "cannot repair a blob: {error}");
                    inner.ctx.unrepaired.record(group, blob, error.to_string());
                }
            }
        };
        let (kind, bytes, work) = (Kind::Rebuild, ByteCount::ZERO, Box::new(work));
        let task = Task { group, kind, bytes, due: None, needs: None, work };
        if let Err(error) = self.driver.submit(task) {
            // A later read or a verification finds the blob again.
            self.read_repairs.end(blob, false, self.clock.passed());
            tracing::warn!(%group, %blob, "cannot repair a blob now: {error}");
        }
    }

    /// Writes pieces to a staged file.
    async fn stage(self: &Arc<Self>, pieces: Vec<Bytes>) -> Result<Arc<Staged>> {
        let inner = Arc::clone(self);
        let staged = tokio::task::spawn_blocking(move || inner.staging.stage(pieces));
        let panicked = |error| RackError::Internal { detail: format!("staging: {error}") };
        staged.await.map_err(panicked)?
    }
}
