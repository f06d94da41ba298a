//! ETag and checksum of a multipart object, compared with its bytes and with S3's documentation.

use proptest::prelude::*;

use super::*;
use crate::bodies::log::LogKind;
use crate::model::object::{ObjectMeta, StorageClass};
use crate::testing;

fn part(bytes: &[u8], algorithm: ChecksumAlgorithm) -> PartRow {
    let mut digest = BodyDigest::new(Some(algorithm));
    digest.update(bytes);
    let digests = digest.finish();
    let body = BodyRow { bytes: digests.bytes, ..testing::body_row(LogKind::Staging) };
    PartRow { body, md5: digests.md5, modified: testing::NOW, checksum: digests.checksum }
}

fn upload(algorithm: Option<ChecksumAlgorithm>, full_object: bool) -> UploadRow {
    UploadRow {
        initiated: testing::NOW,
        class: StorageClass::Glacier,
        meta: ObjectMeta::default(),
        algorithm,
        full_object,
        home: Home::Glass,
    }
}

fn whole(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Checksum {
    let mut digest = BodyDigest::new(Some(algorithm));
    digest.update(bytes);
    digest.finish().checksum.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn part_checksums_combine_as_documented(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..8),
    ) {
        let joined = parts.concat();
        for algorithm in ChecksumAlgorithm::ALL {
            let rows: Vec<PartRow> = parts.iter().map(|bytes| part(bytes, algorithm)).collect();
            let values: Vec<u8> =
                parts.iter().flat_map(|bytes| whole(algorithm, bytes).value).collect();
            let composite = Checksum {
                composite_parts: Some(u32::try_from(parts.len()).unwrap()),
                ..whole(algorithm, &values)
            };
            let found = multipart_checksum(&upload(Some(algorithm), false), &rows);
            prop_assert_eq!(found, Some(composite.clone()));
            // Only CRCs combine to the checksum of the whole object.
            let is_combined = combinable_crc(algorithm).is_some();
            let full = if is_combined { whole(algorithm, &joined) } else { composite };
            let found = multipart_checksum(&upload(Some(algorithm), true), &rows);
            prop_assert_eq!(found, Some(full));
        }
        let rows: Vec<PartRow> =
            parts.iter().map(|bytes| part(bytes, ChecksumAlgorithm::Crc64Nvme)).collect();
        let found = multipart_checksum(&upload(None, false), &rows);
        prop_assert_eq!(found, Some(whole(ChecksumAlgorithm::Crc64Nvme, &joined)));
    }
}

#[test]
fn multipart_etag_is_md5_of_md5s_and_part_count() {
    // MD5 of MD5("abc"), and of MD5("abc") and MD5("") concatenated.
    let (abc, empty) =
        (part(b"abc", ChecksumAlgorithm::Crc32), part(b"", ChecksumAlgorithm::Crc32));
    let etag = multipart_etag(std::slice::from_ref(&abc));
    assert_eq!(etag, "af5da9f45af7a300e3aded972f8ff687-1");
    let etag = multipart_etag(&[abc, empty]);
    assert_eq!(etag, "fdf1fdf1567f6942ffe1743f1e72301e-2");
}

#[test]
fn part_list_is_rejected_for_its_first_error() {
    let small = part(b"small", ChecksumAlgorithm::Crc32);
    let mut big = part(b"big", ChecksumAlgorithm::Crc32);
    big.body.bytes = PART_BYTES_MIN;
    let uploaded = || vec![(1, big.clone()), (2, small.clone()), (7, small.clone())];
    let listed = |numbers: &[u32]| -> Vec<CompletedPart> {
        let etag = |number| hex::encode(if number == 1 { big.md5 } else { small.md5 });
        numbers
            .iter()
            .map(|&number| CompletedPart { number, etag: etag(number), checksum: None })
            .collect()
    };
    let (chosen, dropped) = choose(uploaded(), &listed(&[1, 7])).unwrap();
    assert_eq!((chosen, dropped), (vec![big.clone(), small.clone()], vec![small.clone()]));
    let fault = |numbers: &[u32]| choose(uploaded(), &listed(numbers)).unwrap_err();
    assert!(matches!(fault(&[]), ArchiveError::InvalidArgument { .. }));
    assert!(matches!(fault(&[7, 1]), ArchiveError::InvalidPartOrder { part: 1 }));
    assert!(matches!(fault(&[1, 1]), ArchiveError::InvalidPartOrder { part: 1 }));
    assert!(matches!(fault(&[1, 3]), ArchiveError::InvalidPart { part: 3 }));
    assert!(matches!(fault(&[2, 7]), ArchiveError::EntityTooSmall { part: 2, bytes: 5, .. }));
    let mut wrong = listed(&[1]);
    wrong[0].checksum = small.checksum.clone();
    let error = choose(uploaded(), &wrong).unwrap_err();
    assert!(matches!(error, ArchiveError::InvalidPart { part: 1 }));
}
