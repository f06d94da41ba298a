//! The rows of a recovered catalog: everything that can be derived from the objects is.
//!
//! Nobody else has the store open, and it is used only when it is complete, so objects need not be
//! written one at a time. Spaces with a row for each object are bulk-loaded in key order, bypassing
//! journal and memtable, on two threads. Other rows are written in large batches.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_catalog::{Batch, FjallStore, KeyValue as _, Space};
use fulgurite_units::{ObjectId, PlatterId, UploadId};

use super::objects::{CompleteBody, CompleteObject, Objects};
use super::salvage::{Salvaged, Uploads};
use crate::bodies::log::{Extent, LogKind};
use crate::bodies::unconfirmed::UnconfirmedList;
use crate::limits::RECOVERY_BATCH_BYTES;
use crate::model::classes::{Classes, Home};
use crate::model::names::ObjectName;
use crate::model::object::Residence;
use crate::rows::{
    self, BODIES, BUCKETS, BodyRow, BucketRow, CHECKSUMS, COPIES, EXPIRIES, ExpiryRow, META, MOVES,
    OBJECTS, ObjectRow, PARTS, Place, QUEUE, QueueRow, Queued, REMOVALS, RESTORES, RestoreRow, Row,
    SEGMENTS, SHREDS, Totals, UNCONFIRMED, UPLOADS, UnconfirmedRow,
};
use crate::{ArchiveError, Result};

/// Writes rows in batches of limited size.
pub(super) struct Writer<'a> {
    kv: &'a FjallStore,
    batch: Batch,
}

impl<'a> Writer<'a> {
    pub(super) fn new(kv: &'a FjallStore) -> Self {
        Self { kv, batch: Batch::new() }
    }

    pub(super) fn put<T: Row>(&mut self, space: Space, key: Vec<u8>, row: &T) -> Result<()> {
        self.put_bytes(space, key, rows::encode(row)?)
    }

    /// Writes an encoded row.
    pub(super) fn put_bytes(&mut self, space: Space, key: Vec<u8>, bytes: Vec<u8>) -> Result<()> {
        self.batch.put(space, key, bytes)?;
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

/// Totals over the rows of objects.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) totals: Totals,
    segments: BTreeMap<(LogKind, u32), u64>,
    /// Ciphertext bytes of live bodies on each platter.
    pub(super) live: BTreeMap<PlatterId, u64>,
    pub(super) bytes: u64,
    pub(super) bodies: Vec<ObjectId>,
    pub(super) completed: BTreeSet<UploadId>,
    /// Objects that rows name.
    pub(super) objects: Vec<ObjectId>,
    /// Unconfirmed bodies that rows name.
    pub(super) unconfirmed: UnconfirmedList,
    unconfirmed_count: u64,
    key_slots: u32,
}

impl Tally {
    fn count(&mut self, kind: LogKind, extents: &[Extent]) {
        for extent in extents {
            *self.segments.entry((kind, extent.segment)).or_default() += extent.bytes;
        }
    }

    /// Counts a body that a row names.
    fn add(&mut self, body: &BodyRow) {
        if let Some(log) = body.in_log() {
            self.count(log.kind, &log.all_extents());
        }
        if let Some(extents) = &body.restored {
            self.count(LogKind::Restored, extents);
        }
        for shard in body.shards() {
            *self.live.entry(shard.platter).or_default() += shard.bytes;
        }
        self.key_slots = self.key_slots.max(body.key_slot.saturating_add(1));
        self.bodies.push(body.body_id);
    }

    /// Whether any row names bytes of this segment.
    pub(super) fn names(&self, kind: LogKind, number: u32) -> bool {
        self.segments.contains_key(&(kind, number))
    }
}

/// An object with its final rows.
#[derive(Debug)]
struct FinalObject {
    name: ObjectName,
    row: ObjectRow,
    bodies: Vec<CompleteBody>,
}

/// Writes the rows of all objects, buckets and shreds.
pub(super) fn write_objects(
    writer: &mut Writer<'_>,
    objects: Objects,
    (salvaged, classes): (&Salvaged, &Classes),
    tally: &mut Tally,
) -> Result<u64> {
    let mut buckets: BTreeMap<String, BucketRow> = salvaged.buckets.clone();
    let mut by_name: Vec<CompleteObject> = objects.complete.into_values().collect();
    let queue = enqueue(&mut by_name, classes, tally);
    let mut finished = Vec::with_capacity(by_name.len());
    for object in by_name {
        let created = object.entry.bucket_created;
        let bucket = object.entry.name.bucket.as_str();
        if !buckets.contains_key(bucket) {
            buckets.insert(bucket.to_owned(), BucketRow { created });
        }
        let home = home(&object, classes);
        finished.push(finish(writer, object, home, salvaged, tally)?);
    }
    bulk_load(writer.kv, &finished, &queue)?;
    write_unconfirmed(writer, objects.unconfirmed, tally)?;
    for (body, slot) in &objects.shreds {
        writer.put(SHREDS, body.to_bytes().to_vec(), slot)?;
    }
    for (name, row) in &buckets {
        writer.put(BUCKETS, rows::bucket_key(name), row)?;
    }
    Ok(buckets.len() as u64)
}

/// Writes the rows of unconfirmed bodies: bytes and key stay until their name is put or deleted.
fn write_unconfirmed(
    writer: &mut Writer<'_>,
    unconfirmed: Vec<CompleteObject>,
    tally: &mut Tally,
) -> Result<()> {
    for object in unconfirmed {
        let entry = object.entry;
        tally.completed.extend(entry.upload_id);
        for body in object.bodies {
            write_copies(writer, &body)?;
            let body = BodyRow { restored: None, ..body.row };
            tally.add(&body);
            let key = rows::unconfirmed_key(&entry.name, body.body_id);
            let (object_id, version) = (entry.object_id, entry.name.version);
            tally.unconfirmed.insert(body.body_id, object_id);
            tally.unconfirmed_count += 1;
            writer.put(UNCONFIRMED, key, &UnconfirmedRow { object_id, version, body })?;
        }
    }
    Ok(())
}

/// Queues bodies for their tier, oldest first, so that they keep their order. Returns object and
/// body index for each queue entry.
fn enqueue(
    objects: &mut [CompleteObject],
    classes: &Classes,
    tally: &mut Tally,
) -> Vec<(usize, u32)> {
    let mut oldest_first: Vec<_> = (0..objects.len())
        .map(|at| (objects[at].bodies[0].written, objects[at].entry.modified, at))
        .collect();
    oldest_first.sort_unstable();
    let mut queue = Vec::new();
    for (.., at) in oldest_first {
        let object = &mut objects[at];
        let home = home(object, classes);
        for (index, body) in (0..).zip(&mut object.bodies) {
            let Place::Log(log) = &mut body.row.place else { continue };
            let totals = &mut tally.totals;
            let sequence = totals.sequence + 1;
            log.queued = match &home {
                Home::Online => continue,
                Home::Tier(tier) => {
                    totals.moving_bytes += body.row.bytes;
                    Some(Queued::Tier { sequence, tier: tier.clone() })
                }
                Home::Glass => {
                    totals.staged_bytes += body.row.bytes;
                    Some(Queued::Glass { sequence, placed: Vec::new() })
                }
            };
            totals.sequence = sequence;
            queue.push((at, index));
        }
    }
    queue
}

/// Returns the home of an object, depending on where it was found.
fn home(object: &CompleteObject, classes: &Classes) -> Home {
    let is_online =
        |body: &CompleteBody| body.row.in_log().is_some_and(|log| log.kind == LogKind::Online);
    if object.bodies.iter().any(|body| matches!(body.row.place, Place::Glass(_))) {
        Home::Glass
    } else if let Some(tier) = object.bodies.iter().find_map(|body| body.row.tier()) {
        Home::Tier(tier.clone())
    } else if object.bodies.iter().any(is_online) {
        Home::Online
    } else {
        classes.staged(object.entry.class)
    }
}

fn finish(
    writer: &mut Writer<'_>,
    object: CompleteObject,
    home: Home,
    salvaged: &Salvaged,
    tally: &mut Tally,
) -> Result<FinalObject> {
    let CompleteObject { entry, mut bodies, .. } = object;
    let entry = *entry;
    let staged = bodies.iter().filter(|body| body.row.in_log().is_some()).count();
    let staged = if home == Home::Online { 0 } else { staged };
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
        version: entry.name.version,
        labels: entry.labels,
        home,
    };
    let has_copy = bodies.iter().all(|body| body.row.restored.is_some());
    restore_row(writer, &mut row, &entry.name, has_copy, salvaged, tally)?;
    let keeps_copy = row.restore.is_some_and(|mark| mark.expiry.is_some());
    for CompleteBody { row: body_row, .. } in &mut bodies {
        if !keeps_copy {
            body_row.restored = None;
        }
        tally.add(body_row);
    }
    bodies.iter().try_for_each(|body| write_copies(writer, body))?;
    tally.bytes += row.bytes;
    tally.completed.extend(row.upload_id);
    tally.objects.push(row.object_id);
    *tally.totals.objects(row.residence()) += 1;
    Ok(FinalObject { name: entry.name, row, bodies })
}

/// Writes the rows of copies in tiers: one copy stays as long as its body is staged, others are
/// removed.
fn write_copies(writer: &mut Writer<'_>, body: &CompleteBody) -> Result<()> {
    let CompleteBody { row, copies, .. } = body;
    let mut is_wanted = row.in_log().is_some();
    for tier in copies.iter().filter(|tier| row.tier() != Some(tier)) {
        if std::mem::take(&mut is_wanted) {
            writer.put(COPIES, rows::copy_key(row.body_id), tier)?;
        } else {
            writer.put(REMOVALS, rows::removal_key(tier, row.body_id), &row.key_slot)?;
        }
    }
    Ok(())
}

/// Bulk-loads the spaces with at least one row per object, each in key order. `objects` are sorted
/// by name, `queue` by sequence.
#[expect(clippy::disallowed_methods, reason = "one computation is shared out")]
fn bulk_load(kv: &FjallStore, objects: &[FinalObject], queue: &[(usize, u32)]) -> Result<()> {
    let object_rows = objects
        .iter()
        .map(|object| Ok((rows::object_key_of(&object.name), rows::encode(&object.row)?)));
    let mut by_id: Vec<(ObjectId, usize)> =
        objects.iter().map(|object| object.row.object_id).zip(0..).collect();
    by_id.sort_unstable();
    let body_rows = by_id.iter().flat_map(|&(object_id, at)| {
        (0..).zip(&objects[at].bodies).map(move |(index, body)| {
            Ok((rows::body_key(object_id, index), rows::encode(&body.row)?))
        })
    });
    let checksum_rows = by_id.iter().flat_map(|&(object_id, at)| {
        (0..).zip(&objects[at].bodies).filter_map(move |(index, body)| {
            let checksum = body.part_checksum.as_deref()?;
            Some(rows::encode(checksum).map(|row| (rows::body_key(object_id, index), row)))
        })
    });
    let queued = |at: usize, index: u32| {
        let object = &objects[at];
        let queued = QueueRow {
            object_id: object.row.object_id,
            index,
            name: object.name.clone(),
            arrived: object.row.modified,
            bytes: object.bodies[index as usize].row.bytes,
        };
        rows::encode(&queued)
    };
    let tier = |at: usize, index: u32| objects[at].bodies[index as usize].row.tier();
    let places = || queue.iter().zip(1..).map(|(&(at, index), sequence)| (at, index, sequence));
    let for_glass = places().filter(|&(at, index, _)| tier(at, index).is_none());
    let queue_rows = for_glass
        .map(|(at, index, sequence)| Ok((rows::sequence_key(sequence), queued(at, index)?)));
    let mut moves: Vec<(Vec<u8>, usize, u32)> = places()
        .filter_map(|(at, index, sequence)| {
            tier(at, index).map(|tier| (rows::move_key(tier, sequence), at, index))
        })
        .collect();
    moves.sort_unstable();
    let move_rows = moves.into_iter().map(|(key, at, index)| Ok((key, queued(at, index)?)));
    std::thread::scope(|scope| {
        let by_name = scope.spawn(|| kv.load(OBJECTS, object_rows));
        kv.load::<ArchiveError>(BODIES, body_rows)?;
        kv.load::<ArchiveError>(CHECKSUMS, checksum_rows)?;
        kv.load::<ArchiveError>(QUEUE, queue_rows)?;
        kv.load::<ArchiveError>(MOVES, move_rows)?;
        by_name.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Carries a restore over from the damaged catalog: a waiting one, or an existing copy.
fn restore_row(
    writer: &mut Writer<'_>,
    row: &mut ObjectRow,
    name: &ObjectName,
    has_copy: bool,
    salvaged: &Salvaged,
    tally: &mut Tally,
) -> Result<()> {
    let recorded = salvaged.objects.get(&row.object_id).and_then(|(.., recorded)| recorded.restore);
    let is_home = matches!(row.residence(), Residence::Glass | Residence::Tier);
    let Some(mark) = recorded.filter(|_| is_home) else { return Ok(()) };
    match mark.expiry {
        Some(expiry) if has_copy => {
            tally.totals.restored += 1;
            let expiring = ExpiryRow { name: name.clone() };
            writer.put(EXPIRIES, rows::expiry_key(expiry, row.object_id), &expiring)?;
        }
        Some(_) => return Ok(()),
        None => {
            tally.totals.restores_waiting += 1;
            let fresh = || RestoreRow { name: name.clone(), mark, failures: 0, error: None };
            let waiting = salvaged.restores.get(&row.object_id).cloned().unwrap_or_else(fresh);
            writer.put(RESTORES, row.object_id.to_bytes().to_vec(), &waiting)?;
        }
    }
    row.restore = Some(mark);
    Ok(())
}

/// Writes uploads in progress, with their parts.
pub(super) fn write_uploads(
    writer: &mut Writer<'_>,
    uploads: &Uploads,
    tally: &mut Tally,
) -> Result<()> {
    for (key, row) in &uploads.uploads {
        writer.put(UPLOADS, key.clone(), row)?;
    }
    for (key, row) in &uploads.parts {
        tally.add(&row.body);
        writer.put(PARTS, key.clone(), row)?;
    }
    Ok(())
}

/// Writes the totals with server run `run`, live bytes by segment, key slots, and the count of
/// unconfirmed bodies.
pub(super) fn write_tally(writer: &mut Writer<'_>, tally: &mut Tally, run: u64) -> Result<()> {
    tally.totals.run = run;
    for (&(kind, number), bytes) in &tally.segments {
        writer.put(SEGMENTS, rows::segment_key(kind, number), bytes)?;
    }
    writer.put(META, rows::KEY_SLOTS_KEY.to_vec(), &tally.key_slots)?;
    writer.put(META, rows::UNCONFIRMED_COUNT_KEY.to_vec(), &tally.unconfirmed_count)?;
    writer.put(META, rows::TOTALS_KEY.to_vec(), &tally.totals)
}
