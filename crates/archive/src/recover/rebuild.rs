//! The rows of a recovered catalog: everything that can be worked out from the objects is.
//!
//! Rows go to the store in large batches of their own: nobody else has it open, and it serves only
//! when it is whole, so there is nothing to be done one object at a time.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_catalog::{Batch, FjallStore, KeyValue as _, Space};
use fulgurite_units::{ObjectId, PlatterId, UploadId};
use serde::Serialize;

use super::objects::{Objects, Whole};
use super::salvaged::{Salvaged, Uploads};
use crate::Result;
use crate::doubts::DoubtList;
use crate::limits::RECOVERY_BATCH_BYTES;
use crate::log::{Extent, LogKind};
use crate::object::Residence;
use crate::rows::{
    self, BODIES, BUCKETS, BodyRow, BucketRow, DOUBTS, DoubtRow, EXPIRIES, ExpiryRow, META,
    OBJECTS, ObjectRow, PARTS, QUEUE, QueueRow, RESTORES, RestoreRow, SEGMENTS, SHREDS, Totals,
    UPLOADS,
};

/// Writes rows in batches of some size.
pub(super) struct Writer<'a> {
    kv: &'a FjallStore,
    batch: Batch,
}

impl<'a> Writer<'a> {
    pub(super) fn new(kv: &'a FjallStore) -> Self {
        Self { kv, batch: Batch::new() }
    }

    pub(super) fn put<T: Serialize>(&mut self, space: Space, key: Vec<u8>, row: &T) -> Result<()> {
        self.batch.put(space, key, rows::encode(row)?)?;
        if self.batch.bytes() >= RECOVERY_BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if !batch.is_empty() {
            self.kv.apply(batch)?;
        }
        Ok(())
    }
}

/// What the rows of objects add up to.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) totals: Totals,
    segments: BTreeMap<(LogKind, u32), u64>,
    /// Ciphertext bytes that bodies have on each platter.
    pub(super) live: BTreeMap<PlatterId, u64>,
    pub(super) bytes: u64,
    pub(super) bodies: BTreeSet<ObjectId>,
    pub(super) completed: BTreeSet<UploadId>,
    /// Objects that rows name.
    pub(super) objects: BTreeSet<ObjectId>,
    /// What rows say is in doubt.
    pub(super) doubts: DoubtList,
    doubt_count: u64,
    key_slots: u32,
}

impl Sums {
    fn count(&mut self, kind: LogKind, extents: &[Extent]) {
        for extent in extents {
            *self.segments.entry((kind, extent.segment)).or_default() += extent.bytes;
        }
    }

    /// Counts a body that a row names.
    fn add(&mut self, body: &BodyRow) {
        if let Some((kind, extents)) = body.in_log() {
            self.count(kind, &extents);
        }
        if let Some(extents) = &body.restored {
            self.count(LogKind::Restored, extents);
        }
        for shard in &body.shards {
            *self.live.entry(shard.platter).or_default() += shard.bytes;
        }
        self.key_slots = self.key_slots.max(body.key_slot.saturating_add(1));
        self.bodies.insert(body.body_id);
    }

    /// Whether any row names bytes of this segment.
    pub(super) fn names(&self, kind: LogKind, number: u32) -> bool {
        self.segments.contains_key(&(kind, number))
    }
}

/// Writes the rows of all objects, buckets and shreds, oldest first, so that they wait for glass in
/// the order in which they came.
pub(super) fn write_objects(
    writer: &mut Writer<'_>,
    objects: Objects,
    salvaged: &Salvaged,
    sums: &mut Sums,
) -> Result<u64> {
    let mut buckets: BTreeMap<String, BucketRow> = salvaged.buckets.clone();
    let mut in_order: Vec<Whole> = objects.whole.into_values().collect();
    in_order.sort_by_key(|object| (object.bodies[0].written, object.entry.modified));
    for object in in_order {
        let created = object.entry.bucket_created;
        if !buckets.contains_key(&object.entry.bucket) {
            buckets.insert(object.entry.bucket.clone(), BucketRow { created });
        }
        write_object(writer, object, salvaged, sums)?;
    }
    write_doubts(writer, objects.doubts, sums)?;
    for (body, slot) in &objects.shreds {
        writer.put(SHREDS, body.to_bytes().to_vec(), slot)?;
    }
    for (name, row) in &buckets {
        writer.put(BUCKETS, rows::bucket_key(name), row)?;
    }
    Ok(buckets.len() as u64)
}

/// Writes the rows of what is in doubt: its bytes and its key stay until its name is put or
/// deleted.
fn write_doubts(writer: &mut Writer<'_>, doubts: Vec<Whole>, sums: &mut Sums) -> Result<()> {
    for object in doubts {
        let entry = object.entry;
        sums.completed.extend(entry.upload_id);
        for body in object.bodies {
            let body = BodyRow { restored: None, ..body.row };
            sums.add(&body);
            let key = rows::doubt_key(&entry.bucket, &entry.key, body.body_id);
            sums.doubts.insert(body.body_id, entry.object_id);
            sums.doubt_count += 1;
            writer.put(DOUBTS, key, &DoubtRow { object_id: entry.object_id, body })?;
        }
    }
    Ok(())
}

fn write_object(
    writer: &mut Writer<'_>,
    object: Whole,
    salvaged: &Salvaged,
    sums: &mut Sums,
) -> Result<()> {
    let entry = object.entry;
    let staged = object.bodies.iter().filter(|body| body.row.log.is_some()).count();
    let staged = if entry.class.is_archived() { staged } else { 0 };
    let mut row = ObjectRow {
        object_id: entry.object_id,
        bytes: entry.bytes,
        etag: entry.etag,
        modified: entry.modified,
        class: entry.class,
        meta: entry.meta,
        checksum: entry.checksum,
        part_count: entry.part_count,
        body_count: entry.body_count,
        bodies_staged: u32::try_from(staged).unwrap_or(u32::MAX),
        upload_id: entry.upload_id,
        restore: None,
    };
    let has_copy = object.bodies.iter().all(|body| body.row.restored.is_some());
    restore_row(writer, &mut row, (&entry.bucket, &entry.key), has_copy, salvaged, sums)?;
    let keeps_copy = row.restore.is_some_and(|mark| mark.expiry.is_some());
    for (index, body) in (0..).zip(object.bodies) {
        let mut body_row = body.row;
        if !keeps_copy {
            body_row.restored = None;
        }
        sums.add(&body_row);
        if entry.class.is_archived() && body_row.log.is_some() {
            sums.totals.sequence += 1;
            sums.totals.staged_bytes += body_row.bytes;
            body_row.queued = Some(sums.totals.sequence);
            let queued = QueueRow {
                object_id: row.object_id,
                index,
                bucket: entry.bucket.clone(),
                key: entry.key.clone(),
                arrived: row.modified,
                bytes: body_row.bytes,
            };
            writer.put(QUEUE, rows::sequence_key(sums.totals.sequence), &queued)?;
        }
        writer.put(BODIES, rows::body_key(row.object_id, index), &body_row)?;
    }
    sums.bytes += row.bytes;
    sums.completed.extend(row.upload_id);
    sums.objects.insert(row.object_id);
    *sums.totals.objects(row.residence()) += 1;
    writer.put(OBJECTS, rows::object_key(&entry.bucket, &entry.key), &row)
}

/// Takes a restore over from the damaged catalog: one that waits, or a copy that is there.
fn restore_row(
    writer: &mut Writer<'_>,
    row: &mut ObjectRow,
    (bucket, key): (&str, &str),
    has_copy: bool,
    salvaged: &Salvaged,
    sums: &mut Sums,
) -> Result<()> {
    let told = salvaged.objects.get(&row.object_id).and_then(|(.., told)| told.restore);
    let Some(mark) = told.filter(|_| row.residence() == Residence::Glass) else { return Ok(()) };
    match mark.expiry {
        Some(expiry) if has_copy => {
            sums.totals.restored += 1;
            let expiring = ExpiryRow { bucket: bucket.to_owned(), key: key.to_owned() };
            writer.put(EXPIRIES, rows::expiry_key(expiry, row.object_id), &expiring)?;
        }
        Some(_) => return Ok(()),
        None => {
            sums.totals.restores_waiting += 1;
            let fresh = || RestoreRow {
                bucket: bucket.to_owned(),
                key: key.to_owned(),
                mark,
                failures: 0,
                error: None,
            };
            let waiting = salvaged.restores.get(&row.object_id).cloned().unwrap_or_else(fresh);
            writer.put(RESTORES, row.object_id.to_bytes().to_vec(), &waiting)?;
        }
    }
    row.restore = Some(mark);
    Ok(())
}

/// Writes uploads that go on, with their parts.
pub(super) fn write_uploads(
    writer: &mut Writer<'_>,
    uploads: &Uploads,
    sums: &mut Sums,
) -> Result<()> {
    for (key, row) in &uploads.uploads {
        writer.put(UPLOADS, key.clone(), row)?;
    }
    for (key, row) in &uploads.parts {
        sums.add(&row.body);
        writer.put(PARTS, key.clone(), row)?;
    }
    Ok(())
}

/// Writes what the rows add up to: totals, of the server run `run`, bytes by
/// segment, slots of the key table, and doubts.
pub(super) fn write_sums(writer: &mut Writer<'_>, sums: &mut Sums, run: u64) -> Result<()> {
    sums.totals.run = run;
    for (&(kind, number), bytes) in &sums.segments {
        writer.put(SEGMENTS, rows::segment_key(kind, number), bytes)?;
    }
    writer.put(META, rows::KEY_SLOTS_KEY.to_vec(), &sums.key_slots)?;
    writer.put(META, rows::DOUBT_COUNT_KEY.to_vec(), &sums.doubt_count)?;
    writer.put(META, rows::TOTALS_KEY.to_vec(), &sums.totals)
}
