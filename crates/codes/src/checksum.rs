//! Checksums: 256-bit BLAKE3 where wrong bytes must never pass, CRC32C where a short record needs a
//! cheap check of its own. Neither authenticates: the cipher does that.

/// Bytes of a [`Checksum`].
pub const CHECKSUM_BYTES: usize = 32;

/// A BLAKE3 digest of 256 bits.
pub type Checksum = [u8; CHECKSUM_BYTES];

/// Returns the checksum of a sector: BLAKE3 over its header and payload, which are contiguous.
#[must_use]
pub fn sector_checksum(header_and_payload: &[u8]) -> Checksum {
    *blake3::hash(header_and_payload).as_bytes()
}

/// Returns the CRC32C (Castagnoli) of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Extends the CRC32C `crc` of the preceding bytes by `bytes`.
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// An incremental BLAKE3 checksum.
#[derive(Clone, Debug, Default)]
pub struct RunningChecksum(blake3::Hasher);

impl RunningChecksum {
    /// Starts an empty checksum.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the checksum of all bytes so far.
    #[must_use]
    pub fn finish(&self) -> Checksum {
        *self.0.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_published_vectors() {
        // BLAKE3 of the empty input and CRC32C of "123456789", from their test vectors.
        assert_eq!(sector_checksum(b"")[..4], [0xaf, 0x13, 0x49, 0xb9]);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), 0xE306_9283);
    }
}
