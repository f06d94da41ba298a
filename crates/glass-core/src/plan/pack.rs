//! Packs bodies onto platters: which bytes of which body go where on the information platters of a
//! set.
//!
//! ```text
//! platter 0                  platter 1                  platter 2 = I_p - 1
//! [a][b][C1      ][e]|list   [C2      ][D1    ]|list    [C3      ][D2    ]|list
//!
//! given: a b C D e; C is split into three shards, D into two
//! ```
//!
//! Rules:
//! 1. Bodies are placed in the order given. [`StagedBody::sort`] groups related bodies, such as
//!    those of one account, because they are read together (Silica section 6).
//! 2. A body no larger than [`split_bytes`] is never split. It goes where the last such body went,
//!    or else to the next platter that has room, never back: the room left behind is less than a
//!    quarter of a platter.
//! 3. A larger body is split into shards of at most that size, one per platter, so that drives read
//!    them in parallel ("To ensure time-efficient read of large files, we shard them into multiple
//!    platters", ibid.). They go to the platters with the most room, and their lengths differ by at
//!    most a track. A platter with less room takes what fits, and the others more; if that is not
//!    enough, further platters are used. If a body would have more shards than the set has
//!    platters, its shards are longer. A shard is at least a track long, unless it is the remainder
//!    of its body or all that fits on an empty platter.
//! 4. A file of several bodies (the parts of a multipart upload) that is larger than a shard is
//!    distributed like a large body: its bodies stay on one platter until the next would make more
//!    than a shard there. They then continue on the platter with the most room among those with the
//!    fewest such runs. If the file would have more shards than the set has platters, its shards
//!    are longer.
//! 5. A body no larger than a quarter of a set is not split over sets. A larger one fills the set
//!    and continues in the next, from the byte where it stopped.
//! 6. Each platter reserves room for its file list, which has an entry for each shard on it.
//!
//! Shards of a body are in the order of their platters. A set that is closed early has as many
//! platters as its largest file has shards, and few when all of its files are small. This is not
//! bin packing: the order matters more than the last percent, and unused tracks are not written.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fulgurite_platter::{Geometry, list_bytes};
use fulgurite_units::{ByteCount, ObjectId};

use crate::plan::LayoutError;
use crate::plan::balance::{Piece, balance};

/// A body that waits to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagedBody<'a> {
    /// The body.
    pub object: ObjectId,
    /// Sort key of the placement: bodies with similar keys are placed together.
    pub affinity_key: &'a [u8],
    /// The file that the body is, or is a part of. The bodies of a file are consecutive.
    pub file: ObjectId,
    /// Bytes of all bodies of that file that wait to be placed.
    pub file_bytes: u64,
    /// Bytes of its ciphertext.
    pub bytes: u64,
    /// Bytes already placed in earlier sets; this set continues from there.
    pub from: u64,
    /// Bytes of its entry in a file list ([`fulgurite_platter::list_entry_bytes`]).
    pub entry_bytes: u64,
}

impl StagedBody<'_> {
    /// Sorts the bodies of one set into the order of placement. A body that continues from an
    /// earlier set comes first.
    pub fn sort(bodies: &mut [Self]) {
        bodies.sort_by(|a, b| {
            (a.from == 0, a.affinity_key, a.object).cmp(&(b.from == 0, b.affinity_key, b.object))
        });
    }
}

/// A run of bytes of a body on one platter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The body.
    pub object: ObjectId,
    /// First user byte on the platter.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// First byte in the body.
    pub body_offset: u64,
    /// Bytes of the whole body.
    pub body_bytes: u64,
}

/// One information platter of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatterPlan {
    /// Its shards in placement order, without gaps.
    pub shards: Vec<Shard>,
    /// Bytes of all shards.
    pub data_bytes: u64,
    /// Bytes of its file list's entries, without the list's head and digest.
    pub entry_bytes: u64,
}

impl PlatterPlan {
    /// Returns the size of its file list, which follows the shards.
    #[must_use]
    pub const fn list_bytes(&self) -> u64 {
        list_bytes(self.entry_bytes)
    }

    /// Returns the bytes of shards and file list.
    #[must_use]
    pub const fn user_bytes(&self) -> u64 {
        self.data_bytes + self.list_bytes()
    }
}

/// Content of the information platters of a set; platters after the last one are not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetPlan {
    /// Platters in use, from position 0.
    pub platters: Vec<PlatterPlan>,
    /// User bytes of each redundancy platter: whole tracks, as many as the longest platter has.
    pub redundancy_bytes: u64,
}

/// Result of placing a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// All of it was placed in this set.
    Placed,
    /// The set is full and contains the body up to byte `next`; the next set continues from there.
    Partial {
        /// First byte that is not placed yet.
        next: u64,
    },
    /// The set is full and contains nothing of the body, which must be the first of the next set.
    Full,
}

/// Fills the information platters of one set.
#[derive(Clone, Debug)]
pub struct SetPlanner {
    geometry: Geometry,
    /// [`split_bytes`] of the set.
    shard_bytes: u64,
    platters: Vec<PlatterPlan>,
    /// Platter of the last unsplit body, not counting those of large files.
    unsplit_position: usize,
    /// The current large file.
    run: Option<Run>,
    full: bool,
}

/// Returns the size up to which a body is never split over platters, which is also the maximum size
/// of a shard unless rules 3 and 4 above make it longer: whole tracks, at most `shard_size` and at
/// least one, but never more than a quarter of a platter.
#[must_use]
pub fn split_bytes(geometry: &Geometry, shard_size: ByteCount) -> u64 {
    let track_bytes = geometry.track_user_bytes() as u64;
    let quarter = quarter_bytes(geometry);
    let whole_tracks = shard_size.get().min(quarter) / track_bytes * track_bytes;
    whole_tracks.max(track_bytes).min(quarter)
}

/// Returns the maximum room of a platter that may be lost to unsplit bodies.
const fn quarter_bytes(geometry: &Geometry) -> u64 {
    geometry.platter_user_bytes() / 4
}

impl SetPlanner {
    /// Creates a planner for an empty set, whose bodies are split into shards of `shard_size`.
    #[must_use]
    pub fn new(geometry: &Geometry, shard_size: ByteCount) -> Self {
        Self {
            geometry: geometry.clone(),
            shard_bytes: split_bytes(geometry, shard_size),
            platters: Vec::new(),
            unsplit_position: 0,
            run: None,
            full: false,
        }
    }

    /// Places the next body. Once the set is full it stays full.
    ///
    /// # Errors
    /// When the body can never be placed: its list entry is too long, or no bytes of it are left.
    pub fn push(&mut self, body: &StagedBody<'_>) -> Result<Push, LayoutError> {
        let is_used_up = body.from >= body.bytes && body.from > 0;
        if is_used_up {
            let StagedBody { object, bytes, from, .. } = *body;
            return Err(LayoutError::BeyondBody { object, bytes, from });
        }
        // Besides the entry, an empty platter must have room for a quarter of a platter: then it
        // takes any unsplit body, and an empty set takes any body that is not split over sets.
        let room = self.geometry.platter_user_bytes() - quarter_bytes(&self.geometry);
        if list_bytes(0).saturating_add(body.entry_bytes) > room {
            let StagedBody { object, entry_bytes, .. } = *body;
            return Err(LayoutError::EntryTooLong { object, entry_bytes });
        }
        if self.full {
            return Ok(Push::Full);
        }
        let is_unsplit = body.bytes <= self.shard_bytes;
        let is_in_large_file = is_unsplit && body.file_bytes > self.shard_bytes;
        let pieces = if !is_unsplit {
            self.split(body)
        } else if is_in_large_file {
            self.place_in_large_file(body)
        } else {
            self.unsplit(body)
        };
        let next = body.from + pieces.iter().map(|piece| piece.length).sum::<u64>();
        assert!(next <= body.bytes, "a byte is not placed twice");
        let split_set = body.bytes > self.geometry.set_user_bytes() / 4;
        if pieces.is_empty() || next < body.bytes && !split_set {
            self.full = true;
            return Ok(Push::Full);
        }
        if is_in_large_file {
            self.record_run(body, pieces[0]);
        } else if is_unsplit {
            self.unsplit_position = pieces[0].position;
        }
        self.place(body, &pieces);
        self.full = next < body.bytes;
        Ok(if self.full { Push::Partial { next } } else { Push::Placed })
    }

    /// Whether nothing has been placed yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.platters.is_empty()
    }

    /// Whether the set takes no more bodies.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Returns the plan of the set.
    #[must_use]
    pub fn finish(self) -> SetPlan {
        let longest = self.platters.iter().map(PlatterPlan::user_bytes).max().unwrap_or(0);
        let tracks = u64::from(self.geometry.tracks_for(longest));
        let redundancy_bytes = tracks * self.geometry.track_user_bytes() as u64;
        SetPlan { platters: self.platters, redundancy_bytes }
    }

    /// Appends the pieces of a body, in order of position, to the platters.
    fn place(&mut self, body: &StagedBody<'_>, pieces: &[Piece]) {
        let mut body_offset = body.from;
        for piece in pieces {
            if self.platters.len() <= piece.position {
                self.platters.resize_with(piece.position + 1, PlatterPlan::default);
            }
            let platter = &mut self.platters[piece.position];
            platter.shards.push(Shard {
                object: body.object,
                offset: platter.data_bytes,
                length: piece.length,
                body_offset,
                body_bytes: body.bytes,
            });
            platter.data_bytes += piece.length;
            platter.entry_bytes += body.entry_bytes;
            body_offset += piece.length;
        }
    }

    /// Places an unsplit body (rule 2).
    fn unsplit(&self, body: &StagedBody<'_>) -> Vec<Piece> {
        let length = body.bytes - body.from;
        let platters = usize::from(self.geometry.set_information_platters);
        (self.unsplit_position..platters)
            .find(|&position| {
                self.room(position, body.entry_bytes).is_some_and(|room| room >= length)
            })
            .map(|position| Piece { position, length })
            .into_iter()
            .collect()
    }

    /// Places a body of a large file (rule 4).
    fn place_in_large_file(&self, body: &StagedBody<'_>) -> Vec<Piece> {
        let length = body.bytes - body.from;
        let bytes_max = self.run_bytes(body);
        let run = self.run.as_ref().filter(|run| run.file == body.file);
        let candidates = (0..usize::from(self.geometry.set_information_platters))
            .filter_map(|position| Some((position, self.room(position, body.entry_bytes)?)))
            .filter(|&(_, room)| room >= length);
        candidates
            .min_by_key(|&(position, room)| {
                let runs = run.and_then(|run| run.runs.get(&position)).copied().unwrap_or(0);
                let stays = run.is_some_and(|run| run.can_take(position, length, bytes_max));
                (!stays, runs, Reverse(room), position)
            })
            .map(|(position, _)| Piece { position, length })
            .into_iter()
            .collect()
    }

    /// Records where the last body of a large file went.
    fn record_run(&mut self, body: &StagedBody<'_>, piece: Piece) {
        let bytes_max = self.run_bytes(body);
        let old = self.run.take().filter(|run| run.file == body.file);
        let stays =
            old.as_ref().is_some_and(|run| run.can_take(piece.position, piece.length, bytes_max));
        let (before, mut runs) = old.map_or_else(Default::default, |run| (run.bytes, run.runs));
        *runs.entry(piece.position).or_default() += u32::from(!stays);
        let bytes = piece.length + if stays { before } else { 0 };
        self.run = Some(Run { file: body.file, runs, position: piece.position, bytes });
    }

    /// Returns the maximum number of bytes of a large file in one run.
    fn run_bytes(&self, body: &StagedBody<'_>) -> u64 {
        let platters = u64::from(self.geometry.set_information_platters);
        self.shard_bytes.max(body.file_bytes.div_ceil(platters))
    }

    /// Places a body that is split (rule 3), in order of position. The pieces do not cover the body
    /// when the set has no room for all of it.
    fn split(&self, body: &StagedBody<'_>) -> Vec<Piece> {
        let left = body.bytes - body.from;
        let track_bytes = self.geometry.track_user_bytes() as u64;
        let mut candidates = self.candidates(body.entry_bytes, left.min(track_bytes));
        candidates.sort_unstable_by_key(|room| (Reverse(room.length), room.position));
        // A quarter of a platter of fewer than four tracks is less than a whole track.
        let shards = left.div_ceil(self.shard_bytes.max(track_bytes));
        let mut sum = 0;
        let enough = candidates.iter().take_while(|room| {
            let is_short = sum < left;
            sum += room.length;
            is_short
        });
        let platters = enough.count().max(usize::try_from(shards).unwrap_or(usize::MAX));
        candidates.truncate(platters);
        let mut pieces = balance(candidates, left, track_bytes);
        pieces.sort_unstable_by_key(|piece| piece.position);
        pieces
    }

    /// Returns the platters with room for `wanted` bytes; an empty one counts with whatever it has.
    fn candidates(&self, entry_bytes: u64, wanted: u64) -> Vec<Piece> {
        (0..usize::from(self.geometry.set_information_platters))
            .filter_map(|position| {
                let length = self.room(position, entry_bytes)?;
                let is_empty = self.platters.get(position).is_none_or(|p| p.data_bytes == 0);
                let is_enough = length >= wanted || is_empty && length > 0;
                is_enough.then_some(Piece { position, length })
            })
            .collect()
    }

    /// Returns how many bytes fit on a platter besides one more entry, if the entry fits.
    fn room(&self, position: usize, entry_bytes: u64) -> Option<u64> {
        let (data, entries) =
            self.platters.get(position).map_or((0, 0), |p| (p.data_bytes, p.entry_bytes));
        let taken = data + list_bytes(entries + entry_bytes);
        self.geometry.platter_user_bytes().checked_sub(taken)
    }
}

/// Consecutive bodies of a large file on one platter.
#[derive(Clone, Debug)]
struct Run {
    file: ObjectId,
    /// Number of runs of the file on each of its platters, including this one.
    runs: BTreeMap<usize, u32>,
    position: usize,
    bytes: u64,
}

impl Run {
    /// Whether a body of `length` bytes at `position` belongs to the run, of at most `bytes_max`
    /// bytes.
    const fn can_take(&self, position: usize, length: u64, bytes_max: u64) -> bool {
        self.position == position && self.bytes + length <= bytes_max
    }
}
