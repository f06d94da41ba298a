//! Named limits of the platter format. A platter outside them is rejected before memory is
//! allocated.

/// Maximum sector payload.
pub const SECTOR_PAYLOAD_BYTES_MAX: u32 = 1 << 20;

/// Maximum size of a track in the file, headers and checksums included.
pub const TRACK_IMAGE_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of sectors in a track (information and redundancy).
pub const TRACK_SECTORS_MAX: u32 = 4096;

/// Maximum size of a header document: JSON and text.
pub const HEADER_DOCUMENT_BYTES_MAX: u32 = 1 << 20;

/// Maximum length of the program's name and version for which every geometry reserves header room.
pub const SOFTWARE_BYTES_MAX: usize = 64;

/// Maximum distance from the start of a file at which a header sector is searched for.
pub const HEADER_SEARCH_BYTES_MAX: u64 = TRACK_IMAGE_BYTES_MAX;

/// Maximum size of a sealed entry in a file list.
pub const SEALED_ENTRY_BYTES_MAX: u32 = 64 << 10;

/// Number of copies of the final record at the end of a platter; any one of them is enough.
pub const SEAL_COPIES: u32 = 4;
