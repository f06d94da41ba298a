//! Transactions that create and delete objects, and the cleanup that each leaves to
//! `ArchiveState::finish_retired`.

use std::collections::BTreeMap;

use fulgurite_catalog::{KeyRange, ReadView, Space, Transaction, row};
use fulgurite_glass::Platters;
use fulgurite_units::ObjectId;

use crate::bodies::log::{Extent, LogKind};
use crate::objects::classes::Home;
use crate::objects::names::{BucketName, ObjectKey, ObjectName};
use crate::objects::object::WriteCondition;
use crate::rows::{
    self, BODIES, BUCKETS, BodyRow, BucketRow, CHECKSUMS, DAMAGED, EXPIRIES, FAILED, OBJECTS,
    ObjectRow, Place, QUEUE, QueueRow, Queued, REMOVALS, RESTORES, Row, SEGMENTS, SHREDS,
    UNCONFIRMED, UnconfirmedRow,
};
use crate::{ArchiveError, Result, tiers};

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

/// Returns the first `limit` rows of `range` with their keys.
pub(crate) fn rows_in<T: Row>(
    view: &dyn ReadView,
    space: Space,
    range: &KeyRange,
    limit: usize,
) -> Result<Vec<(Vec<u8>, T)>> {
    Ok(row::rows_in(view, space, range, limit)?)
}

/// Returns the object of a queue row, if it still exists.
pub(crate) fn object_of(view: &dyn ReadView, queue: &QueueRow) -> Result<Option<ObjectRow>> {
    let found = find_object(view, &queue.name.bucket, &queue.name.key)?;
    Ok(found.filter(|row| row.object_id == queue.object_id))
}

/// Returns object and body of a queue row, if both still exist.
pub(crate) fn queued_body(
    view: &dyn ReadView,
    sequence: u64,
) -> Result<Option<(QueueRow, ObjectRow, BodyRow)>> {
    let queue: Option<QueueRow> = rows::get(view, QUEUE, &rows::sequence_key(sequence))?;
    let Some(queue) = queue else { return Ok(None) };
    let Some(object) = object_of(view, &queue)? else { return Ok(None) };
    let body: Option<BodyRow> =
        rows::get(view, BODIES, &rows::body_key(queue.object_id, queue.index))?;
    Ok(body.map(|body| (queue, object, body)))
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

/// Returns the bodies of an object, in order.
pub(crate) fn bodies(view: &dyn ReadView, object: &ObjectRow) -> Result<Vec<BodyRow>> {
    let range = rows::bodies_range(object.object_id);
    let found: Vec<(Vec<u8>, BodyRow)> = rows_in(view, BODIES, &range, usize::MAX)?;
    if found.len() != object.body_count as usize {
        return Err(ArchiveError::Corrupt {
            what: format!(
                "object {} has {} of {} bodies in the catalog",
                object.object_id,
                found.len(),
                object.body_count
            ),
        });
    }
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

pub(crate) fn require_bucket(view: &dyn ReadView, bucket: &BucketName) -> Result<BucketRow> {
    rows::get(view, BUCKETS, &rows::bucket_key(bucket.as_str()))?
        .ok_or_else(|| ArchiveError::NoSuchBucket { bucket: bucket.to_string() })
}

pub(crate) fn find_object(
    view: &dyn ReadView,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<Option<ObjectRow>> {
    rows::get(view, OBJECTS, &rows::object_key(bucket.as_str(), key.as_str()))
}

pub(crate) fn require_object(
    view: &dyn ReadView,
    bucket: &BucketName,
    key: &ObjectKey,
) -> Result<ObjectRow> {
    match find_object(view, bucket, key)? {
        Some(row) => Ok(row),
        None => {
            require_bucket(view, bucket)?;
            Err(ArchiveError::NoSuchKey { bucket: bucket.to_string(), key: key.to_string() })
        }
    }
}

pub(crate) fn check_condition(
    condition: &WriteCondition,
    current: Option<&ObjectRow>,
    key: &ObjectKey,
    bucket: &BucketName,
) -> Result<()> {
    if condition.absent && current.is_some() {
        return Err(ArchiveError::PreconditionFailed { condition: "If-None-Match" });
    }
    if let Some(object) = condition.object
        && current.is_none_or(|row| row.object_id != object)
    {
        return Err(ArchiveError::PreconditionFailed { condition: "that the object is the same" });
    }
    match (&condition.etag, current) {
        (None, _) => Ok(()),
        (Some(_), None) => {
            Err(ArchiveError::NoSuchKey { bucket: bucket.to_string(), key: key.to_string() })
        }
        (Some(etag), Some(row)) if etag == "*" || *etag == row.etag => Ok(()),
        (Some(_), Some(_)) => Err(ArchiveError::PreconditionFailed { condition: "If-Match" }),
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

/// Writes an object, replacing any previous one, and returns what that leaves to destroy.
pub(crate) fn insert_object(
    tx: &mut Transaction<'_>,
    bucket: &BucketName,
    key: &ObjectKey,
    mut row: ObjectRow,
    mut bodies: Vec<BodyRow>,
) -> Result<Retired> {
    let mut retired = Retired::default();
    remove_object(tx, bucket, key, &mut retired)?;
    assert_eq!(row.body_count as usize, bodies.len(), "an object counts its bodies");
    let is_staged = row.home != Home::Online;
    row.bodies_staged = if is_staged { row.body_count } else { 0 };
    for (index, body) in (0..).zip(&mut bodies) {
        if is_staged {
            let Place::Log(log) = &mut body.place else {
                let what = format!("body {} is in no log before it is committed", body.body_id);
                return Err(ArchiveError::Internal { what });
            };
            let sequence = rows::with_totals(tx, |totals| {
                totals.sequence += 1;
                totals.sequence
            })?;
            let queue = QueueRow {
                object_id: row.object_id,
                index,
                name: ObjectName::new(bucket, key, row.version),
                arrived: row.modified,
                bytes: body.bytes,
            };
            match &row.home {
                Home::Tier(tier) => {
                    log.queued = Some(Queued::Tier { sequence, tier: tier.clone() });
                    tiers::enqueue(tx, tier, sequence, &queue)?;
                }
                Home::Glass | Home::Online => {
                    log.queued = Some(Queued::Glass { sequence, placed: Vec::new() });
                    rows::with_totals(tx, |totals| totals.staged_bytes += body.bytes)?;
                    rows::put(tx, QUEUE, rows::sequence_key(sequence), &queue)?;
                }
            }
        }
        rows::put(tx, BODIES, rows::body_key(row.object_id, index), body)?;
    }
    let residence = row.residence();
    rows::with_totals(tx, |totals| *totals.objects(residence) += 1)?;
    rows::put(tx, OBJECTS, rows::object_key(bucket.as_str(), key.as_str()), &row)?;
    Ok(retired)
}

/// Retires unconfirmed bodies within `range`. A put or delete of a name supersedes them, whatever
/// the outcome of the earlier uploads.
pub(crate) fn retire_unconfirmed(
    tx: &mut Transaction<'_>,
    range: &KeyRange,
    retired: &mut Retired,
) -> Result<()> {
    let count = rows::unconfirmed_count(tx)?;
    // Nearly always zero: one row is read instead of a scan.
    if count == 0 {
        return Ok(());
    }
    let found: Vec<(Vec<u8>, UnconfirmedRow)> = rows_in(tx, UNCONFIRMED, range, usize::MAX)?;
    rows::set_unconfirmed_count(tx, count.saturating_sub(found.len() as u64))?;
    for (key, row) in found {
        retire_body(tx, &row.body, retired)?;
        tx.delete(UNCONFIRMED, key)?;
    }
    Ok(())
}

/// Removes an object from the catalog, and all unconfirmed bodies of its name; `false` when there
/// is no object.
pub(crate) fn remove_object(
    tx: &mut Transaction<'_>,
    bucket: &BucketName,
    key: &ObjectKey,
    retired: &mut Retired,
) -> Result<bool> {
    retire_unconfirmed(tx, &rows::unconfirmed_range(bucket.as_str(), key.as_str()), retired)?;
    let Some(row) = find_object(tx, bucket, key)? else { return Ok(false) };
    for (index, body) in (0..).zip(bodies(tx, &row)?) {
        retire_body(tx, &body, retired)?;
        tx.delete(BODIES, rows::body_key(row.object_id, index))?;
        if row.part_count.is_some() {
            tx.delete(CHECKSUMS, rows::body_key(row.object_id, index))?;
        }
    }
    if let Some(mark) = row.restore {
        tx.delete(RESTORES, row.object_id.to_bytes())?;
        match mark.expiry {
            Some(expiry) => {
                tx.delete(EXPIRIES, rows::expiry_key(expiry, row.object_id))?;
                rows::with_totals(tx, |totals| totals.restored -= 1)?;
            }
            None => rows::with_totals(tx, |totals| totals.restores_waiting -= 1)?,
        }
    } else if row.home != Home::Online {
        delete_failed_row(tx, row.object_id)?;
    }
    let residence = row.residence();
    rows::with_totals(tx, |totals| *totals.objects(residence) -= 1)?;
    tx.delete(OBJECTS, rows::object_key(bucket.as_str(), key.as_str()))?;
    Ok(true)
}

/// Removes the record that a restore of the object was given up, if there is one.
pub(crate) fn delete_failed_row(tx: &mut Transaction<'_>, object: ObjectId) -> Result<()> {
    let count = rows::failed_count(tx)?;
    // Nearly always only one row is read.
    if count == 0 || tx.get(FAILED, &object.to_bytes())?.is_none() {
        return Ok(());
    }
    tx.delete(FAILED, object.to_bytes())?;
    rows::set_failed_count(tx, count - 1)
}

/// Records the cleanup for a body. The caller removes the body's own row.
pub(crate) fn retire_body(
    tx: &mut Transaction<'_>,
    body: &BodyRow,
    retired: &mut Retired,
) -> Result<()> {
    rows::put(tx, SHREDS, body.body_id.to_bytes().to_vec(), &body.key_slot)?;
    rows::mark_for_purge(tx)?;
    retired.keys.push((body.key_slot, body.body_id));
    if let Some(log) = body.in_log() {
        retired.remove(tx, log.kind, &log.all_extents())?;
        tiers::schedule_copy_removal(tx, body)?;
        match &log.queued {
            Some(Queued::Tier { sequence, tier }) => tiers::dequeue_move(tx, tier, *sequence)?,
            Some(Queued::Glass { sequence, .. }) => dequeue(tx, *sequence)?,
            None => {}
        }
    }
    if let Some(extents) = &body.restored {
        retired.remove(tx, LogKind::Restored, extents)?;
    }
    if let Some(tier) = body.tier() {
        // Also for a body that is not there yet: it may be on its way.
        rows::put(tx, REMOVALS, rows::removal_key(tier, body.body_id), &body.key_slot)?;
    }
    Ok(Platters::release_shards(tx, body.shards())?)
}

pub(crate) fn delete_shred_rows(tx: &mut Transaction<'_>, done: Vec<ObjectId>) -> Result<()> {
    for body in done {
        tx.delete(SHREDS, body.to_bytes())?;
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
