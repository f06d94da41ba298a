//! Checksum types of each algorithm, and valid part numbers.

use fulgurite_archive::ChecksumAlgorithm::{Crc32, Crc64Nvme, Sha256};
use s3s::dto::ChecksumType;

use super::{is_full_object, part_number};

#[test]
fn checksum_type_depends_on_algorithm() {
    let full = ChecksumType::from_static(ChecksumType::FULL_OBJECT);
    let composite = ChecksumType::from_static(ChecksumType::COMPOSITE);
    for (algorithm, wanted, expected) in [
        (Some(Crc32), None, Some(false)),
        (Some(Crc32), Some(&full), Some(true)),
        (Some(Crc32), Some(&composite), Some(false)),
        (Some(Crc64Nvme), None, Some(true)),
        (Some(Crc64Nvme), Some(&composite), None),
        (Some(Sha256), None, Some(false)),
        (Some(Sha256), Some(&full), None),
        (None, Some(&full), None),
    ] {
        assert_eq!(is_full_object(algorithm, wanted).ok(), expected, "{algorithm:?} {wanted:?}");
    }
}

#[test]
fn part_numbers_start_at_one() {
    let numbers = [-1, 0, 1, 10_000, 10_001].map(|number| part_number(number).ok());
    assert_eq!(numbers, [None, None, Some(1), Some(10_000), None]);
}
