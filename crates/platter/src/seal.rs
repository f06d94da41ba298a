//! The final record: the last bytes of a platter, written after everything else.
//!
//! ```text
//!  0        8    10 12          16         32         48       52       56       60
//! +--------+----+--+-----------+----------+----------+--------+--------+--------+--------+
//! | magic  |ver |0 | generation| archive  | platter  | tracks | sectors| payload| copies |
//! +--------+----+--+-----------+----------+----------+--------+--------+--------+--------+
//! 64           72           80                           112           224            256
//! +------------+------------+----------------------------+-------------+--------------+
//! | user bytes | file bytes | BLAKE3 of sector checksums | 0           | BLAKE3 0..224|
//! +------------+------------+----------------------------+-------------+--------------+
//! ```
//!
//! A platter without it is unfinished. There are four copies, so that local damage does not make a
//! platter look unfinished. It also locates the back header, for a reader whose front header is
//! lost.

use fulgurite_codes::{Checksum, sector_checksum};
use fulgurite_units::{ArchiveId, PlatterId};

use crate::limits::SEAL_COPIES;
use crate::sector::{FORMAT_VERSION, array_at, u16_at, u32_at, u64_at};

/// First bytes of a final record.
pub const SEAL_MAGIC: [u8; 8] = *b"FGPLSEAL";

/// Bytes of one copy.
pub const SEAL_RECORD_BYTES: usize = 256;

/// Bytes of all copies: how much longer a platter's file is than its tracks.
pub const SEAL_BYTES: usize = SEAL_RECORD_BYTES * SEAL_COPIES as usize;

const CHECKSUM_OFFSET: usize = 224;

/// Content of the final record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Archive that wrote the platter.
    pub archive: ArchiveId,
    /// ID of the platter.
    pub platter: PlatterId,
    /// Number of the attempt to write it.
    pub generation: u32,
    /// Number of physical tracks written.
    pub tracks: u32,
    /// Sectors per track.
    pub track_sectors: u32,
    /// Payload bytes per sector.
    pub payload_bytes: u32,
    /// User bytes of the platter.
    pub user_bytes: u64,
    /// Bytes of the whole file.
    pub file_bytes: u64,
    /// BLAKE3 over the checksums of all sectors, in the order of the file.
    pub digest: Checksum,
}

impl Seal {
    /// Encodes all copies.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.record().repeat(SEAL_COPIES as usize)
    }

    fn record(&self) -> [u8; SEAL_RECORD_BYTES] {
        let mut bytes = [0; SEAL_RECORD_BYTES];
        bytes[0..8].copy_from_slice(&SEAL_MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.archive.to_bytes());
        bytes[32..48].copy_from_slice(&self.platter.to_bytes());
        bytes[48..52].copy_from_slice(&self.tracks.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.track_sectors.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[60..64].copy_from_slice(&SEAL_COPIES.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.user_bytes.to_le_bytes());
        bytes[72..80].copy_from_slice(&self.file_bytes.to_le_bytes());
        bytes[80..112].copy_from_slice(&self.digest);
        let checksum = sector_checksum(&bytes[..CHECKSUM_OFFSET]);
        bytes[CHECKSUM_OFFSET..].copy_from_slice(&checksum);
        bytes
    }

    /// Returns the first valid copy among the bytes at a platter's end.
    #[must_use]
    pub fn find(bytes: &[u8]) -> Option<Self> {
        bytes.chunks_exact(SEAL_RECORD_BYTES).find_map(Self::parse)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let valid = bytes[0..8] == SEAL_MAGIC
            && u16_at(bytes, 8) == FORMAT_VERSION
            && sector_checksum(&bytes[..CHECKSUM_OFFSET]) == bytes[CHECKSUM_OFFSET..];
        valid.then(|| Self {
            archive: ArchiveId::from_bytes(array_at(bytes, 16)),
            platter: PlatterId::from_bytes(array_at(bytes, 32)),
            generation: u32_at(bytes, 12),
            tracks: u32_at(bytes, 48),
            track_sectors: u32_at(bytes, 52),
            payload_bytes: u32_at(bytes, 56),
            user_bytes: u64_at(bytes, 64),
            file_bytes: u64_at(bytes, 72),
            digest: array_at(bytes, 80),
        })
    }
}
