//! Staged bodies, as seen by the glass tier.
//!
//! Glass knows a body only by its queue number. The object it belongs to, the key for its entry and
//! the rows that change on release are known only here.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::{KeyRange, KeyValue as _, ReadView, Transaction};
use fulgurite_glass::{
    self as platters, Backlog, Bodies, IngestedBody, KeepReason, PlacedShard, Platters, ReadAt,
    Released, WaitingBody, WriteAt,
};
use fulgurite_units::UnixTime;

use crate::bodies::cipher::cipher_bytes;
use crate::bodies::entry::Entry;
use crate::bodies::log::{Extent, LogKind, LogReader, LogWriter};
use crate::bodies::quarantine::quarantine;
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::rows::accounting::{account, dequeue};
use crate::rows::lookup::{queued_body, rows_in};
use crate::rows::{self, BODIES, LoggedBody, OBJECTS, Place, QUEUE, QueueRow, Queued, Shard};
use crate::state::ArchiveState;
use crate::tiers::schedule_copy_removal;
use crate::{ArchiveError, Result};

/// The staged bodies of an archive.
#[derive(Debug)]
pub(crate) struct StagedBodies(Arc<ArchiveState>);

impl StagedBodies {
    /// Returns the staged bodies of this archive.
    pub(crate) fn from_state(state: &Arc<ArchiveState>) -> Arc<dyn Bodies> {
        Arc::new(Self(Arc::clone(state)))
    }
}

/// Returns how many bytes of a body `placed` has without a gap, from its start.
fn placed_bytes(placed: &[Shard]) -> u64 {
    placed.iter().fold(
        0,
        |end, shard| {
            if shard.body_offset == end { end + shard.bytes } else { end }
        },
    )
}

/// Returns what planning needs to know of the body with this queue number.
fn waiting_in(view: &dyn ReadView, place: u64) -> Result<Option<WaitingBody>> {
    let Some((queue, object, body)) = queued_body(view, place)? else { return Ok(None) };
    let entry = Entry::new(view, &queue.name, &object, queue.index, &body)?;
    let names = KeyWriter::new().string(queue.name.bucket.as_str()).string(queue.name.key.as_str());
    let affinity_key = names.fixed(&queue.object_id.to_bytes()).u32(queue.index).finish();
    Ok(Some(WaitingBody {
        place,
        body: body.body_id,
        file: queue.object_id,
        affinity_key,
        bytes: cipher_bytes(body.bytes),
        from: placed_bytes(body.shards()),
        entry_bytes: u32::try_from(entry.sealed_bytes()?).unwrap_or(u32::MAX),
    }))
}

impl StagedBodies {
    fn each_waiting(
        &self,
        until: u64,
        wanted: &dyn Fn(u64) -> bool,
        take: &mut dyn FnMut(WaitingBody) -> ControlFlow<()>,
    ) -> Result<()> {
        let view = self.0.kv.snapshot();
        let mut from = Vec::new();
        loop {
            let range = KeyRange::between(from, rows::sequence_key(until + 1));
            let queued: Vec<(Vec<u8>, QueueRow)> =
                rows_in(&*view, QUEUE, &range, ROWS_PER_TRANSACTION_MAX)?;
            let Some((last, _)) = queued.last() else { return Ok(()) };
            from = rows::sequence_key(KeyReader::new(last).u64()? + 1);
            for (key, _) in queued {
                let place = KeyReader::new(&key).u64()?;
                if !wanted(place) {
                    continue;
                }
                if waiting_in(&*view, place)?.is_some_and(|found| take(found).is_break()) {
                    return Ok(());
                }
            }
        }
    }

    /// Opens the staged bytes of a body, pinned.
    fn pinned(&self, place: u64) -> Result<Option<LogReader>> {
        let found = queued_body(&*self.0.kv.snapshot(), place)?;
        let Some(log) = found.as_ref().and_then(|(_, _, body)| body.in_log()) else {
            return Ok(None);
        };
        let reader = self.0.log(LogKind::Staging).reader(log.extents.clone());
        // A delete removes the queue row first and may have freed the bytes before they were
        // pinned.
        let key = rows::sequence_key(place);
        Ok(self.0.kv.get(QUEUE, &key)?.map(|_| reader))
    }

    fn sealed_entry(&self, place: u64) -> Result<Option<Vec<u8>>> {
        let view = self.0.kv.snapshot();
        let Some((queue, object, body)) = queued_body(&*view, place)? else { return Ok(None) };
        let entry = Entry::new(&*view, &queue.name, &object, queue.index, &body)?;
        // The key was destroyed just now: nobody can open the entry any more, as intended.
        let key = match self.0.keys.load(body.key_slot, body.body_id) {
            Err(ArchiveError::Corrupt { .. }) => return Ok(None),
            key => key?,
        };
        entry.seal(&key, body.body_id).map(Some)
    }
}

impl Bodies for StagedBodies {
    fn backlog(&self) -> platters::Result<Backlog> {
        let totals = rows::totals(&*self.0.kv)?;
        Ok(Backlog { last: totals.sequence, bytes: totals.staged_bytes })
    }

    fn waiting(
        &self,
        until: u64,
        wanted: &dyn Fn(u64) -> bool,
        take: &mut dyn FnMut(WaitingBody) -> ControlFlow<()>,
    ) -> platters::Result<()> {
        Ok(self.each_waiting(until, wanted, take)?)
    }

    fn body(&self, place: u64) -> platters::Result<Option<IngestedBody>> {
        let found = queued_body(&*self.0.kv, place)?;
        Ok(found.map(|(_, _, body)| IngestedBody {
            body: body.body_id,
            bytes: cipher_bytes(body.bytes),
            digest: body.digest,
            placed: body.shards().to_vec(),
        }))
    }

    fn open(&self, place: u64) -> platters::Result<Option<Box<dyn ReadAt>>> {
        Ok(self.pinned(place)?.map(|reader| -> Box<dyn ReadAt> { Box::new(reader) }))
    }

    fn entry(&self, place: u64) -> platters::Result<Option<Vec<u8>>> {
        Ok(self.sealed_entry(place)?)
    }

    fn record_placed(
        &self,
        tx: &mut Transaction<'_>,
        safe: &[PlacedShard],
    ) -> platters::Result<Released> {
        let mut released = Released::default();
        let mut freed = Vec::new();
        for placed in safe {
            freed.extend(release(tx, placed, &mut released)?);
        }
        let state = Arc::clone(&self.0);
        released.on_commit = Some(Box::new(move || state.log(LogKind::Staging).free(&freed)));
        Ok(released)
    }

    fn keep_staged(
        &self,
        tx: &mut Transaction<'_>,
        places: &[u64],
        reason: KeepReason,
    ) -> platters::Result<()> {
        let now = self.0.now();
        places.iter().try_for_each(|&place| match reason {
            KeepReason::Damaged => Ok(quarantine(tx, place)?),
            KeepReason::Unreadable => Ok(reset_age(tx, place, now)?),
        })
    }

    fn requeue(
        &self,
        tx: &mut Transaction<'_>,
        places: &[u64],
    ) -> platters::Result<Option<RangeInclusive<u64>>> {
        Ok(requeue(tx, places, self.0.now())?)
    }
}

impl ReadAt for LogReader {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> platters::Result<()> {
        Ok(Self::read_at(self, offset, buffer)?)
    }
}

impl WriteAt for LogWriter {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> platters::Result<()> {
        Ok(Self::write_at(self, offset, bytes)?)
    }
}

/// Adds a shard on glass to a body's row. If the whole body is on glass, removes it from queue and
/// log and returns its freed extents.
fn release(
    tx: &mut Transaction<'_>,
    placed: &PlacedShard,
    released: &mut Released,
) -> Result<Vec<Extent>> {
    let &PlacedShard { place, shard } = placed;
    // The object was deleted meanwhile, or the body was released before a crash.
    let Some((queue, mut object, mut body)) = queued_body(tx, place)? else {
        return Ok(Vec::new());
    };
    let Place::Log(log) = &mut body.place else { return Err(not_staged(place)) };
    let Some(Queued::Glass { placed, .. }) = &mut log.queued else {
        return Err(not_staged(place));
    };
    let is_known = placed
        .iter()
        .any(|known| known.platter == shard.platter && known.body_offset == shard.body_offset);
    // If an earlier shard was lost with its platter, the body goes to another set from there on.
    if !is_known && shard.body_offset <= placed_bytes(placed) {
        let (before, stale): (Vec<Shard>, Vec<Shard>) = std::mem::take(placed)
            .into_iter()
            .partition(|known| known.body_offset + known.bytes <= shard.body_offset);
        Platters::release_shards(tx, &stale)?;
        *placed = before;
        placed.push(shard);
        released.bytes += shard.bytes;
    }
    let mut freed = Vec::new();
    if placed_bytes(placed) == cipher_bytes(body.bytes) {
        let shards = std::mem::take(placed);
        debug_assert_eq!(log.kind, LogKind::Staging, "archived bodies are staged");
        freed = log.all_extents();
        account(tx, log.kind, &freed, false)?;
        body.place = Place::Glass(shards);
        schedule_copy_removal(tx, &body)?;
        dequeue(tx, place)?;
        released.bodies += 1;
        object.bodies_staged -= 1;
        let is_done = object.bodies_staged == 0;
        released.files += u64::from(is_done);
        rows::put(tx, OBJECTS, rows::object_key_of(&queue.name), &object)?;
        rows::with_totals(tx, |totals| {
            if is_done {
                totals.objects_staged -= 1;
                totals.objects_on_glass += 1;
            }
        })?;
    }
    rows::put(tx, BODIES, rows::body_key(queue.object_id, queue.index), &body)?;
    Ok(freed)
}

/// Returns the error when a queue row names a body whose own row says otherwise: both change
/// together.
fn not_staged(place: u64) -> ArchiveError {
    let what = format!("body number {place} waits for glass, but its row does not say so");
    ArchiveError::Internal { what }
}

/// Restarts the age of a body that stays staged. Otherwise the next policy check would seal it
/// again, and so on until the library is full.
fn reset_age(tx: &mut Transaction<'_>, place: u64, now: UnixTime) -> Result<()> {
    let key = rows::sequence_key(place);
    let Some(mut row) = rows::get::<QueueRow>(tx, QUEUE, &key)? else { return Ok(()) };
    row.arrived = now;
    rows::put(tx, QUEUE, key, &row)
}

/// Moves bodies to the end of the queue and restarts their age, as for all that stay staged.
fn requeue(
    tx: &mut Transaction<'_>,
    places: &[u64],
    now: UnixTime,
) -> Result<Option<RangeInclusive<u64>>> {
    let mut range: Option<RangeInclusive<u64>> = None;
    for &place in places {
        // Deleted meanwhile, or moved before a crash.
        let Some((mut queue, _, mut body)) = queued_body(tx, place)? else { continue };
        let Place::Log(LoggedBody { queued: Some(Queued::Glass { sequence, .. }), .. }) =
            &mut body.place
        else {
            return Err(not_staged(place));
        };
        let new = rows::with_totals(tx, |totals| {
            totals.sequence += 1;
            totals.sequence
        })?;
        tx.delete(QUEUE, rows::sequence_key(place))?;
        queue.arrived = now;
        *sequence = new;
        rows::put(tx, BODIES, rows::body_key(queue.object_id, queue.index), &body)?;
        rows::put(tx, QUEUE, rows::sequence_key(new), &queue)?;
        range = Some(range.map_or(new..=new, |range| *range.start()..=new));
    }
    Ok(range)
}
