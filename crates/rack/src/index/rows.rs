//! Rows of the index: which keys and values are written. Docs/formats/rack-index.md specifies them.
//!
//! ```text
//! space      key                            row
//! rack       "rack"                         RackRow
//! rack       "sequence"                     the last number given
//! rack       "start", "ledger"              the latest start; the latest that the ledger knows of
//! rack       "older"                        a later start that the ledger or a disk knew of
//! objects    key of the object, as it is    ObjectRow
//! blobs      group, blob id                 BlobRow
//! begun      blob id, sequence              IntentRow: stacks that are being written
//! unwanted   group, blob id, sequence       UnwantedRow: stacks to be garbage-collected
//! disks      place                          DiskRow
//! scrub      group                          ScrubRow
//! totals     group                          TotalsRow
//! rooms      place                          RoomRow
//! starts     place                          the latest start that its disk knows of
//! ```

use fulgurite_catalog::Space;
use fulgurite_catalog::row::Row;
use fulgurite_disks::{GroupId, PlaceId};
use fulgurite_units::{BlobId, ByteCount, RackId};
use serde::{Deserialize, Serialize};

use crate::format::Coding;
use crate::{RackError, Result};

pub(super) const RACK: Space = Space::new("rack");
pub(super) const OBJECTS: Space = Space::new("objects");
pub(super) const BLOBS: Space = Space::new("blobs");
pub(super) const INTENTS: Space = Space::new("begun");
pub(super) const UNWANTED: Space = Space::new("unwanted");
pub(super) const DISKS: Space = Space::new("disks");
pub(super) const SCRUB: Space = Space::new("scrub");
pub(super) const TOTALS: Space = Space::new("totals");
pub(super) const ROOMS: Space = Space::new("rooms");
pub(super) const STARTS: Space = Space::new("starts");

/// Every space of the index.
pub(super) const SPACES: [Space; 10] =
    [RACK, OBJECTS, BLOBS, INTENTS, UNWANTED, DISKS, SCRUB, TOTALS, ROOMS, STARTS];

/// The rack that an index belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RackRow {
    /// The rack.
    pub rack: RackId,
    information: u8,
    redundancy: u8,
}

impl RackRow {
    pub(super) const fn new(rack: RackId, coding: Coding) -> Self {
        let (information, redundancy) = (coding.information(), coding.redundancy());
        Self { rack, information, redundancy }
    }

    /// Returns the coding of its blobs.
    ///
    /// # Errors
    /// When the row names a coding that does not exist.
    pub fn coding(&self) -> Result<Coding> {
        Coding::new(self.information, self.redundancy)
    }

    /// Returns an error if the row is not of this rack and coding.
    pub(super) fn check_matches(&self, rack: RackId, coding: Coding) -> Result<()> {
        if *self == Self::new(rack, coding) {
            return Ok(());
        }
        let (own, found) = (coding, self.coding()?);
        let detail = format!(
            "the index belongs to rack {} with blobs in {found} stacks, not to rack {rack} with \
             {own}",
            self.rack
        );
        Err(RackError::Invalid { detail })
    }
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRow {
    /// Sequence number of its put; the entity tag is derived from it.
    pub sequence: u64,
    /// When it was put, in milliseconds since 1970.
    pub modified_ms: u64,
    /// Its bytes.
    pub length: ByteCount,
    /// Attributes that its writer supplied.
    pub attributes: Vec<(String, String)>,
    /// Where its bytes are.
    pub content: Content,
}

/// Where the bytes of an object are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// In this row.
    Inline(Vec<u8>),
    /// In a blob.
    Blob {
        /// The group that it lies in.
        group: u32,
        /// The blob.
        blob: BlobId,
    },
}

/// A blob and its stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRow {
    /// Sequence number of its put.
    pub sequence: u64,
    /// Its bytes.
    pub length: ByteCount,
    /// CRC-64/NVME of them.
    pub sum: u64,
    /// Number of stacks that are enough to read it; all others are redundancy.
    pub information: u8,
    /// The place of each stack, by index; none if it is lost and not rebuilt yet.
    pub places: Vec<Option<u32>>,
}

impl BlobRow {
    /// Returns its coding.
    ///
    /// # Errors
    /// When the row names a coding that does not exist.
    pub fn coding(&self) -> Result<Coding> {
        let redundancy = self.places.len().saturating_sub(usize::from(self.information));
        Coding::new(self.information, u8::try_from(redundancy).unwrap_or(u8::MAX))
    }

    /// Returns the indices of the stacks that lie in a place.
    #[must_use]
    pub fn indices_in(&self, place: PlaceId) -> Vec<u8> {
        let here = (0..).zip(&self.places).filter(|(_, at)| **at == Some(place.get()));
        here.map(|(index, _)| index).collect()
    }
}

/// Stacks that are being written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IntentRow {
    pub(super) group: u32,
    /// Index and place of each.
    pub(super) stacks: Vec<(u8, u32)>,
}

impl IntentRow {
    pub(super) fn new(group: GroupId, stacks: &[(u8, PlaceId)]) -> Self {
        let stacks = stacks.iter().map(|&(index, place)| (index, place.get())).collect();
        Self { group: group.get(), stacks }
    }
}

/// Stacks to be garbage-collected, each with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnwantedRow {
    pub(super) stacks: Vec<(u8, u32)>,
}

/// The disk that was last in a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRow {
    /// Id of the disk, from its identity file.
    pub disk: [u8; 16],
    /// Whether it was given up: nothing on it counts any more.
    pub is_given_up: bool,
}

/// Progress of the verification of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubRow {
    /// Since when the group has been scheduled, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it was last fully verified; none if it never was.
    pub whole_ms: Option<u64>,
    /// Cursor of the running verification: the last blob it reached.
    pub after: Option<BlobId>,
    /// Blobs that the running or last verification found damaged and could not repair.
    pub problems: u64,
    /// Whether it is to be verified without delay, because a disk of it was given up.
    pub is_asked: bool,
}

/// Totals of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalsRow {
    /// Blobs.
    pub blobs: u64,
    /// Their bytes, without redundancy.
    pub bytes: ByteCount,
}

impl TotalsRow {
    pub(super) fn add(&mut self, bytes: ByteCount) {
        self.blobs += 1;
        self.bytes += bytes;
    }

    /// Saturates at zero, as totals of a damaged index may be too small.
    pub(super) fn remove(&mut self, bytes: ByteCount) {
        self.blobs = self.blobs.saturating_sub(1);
        self.bytes = ByteCount::new(self.bytes.get().saturating_sub(bytes.get()));
    }
}

/// Space of a disk when it was last queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomRow {
    /// Free bytes.
    pub free: ByteCount,
    /// Total bytes.
    pub total: ByteCount,
    /// Id of its file system; places with the same id share one.
    pub file_system: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Row for TotalsRow {
    const VERSION: u8 = 1;
}
impl Row for RoomRow {
    const VERSION: u8 = 1;
}
impl Row for ScrubRow {
    const VERSION: u8 = 1;
}
impl Row for RackRow {
    const VERSION: u8 = 1;
}
impl Row for ObjectRow {
    const VERSION: u8 = 1;
}
impl Row for BlobRow {
    const VERSION: u8 = 1;
}
impl Row for IntentRow {
    const VERSION: u8 = 1;
}
impl Row for UnwantedRow {
    const VERSION: u8 = 1;
}
impl Row for DiskRow {
    const VERSION: u8 = 1;
}
