//! Bodies to platters: which bytes of which body lie where on the information platters of a set.
//!
//! ```text
//! platter 0                  platter 1                  platter 2 = I_p - 1
//! [a][b][C1      ][e]|list   [C2      ][D1    ]|list    [C3      ][D2    ]|list
//!
//! given: a b C D e; C is split into three shards, D into two
//! ```
//!
//! Rules:
//! 1. Bodies are placed in the order given; [`StagedBody::sort`] keeps together what is near, as
//!    what has the same account is, because that is read together (Silica section 6).
//! 2. A body no larger than [`split_bytes`] is never split. It goes where the last such body went,
//!    or else to the next platter that has room, and never back: the room it leaves behind is less
//!    than a quarter of a platter.
//! 3. A larger body is split into shards of at most that size, one a platter, so that drives read
//!    them at the same time ("To ensure time-efficient read of large files, we shard them into
//!    multiple platters", ibid.). They go to the platters with the most room, and their lengths
//!    differ by a track at most. A platter with less room takes what it has, and the others more;
//!    if that is too little, further platters take part. A body of more shards than the set has
//!    platters has longer ones. A shard is at least a track long, unless it is what is left of its
//!    body or all that an empty platter can take.
//! 4. A file of several bodies (the parts of an upload) is shared out like a large body when it is
//!    larger than a shard: its bodies stay on one platter until the next would make more than a
//!    shard there, and then go on, on the platter with the most room among those with the least of
//!    such runs. A file that has more shards than the set has platters has longer ones.
//! 5. A body no larger than a quarter of a set is not split over sets. A larger one fills the set
//!    and goes on in the next, from the byte where it stopped.
//! 6. Each platter keeps room for its file list, which has an entry for each shard on it.
//!
//! Shards of a body stand in the order of their platters. A set that is closed short has as many
//! platters as its largest file has shards, and few when all of its files are small. This is not a
//! bin packer: the order matters more than the last percent, and tracks that carry nothing are not
//! written.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fulgurite_glass::{Geometry, list_bytes};
use fulgurite_units::{ByteCount, ObjectId};

use crate::LayoutError;
use crate::balance::{Piece, balance};

/// A body that waits for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagedBody<'a> {
    /// The body.
    pub object: ObjectId,
    /// Bytes whose order is that in which bodies shall lie: what is alike in them lies together.
    pub near: &'a [u8],
    /// The file that the body is, or is a part of. Its bodies are given one after the other.
    pub file: ObjectId,
    /// Bytes of all bodies of that file that wait for their place.
    pub file_bytes: u64,
    /// Bytes of its ciphertext.
    pub bytes: u64,
    /// Bytes placed in earlier sets already; where this set goes on.
    pub from: u64,
    /// Bytes of its entry in a file list ([`fulgurite_glass::list_entry_bytes`]).
    pub entry_bytes: u64,
}

impl StagedBody<'_> {
    /// Puts the bodies of one set in the order in which they shall lie. A body that goes on from an
    /// earlier set comes first.
    pub fn sort(bodies: &mut [Self]) {
        bodies
            .sort_by(|a, b| (a.from == 0, a.near, a.object).cmp(&(b.from == 0, b.near, b.object)));
    }
}

/// A run of bytes of a body on one platter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The body.
    pub object: ObjectId,
    /// First user byte on the platter.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// First byte in the body.
    pub body_offset: u64,
    /// Bytes of the whole body.
    pub body_bytes: u64,
}

/// One information platter of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatterPlan {
    /// Its shards in the order in which they lie, without a gap.
    pub shards: Vec<Shard>,
    /// Bytes of all shards.
    pub data_bytes: u64,
    /// Bytes of the entries of its file list, without the list's head and digest.
    pub entry_bytes: u64,
}

impl PlatterPlan {
    /// Bytes of its file list, which follows the shards.
    #[must_use]
    pub const fn list_bytes(&self) -> u64 {
        list_bytes(self.entry_bytes)
    }

    /// Bytes of shards and file list.
    #[must_use]
    pub const fn user_bytes(&self) -> u64 {
        self.data_bytes + self.list_bytes()
    }
}

/// What the information platters of a set hold; platters behind the last one are not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetPlan {
    /// The platters that carry something, from position 0.
    pub platters: Vec<PlatterPlan>,
    /// User bytes of each redundancy platter: whole tracks, as many as the longest platter has.
    pub redundancy_bytes: u64,
}

/// What became of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// All of it has its place in this set.
    Placed,
    /// The set is full and holds the body up to byte `next`; the next set goes on from there.
    Partial {
        /// The first byte that has no place yet.
        next: u64,
    },
    /// The set is full and holds nothing of the body, which is to be the first of the next set.
    Full,
}

/// Fills the information platters of one set.
#[derive(Clone, Debug)]
pub struct SetPlanner {
    geometry: Geometry,
    /// [`split_bytes`] of the set.
    shard_bytes: u64,
    platters: Vec<PlatterPlan>,
    /// The platter of the last body that was not split, but for those of large files.
    unsplit_position: usize,
    /// The large file at hand.
    run: Option<Run>,
    full: bool,
}

/// The size up to which a body is never split over platters, and the most bytes of a shard unless
/// rules 3 and 4 above make it longer: whole tracks, at most `shard_size` and at least one, but
/// never more than a quarter of a platter.
#[must_use]
pub fn split_bytes(geometry: &Geometry, shard_size: ByteCount) -> u64 {
    let track_bytes = geometry.track_user_bytes() as u64;
    let quarter = quarter_bytes(geometry);
    let whole_tracks = shard_size.get().min(quarter) / track_bytes * track_bytes;
    whole_tracks.max(track_bytes).min(quarter)
}

/// What a platter may lose to bodies that are not split.
const fn quarter_bytes(geometry: &Geometry) -> u64 {
    geometry.platter_user_bytes() / 4
}

impl SetPlanner {
    /// A planner for an empty set, whose bodies are split into shards of `shard_size`.
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

    /// Gives the next body its place. Once the set is full it stays full.
    ///
    /// # Errors
    /// When the body can never be placed: its list entry is too long, or nothing of it is left.
    pub fn push(&mut self, body: &StagedBody<'_>) -> Result<Push, LayoutError> {
        let nothing_left = body.from >= body.bytes && body.from > 0;
        if nothing_left {
            let StagedBody { object, bytes, from, .. } = *body;
            return Err(LayoutError::BeyondBody { object, bytes, from });
        }
        // Beside its entry an empty platter must take a quarter of a platter: then it takes any
        // body that is not split, and an empty set any body that is not split over sets.
        let room = self.geometry.platter_user_bytes() - quarter_bytes(&self.geometry);
        if list_bytes(0).saturating_add(body.entry_bytes) > room {
            let StagedBody { object, entry_bytes, .. } = *body;
            return Err(LayoutError::EntryTooLong { object, entry_bytes });
        }
        if self.full {
            return Ok(Push::Full);
        }
        let is_unsplit = body.bytes <= self.shard_bytes;
        let is_of_large = is_unsplit && body.file_bytes > self.shard_bytes;
        let pieces = if !is_unsplit {
            self.split(body)
        } else if is_of_large {
            self.beside_its_file(body)
        } else {
            self.unsplit(body)
        };
        let next = body.from + pieces.iter().map(|piece| piece.length).sum::<u64>();
        assert!(next <= body.bytes, "no byte has two places");
        let split_set = body.bytes > self.geometry.set_user_bytes() / 4;
        if pieces.is_empty() || next < body.bytes && !split_set {
            self.full = true;
            return Ok(Push::Full);
        }
        if is_of_large {
            self.go_on(body, pieces[0]);
        } else if is_unsplit {
            self.unsplit_position = pieces[0].position;
        }
        self.place(body, &pieces);
        self.full = next < body.bytes;
        Ok(if self.full { Push::Partial { next } } else { Push::Placed })
    }

    /// Whether nothing was placed yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.platters.is_empty()
    }

    /// Whether the set takes no more bodies.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// The plan of the set.
    #[must_use]
    pub fn finish(self) -> SetPlan {
        let longest = self.platters.iter().map(PlatterPlan::user_bytes).max().unwrap_or(0);
        let tracks = u64::from(self.geometry.tracks_for(longest));
        let redundancy_bytes = tracks * self.geometry.track_user_bytes() as u64;
        SetPlan { platters: self.platters, redundancy_bytes }
    }

    /// Puts the pieces of a body, in order of position, behind what lies there.
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

    /// The place of a body that is not split (rule 2).
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

    /// The place of a body of a large file (rule 4).
    fn beside_its_file(&self, body: &StagedBody<'_>) -> Vec<Piece> {
        let length = body.bytes - body.from;
        let most = self.run_bytes(body);
        let run = self.run.as_ref().filter(|run| run.file == body.file);
        let rooms = (0..usize::from(self.geometry.set_information_platters))
            .filter_map(|position| Some((position, self.room(position, body.entry_bytes)?)))
            .filter(|&(_, room)| room >= length);
        rooms
            .min_by_key(|&(position, room)| {
                let runs = run.and_then(|run| run.runs.get(&position)).copied().unwrap_or(0);
                let stays = run.is_some_and(|run| run.takes(position, length, most));
                (!stays, runs, Reverse(room), position)
            })
            .map(|(position, _)| Piece { position, length })
            .into_iter()
            .collect()
    }

    /// Notes where the last body of a large file went.
    fn go_on(&mut self, body: &StagedBody<'_>, piece: Piece) {
        let most = self.run_bytes(body);
        let old = self.run.take().filter(|run| run.file == body.file);
        let stays = old.as_ref().is_some_and(|run| run.takes(piece.position, piece.length, most));
        let (before, mut runs) = old.map_or_else(Default::default, |run| (run.bytes, run.runs));
        *runs.entry(piece.position).or_default() += u32::from(!stays);
        let bytes = piece.length + if stays { before } else { 0 };
        self.run = Some(Run { file: body.file, runs, position: piece.position, bytes });
    }

    /// How much of a large file lies in one run.
    fn run_bytes(&self, body: &StagedBody<'_>) -> u64 {
        let platters = u64::from(self.geometry.set_information_platters);
        self.shard_bytes.max(body.file_bytes.div_ceil(platters))
    }

    /// The places of a body that is split (rule 3), in order of position; short of the body when
    /// the set has no room for all of it.
    fn split(&self, body: &StagedBody<'_>) -> Vec<Piece> {
        let left = body.bytes - body.from;
        let track_bytes = self.geometry.track_user_bytes() as u64;
        let mut rooms = self.rooms(body.entry_bytes, left.min(track_bytes));
        rooms.sort_unstable_by_key(|room| (Reverse(room.length), room.position));
        // A quarter of a platter of fewer than four tracks is no whole track.
        let shards = left.div_ceil(self.shard_bytes.max(track_bytes));
        let mut sum = 0;
        let enough = rooms.iter().take_while(|room| {
            let is_short = sum < left;
            sum += room.length;
            is_short
        });
        let platters = enough.count().max(usize::try_from(shards).unwrap_or(usize::MAX));
        rooms.truncate(platters);
        let mut pieces = balance(rooms, left, track_bytes);
        pieces.sort_unstable_by_key(|piece| piece.position);
        pieces
    }

    /// The platters with room for `wanted` bytes; an empty one counts with whatever it has.
    fn rooms(&self, entry_bytes: u64, wanted: u64) -> Vec<Piece> {
        (0..usize::from(self.geometry.set_information_platters))
            .filter_map(|position| {
                let length = self.room(position, entry_bytes)?;
                let is_empty = self.platters.get(position).is_none_or(|p| p.data_bytes == 0);
                let is_enough = length >= wanted || is_empty && length > 0;
                is_enough.then_some(Piece { position, length })
            })
            .collect()
    }

    /// How many bytes fit on a platter beside one more entry, if that fits.
    fn room(&self, position: usize, entry_bytes: u64) -> Option<u64> {
        let (data, entries) =
            self.platters.get(position).map_or((0, 0), |p| (p.data_bytes, p.entry_bytes));
        let taken = data + list_bytes(entries + entry_bytes);
        self.geometry.platter_user_bytes().checked_sub(taken)
    }
}

/// The bodies of a large file that lie one after the other on one platter.
#[derive(Clone, Debug)]
struct Run {
    file: ObjectId,
    /// How many runs the file has on each of its platters, this one too.
    runs: BTreeMap<usize, u32>,
    position: usize,
    bytes: u64,
}

impl Run {
    /// Whether a body of `length` bytes at `position` belongs to the run, of at most `most` bytes.
    const fn takes(&self, position: usize, length: u64, most: u64) -> bool {
        self.position == position && self.bytes + length <= most
    }
}
