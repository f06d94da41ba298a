//! What is agreed on for a version: a put, a delete, or nothing.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};

use crate::{SiteIndex, Version, WriteId};

/// A value. Two are the same when they are of the same write.
#[derive(Clone, Serialize, Deserialize)]
pub struct Value {
    /// Of which write it is.
    pub id: WriteId,
    /// When its writer says it was written. Orders nothing; says how old it is about.
    pub time: UnixTime,
    /// What it does to the object.
    pub change: Arc<Change>,
}

impl Value {
    /// A value of a write.
    #[must_use]
    pub fn new(id: WriteId, time: UnixTime, change: Change) -> Self {
        Self { id, time, change: Arc::new(change) }
    }

    /// What is left of it when its bytes are removed.
    #[must_use]
    pub fn gone(&self) -> Self {
        Self::new(self.id, self.time, Change::Gone)
    }

    /// Whether its bytes are there by its having been decided.
    #[must_use]
    pub fn was_written(&self) -> bool {
        self.put().is_none_or(Put::was_written)
    }

    /// The put it is, if it is one.
    #[must_use]
    pub fn put(&self) -> Option<&Put> {
        match &*self.change {
            Change::Put(put) => Some(put),
            Change::Delete | Change::DeleteVersions(_) | Change::Noop | Change::Gone => None,
        }
    }

    /// Whether it was a put or a delete that is gone for good.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(*self.change, Change::Gone)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &*self.change {
            Change::Put(_) => "put",
            Change::Delete => "delete",
            Change::DeleteVersions(_) => "delete-versions",
            Change::Noop => "noop",
            Change::Gone => "gone",
        };
        write!(f, "{what} {:x}", self.id.0)
    }
}

/// What a version does to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// It is new bytes.
    Put(Put),
    /// It hides all versions before it.
    Delete,
    /// It hides these.
    DeleteVersions(Vec<Version>),
    /// Nothing: the version was decided so that nothing else could be.
    Noop,
    /// Whatever it was, it was hidden, and its bytes are removed.
    Gone,
}

/// New bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put {
    /// How many bytes.
    pub size: u64,
    /// BLAKE3 of the bytes.
    pub digest: [u8; 32],
    /// Where they lie.
    pub data: Data,
    /// What the writer says of them, in the order of the names.
    pub attributes: Vec<(String, String)>,
}

/// Where bytes of a put lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    /// Here, in the row.
    Inline(Vec<u8>),
    /// In fragments at sites.
    Coded(Coded),
    /// In a stripe that several puts share.
    Shared {
        /// The write whose fragments these are.
        stripe: WriteId,
        /// Where this put's bytes begin in the stripe.
        at: u64,
        /// How many bytes the stripe has.
        stripe_size: u64,
        /// Its fragments.
        coded: Coded,
    },
}

/// Fragments at sites: each chunk of the bytes is `data` fragments and `parity` more, any `data` of
/// which give it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coded {
    /// Fragments that a chunk needs.
    pub data: u8,
    /// Fragments beside them.
    pub parity: u8,
    /// Bytes of a chunk; the last of a part has the rest.
    pub chunk: u64,
    /// The parts it was put in, as so many of so many bytes each; none when it was put as a whole.
    /// No chunk lies in two parts.
    pub parts: Vec<(u32, u64)>,
    /// The site of each fragment, data first.
    pub sites: Vec<SiteIndex>,
    /// Whether all was written before the version was proposed: then whoever knows that it was
    /// decided knows that its bytes are there.
    pub written: bool,
}

/// A chunk of the bytes of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its number: that of its part, times 65,536, and its own in the part.
    pub number: u32,
    /// Where it begins in the bytes.
    pub at: u64,
    /// Its bytes.
    pub length: u64,
}

impl Chunk {
    /// The number of a chunk of a part; none when there are no such numbers.
    #[must_use]
    pub fn number(part: usize, chunk: u64) -> Option<u32> {
        let part = u16::try_from(part).ok()?;
        let chunk = u16::try_from(chunk).ok()?;
        Some(u32::from(part) << 16 | u32::from(chunk))
    }
}

impl Coded {
    /// The chunks of so many bytes, in order.
    pub fn chunks(&self, size: u64) -> impl Iterator<Item = Chunk> + '_ {
        let whole = [(1, size)];
        let parts = if self.parts.is_empty() { whole.to_vec() } else { self.parts.clone() };
        let parts = parts.into_iter().flat_map(|(count, bytes)| (0..count).map(move |_| bytes));
        let starts = parts.scan(0, |at, bytes| {
            let start = *at;
            *at += bytes;
            Some((start, bytes))
        });
        let chunk = self.chunk.max(1);
        starts.enumerate().flat_map(move |(part, (start, bytes))| {
            (0..bytes.div_ceil(chunk)).filter_map(move |index| {
                let length = chunk.min(bytes - index * chunk);
                let number = Chunk::number(part, index)?;
                Some(Chunk { number, at: start + index * chunk, length })
            })
        })
    }
}

impl Put {
    /// Its fragments, if it has any: whose they are, how many bytes they hold, and where.
    #[must_use]
    pub fn coded(&self, id: WriteId) -> Option<(WriteId, u64, &Coded)> {
        match &self.data {
            Data::Inline(_) => None,
            Data::Coded(coded) => Some((id, self.size, coded)),
            Data::Shared { stripe, stripe_size, coded, .. } => Some((*stripe, *stripe_size, coded)),
        }
    }

    /// Whether its bytes were on stable storage before it was proposed.
    #[must_use]
    pub fn was_written(&self) -> bool {
        match &self.data {
            Data::Inline(_) => true,
            Data::Coded(coded) => coded.written,
            // A stripe is written before anybody is told of it.
            Data::Shared { .. } => true,
        }
    }
}
