//! Keeps the live bytes of segments and the queue for glass in step with the rows of bodies, and
//! collects what a transaction leaves to destroy.

use std::collections::BTreeMap;

use fulgurite_catalog::Transaction;
use fulgurite_units::ObjectId;

use super::{BodyRow, DAMAGED, QUEUE, QueueRow, SEGMENTS};
use crate::bodies::log::{Extent, LogKind};
use crate::{Result, rows};

/// Keys to destroy and extents to free after a transaction has committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retired {
    pub(crate) keys: Vec<(u32, ObjectId)>,
    pub(crate) extents: Vec<(LogKind, Extent)>,
}

impl Retired {
    /// Removes extents from the live bytes of their segments, to be freed.
    pub(crate) fn remove(
        &mut self,
        tx: &mut Transaction<'_>,
        kind: LogKind,
        extents: &[Extent],
    ) -> Result<()> {
        self.extents.extend(extents.iter().map(|&extent| (kind, extent)));
        account(tx, kind, extents, false)
    }
}

/// Adds to, or subtracts from, the live bytes of each segment.
pub(crate) fn account(
    tx: &mut Transaction<'_>,
    kind: LogKind,
    extents: &[Extent],
    is_added: bool,
) -> Result<()> {
    let mut changed: BTreeMap<u32, u64> = BTreeMap::new();
    for extent in extents {
        *changed.entry(extent.segment).or_default() += extent.bytes;
    }
    for (segment, bytes) in changed {
        let key = rows::segment_key(kind, segment);
        let live: u64 = rows::get(tx, SEGMENTS, &key)?.unwrap_or(0);
        let live = if is_added { live + bytes } else { live.saturating_sub(bytes) };
        if live == 0 {
            tx.delete(SEGMENTS, key)?;
        } else {
            rows::put(tx, SEGMENTS, key, &live)?;
        }
    }
    Ok(())
}

/// Adds new bodies' extents to the live bytes of their segments.
pub(crate) fn account_bodies(tx: &mut Transaction<'_>, bodies: &[BodyRow]) -> Result<()> {
    for body in bodies {
        if let Some(log) = body.in_log() {
            account(tx, log.kind, &log.all_extents(), true)?;
        }
    }
    let slots = bodies.iter().map(|body| body.key_slot.saturating_add(1)).max();
    slots.map_or(Ok(()), |slots| rows::raise_key_slots(tx, slots))
}

/// Removes a body from the queue, or from those set aside.
pub(crate) fn dequeue(tx: &mut Transaction<'_>, sequence: u64) -> Result<()> {
    let key = rows::sequence_key(sequence);
    match rows::get::<QueueRow>(tx, QUEUE, &key)? {
        Some(queue) => {
            tx.delete(QUEUE, key)?;
            rows::with_totals(tx, |totals| totals.staged_bytes -= queue.bytes)
        }
        None => Ok(tx.delete(DAMAGED, key)?),
    }
}
