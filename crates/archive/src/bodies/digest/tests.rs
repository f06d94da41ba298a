//! Published check values, and texts that are not checksums.

use super::*;

/// Catalogs of CRCs list the check value of these nine digits for each algorithm.
const DIGITS: &[u8] = b"123456789";

fn digest(algorithm: ChecksumAlgorithm, pieces: &[&[u8]]) -> BodyDigests {
    let mut digest = BodyDigest::new(Some(algorithm));
    pieces.iter().for_each(|piece| digest.update(piece));
    digest.finish()
}

#[test]
fn digests_match_published_values_for_any_chunking() {
    use ChecksumAlgorithm::{Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
    let published = [
        (Crc32, "cbf43926"),
        (Crc32c, "e3069283"),
        (Crc64Nvme, "ae8b14860a799888"),
        (Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
        (Sha256, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
    ];
    for (algorithm, value) in published {
        for cut in 0..=DIGITS.len() {
            let digests = digest(algorithm, &[&DIGITS[..cut], &DIGITS[cut..]]);
            let checksum = digests.checksum.unwrap();
            assert_eq!(hex::encode(&checksum.value), value, "{}", algorithm.name());
            assert_eq!(checksum.value.len(), algorithm.value_bytes());
            assert_eq!(hex::encode(digests.md5), "25f9e794323b453885f5181f1b624d0b");
            assert_eq!(digests.bytes, 9);
            assert_eq!(Checksum::parse(algorithm, &checksum.text()).unwrap(), checksum);
        }
    }
}

#[test]
fn algorithm_names_are_case_insensitive() {
    for algorithm in ChecksumAlgorithm::ALL {
        assert_eq!(ChecksumAlgorithm::parse(&algorithm.name().to_lowercase()), Some(algorithm));
        assert!(algorithm.header().ends_with(&algorithm.name().to_lowercase()));
    }
    assert_eq!(ChecksumAlgorithm::parse("CRC-32"), None);
}

#[test]
fn invalid_checksum_texts_are_refused() {
    let parse = |text| Checksum::parse(ChecksumAlgorithm::Crc32, text);
    assert_eq!(parse("y/Q5Jg==-3").unwrap().composite_parts, Some(3));
    assert_eq!(parse("y/Q5Jg==-3").unwrap().text(), "y/Q5Jg==-3");
    for text in ["", "y/Q5Jg", "y/Q5JgAA", "****", "y/Q5Jg==-", "y/Q5Jg==-x", "y/Q5Jg==-3-4"] {
        assert!(matches!(parse(text), Err(ArchiveError::InvalidArgument { .. })), "{text}");
    }
}
