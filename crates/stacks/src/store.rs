//! A rack that is open: its index, its disks with their driver, and the store of objects over both.
//!
//! ```text
//! DIR/index      the index: which objects there are, and where
//! DIR/staging    bytes on their way to a blob; empty after a start
//! DIR/ledger     who woke which disk, and why
//! ```
//!
//! What is written together lies together: blobs go to one group until it is full, so that who
//! reads them again wakes one group.

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

/// A rack as a store of objects. Clones are the same rack.
#[derive(Clone, Debug)]
pub struct RackStore(Arc<Inner>);

/// What everything that is asked of a rack works with.
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
    /// The group that they go to now, by its position.
    at: usize,
    /// Groups that had no room, or too few disks.
    full: BTreeSet<GroupId>,
}

impl RackStore {
    fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// Which rack it is.
    #[must_use]
    pub fn rack(&self) -> RackId {
        self.0.rack()
    }

    /// Whether every place has its disk, as far as the index knows: none still has to be taken.
    /// Asks no disk.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.shop.places.new_count() == 0
    }

    /// What goes on now. Asks no disk.
    ///
    /// # Errors
    /// When it is stopping.
    pub fn status(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(self.0.driver.snapshot())
    }

    /// Whether nobody reads from it, or waits to. Asks nobody.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.0.driver.is_calm()
    }

    /// Has somebody told what the rack is like, and from then on each event of its controller and
    /// what that said to it, until it returns false. The rack waits for it: it must not block.
    ///
    /// # Errors
    /// When it is stopping.
    pub fn watch(&self, watcher: impl FnMut(Seen<'_>) -> bool + Send + 'static) -> Result<()> {
        self.0.driver.watch(Box::new(watcher))
    }

    /// Ends it: what is under way is finished, all disks are put down.
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

    /// What is under a key.
    fn object(&self, key: &str) -> Result<ObjectRow> {
        let missing = || StacksError::NotFound { key: key.to_owned() };
        self.index().object(key)?.ok_or_else(missing)
    }

    /// Puts an object. Says its sequence when it is safe.
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
        // What says more of itself than its bytes has to be found again on the disks.
        if length <= INLINE_BYTES_MAX && object.attributes.is_empty() {
            let mut bytes = Vec::new();
            let read = std::io::Read::read_to_end(&mut source.open(), &mut bytes);
            read.map_err(|error| StacksError::Internal { what: error.to_string() })?;
            return self.index().put_inline(object, bytes, mode).await;
        }
        self.refuse_early(key, mode)?;
        self.put_blob(object, source, ByteCount::new(length), mode).await
    }

    /// What a commit would refuse now is not written first; the commit decides all the same.
    fn refuse_early(&self, key: &str, mode: Mode) -> Result<()> {
        let found = self.index().object(key)?;
        if mode.is_met(found.map(|row| row.sequence)) {
            return Ok(());
        }
        Err(StacksError::refused(mode, key))
    }

    /// Writes a blob to the group that blobs go to, and to the next when that one has no room.
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
                // No fault of the group: it would be the same in each, and wake them all.
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

    /// The group that blobs go to; behind those that took the last ones those that did not, which
    /// may have room by now.
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
            // Whoever put it may have left; it is committed all the same.
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

    /// Sweeps a group that spins anyway. A failure is told and comes again.
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

    /// Removes an object; done already when there is none.
    async fn delete(&self, key: &str) -> Result<()> {
        self.index().delete(key).await.map(|_| ())
    }

    /// Something is wrong with stacks of a blob that was read: they are made anew.
    fn suspect(self: &Arc<Self>, group: GroupId, blob: BlobId, lost: &[LostStack]) {
        if lost.iter().all(|lost| lost.fault.may_pass()) {
            // Their disks are away, and come back or are given up.
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
            // A later read or a verification finds it again.
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
