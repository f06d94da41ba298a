//! Runs the checks on seeded mutations of good bytes, and compares golden bytes.

use fulgurite_units::UploadId;

use super::*;
use crate::bodies::key_table::slot::encode;
use crate::model::names::VersionId;
use crate::model::object::{ObjectMeta, Retrieval, StorageClass};
use crate::rows::RestoreMark;
use crate::testing;

#[path = "../../../../fuzz/changes.rs"]
mod changes;
mod golden;

fn object_row() -> ObjectRow {
    ObjectRow {
        object_id: ObjectId::from_bytes([1; 16]),
        part_count: Some(3),
        upload_id: Some(UploadId::from_bytes([2; 16])),
        restore: Some(mark()),
        ..testing::object_row(StorageClass::Glacier)
    }
}

fn mark() -> RestoreMark {
    RestoreMark {
        days: 3,
        retrieval: Retrieval::Bulk,
        requested: testing::NOW,
        expiry: Some(testing::NOW),
    }
}

fn queue_row() -> QueueRow {
    QueueRow {
        object_id: ObjectId::from_bytes([1; 16]),
        index: 9,
        name: testing::name("a/b"),
        arrived: testing::NOW,
        bytes: 5 << 30,
    }
}

fn restore_row() -> RestoreRow {
    RestoreRow {
        name: testing::name("a"),
        mark: mark(),
        failures: 3,
        error: Some("why".to_owned()),
    }
}

fn entry() -> Entry {
    let object = object_row();
    Entry {
        name: testing::name("a/b"),
        bucket_created: testing::NOW,
        object_id: object.object_id,
        index: 0,
        body_count: 1,
        body_bytes: 5,
        body_digest: 0x0102_0304_0506_0708,
        bytes: 5,
        etag: object.etag,
        modified: object.modified,
        class: object.class,
        meta: ObjectMeta::default(),
        checksum: object.checksum,
        part_count: None,
        upload_id: object.upload_id,
        labels: testing::labels(),
        part_checksum: None,
    }
}

fn unconfirmed_row(body: BodyRow) -> UnconfirmedRow {
    UnconfirmedRow { object_id: ObjectId::from_bytes([4; 16]), version: VersionId::NULL, body }
}

/// Returns a sample for [`row`]: the number of its space, and its bytes.
fn sample<T: Row>(which: u8, row: &T) -> Vec<u8> {
    [vec![which], rows::encode(row).unwrap()].concat()
}

#[test]
fn key_slots_pass_the_fuzz_checks() {
    let (master, key) = (SecretKey::from_bytes(KEY), SecretKey::from_bytes([9; 32]));
    let slot = encode(&master, ObjectId::from_bytes(BODY), &key, 3).unwrap();
    assert!(decode(&master, &slot).is_some());
    changes::each(&[&slot], key_slot);
}

#[test]
fn rows_and_keys_pass_the_fuzz_checks() {
    let body = testing::body_row(crate::bodies::log::LogKind::Staging);
    let samples = [
        sample(0, &Totals { run: 7, sequence: u64::MAX, ..Totals::default() }),
        sample(2, &object_row()),
        sample(3, &body),
        sample(4, &queue_row()),
        sample(13, &restore_row()),
        [vec![15], rows::object_key("vault", "a\0b")].concat(),
        sample(16, &unconfirmed_row(body.clone())),
    ];
    changes::each(&samples.each_ref().map(|sample| &sample[..]), row);
}

#[test]
fn sealed_entries_pass_the_fuzz_checks() {
    let (key, body) = (SecretKey::from_bytes(KEY), ObjectId::from_bytes(BODY));
    let sealed = entry().seal(&key, body).unwrap();
    let plain = crate::bodies::cipher::open_entry(&key, body, &sealed).unwrap();
    changes::each(&[&plain], sealed_entry);
}
