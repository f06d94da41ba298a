//! Rows of the index: what is written under which key, and how. Docs/formats/rack-index.md has
//! them.
//!
//! ```text
//! space      key                            row
//! rack       "rack"                         RackRow
//! rack       "sequence"                     the last number given
//! rack       "start", "ledger"              the latest start; the latest that the ledger knows of
//! rack       "older"                        a later start that something knew of
//! objects    key of the object, as it is    ObjectRow
//! blobs      group, blob id                 BlobRow
//! begun      blob id, sequence              BegunRow: stacks that are being written
//! unwanted   group, blob id, sequence       UnwantedRow: stacks to be swept
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
use crate::{Result, StacksError};

pub(super) const RACK: Space = Space::new("rack");
pub(super) const OBJECTS: Space = Space::new("objects");
pub(super) const BLOBS: Space = Space::new("blobs");
pub(super) const BEGUN: Space = Space::new("begun");
pub(super) const UNWANTED: Space = Space::new("unwanted");
pub(super) const DISKS: Space = Space::new("disks");
pub(super) const SCRUB: Space = Space::new("scrub");
pub(super) const TOTALS: Space = Space::new("totals");
pub(super) const ROOMS: Space = Space::new("rooms");
pub(super) const STARTS: Space = Space::new("starts");

/// Every space of the index.
pub(super) const SPACES: [Space; 10] =
    [RACK, OBJECTS, BLOBS, BEGUN, UNWANTED, DISKS, SCRUB, TOTALS, ROOMS, STARTS];

/// Which rack an index is of.
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

    /// How its blobs are coded.
    ///
    /// # Errors
    /// When the row names a coding that there is none of.
    pub fn coding(&self) -> Result<Coding> {
        Coding::new(self.information, self.redundancy)
    }

    /// An error when it is not this rack's.
    pub(super) fn is(&self, rack: RackId, coding: Coding) -> Result<()> {
        if *self == Self::new(rack, coding) {
            return Ok(());
        }
        let (own, found) = (coding, self.coding()?);
        let what = format!(
            "the index is that of rack {} with blobs in {found} stacks, and not of rack {rack} \
             with {own}",
            self.rack
        );
        Err(StacksError::Invalid { what })
    }
}

/// What a key names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRow {
    /// Its number among all puts; its entity tag is made of it.
    pub sequence: u64,
    /// When it was put, in milliseconds since 1970.
    pub modified_ms: u64,
    /// Its bytes.
    pub length: ByteCount,
    /// What its writer says of it, by names.
    pub attributes: Vec<(String, String)>,
    /// Where they are.
    pub content: Content,
}

/// Where an object's bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Here.
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
    /// Its number among all puts.
    pub sequence: u64,
    /// Its bytes.
    pub length: ByteCount,
    /// CRC-64/NVME of them.
    pub sum: u64,
    /// Stacks that are enough to read it; all others are redundancy.
    pub information: u8,
    /// The place of each stack, by its index; none where it is lost and not made anew yet.
    pub places: Vec<Option<u32>>,
}

impl BlobRow {
    /// How it is coded.
    ///
    /// # Errors
    /// When the row names a coding that there is none of.
    pub fn coding(&self) -> Result<Coding> {
        let redundancy = self.places.len().saturating_sub(usize::from(self.information));
        Coding::new(self.information, u8::try_from(redundancy).unwrap_or(u8::MAX))
    }

    /// The stacks that lie in a place.
    #[must_use]
    pub fn indices_in(&self, place: PlaceId) -> Vec<u8> {
        let here = (0..).zip(&self.places).filter(|(_, at)| **at == Some(place.get()));
        here.map(|(index, _)| index).collect()
    }
}

/// Stacks that are being written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BegunRow {
    pub(super) group: u32,
    /// Each with its place.
    pub(super) stacks: Vec<(u8, u32)>,
}

impl BegunRow {
    pub(super) fn new(group: GroupId, stacks: &[(u8, PlaceId)]) -> Self {
        let stacks = stacks.iter().map(|&(index, place)| (index, place.get())).collect();
        Self { group: group.get(), stacks }
    }
}

/// Stacks to be swept, each with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnwantedRow {
    pub(super) stacks: Vec<(u8, u32)>,
}

/// The disk that was last in a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRow {
    /// Which disk, as its own file says.
    pub disk: [u8; 16],
    /// Whether it was given up: nothing on it counts any more.
    pub is_given_up: bool,
}

/// How far the verification of a group is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubRow {
    /// Since when it is to be verified, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it was last whole verified; none when it never was.
    pub whole_ms: Option<u64>,
    /// The last blob that the one under way came to.
    pub after: Option<BlobId>,
    /// Blobs that something was wrong with and stayed wrong, in the one under way or the last.
    pub problems: u64,
    /// Whether it is to be verified without delay, since a disk of it was given up.
    pub is_asked: bool,
}

/// What lies in a group.
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

    /// Totals that are too small, as of an index that was damaged, end at nothing.
    pub(super) fn remove(&mut self, bytes: ByteCount) {
        self.blobs = self.blobs.saturating_sub(1);
        self.bytes = ByteCount::new(self.bytes.get().saturating_sub(bytes.get()));
    }
}

/// The room of a disk when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomRow {
    /// What could be written.
    pub free: ByteCount,
    /// All of it.
    pub total: ByteCount,
    /// Its file system, by which places are told that share one.
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
impl Row for BegunRow {
    const VERSION: u8 = 1;
}
impl Row for UnwantedRow {
    const VERSION: u8 = 1;
}
impl Row for DiskRow {
    const VERSION: u8 = 1;
}
