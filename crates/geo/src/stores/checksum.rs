//! Checksum of stored data: CRC-64/NVME, as in stacks.

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes of a checksum.
pub(crate) const SUM_BYTES: usize = 8;

/// Returns the checksum of concatenated parts.
pub(crate) fn sum(parts: &[&[u8]]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}
