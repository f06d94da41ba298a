//! Transactions that create and delete objects, and the cleanup that each leaves to
//! `ArchiveState::finish_retired`.

use fulgurite_catalog::{KeyRange, ReadView as _, Transaction};
use fulgurite_glass::Platters;
use fulgurite_units::ObjectId;

use crate::bodies::log::LogKind;
use crate::model::classes::Home;
use crate::model::names::{BucketName, ObjectKey, ObjectName};
use crate::model::object::WriteCondition;
use crate::rows::accounting::{Retired, dequeue};
use crate::rows::lookup::{bodies, find_object, rows_in};
use crate::rows::{
    self, BODIES, BodyRow, CHECKSUMS, EXPIRIES, FAILED, OBJECTS, ObjectRow, Place, QUEUE, QueueRow,
    Queued, REMOVALS, RESTORES, SHREDS, UNCONFIRMED, UnconfirmedRow,
};
use crate::{ArchiveError, Result, tiers};

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
