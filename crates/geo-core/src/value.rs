//! The value that sites agree on for a version: a put, a delete, or a no-op.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};

use crate::{SiteIndex, Version, WriteId};

/// A value. Two are equal if they belong to the same write.
#[derive(Clone, Serialize, Deserialize)]
pub struct Value {
    /// The write it belongs to.
    pub id: WriteId,
    /// Time of the write by the writer's clock. It orders nothing and gives only a rough age.
    pub time: UnixTime,
    /// Its change to the object.
    pub change: Arc<Change>,
}

impl Value {
    /// Creates the value of a write.
    #[must_use]
    pub fn new(id: WriteId, time: UnixTime, change: Change) -> Self {
        Self { id, time, change: Arc::new(change) }
    }

    /// Returns what is left of it once its bytes are removed.
    #[must_use]
    pub fn gone(&self) -> Self {
        Self::new(self.id, self.time, Change::Gone)
    }

    /// Whether its bytes are certainly written if it was decided.
    #[must_use]
    pub fn was_written(&self) -> bool {
        self.put().is_none_or(Put::was_written)
    }

    /// Returns its put, if it is one.
    #[must_use]
    pub fn put(&self) -> Option<&Put> {
        match &*self.change {
            Change::Put(put) => Some(put),
            Change::Delete | Change::DeleteVersions(_) | Change::Noop | Change::Gone => None,
        }
    }

    /// Whether it is gone for good.
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
        let kind = match &*self.change {
            Change::Put(_) => "put",
            Change::Delete => "delete",
            Change::DeleteVersions(_) => "delete-versions",
            Change::Noop => "noop",
            Change::Gone => "gone",
        };
        write!(f, "{kind} {:x}", self.id.0)
    }
}

/// Change that a version makes to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Stores new bytes.
    Put(Put),
    /// A tombstone: makes all versions before it obsolete.
    Delete,
    /// Makes these versions obsolete.
    DeleteVersions(Vec<Version>),
    /// Nothing: the version was decided as a no-op so that no other value could be.
    Noop,
    /// The version was obsolete, and its bytes are removed.
    Gone,
}

/// New bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put {
    /// Size in bytes.
    pub size: u64,
    /// BLAKE3 of the bytes.
    pub digest: [u8; 32],
    /// Where they are stored.
    pub data: Data,
    /// Attributes set by the writer, in the order of the names.
    pub attributes: Vec<(String, String)>,
}

/// Where the bytes of a put are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    /// Inline, in the row.
    Inline(Vec<u8>),
    /// In fragments at sites.
    Coded(Coded),
    /// In a stripe that several puts share.
    Shared {
        /// The write that the stripe's fragments belong to.
        stripe: WriteId,
        /// Offset of this put's bytes in the stripe.
        at: u64,
        /// Size of the stripe in bytes.
        stripe_size: u64,
        /// Its fragments.
        coded: Coded,
    },
}

/// Erasure code over sites: each chunk of the bytes is stored as `data` plus `parity` fragments,
/// any `data` of which decode it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coded {
    /// Data fragments of a chunk.
    pub data: u8,
    /// Parity fragments of a chunk.
    pub parity: u8,
    /// Chunk size in bytes; the last chunk of a part may be shorter.
    pub chunk: u64,
    /// The parts it was uploaded in, as counts and sizes in bytes; empty if it was put as a whole.
    /// No chunk spans two parts.
    pub parts: Vec<(u32, u64)>,
    /// The site of each fragment, data first.
    pub sites: Vec<SiteIndex>,
    /// Whether all was written before the version was proposed: then its being decided proves that
    /// its bytes are stored.
    pub written: bool,
}

/// A chunk of the bytes of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its number: that of its part, times 65,536, and its own in the part.
    pub number: u32,
    /// Its offset in the bytes.
    pub at: u64,
    /// Its length in bytes.
    pub length: u64,
}

impl Chunk {
    /// Returns the number of a chunk of a part; none if it does not fit.
    #[must_use]
    pub fn number(part: usize, chunk: u64) -> Option<u32> {
        let part = u16::try_from(part).ok()?;
        let chunk = u16::try_from(chunk).ok()?;
        Some(u32::from(part) << 16 | u32::from(chunk))
    }
}

impl Coded {
    /// Returns the chunks of so many bytes, in order.
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
    /// Returns its fragments, if any: the write they belong to, how many bytes they encode, and
    /// their code.
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
            // A stripe is written before anything refers to it.
            Data::Shared { .. } => true,
        }
    }
}
