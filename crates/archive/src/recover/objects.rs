//! Which objects come back, and where their bodies are named to be.
//!
//! ```text
//! a body    on glass, if its set is whole          else in a log, if all of it is there
//! an object if all its bodies come back
//! a name    of several objects the last one: by the time it was made, then by its records
//! ```
//!
//! A body that lies on glass and in a log is named on glass alone, because that is where its
//! release left it, and what is in the log is a rest that was not yet punched out. Where its set is
//! not whole, or was not released yet as far as a damaged catalog tells, the log has it, and it is
//! written to glass again: the staged copy is the only one that can be relied on.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fulgurite_units::{ObjectId, PlatterId, UnixTime};

use super::found::{Bodies, Found, Known, Written};
use super::run::unbroken;
use crate::body::cipher_bytes;
use crate::entry::Entry;
use crate::log::{Extent, LogKind};
use crate::rows::{BodyRow, Shard};

/// An object all of whose bodies are there.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) entry: Entry,
    pub(super) bodies: Vec<WholeBody>,
    rank: Rank,
}

#[derive(Debug)]
pub(super) struct WholeBody {
    pub(super) row: BodyRow,
    /// Its entry's last record.
    pub(super) written: Option<Written>,
}

/// What tells which of two objects of one name is the later.
#[derive(Clone, Copy, Debug)]
struct Rank {
    modified: UnixTime,
    written: Option<Written>,
    key_run: u64,
}

/// What became of all bodies.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// By bucket and key.
    pub(super) whole: BTreeMap<(String, String), Whole>,
    /// Keys to be destroyed at the next start: of objects that were overwritten or deleted.
    pub(super) shreds: BTreeMap<ObjectId, u32>,
    /// Objects of which a body is not there.
    pub(super) incomplete: Vec<String>,
    /// Objects that were overwritten, or may have been.
    pub(super) overwritten: u64,
}

/// What is asked of the world outside while objects are put together.
pub(super) trait Look {
    /// Whether every platter of the set that holds this one is there, and its set was released.
    fn is_safe_on(&self, platter: PlatterId) -> bool;
    /// Whether the file of this platter is there.
    fn has(&self, platter: PlatterId) -> bool;
    /// Whether these extents lie within their segments.
    fn holds(&self, kind: LogKind, extents: &[Extent]) -> bool;
    /// Whether the bytes of a body in a log are those that were ingested.
    fn is_intact(&mut self, body: &BodyRow) -> bool;
    /// Whether a crash may have come before the bytes of this body were synced.
    fn may_be_torn(&self, body: &WholeBody) -> bool;
}

/// Puts objects together out of `bodies`. Those in `dead` were deleted.
pub(super) fn put_together(
    bodies: Bodies,
    dead: BTreeMap<ObjectId, u32>,
    look: &mut dyn Look,
) -> Objects {
    let mut objects = Objects { shreds: dead, ..Objects::default() };
    let mut by_object: BTreeMap<ObjectId, Vec<(Entry, Rank, Option<WholeBody>)>> = BTreeMap::new();
    for (body_id, found) in bodies {
        if objects.shreds.contains_key(&body_id) {
            continue;
        }
        let Some((known, found)) = split(found) else { continue };
        let rank = Rank {
            modified: known.entry.modified,
            written: known.written,
            key_run: known.slot.run,
        };
        let whole = place(body_id, &known, found, look);
        by_object.entry(known.entry.object_id).or_default().push((known.entry, rank, whole));
    }
    for (object_id, bodies) in by_object {
        match join(bodies) {
            Ok(object) => take(&mut objects, object, look),
            Err(what) => objects.incomplete.push(format!("object {object_id}: {what}")),
        }
    }
    objects
}

fn split(mut found: Found) -> Option<(Known, Found)> {
    Some((found.known.take()?, found))
}

/// Where a body is: `None` if not all of it is anywhere.
fn place(body_id: ObjectId, known: &Known, found: Found, look: &dyn Look) -> Option<WholeBody> {
    let bytes = cipher_bytes(known.entry.body_bytes);
    let row = found.row.as_deref();
    let told = row.and_then(|row| row.log.clone()).filter(|(kind, extents)| {
        extents.iter().map(|extent| extent.bytes).sum::<u64>() == bytes
            && look.holds(*kind, extents)
    });
    let logged = found.logged(bytes).or(told);
    let shards = on_glass(&found, row, bytes, look);
    let is_safe = shards.iter().all(|shard| look.is_safe_on(shard.platter));
    let is_on_glass = !shards.is_empty() && (is_safe || logged.is_none());
    let log = if is_on_glass { None } else { Some(logged?) };
    let framing = match &log {
        Some((kind, _)) if !found.framing.is_empty() => found.framing_in(*kind),
        Some(_) => row.map(|row| row.framing.clone()).unwrap_or_default(),
        None => Vec::new(),
    };
    let restored = row.and_then(|row| row.restored.clone());
    let row = BodyRow {
        body_id,
        key_slot: known.slot.index,
        bytes: known.entry.body_bytes,
        digest: known.entry.body_digest,
        log,
        queued: None,
        shards: if is_on_glass { shards } else { Vec::new() },
        restored: restored.filter(|extents| look.holds(LogKind::Restored, extents)),
        framing,
    };
    Some(WholeBody { row, written: known.written })
}

/// The shards of a body, if they are all there.
fn on_glass(found: &Found, row: Option<&BodyRow>, bytes: u64, look: &dyn Look) -> Vec<Shard> {
    let mut shards = unbroken(&found.shards, found.listed_bytes);
    let told = row.map_or(&[][..], |row| &row.shards);
    if shards.is_empty() || found.listed_bytes != bytes {
        // Lists of lost platters do not say it, but the catalog does.
        let is_whole = told.iter().map(|shard| shard.bytes).sum::<u64>() == bytes;
        let is_there = told.iter().all(|shard| look.has(shard.platter));
        return if is_whole && is_there { told.to_vec() } else { Vec::new() };
    }
    for shard in &mut shards {
        shard.crc = told.iter().find(|told| told.is_at(shard)).and_then(|told| told.crc);
    }
    shards
}

fn join(mut bodies: Vec<(Entry, Rank, Option<WholeBody>)>) -> Result<Whole, String> {
    bodies.sort_by_key(|(entry, ..)| entry.index);
    let rank = bodies.iter().map(|&(_, rank, _)| rank).max_by(|a, b| later(a, b).0);
    let entry = bodies[0].0.clone();
    let count = entry.body_count as usize;
    let whole: Vec<WholeBody> = bodies.into_iter().filter_map(|(.., body)| body).collect();
    match rank {
        Some(rank) if whole.len() == count => Ok(Whole { entry, bodies: whole, rank }),
        _ => Err(format!(
            "\"{}\" in bucket \"{}\": {} of {count} bodies are whole",
            entry.key,
            entry.bucket,
            whole.len()
        )),
    }
}

/// Which of two objects of one name is the later, and whether that is sure.
fn later(a: &Rank, b: &Rank) -> (Ordering, bool) {
    // Runs do not depend on a clock; of one run, records have milliseconds where objects have
    // seconds.
    if let (Some(a), Some(b)) = (a.written, b.written)
        && a != b
    {
        return (a.cmp(&b), true);
    }
    let (by_time, by_run) = (a.modified.cmp(&b.modified), a.key_run.cmp(&b.key_run));
    match by_time {
        Ordering::Equal => (by_run, by_run != Ordering::Equal),
        Ordering::Less | Ordering::Greater => (by_time, by_run != by_time.reverse()),
    }
}

/// Takes an object, unless a later one has its name. The keys of the earlier are destroyed at the
/// next start, if it is sure to be the earlier: a crash came between an overwrite and that.
fn take(objects: &mut Objects, mut object: Whole, look: &mut dyn Look) {
    let name = (object.entry.bucket.clone(), object.entry.key.clone());
    let Some(mut other) = objects.whole.remove(&name) else {
        if object.bodies.iter().all(|body| !look.may_be_torn(body) || look.is_intact(&body.row)) {
            objects.whole.insert(name, object);
        } else {
            objects.torn(&object);
        }
        return;
    };
    // Which of the two comes back decides over the bytes of the other: both are read.
    let mut is_intact = |object: &Whole| object.bodies.iter().all(|b| look.is_intact(&b.row));
    let (is_new_intact, is_old_intact) = (is_intact(&object), is_intact(&other));
    if !is_new_intact || !is_old_intact {
        let (bad, good) = if is_new_intact { (other, object) } else { (object, other) };
        objects.torn(&bad);
        if is_new_intact || is_old_intact {
            objects.whole.insert(name, good);
        } else {
            objects.torn(&good);
        }
        return;
    }
    let (order, is_sure) = later(&object.rank, &other.rank);
    if order == Ordering::Greater {
        std::mem::swap(&mut object, &mut other);
    }
    objects.overwritten += 1;
    if is_sure {
        objects.shreds.extend(object.bodies.iter().map(|b| (b.row.body_id, b.row.key_slot)));
    }
    objects.whole.insert(name, other);
}

impl Objects {
    fn torn(&mut self, object: &Whole) {
        self.incomplete.push(format!(
            "object {}: \"{}\" in bucket \"{}\": its bytes are not those that were sent",
            object.entry.object_id, object.entry.key, object.entry.bucket
        ));
    }
}

#[cfg(test)]
mod tests;
