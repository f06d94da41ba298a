//! Moves bodies from the staging log to the tier that is their home, and removes bodies that
//! nothing names any more from tiers.
//!
//! ```text
//! PUT commits --> moves: body --(put, read back, commit)--> row names tier; its log bytes are free
//! DELETE      --> removals: tier, body --(removed)--> row is deleted
//! ```
//!
//! Each step is idempotent and may be interrupted: a body's name in a tier never changes. Each tier
//! has a job, which moves and then removes, so that nothing is removed while it is being written. A
//! job whose tier does not answer backs off; the others go on.

use std::sync::Arc;

use fulgurite_catalog::{Committer, FjallStore, KeyValue as _, ReadView as _, Transaction};
use fulgurite_units::{AffinityGroup, ByteCount, ErrorKind};
use futures::StreamExt as _;

use super::objects::OutgoingBody;
use super::runs;
use super::{EntryFile, ObjectTier};
use crate::bodies::cipher::cipher_bytes;
use crate::bodies::entry::Entry;
use crate::bodies::log::LogReader;
use crate::limits::TIER_BATCH;
use crate::model::classes::TierName;
use crate::rows::accounting::Retired;
use crate::rows::lookup::{object_of, rows_in};
use crate::rows::{
    self, BODIES, BodyRow, COPIES, DAMAGED, MOVES, OBJECTS, Place, QueueRow, REMOVALS,
};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// Processes the moves and removals of a tier.
#[derive(Debug)]
pub(crate) struct Mover {
    state: Arc<ArchiveState>,
    tier: Arc<ObjectTier>,
    /// A move was due, and bodies still wait.
    is_moving: bool,
    /// This run is recorded in the tier, or the tier is an older copy.
    is_run_recorded: bool,
}

/// A body that waits to be moved.
struct WaitingBody {
    sequence: u64,
    outgoing_body: Result<Option<OutgoingBody>>,
}

impl Mover {
    pub(crate) fn new(state: &Arc<ArchiveState>, tier: &Arc<ObjectTier>) -> Self {
        Self {
            state: Arc::clone(state),
            tier: Arc::clone(tier),
            is_moving: false,
            is_run_recorded: false,
        }
    }

    pub(crate) fn tier(&self) -> &TierName {
        self.tier.name()
    }

    /// Notifies tasks that wait for moves that the queue was processed.
    pub(crate) fn notify_polled(&self) {
        self.state.runtime.moves_polled.notify_waiters();
    }

    /// Processes the first waiting bodies; calls `on_begin` with what it does. `false` when nothing
    /// that waits can be done now.
    pub(crate) fn work(&mut self, on_begin: &dyn Fn(&'static str)) -> Result<bool> {
        self.state.check_stopping()?;
        let tier = Arc::clone(&self.tier);
        tier.wait(claim_tier((&self.state.kv, &self.state.committer), &tier))?;
        if !self.is_run_recorded && !tier.detects_older() {
            tier.wait(runs::count(&self.state, &tier))?;
            self.is_run_recorded = true;
        }
        let moved = self.is_move_due()? && self.move_batch(&tier, on_begin)?;
        self.is_moving = moved;
        let removed = self.remove_batch(&tier, on_begin)?;
        Ok(moved || removed)
    }

    /// Whether waiting bodies are to be moved now.
    fn is_move_due(&self) -> Result<bool> {
        if self.is_moving || self.tier.take_move_request() {
            return Ok(true);
        }
        let view = self.state.kv.snapshot();
        let first: Vec<(Vec<u8>, QueueRow)> =
            rows_in(&*view, MOVES, &rows::moves_range(self.tier.name()), 1)?;
        let Some((_, first)) = first.first() else { return Ok(false) };
        let waiting = ByteCount::new(rows::totals(&*view)?.moving_bytes);
        Ok(self.tier.move_policy().is_due(self.state.now(), first.arrived, waiting))
    }

    /// Moves the first bodies that wait for a tier; `false` when there are none.
    fn move_batch(&self, tier: &Arc<ObjectTier>, on_begin: &dyn Fn(&'static str)) -> Result<bool> {
        let view = self.state.kv.snapshot();
        let range = rows::moves_range(tier.name());
        let found: Vec<(Vec<u8>, QueueRow)> = rows_in(&*view, MOVES, &range, TIER_BATCH)?;
        drop(view);
        if found.is_empty() {
            return Ok(false);
        }
        on_begin("moving bodies");
        let mut waiting = Vec::with_capacity(found.len());
        for (key, queue) in found {
            let sequence = rows::parse_move_key(&key)?;
            let outgoing_body = match self.load(&queue) {
                Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
                outgoing_body => outgoing_body,
            };
            waiting.push(WaitingBody { sequence, outgoing_body });
        }
        tier.wait(tier.confirm())?;
        let puts = futures::stream::iter(waiting).map(|body| async move {
            let put = match body.outgoing_body {
                Ok(Some(outgoing_body)) => tier.move_in(outgoing_body).await.map(|()| true),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            (body.sequence, put)
        });
        let put: Vec<_> = tier.wait(puts.buffer_unordered(tier.bodies_at_once()).collect());
        // If a disk was unmounted meanwhile, its empty mount point accepted all of them.
        tier.wait(tier.confirm())?;
        self.state.runtime.fail.pass("move-written");
        self.commit(tier, put)?;
        Ok(true)
    }

    /// Opens a waiting body, pinned in its log; `None` if it was deleted meanwhile.
    fn load(&self, queue: &QueueRow) -> Result<Option<OutgoingBody>> {
        let view = self.state.kv.snapshot();
        let Some(object) = object_of(&*view, queue)? else { return Ok(None) };
        let key = rows::body_key(queue.object_id, queue.index);
        let Some(body) = rows::get::<BodyRow>(&*view, BODIES, &key)? else { return Ok(None) };
        let Some(log) = body.in_log() else { return Ok(None) };
        let reader = self.state.log(log.kind).reader(log.extents.clone());
        // A delete removes the row first and may have freed the bytes before they were pinned.
        if self.state.kv.get(BODIES, &key)?.is_none() {
            return Ok(None);
        }
        let entry = Entry::new(&*view, &queue.name, &object, queue.index, &body)?;
        outgoing_body(&self.state, &entry, &body, reader).map(Some)
    }

    /// Records the outcome of each body in its rows.
    fn commit(&self, tier: &ObjectTier, put: Vec<(u64, Result<bool>)>) -> Result<()> {
        let mut outcome = Ok(());
        let mut tickets = Vec::new();
        for (sequence, put) in put {
            let name = tier.name().clone();
            let is_there = match put {
                Ok(is_there) => is_there,
                Err(ArchiveError::Corrupt { what }) => {
                    tracing::error!(what, "a body is quarantined and stays staged");
                    let aside = move |tx: &mut Transaction<'_>| quarantine(tx, &name, sequence);
                    self.state.committer.commit_blocking(aside)?;
                    continue;
                }
                Err(error) => {
                    outcome = Err(error);
                    continue;
                }
            };
            let settle = move |tx: &mut Transaction<'_>| settle(tx, &name, sequence, is_there);
            // All are submitted before the first result is awaited, so that they share syncs.
            tickets.push(self.state.committer.submit_blocking(settle));
        }
        for ticket in tickets {
            let committed: Result<Retired> = ticket.wait();
            self.state.runtime.fail.pass("move-committed");
            match committed {
                Ok(retired) => self.state.free(&retired.extents),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// Removes the first bodies that nothing names any more; `false` when none can be removed now.
    fn remove_batch(
        &self,
        tier: &Arc<ObjectTier>,
        on_begin: &dyn Fn(&'static str),
    ) -> Result<bool> {
        let range = rows::removals_range(tier.name());
        let found: Vec<(Vec<u8>, u32)> =
            rows_in(&*self.state.kv.snapshot(), REMOVALS, &range, TIER_BATCH)?;
        if found.is_empty() {
            return Ok(false);
        }
        on_begin("removing unreferenced bodies");
        tier.wait(tier.confirm())?;
        let mut done = Vec::new();
        for (key, _) in found {
            let body = rows::parse_removal_key(&key)?;
            let is_named = || Ok(self.state.kv.get(REMOVALS, &key)?.is_some());
            if tier.wait(tier.remove(body, is_named))? {
                done.push((key, body));
            }
            self.state.runtime.fail.pass("move-removed");
        }
        // A missing body counts as removed, but not in the empty mount point of a disk that was
        // unmounted meanwhile.
        tier.wait(tier.confirm())?;
        let any = !done.is_empty();
        let tier = Arc::clone(tier);
        self.state.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            for (key, body) in done {
                // A task that copies it again has named it again.
                if !tier.is_pinned(body) {
                    tx.delete(REMOVALS, key)?;
                }
            }
            Ok(())
        })?;
        Ok(any)
    }
}

/// Returns a body with its sealed entry, ready for a tier. Its bytes are pinned in their log.
pub(super) fn outgoing_body(
    state: &ArchiveState,
    entry: &Entry,
    body: &BodyRow,
    reader: LogReader,
) -> Result<OutgoingBody> {
    let secret = state.keys.load(body.key_slot, body.body_id).map_err(|error| {
        // Any other error may be temporary: the key may be readable later.
        let ArchiveError::Corrupt { what } = error else { return error };
        ArchiveError::Corrupt { what: format!("key of staged body {}: {what}", body.body_id) }
    })?;
    let file = EntryFile {
        archive: state.archive,
        body: body.body_id,
        bytes: cipher_bytes(body.bytes),
        digest: body.digest,
        sealed: entry.record(&secret, body.body_id, state.now())?.sealed,
    };
    let affinity = AffinityGroup::of_key(entry.name.bucket.as_str(), entry.name.key.as_str());
    Ok(OutgoingBody { reader, file, affinity })
}

/// Claims a tier for this archive, and records that in the catalog, with the id of its store,
/// before anything is stored in it.
pub(super) async fn claim_tier(
    (kv, committer): (&FjallStore, &Committer),
    tier: &ObjectTier,
) -> Result<()> {
    tier.claim().await?;
    let is_known = rows::tiers::store(kv, tier.name())?.as_ref() == tier.store_id();
    if is_known && rows::tiers::is_claimed(kv, tier.name())? {
        return Ok(());
    }
    let (name, store) = (tier.name().clone(), tier.store_id().cloned());
    let note = move |tx: &mut Transaction<'_>| rows::tiers::record_claim(tx, &name, store);
    committer.commit(note).await
}

/// Records in its row that a body is in its tier. If it does not wait any more, it was deleted.
fn settle(
    tx: &mut Transaction<'_>,
    tier: &TierName,
    sequence: u64,
    is_there: bool,
) -> Result<Retired> {
    let mut retired = Retired::default();
    let key = rows::move_key(tier, sequence);
    let Some(queue) = rows::get::<QueueRow>(tx, MOVES, &key)? else { return Ok(retired) };
    // A delete removes the body from this queue, too.
    let impossible = || ArchiveError::Internal {
        what: format!(
            "body {} of object {} waits for a tier without staged bytes",
            queue.index, queue.object_id
        ),
    };
    let body_key = rows::body_key(queue.object_id, queue.index);
    let found = (object_of(tx, &queue)?, rows::get::<BodyRow>(tx, BODIES, &body_key)?);
    let (Some(mut object), Some(mut body)) = found else { return Err(impossible()) };
    let log = body.in_log().filter(|_| is_there).ok_or_else(impossible)?;
    retired.remove(tx, log.kind, &log.all_extents())?;
    schedule_copy_removal(tx, &body)?;
    body.place = Place::Tier(tier.clone());
    rows::put(tx, BODIES, body_key, &body)?;
    object.bodies_staged -= 1;
    rows::put(tx, OBJECTS, rows::object_key_of(&queue.name), &object)?;
    dequeue_move(tx, tier, sequence)?;
    if object.bodies_staged == 0 {
        rows::with_totals(tx, |totals| {
            totals.objects_staged -= 1;
            totals.objects_in_tiers += 1;
        })?;
    }
    Ok(retired)
}

/// Sets aside a body whose staged bytes are damaged: it waits for an operator, and for the next
/// start.
fn quarantine(tx: &mut Transaction<'_>, tier: &TierName, sequence: u64) -> Result<()> {
    let key = rows::move_key(tier, sequence);
    let Some(queue) = rows::get::<QueueRow>(tx, MOVES, &key)? else { return Ok(()) };
    rows::put(tx, DAMAGED, rows::sequence_key(sequence), &queue)?;
    dequeue_move(tx, tier, sequence)
}

/// Removes a body from those that wait for a tier, or from those set aside.
pub(crate) fn dequeue_move(tx: &mut Transaction<'_>, tier: &TierName, sequence: u64) -> Result<()> {
    let key = rows::move_key(tier, sequence);
    match rows::get::<QueueRow>(tx, MOVES, &key)? {
        Some(queue) => {
            tx.delete(MOVES, key)?;
            rows::with_totals(tx, |totals| totals.moving_bytes -= queue.bytes)
        }
        None => Ok(tx.delete(DAMAGED, rows::sequence_key(sequence))?),
    }
}

/// Queues a body for its tier.
pub(crate) fn enqueue(
    tx: &mut Transaction<'_>,
    tier: &TierName,
    sequence: u64,
    queue: &QueueRow,
) -> Result<()> {
    rows::put(tx, MOVES, rows::move_key(tier, sequence), queue)?;
    rows::with_totals(tx, |totals| totals.moving_bytes += queue.bytes)
}

/// Schedules the removal of the copy with which a body was acknowledged, because it is not staged
/// any more.
pub(crate) fn schedule_copy_removal(tx: &mut Transaction<'_>, body: &BodyRow) -> Result<()> {
    let key = rows::copy_key(body.body_id);
    let Some(tier) = rows::get::<TierName>(tx, COPIES, &key)? else { return Ok(()) };
    tx.delete(COPIES, key)?;
    rows::put(tx, REMOVALS, rows::removal_key(&tier, body.body_id), &body.key_slot)
}
