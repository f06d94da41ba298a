//! Decides which objects are recovered, and which location their bodies get.
//!
//! ```text
//! a body    on glass, if its set is complete       else in a log, if all of it is there
//! an object if all its bodies are recovered
//! a name    of several objects the last one: by its records, then by the time it was made;
//!           the others, and what a start found unconfirmed, stay unconfirmed
//! ```
//!
//! A body that is both on glass and in a log is named only on glass: it was released, and the log
//! still has what was not yet punched out. If its set is incomplete, or was not released according
//! to a damaged catalog, the log is used, and the body is written to glass again: only the staged
//! copy is reliable.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fulgurite_units::{ObjectId, PlatterId, UnixTime};

use super::evidence::{Bodies, BodyEvidence, KnownEntry, WriteStamp};
use super::shard_chain::contiguous;
use crate::bodies::cipher::cipher_bytes;
use crate::bodies::digest::Checksum;
use crate::bodies::entry::Entry;
use crate::bodies::log::{Extent, LogKind};
use crate::model::classes::TierName;
use crate::model::names::{BucketName, ObjectKey};
use crate::rows::{BodyRow, LoggedBody, Place, Shard};

/// An object with all of its bodies.
#[derive(Debug)]
pub(super) struct CompleteObject {
    pub(super) entry: Box<Entry>,
    pub(super) bodies: Vec<CompleteBody>,
    rank: Rank,
}

#[derive(Debug)]
pub(super) struct CompleteBody {
    pub(super) row: BodyRow,
    /// The last record of its entry.
    pub(super) written: Option<WriteStamp>,
    /// Other tiers that also hold it.
    pub(super) copies: Vec<TierName>,
    /// Boxed, because most bodies are not parts.
    pub(super) part_checksum: Option<Box<Checksum>>,
}

/// What orders two objects of one name.
#[derive(Clone, Copy, Debug)]
struct Rank {
    modified: UnixTime,
    written: Option<WriteStamp>,
    key_run: u64,
}

/// A body of an object, with its location if it is complete.
type Piece = (Box<Entry>, Rank, Option<CompleteBody>);

/// The outcome for all bodies.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// By bucket and key.
    pub(super) complete: BTreeMap<(BucketName, ObjectKey), CompleteObject>,
    /// Keys to destroy at the next start: of objects whose deletion was committed.
    pub(super) shreds: BTreeMap<ObjectId, u32>,
    /// Complete objects that are not shown: a later one has the name, or a start found them
    /// unconfirmed. Nothing of them is destroyed, because nothing proves that it was meant to be.
    pub(super) unconfirmed: Vec<CompleteObject>,
    /// Unconfirmed objects with a missing body.
    pub(super) unconfirmed_incomplete: Vec<String>,
    /// Objects with a missing body.
    pub(super) incomplete: Vec<String>,
    /// Unconfirmed objects whose name a later one has.
    pub(super) overwritten: u64,
    takes_earliest: bool,
}

/// Checks against disk and glass while objects are assembled.
pub(super) trait StorageCheck {
    /// Whether every platter of this platter's set exists, and the set was released.
    fn is_safe_on(&self, platter: PlatterId) -> bool;
    /// Whether the file of this platter exists.
    fn has(&self, platter: PlatterId) -> bool;
    /// Whether these extents lie within their segments.
    fn holds(&self, kind: LogKind, extents: &[Extent]) -> bool;
    /// Whether the bytes of a body in a log match the ingested ones.
    fn is_intact(&mut self, body: &BodyRow) -> bool;
    /// Whether a crash may have come before this body was synced.
    fn may_be_torn(&self, body: &CompleteBody) -> bool;
    /// Returns which of `bodies` may be torn and are.
    fn torn(&mut self, bodies: &[&CompleteBody]) -> BTreeSet<ObjectId> {
        let is_torn = |body: &&&CompleteBody| self.may_be_torn(body) && !self.is_intact(&body.row);
        bodies.iter().filter(is_torn).map(|body| body.row.body_id).collect()
    }
}

impl Objects {
    /// Creates an empty result. The bodies of `dead` were deleted.
    pub(super) fn new(dead: BTreeMap<ObjectId, u32>, takes_earliest: bool) -> Self {
        Self { shreds: dead, takes_earliest, ..Self::default() }
    }

    /// Whether nothing was recovered, not even as unconfirmed.
    pub(super) fn is_empty(&self) -> bool {
        self.complete.is_empty() && self.unconfirmed.is_empty()
    }

    /// Assembles objects from `bodies`.
    pub(super) fn assemble(&mut self, bodies: Bodies, storage: &mut dyn StorageCheck) {
        let mut pieces: Vec<Option<Piece>> = Vec::with_capacity(bodies.len());
        let mut unconfirmed = Vec::new();
        for (body_id, mut found) in bodies {
            if self.shreds.contains_key(&body_id) {
                continue;
            }
            let (known, among) = match (found.known.take(), found.unconfirmed.take()) {
                (Some(known), _) => (known, &mut pieces),
                (None, Some(known)) => (known, &mut unconfirmed),
                (None, None) => continue,
            };
            let rank = Rank {
                modified: known.entry.modified,
                written: known.written,
                key_run: known.slot.run,
            };
            let complete = place(body_id, &known, found, storage);
            among.push(Some((known.entry, rank, complete)));
        }
        let (objects, mut incomplete) = join_all(pieces);
        let bodies: Vec<&CompleteBody> = objects.iter().flat_map(|object| &object.bodies).collect();
        let torn = storage.torn(&bodies);
        by_name(objects).for_each(|object| self.take(object, &torn, storage));
        self.incomplete.append(&mut incomplete);
        self.incomplete.sort();
        let (mut objects, mut incomplete) = join_all(unconfirmed);
        self.unconfirmed.append(&mut objects);
        self.unconfirmed_incomplete.append(&mut incomplete);
    }

    /// Adds an object, unless a later one has its name; the earlier one becomes unconfirmed then.
    /// Mostly a crash came between an overwrite and the destruction of the old key. But the later
    /// one may also be an interrupted upload, and the earlier one the last that was acknowledged.
    fn take(
        &mut self,
        mut object: CompleteObject,
        torn: &BTreeSet<ObjectId>,
        storage: &mut dyn StorageCheck,
    ) {
        let name = (object.entry.name.bucket.clone(), object.entry.name.key.clone());
        let Some(mut other) = self.complete.remove(&name) else {
            if object.bodies.iter().all(|body| !torn.contains(&body.row.body_id)) {
                self.complete.insert(name, object);
            } else {
                self.torn(&object);
            }
            return;
        };
        // The decision affects the bytes of both, so both are verified.
        let mut is_intact =
            |object: &CompleteObject| object.bodies.iter().all(|b| storage.is_intact(&b.row));
        let (is_new_intact, is_old_intact) = (is_intact(&object), is_intact(&other));
        if !is_new_intact || !is_old_intact {
            let (bad, good) = if is_new_intact { (other, object) } else { (object, other) };
            self.torn(&bad);
            if is_new_intact || is_old_intact {
                self.complete.insert(name, good);
            } else {
                self.torn(&good);
            }
            return;
        }
        let order = compare_recency(&object.rank, &other.rank);
        let order = if self.takes_earliest { order.reverse() } else { order };
        if order == Ordering::Greater {
            std::mem::swap(&mut object, &mut other);
        }
        self.overwritten += 1;
        self.unconfirmed.push(object);
        self.complete.insert(name, other);
    }

    fn torn(&mut self, object: &CompleteObject) {
        self.incomplete.push(format!("{object}: its bytes differ from those that were sent"));
    }
}

/// Joins `pieces` to objects, and returns messages for the incomplete ones.
fn join_all(mut pieces: Vec<Option<Piece>>) -> (Vec<CompleteObject>, Vec<String>) {
    let (mut objects, mut incomplete) = (Vec::with_capacity(pieces.len()), Vec::new());
    for of_one in by_object(&pieces).chunk_by(|(object, ..), (other, ..)| object == other) {
        match join(of_one.iter().filter_map(|&(.., at)| pieces[at].take())) {
            Ok(object) => objects.push(object),
            Err(what) => incomplete.push(format!("object {}: {what}", of_one[0].0)),
        }
    }
    (objects, incomplete)
}

/// Returns object, body index and position of `pieces`, sorted, so that an object's bodies are
/// adjacent and in order.
fn by_object(pieces: &[Option<Piece>]) -> Vec<(ObjectId, u32, usize)> {
    let sort_key = |(piece, at): (&Option<Piece>, usize)| {
        piece.as_ref().map(|(entry, ..)| (entry.object_id, entry.index, at))
    };
    let mut order: Vec<_> = pieces.iter().zip(0..).filter_map(sort_key).collect();
    order.sort_unstable();
    order
}

/// Returns `objects` roughly sorted by name, those of one name in their original order, so that
/// each is inserted next to the previous one. Names mostly share a prefix: the bytes after it are
/// compared first, in one contiguous array.
fn by_name(objects: Vec<CompleteObject>) -> impl Iterator<Item = CompleteObject> {
    let same = objects.windows(2).map(|pair| {
        let [(bucket, key), (next_bucket, next_key)] =
            [&pair[0], &pair[1]].map(|object| (&object.entry.name.bucket, &object.entry.name.key));
        let alike =
            key.as_str().bytes().zip(next_key.as_str().bytes()).take_while(|(a, b)| a == b).count();
        if bucket == next_bucket { alike } else { 0 }
    });
    let skipped = same.min().unwrap_or(0);
    let mut order: Vec<(u128, usize)> = objects
        .iter()
        .map(|object| {
            let rest =
                object.entry.name.key.as_str().bytes().skip(skipped).chain(std::iter::repeat(0));
            rest.take(16).fold(0, |first, byte| first << 8 | u128::from(byte))
        })
        .zip(0..)
        .collect();
    order.sort_unstable_by(|&(a, at), &(b, other)| {
        let (one, two) = (&objects[at].entry, &objects[other].entry);
        let names = || one.name.cmp(&two.name);
        a.cmp(&b).then_with(names).then(at.cmp(&other))
    });
    let mut objects: Vec<Option<CompleteObject>> = objects.into_iter().map(Some).collect();
    order.into_iter().filter_map(move |(_, at)| objects[at].take())
}

/// Chooses the location of a body; `None` if it is complete nowhere.
fn place(
    body_id: ObjectId,
    known: &KnownEntry,
    found: BodyEvidence,
    storage: &dyn StorageCheck,
) -> Option<CompleteBody> {
    let bytes = cipher_bytes(known.entry.body_bytes);
    let row = found.row.as_deref();
    let row_log = row.and_then(BodyRow::in_log);
    let recorded = row_log.filter(|log| {
        log.extents.iter().map(|extent| extent.bytes).sum::<u64>() == bytes
            && storage.holds(log.kind, &log.extents)
    });
    let recorded = recorded.map(|log| (log.kind, log.extents.clone()));
    let log_extents = found.log_extents(bytes).or(recorded);
    let shards = on_glass(&found, row, bytes, storage);
    let is_safe = shards.iter().all(|shard| storage.is_safe_on(shard.platter));
    let is_on_glass = !shards.is_empty() && (is_safe || log_extents.is_none());
    let place = match log_extents {
        _ if is_on_glass => Place::Glass(shards),
        // Staged bytes are more reliable: a copy in a tier may not have been read back.
        Some((kind, extents)) => {
            let framing = match row_log {
                Some(log) if found.framing.is_empty() => log.framing.clone(),
                _ => found.framing_in(kind),
            };
            Place::Log(LoggedBody::new(kind, extents, framing))
        }
        None => Place::Tier(found.tiers.first()?.clone()),
    };
    let is_in_tier = matches!(place, Place::Tier(_));
    let copies = found.tiers.iter().skip(usize::from(is_in_tier)).cloned().collect();
    let restored = row.and_then(|row| row.restored.clone());
    let row = BodyRow {
        body_id,
        key_slot: known.slot.index,
        bytes: known.entry.body_bytes,
        digest: known.entry.body_digest,
        place,
        restored: restored.filter(|extents| storage.holds(LogKind::Restored, extents)),
    };
    let part_checksum = known.entry.part_checksum.clone().map(Box::new);
    Some(CompleteBody { row, written: known.written, copies, part_checksum })
}

/// Returns the shards of a body, if none is missing.
fn on_glass(
    found: &BodyEvidence,
    row: Option<&BodyRow>,
    bytes: u64,
    storage: &dyn StorageCheck,
) -> Vec<Shard> {
    let mut shards = contiguous(&found.shards, found.listed_bytes);
    let recorded = row.map_or(&[][..], BodyRow::shards);
    if shards.is_empty() || found.listed_bytes != bytes {
        // The lists of lost platters are missing, but the catalog has their content.
        let is_whole = recorded.iter().map(|shard| shard.bytes).sum::<u64>() == bytes;
        let is_there = recorded.iter().all(|shard| storage.has(shard.platter));
        return if is_whole && is_there { recorded.to_vec() } else { Vec::new() };
    }
    for shard in &mut shards {
        shard.crc = recorded
            .iter()
            .find(|recorded| recorded.is_at(shard))
            .and_then(|recorded| recorded.crc);
    }
    shards
}

/// Joins these bodies, which are in order, to an object.
fn join(bodies: impl Iterator<Item = Piece>) -> Result<CompleteObject, String> {
    let mut complete: Vec<CompleteBody> = Vec::with_capacity(1);
    let mut first = None;
    let mut latest: Option<Rank> = None;
    for (entry, rank, body) in bodies {
        first.get_or_insert(entry);
        latest = latest
            .filter(|latest| compare_recency(latest, &rank) == Ordering::Greater)
            .or(Some(rank));
        complete.extend(body);
    }
    let Some(entry) = first else { return Err("it has no bodies".to_owned()) };
    let count = entry.body_count as usize;
    match latest {
        Some(rank) if complete.len() == count => {
            Ok(CompleteObject { entry, bodies: complete, rank })
        }
        _ => Err(format!("{}: {} of {count} bodies are complete", entry.name, complete.len())),
    }
}

/// Orders two objects of one name, as far as possible.
fn compare_recency(a: &Rank, b: &Rank) -> Ordering {
    // Runs are independent of any clock; within a run, records have milliseconds and objects only
    // seconds.
    if let (Some(a), Some(b)) = (a.written, b.written)
        && a != b
    {
        return a.cmp(&b);
    }
    a.modified.cmp(&b.modified).then(a.key_run.cmp(&b.key_run))
}

impl fmt::Display for CompleteObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}: {}", self.entry.object_id, self.entry.name)
    }
}

#[cfg(test)]
mod tests;
