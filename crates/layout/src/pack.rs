//! Bodies to platters: which bytes of which body lie where on the information platters of a set.
//!
//! ```text
//! platter 0                      platter 1                      ...  platter I_p - 1
//! [a][b][c][d ........d1]|list   [..d2][e][f]          |list
//! ```
//!
//! Rules:
//! 1. Bodies are placed in the order given; [`StagedBody::sort`] keeps together what has the same
//!    account and was written at the same time, because that is read together (Silica section 6).
//! 2. A body no larger than a quarter of a platter is never split: the room it leaves is less than
//!    a quarter. A larger one goes on from platter to platter; its shards are at least a track
//!    long, the last one excepted.
//! 3. A body no larger than a quarter of a set is not split over sets. A larger one fills the set
//!    and goes on in the next, from the byte where it stopped.
//! 4. Each platter keeps room for its file list, which has an entry for each shard on it.
//!
//! Platters are filled one after the other, so a set that is closed short has few platters. This is
//! not a bin packer: the order matters more than the last percent, and tracks that carry nothing
//! are not written.

use fulgurite_glass::{Geometry, list_bytes};
use fulgurite_units::ObjectId;

use crate::LayoutError;

/// A body that waits for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagedBody<'a> {
    /// The body.
    pub object: ObjectId,
    /// Whose it is; what has the same account lies together.
    pub account: &'a str,
    /// Its name within the account.
    pub key: &'a str,
    /// Bytes of its ciphertext.
    pub bytes: u64,
    /// Bytes placed in earlier sets already; where this set goes on.
    pub from: u64,
    /// Bytes of its entry in a file list ([`fulgurite_glass::list_entry_bytes`]).
    pub entry_bytes: u64,
}

impl StagedBody<'_> {
    /// Puts the bodies of one set in the order in which they shall lie: by account, then by name.
    /// A body that goes on from an earlier set comes first.
    pub fn sort(bodies: &mut [Self]) {
        bodies.sort_by(|a, b| {
            (a.from == 0, a.account, a.key, a.object).cmp(&(
                b.from == 0,
                b.account,
                b.key,
                b.object,
            ))
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
    platters: Vec<PlatterPlan>,
    full: bool,
}

/// The size up to which a body is never split over platters: a quarter of a platter.
#[must_use]
pub const fn split_bytes(geometry: &Geometry) -> u64 {
    geometry.platter_user_bytes() / 4
}

impl SetPlanner {
    /// A planner for an empty set.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self { geometry: geometry.clone(), platters: Vec::new(), full: false }
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
        // An empty platter must take an unsplit body and its entry.
        let room = self.geometry.platter_user_bytes() - split_bytes(&self.geometry);
        if list_bytes(0).saturating_add(body.entry_bytes) > room {
            let StagedBody { object, entry_bytes, .. } = *body;
            return Err(LayoutError::EntryTooLong { object, entry_bytes });
        }
        if self.full {
            return Ok(Push::Full);
        }
        let (shards, next) = self.shards(body);
        let split_set = body.bytes > self.geometry.set_user_bytes() / 4;
        if shards.is_empty() || next < body.bytes && !split_set {
            self.full = true;
            return Ok(Push::Full);
        }
        for (position, shard) in shards {
            if self.platters.len() <= position {
                self.platters.resize_with(position + 1, PlatterPlan::default);
            }
            let platter = &mut self.platters[position];
            platter.shards.push(shard);
            platter.data_bytes += shard.length;
            platter.entry_bytes += body.entry_bytes;
        }
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

    /// The shards that the body would get, by platter, and the first byte without a place.
    fn shards(&self, body: &StagedBody<'_>) -> (Vec<(usize, Shard)>, u64) {
        let platters = usize::from(self.geometry.set_information_platters);
        let track_bytes = self.geometry.track_user_bytes() as u64;
        let unsplit = body.bytes <= split_bytes(&self.geometry);
        let mut shards = Vec::new();
        let mut next = body.from;
        for position in self.platters.len().saturating_sub(1)..platters {
            let left = body.bytes - next;
            let (used, room) = self.room(position, body.entry_bytes);
            let wanted = if unsplit { left } else { left.min(track_bytes) };
            // An empty platter takes what it can, even if that is less than a track.
            let enough = room.is_some_and(|room| room >= wanted || used == 0 && room > 0);
            let Some(room) = room.filter(|_| enough) else { continue };
            let length = left.min(room);
            let shard = Shard {
                object: body.object,
                offset: used,
                length,
                body_offset: next,
                body_bytes: body.bytes,
            };
            shards.push((position, shard));
            next += length;
            if next == body.bytes {
                break;
            }
        }
        (shards, next)
    }

    /// Data bytes of a platter, and how many more fit beside one more entry, if that fits.
    fn room(&self, position: usize, entry_bytes: u64) -> (u64, Option<u64>) {
        let (data, entries) =
            self.platters.get(position).map_or((0, 0), |p| (p.data_bytes, p.entry_bytes));
        let taken = data + list_bytes(entries + entry_bytes);
        (data, self.geometry.platter_user_bytes().checked_sub(taken))
    }
}
