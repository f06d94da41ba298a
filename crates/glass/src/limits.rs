//! Named limits of the platter format. A platter outside them is refused before memory is taken.

/// Largest sector payload.
pub const SECTOR_PAYLOAD_BYTES_MAX: u32 = 1 << 20;

/// Largest track as it lies in the file, headers and checksums included.
pub const TRACK_IMAGE_BYTES_MAX: u64 = 256 << 20;

/// Most sectors in a track (information and redundancy).
pub const TRACK_SECTORS_MAX: u32 = 4096;

/// Longest header document: JSON and text.
pub const HEADER_DOCUMENT_BYTES_MAX: u32 = 1 << 20;

/// Longest name and version of the program in a header for which each geometry keeps room.
pub const SOFTWARE_BYTES_MAX: usize = 64;

/// How far from the start of a file a header sector is searched for.
pub const HEADER_SEARCH_BYTES_MAX: u64 = TRACK_IMAGE_BYTES_MAX;

/// Longest sealed entry in a file list.
pub const SEALED_ENTRY_BYTES_MAX: u32 = 64 << 10;

/// Copies of the final record at the end of a platter; any one of them is enough.
pub const SEAL_COPIES: u32 = 4;
