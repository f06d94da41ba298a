//! Every bound of the rack's bytes by name.

/// Stacks of a blob at most: shards of a small code.
pub const CODING_STACKS_MAX: usize = fulgurite_codes::small::SHARDS_MAX;

/// Bytes of an entry at most: a name and attributes, as S3 bounds them, and room.
pub const ENTRY_BYTES_MAX: usize = 64 << 10;

/// Fragments of each stack that the kernel is asked to read ahead: 4 MiB, as long as a disk takes
/// for its seek several times over.
pub(crate) const AHEAD_FRAGMENTS: u64 = 32;

/// Most faults of one stack that are remembered; the rest is counted.
pub(crate) const FAULTS_KEPT_MAX: usize = 4;

const _: () = assert!(ENTRY_BYTES_MAX <= u32::MAX as usize);
const _: () = assert!(CODING_STACKS_MAX <= u8::MAX as usize);
