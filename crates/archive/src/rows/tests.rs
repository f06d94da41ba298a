//! Rows return as they were written, and bytes that are no row are an error.

use proptest::prelude::*;

use super::*;
use crate::testing;

fn returns<T: Row + Serialize + PartialEq + std::fmt::Debug>(row: &T) {
    let bytes = encode(row).unwrap();
    assert_eq!(bytes[0], ROW_VERSION);
    assert_eq!(decode::<T>(META, &bytes).unwrap(), *row);
    for cut in 0..bytes.len() {
        // A row cut short is refused, or at least is not taken for the whole.
        assert!(decode::<T>(META, &bytes[..cut]).is_err(), "cut at {cut} of {}", bytes.len());
    }
    let mut newer = bytes;
    newer[0] = ROW_VERSION + 1;
    assert!(matches!(decode::<T>(META, &newer), Err(ArchiveError::Corrupt { .. })));
}

#[test]
fn every_row_returns_and_no_part_of_one_passes() {
    let mark = RestoreMark {
        days: 3,
        retrieval: Retrieval::Bulk,
        requested: testing::NOW,
        expiry: Some(UnixTime::from_millis(u64::MAX)),
    };
    let object = ObjectRow {
        restore: Some(mark),
        upload_id: Some(UploadId::from_bytes([7; 16])),
        part_count: Some(10_000),
        ..testing::object_row(StorageClass::Glacier)
    };
    let platter = PlatterId::from_bytes([3; 16]);
    let extent = Extent { segment: 7, offset: 1 << 27, bytes: 65_552 };
    let body = BodyRow {
        log: Some((LogKind::Staging, vec![extent, Extent { segment: 8, ..extent }])),
        queued: Some(u64::MAX),
        shards: vec![Shard { platter, offset: 1 << 40, body_offset: 9, bytes: 1, crc: None }],
        restored: Some(vec![extent]),
        framing: vec![extent],
        ..testing::body_row(LogKind::Staging)
    };
    let (bucket, key) = ("vault".to_owned(), "a\0\u{10ffff}".to_owned());
    returns(&BucketRow { created: testing::NOW });
    returns(&CatalogAge { run: 3, commits: u64::MAX });
    returns(&QueueRow {
        object_id: object.object_id,
        index: 9,
        bucket: bucket.clone(),
        key: key.clone(),
        arrived: testing::NOW,
        bytes: 5 << 30,
    });
    returns(&PartRow {
        body: body.clone(),
        md5: [9; 16],
        modified: testing::NOW,
        checksum: object.checksum.clone(),
    });
    returns(&RestoreRow {
        bucket: bucket.clone(),
        key: key.clone(),
        mark,
        failures: 3,
        error: Some("why".to_owned()),
    });
    returns(&ExpiryRow { bucket, key });
    returns(&SetRow {
        state: SetState::Verified,
        geometry: Geometry::profile("desk").unwrap(),
        created: testing::NOW,
        generation: 2,
        information: vec![platter; 16],
        redundancy: vec![platter; 3],
        bytes: 1,
        redundancy_bytes: 2,
        damaged: vec![object.object_id],
    });
    returns(&object);
    returns(&body);
}

#[test]
fn states_follow_each_other_in_order() {
    let states = [
        SetState::Planned,
        SetState::Written,
        SetState::Verified,
        SetState::Stored,
        SetState::Released,
    ];
    assert!(states.is_sorted());
}

proptest! {
    #[test]
    fn keys_return_and_keep_the_order_of_names(
        a in ("[a-z]{3,5}", ".{0,6}"),
        b in ("[a-z]{3,5}", ".{0,6}"),
        id: [u8; 16],
        number: u64,
    ) {
        let (left, right) = (object_key(&a.0, &a.1), object_key(&b.0, &b.1));
        prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        prop_assert_eq!(parse_object_key(&left).unwrap(), a.clone());
        prop_assert!(parse_object_key(&left[..left.len() - 1]).is_err());

        let upload = UploadId::from_bytes(id);
        let parsed = parse_upload_key(&upload_key(&a.0, &a.1, upload)).unwrap();
        prop_assert_eq!(parsed, (a.1, upload));
        let (time, object) = (UnixTime::from_millis(number), ObjectId::from_bytes(id));
        prop_assert_eq!(parse_expiry_key(&expiry_key(time, object)).unwrap(), (time, object));
        let segment = u32::try_from(number >> 32).unwrap();
        for kind in LogKind::ALL {
            let parsed = parse_segment_key(&segment_key(kind, segment)).unwrap();
            prop_assert_eq!(parsed, (kind.code(), segment));
        }
    }

    #[test]
    fn bytes_that_are_no_row_never_panic(mut bytes: Vec<u8>) {
        if let Some(version) = bytes.first_mut() {
            *version = ROW_VERSION;
        }
        // Nothing says that they are refused, only that they are an answer.
        let _ = decode::<ObjectRow>(OBJECTS, &bytes);
        let _ = decode::<BodyRow>(BODIES, &bytes);
        let _ = decode::<SetRow>(SETS, &bytes);
        let _ = parse_object_key(&bytes);
    }
}
