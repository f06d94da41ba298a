//! The sum of what is written here: CRC-64/NVME, as in stacks.

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes of a sum.
pub(crate) const SUM_BYTES: usize = 8;

/// The sum of parts one behind the other.
pub(crate) fn sum(parts: &[&[u8]]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}
