//! Which objects come back, and where their bodies are named to be.
//!
//! ```text
//! a body    on glass, if its set is whole          else in a log, if all of it is there
//! an object if all its bodies come back
//! a name    of several objects the last one: by the time it was made, then by its records;
//!           the others, and what a start found in doubt, stay in doubt
//! ```
//!
//! A body that lies on glass and in a log is named on glass alone, because that is where its
//! release left it, and what is in the log is a rest that was not yet punched out. Where its set is
//! not whole, or was not released yet as far as a damaged catalog tells, the log has it, and it is
//! written to glass again: the staged copy is the only one that can be relied on.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

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

/// A body of an object, and where it is, if all of it is somewhere.
type Piece = (Entry, Rank, Option<WholeBody>);

/// What became of all bodies.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// By bucket and key.
    pub(super) whole: BTreeMap<(String, String), Whole>,
    /// Keys to be destroyed at the next start: of objects whose deletion was committed.
    pub(super) shreds: BTreeMap<ObjectId, u32>,
    /// Objects that are whole and are not shown: a later one has the name, or a start found them
    /// in doubt. Nothing of them is destroyed, for nothing proves that anybody wanted that.
    pub(super) doubts: Vec<Whole>,
    /// Objects that a start found in doubt and of which a body is not there.
    pub(super) doubts_incomplete: Vec<String>,
    /// Objects of which a body is not there.
    pub(super) incomplete: Vec<String>,
    /// Objects in doubt of which a later one has the name.
    pub(super) overwritten: u64,
    takes_earliest: bool,
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

impl Objects {
    /// None yet. The bodies of `dead` were deleted.
    pub(super) fn new(dead: BTreeMap<ObjectId, u32>, takes_earliest: bool) -> Self {
        Self { shreds: dead, takes_earliest, ..Self::default() }
    }

    /// Whether nothing came back, not even what is in doubt.
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.doubts.is_empty()
    }

    /// Puts objects together out of `bodies`.
    pub(super) fn put_together(&mut self, bodies: Bodies, look: &mut dyn Look) {
        let mut by_object: BTreeMap<ObjectId, Vec<Piece>> = BTreeMap::new();
        let mut doubted: BTreeMap<ObjectId, Vec<Piece>> = BTreeMap::new();
        for (body_id, mut found) in bodies {
            if self.shreds.contains_key(&body_id) {
                continue;
            }
            let (known, among) = match (found.known.take(), found.doubted.take()) {
                (Some(known), _) => (known, &mut by_object),
                (None, Some(known)) => (known, &mut doubted),
                (None, None) => continue,
            };
            let rank = Rank {
                modified: known.entry.modified,
                written: known.written,
                key_run: known.slot.run,
            };
            let whole = place(body_id, &known, found, look);
            among.entry(known.entry.object_id).or_default().push((known.entry, rank, whole));
        }
        for (object_id, bodies) in by_object {
            match join(bodies) {
                Ok(object) => self.take(object, look),
                Err(what) => self.incomplete.push(format!("object {object_id}: {what}")),
            }
        }
        for (object_id, bodies) in doubted {
            match join(bodies) {
                Ok(object) => self.doubts.push(object),
                Err(what) => self.doubts_incomplete.push(format!("object {object_id}: {what}")),
            }
        }
    }

    /// Takes an object, unless a later one has its name. The earlier is in doubt then: mostly a
    /// crash came between an overwrite and the end of its key, but the later may as well be an
    /// upload that a crash cut short, and the earlier what was acknowledged last.
    fn take(&mut self, mut object: Whole, look: &mut dyn Look) {
        let name = (object.entry.bucket.clone(), object.entry.key.clone());
        let Some(mut other) = self.whole.remove(&name) else {
            if object.bodies.iter().all(|body| !look.may_be_torn(body) || look.is_intact(&body.row))
            {
                self.whole.insert(name, object);
            } else {
                self.torn(&object);
            }
            return;
        };
        // Which of the two comes back decides over the bytes of the other: both are read.
        let mut is_intact = |object: &Whole| object.bodies.iter().all(|b| look.is_intact(&b.row));
        let (is_new_intact, is_old_intact) = (is_intact(&object), is_intact(&other));
        if !is_new_intact || !is_old_intact {
            let (bad, good) = if is_new_intact { (other, object) } else { (object, other) };
            self.torn(&bad);
            if is_new_intact || is_old_intact {
                self.whole.insert(name, good);
            } else {
                self.torn(&good);
            }
            return;
        }
        let order = later(&object.rank, &other.rank);
        let order = if self.takes_earliest { order.reverse() } else { order };
        if order == Ordering::Greater {
            std::mem::swap(&mut object, &mut other);
        }
        self.overwritten += 1;
        self.doubts.push(object);
        self.whole.insert(name, other);
    }

    fn torn(&mut self, object: &Whole) {
        self.incomplete.push(format!("{object}: its bytes are not those that were sent"));
    }
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

fn join(mut bodies: Vec<Piece>) -> Result<Whole, String> {
    bodies.sort_by_key(|(entry, ..)| entry.index);
    let rank = bodies.iter().map(|&(_, rank, _)| rank).max_by(later);
    let entry = bodies[0].0.clone();
    let count = entry.body_count as usize;
    let whole: Vec<WholeBody> = bodies.into_iter().filter_map(|(.., body)| body).collect();
    match rank {
        Some(rank) if whole.len() == count => Ok(Whole { entry, bodies: whole, rank }),
        _ => Err(format!("{}: {} of {count} bodies are whole", named(&entry), whole.len())),
    }
}

/// Which of two objects of one name is the later, as far as can be told.
fn later(a: &Rank, b: &Rank) -> Ordering {
    // Runs do not depend on a clock; of one run, records have milliseconds where objects have
    // seconds.
    if let (Some(a), Some(b)) = (a.written, b.written)
        && a != b
    {
        return a.cmp(&b);
    }
    a.modified.cmp(&b.modified).then(a.key_run.cmp(&b.key_run))
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}: {}", self.entry.object_id, named(&self.entry))
    }
}

fn named(entry: &Entry) -> String {
    format!("\"{}\" in bucket \"{}\"", entry.key, entry.bucket)
}

#[cfg(test)]
mod tests;
