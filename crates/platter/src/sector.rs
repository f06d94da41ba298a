//! The sector: header, payload, checksum. The smallest unit that can be read or lost.
//!
//! ```text
//!  0        8   10 11 12      16  18  20          24             28         32          48
//! +--------+---+--+--+-------+---+---+-----------+--------------+----------+-----------+
//! | magic  |ver|k |0 | track |lay|0  | generation| payload bytes| 0        | archive   |
//! +--------+---+--+--+-------+---+---+-----------+--------------+----------+-----------+
//! 48          64                   96                     96 + P            128 + P
//! +-----------+--------------------+----------------------+-----------------+
//! | platter   | 0                  | payload, P bytes     | BLAKE3, 32 bytes|
//! +-----------+--------------------+----------------------+-----------------+
//! ```
//!
//! Integers are little-endian. The checksum covers header and payload, which are contiguous. A
//! reader knows every byte of the header that it expects, so a sector in the wrong place, of
//! another platter or of another generation counts as unreadable: an [`Erasure`], not an error.

use fulgurite_codes::{CHECKSUM_BYTES, sector_checksum};
use fulgurite_units::{ArchiveId, LayerIndex, PlatterId, TrackIndex};

/// Version of the platter format.
pub(crate) const FORMAT_VERSION: u16 = 1;

/// First bytes of every sector, in every version.
pub const SECTOR_MAGIC: [u8; 8] = *b"FGSECTOR";

/// Bytes of a sector's header.
pub const SECTOR_HEADER_BYTES: usize = 96;

/// Overhead of a sector: its bytes besides the payload.
pub const SECTOR_OVERHEAD: usize = SECTOR_HEADER_BYTES + CHECKSUM_BYTES;

/// Kind of a sector's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SectorKind {
    /// A page of the platter's header.
    Header = 0,
    /// User bytes.
    Information = 1,
    /// Redundancy within the track.
    TrackRedundancy = 2,
    /// Redundancy of a large group, in the information sectors of a redundancy track.
    GroupRedundancy = 3,
}

impl SectorKind {
    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Header),
            1 => Some(Self::Information),
            2 => Some(Self::TrackRedundancy),
            3 => Some(Self::GroupRedundancy),
            _ => None,
        }
    }
}

/// Why a sector counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Erasure {
    /// The simulated medium failed to read it.
    #[error("the simulated medium failed")]
    Simulated,
    /// It does not begin with the sector magic.
    #[error("no sector begins here")]
    Magic,
    /// Another version of the format.
    #[error("sector format version {0}")]
    Version(u16),
    /// Header or payload do not match the checksum.
    #[error("the checksum is wrong")]
    Checksum,
    /// Written by another archive.
    #[error("the sector belongs to archive {0}")]
    Archive(ArchiveId),
    /// Belongs to another platter.
    #[error("the sector belongs to platter {0}")]
    Platter(PlatterId),
    /// It belongs to another attempt to write this platter.
    #[error("the sector is of generation {0}")]
    Generation(u32),
    /// It belongs elsewhere on this platter, or its kind or size is not the expected one.
    #[error("the sector belongs to layer {layer} of track {track}")]
    Place {
        /// Track where it says it belongs.
        track: TrackIndex,
        /// Layer where it says it belongs.
        layer: LayerIndex,
    },
}

/// Content of a sector's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorHeader {
    /// Archive that wrote the sector.
    pub archive: ArchiveId,
    /// Platter that it is on.
    pub platter: PlatterId,
    /// Number of the attempt to write that platter.
    pub generation: u32,
    /// Physical track.
    pub track: TrackIndex,
    /// Layer: the sector's index in the track, the deepest first.
    pub layer: LayerIndex,
    /// Kind of the payload.
    pub kind: SectorKind,
    /// Payload bytes.
    pub payload_bytes: u32,
}

impl SectorHeader {
    /// Encodes the header.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SECTOR_HEADER_BYTES] {
        let mut bytes = [0; SECTOR_HEADER_BYTES];
        bytes[0..8].copy_from_slice(&SECTOR_MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[10] = self.kind as u8;
        bytes[12..16].copy_from_slice(&self.track.get().to_le_bytes());
        bytes[16..18].copy_from_slice(&self.layer.get().to_le_bytes());
        bytes[20..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[32..48].copy_from_slice(&self.archive.to_bytes());
        bytes[48..64].copy_from_slice(&self.platter.to_bytes());
        bytes
    }

    /// Parses the header of a sector image whose checksum has not been verified yet.
    ///
    /// # Errors
    /// The kind of erasure.
    ///
    /// # Panics
    /// When fewer bytes than a header are given.
    pub fn parse(bytes: &[u8]) -> Result<Self, Erasure> {
        if bytes[0..8] != SECTOR_MAGIC {
            return Err(Erasure::Magic);
        }
        let version = u16_at(bytes, 8);
        if version != FORMAT_VERSION {
            return Err(Erasure::Version(version));
        }
        let header = Self {
            archive: ArchiveId::from_bytes(array_at(bytes, 32)),
            platter: PlatterId::from_bytes(array_at(bytes, 48)),
            generation: u32_at(bytes, 20),
            track: TrackIndex::new(u32_at(bytes, 12)),
            layer: LayerIndex::new(u16_at(bytes, 16)),
            kind: SectorKind::from_byte(bytes[10]).ok_or(Erasure::Checksum)?,
            payload_bytes: u32_at(bytes, 24),
        };
        // Reserved bytes are zero.
        if header.to_bytes() == bytes[..SECTOR_HEADER_BYTES] {
            Ok(header)
        } else {
            Err(Erasure::Checksum)
        }
    }

    /// Writes header and checksum around the payload that is already in the image.
    pub(crate) fn seal(&self, image: &mut [u8]) {
        let end = image.len() - CHECKSUM_BYTES;
        debug_assert_eq!(end - SECTOR_HEADER_BYTES, self.payload_bytes as usize);
        image[..SECTOR_HEADER_BYTES].copy_from_slice(&self.to_bytes());
        let checksum = sector_checksum(&image[..end]);
        image[end..].copy_from_slice(&checksum);
    }

    /// Checks that the image is exactly this sector, intact.
    ///
    /// # Errors
    /// The kind of erasure.
    pub(crate) fn check(&self, image: &[u8]) -> Result<(), Erasure> {
        if image[..SECTOR_HEADER_BYTES] != self.to_bytes() {
            return Err(self.mismatch(image));
        }
        if has_valid_checksum(image) { Ok(()) } else { Err(Erasure::Checksum) }
    }

    /// Returns how the sector found differs from this one.
    fn mismatch(&self, image: &[u8]) -> Erasure {
        let found = match Self::parse(image) {
            Ok(found) => found,
            Err(erasure) => return erasure,
        };
        if !has_valid_checksum(image) {
            Erasure::Checksum
        } else if found.archive != self.archive {
            Erasure::Archive(found.archive)
        } else if found.platter != self.platter {
            Erasure::Platter(found.platter)
        } else if found.generation != self.generation {
            Erasure::Generation(found.generation)
        } else {
            Erasure::Place { track: found.track, layer: found.layer }
        }
    }
}

/// Whether a sector image ends in the checksum of the bytes before it.
pub(crate) fn has_valid_checksum(image: &[u8]) -> bool {
    let (content, checksum) = image.split_at(image.len() - CHECKSUM_BYTES);
    sector_checksum(content) == checksum
}

/// Returns the payload of a sector image.
pub(crate) fn payload(image: &[u8]) -> &[u8] {
    &image[SECTOR_HEADER_BYTES..image.len() - CHECKSUM_BYTES]
}

/// Returns the payload of a sector image, mutably.
pub(crate) fn payload_mut(image: &mut [u8]) -> &mut [u8] {
    let end = image.len() - CHECKSUM_BYTES;
    &mut image[SECTOR_HEADER_BYTES..end]
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// Returns `N` bytes at a fixed place of a record whose length was checked.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}
