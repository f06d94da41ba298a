//! A piece of a body on a platter, and the checksums of pieces and bodies.

use fulgurite_units::PlatterId;
use serde::{Deserialize, Serialize};

/// A piece of a body's ciphertext on a platter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The platter.
    pub platter: PlatterId,
    /// Its first user byte on the platter.
    pub offset: u64,
    /// Its first byte in the body's ciphertext.
    pub body_offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// CRC-64/NVME of the piece as written; unknown after a recovery.
    pub crc: Option<u64>,
}

impl Shard {
    /// Whether both refer to the same bytes, whatever their checksums.
    #[must_use]
    pub fn is_at(&self, other: &Self) -> bool {
        Self { crc: None, ..*self } == Self { crc: None, ..*other }
    }
}

/// Creates the CRC of a body's ciphertext, and of each piece of it.
#[must_use]
pub fn cipher_crc() -> crc_fast::Digest {
    crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme)
}

/// Combines the CRCs of pieces, each an offset, a length and a CRC, into that of a whole body of
/// `bytes`; `None` when they do not cover it.
#[must_use]
pub fn joined_crc(pieces: &[(u64, u64, u64)], bytes: u64) -> Option<u64> {
    let mut pieces = pieces.to_vec();
    pieces.sort_unstable();
    let mut end = 0;
    let mut joined = None;
    for (offset, length, crc) in pieces {
        if offset != end {
            return None;
        }
        end += length;
        joined = Some(joined.map_or(crc, |sum| {
            crc_fast::checksum_combine(crc_fast::CrcAlgorithm::Crc64Nvme, sum, crc, length)
        }));
    }
    joined.filter(|_| end == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piece_checksums_combine_to_the_body_checksum() {
        let body: Vec<u8> = (0..1000_u32).map(|i| i.to_le_bytes()[0]).collect();
        let crc = |bytes: &[u8]| {
            let mut crc = cipher_crc();
            crc.update(bytes);
            crc.finalize()
        };
        let piece =
            |from: usize, to: usize| (from as u64, (to - from) as u64, crc(&body[from..to]));
        let pieces = [piece(700, 1000), piece(0, 10), piece(10, 700)];
        assert_eq!(joined_crc(&pieces, 1000), Some(crc(&body)));
        assert_eq!(joined_crc(&pieces[..2], 1000), None, "a gap");
        assert_eq!(joined_crc(&pieces[1..], 1000), None, "the end is missing");
        assert_eq!(joined_crc(&pieces, 999), None, "too much");
        assert_eq!(
            joined_crc(&[(0, 0, crc(&[]))], 0),
            Some(crc(&[])),
            "an empty body has one empty piece"
        );
    }
}
