//! What is put can be found in the logs without the catalog, and occupies there what its rows
//! state.

use std::collections::BTreeMap;

use fulgurite_catalog::{KeyRange, Transaction};

use super::*;
use crate::bodies::log::record::{EntryForm, RecordKind};
use crate::bodies::log::scan::{Scanned, SegmentScan};
use crate::bodies::log::{list_segments, segment_path};
use crate::directory::Paths;
use crate::objects::commit::{bodies, require_object, rows_in};
use crate::objects::multipart::{self, Completion, PartWriter, UploadName};
use crate::objects::object::{
    CompletedPart, ObjectMeta, PutOptions, StorageClass, UploadOptions, WriteCondition,
};
use crate::objects::put::{self, OwnWriter};
use crate::rows::{self, BUCKETS, BucketRow, PARTS, PartRow, SEGMENTS};
use crate::testing;

/// What the logs hold of a body.
#[derive(Debug, Default)]
struct Told {
    cipher_bytes: u64,
    entries: Vec<(EntryForm, Vec<u8>)>,
}

fn scan_logs(ground: &Ground) -> BTreeMap<ObjectId, Told> {
    let mut told: BTreeMap<ObjectId, Told> = BTreeMap::new();
    for kind in [LogKind::Staging, LogKind::Online] {
        let dir = Paths::new(&ground.config.data).log(kind);
        for number in list_segments(&dir).unwrap() {
            let path = segment_path(&dir, number);
            let mut scan = SegmentScan::open(&path, kind, number).unwrap();
            let header = scan.header().unwrap();
            assert_eq!((header.archive, header.run), (ground.archive, ground.run));
            while let Some(record) = scan.next_record().unwrap() {
                let body = told.entry(record.header().body).or_default();
                match (record, record.header().kind) {
                    (Scanned::Data(header), RecordKind::Data { body_offset, .. }) => {
                        assert_eq!(body_offset, body.cipher_bytes);
                        body.cipher_bytes += header.bytes;
                    }
                    (Scanned::Entry(_, sealed), RecordKind::Entry { form, .. }) => {
                        body.entries.push((form, sealed.to_vec()));
                    }
                    (other, _) => panic!("{other:?}"),
                }
            }
        }
    }
    told
}

/// Asserts that segment rows, budget and body rows agree.
fn check_accounts(ground: &Ground, rows: &[BodyRow]) {
    let all = KeyRange::prefix(b"");
    let live: Vec<(Vec<u8>, u64)> = rows_in(&*ground.kv, SEGMENTS, &all, usize::MAX).unwrap();
    let live: u64 = live.into_iter().map(|(_, bytes)| bytes).sum();
    let named: u64 =
        rows.iter().filter_map(BodyRow::in_log).flat_map(|(_, e)| e).map(|e| e.bytes).sum();
    assert_eq!((live, ground.budget.used()), (named, named));
}

fn new_store(dir: &tempfile::TempDir) -> Arc<Ground> {
    let ground = testing::ground(dir);
    let create = |tx: &mut Transaction<'_>| -> Result<()> {
        let row = BucketRow { created: UnixTime::from_millis(77_000) };
        rows::put(tx, BUCKETS, rows::bucket_key("vault"), &row)
    };
    ground.committer.commit_blocking(create).unwrap();
    ground
}

async fn put_object(ground: &Arc<Ground>, name: &str, class: StorageClass, bytes: usize) {
    let claim = BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() };
    let (meta, condition) = (ObjectMeta::default(), WriteCondition::default());
    let options = PutOptions { class, meta, condition, claim };
    let (bucket, key) = (testing::bucket("vault"), testing::key(name));
    let mut writer = OwnWriter::begin(ground, &bucket, &key, options).unwrap();
    writer.write(Bytes::from(vec![7; bytes])).await.unwrap();
    writer.finish(None).await.unwrap();
}

#[test]
fn every_body_is_found_in_the_log_with_the_entry_that_glass_would_have() {
    let dir = testing::dir();
    // Opening blocks, so it happens outside of the runtime.
    let ground = new_store(&dir);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check_objects(&ground));
}

async fn check_objects(ground: &Arc<Ground>) {
    let mut named = Vec::new();
    for class in [StorageClass::Standard, StorageClass::DeepArchive] {
        for bytes in [0, 1, 4096, 65_536, 65_537, 700_001] {
            let name = format!("{class:?}/{bytes}");
            put_object(ground, &name, class, bytes).await;
            named.push(name);
        }
    }
    let mut told = scan_logs(ground);
    let mut rows = Vec::new();
    for name in &named {
        let (bucket, key) = (testing::bucket("vault"), testing::key(name));
        let object = require_object(&*ground.kv, &bucket, &key).unwrap();
        let body = bodies(&*ground.kv, &object).unwrap().remove(0);
        let told = told.remove(&body.body_id).unwrap();
        assert_eq!(told.cipher_bytes, cipher_bytes(body.bytes), "{name}");
        let [(EntryForm::Object, sealed)] = &told.entries[..] else { panic!("{told:?}") };
        let secret = ground.keys.load(body.key_slot, body.body_id).unwrap();
        let expected = Entry::new(&*ground.kv, &testing::name(name), &object, 0, &body).unwrap();
        assert_eq!(Entry::open(&secret, body.body_id, sealed).unwrap(), expected);
        assert!(PartEntry::open(&secret, body.body_id, sealed).is_err());
        assert_eq!(expected.bucket_created, UnixTime::from_millis(77_000));
        rows.push(body);
    }
    assert!(told.is_empty());
    check_accounts(ground, &rows);
    for name in &named {
        put::delete(ground, &testing::bucket("vault"), &testing::key(name)).await.unwrap();
    }
    check_accounts(ground, &[]);
    ground.close_logs();
    for kind in [LogKind::Staging, LogKind::Online] {
        assert_eq!(
            list_segments(&Paths::new(&ground.config.data).log(kind)).unwrap(),
            Vec::<u32>::new()
        );
    }
}

async fn put_part(ground: &Arc<Ground>, name: &UploadName, number: u32, bytes: usize) -> String {
    let claim = BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() };
    let mut writer = PartWriter::begin(ground, name.clone(), number, claim).unwrap();
    writer.write(Bytes::from(vec![9; bytes])).await.unwrap();
    writer.finish(None).await.unwrap().etag
}

fn forms(told: &Told) -> Vec<EntryForm> {
    told.entries.iter().map(|&(form, _)| form).collect()
}

#[test]
fn parts_say_what_they_are_and_a_completion_what_they_became() {
    let dir = testing::dir();
    let ground = new_store(&dir);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check_upload(&ground));
}

async fn check_upload(ground: &Arc<Ground>) {
    let (bucket, key) = (testing::bucket("vault"), testing::key("parts"));
    let (class, meta) = (StorageClass::Glacier, ObjectMeta::default());
    let options = UploadOptions { class, meta, algorithm: None, full_object: false };
    let info = multipart::create(ground, &bucket, &key, options).await.unwrap();
    let name = UploadName { bucket: bucket.clone(), key: key.clone(), upload: info.upload_id };
    let mut listed = Vec::new();
    for (number, bytes) in [(1, 5 << 20), (2, 70_000)] {
        let etag = put_part(ground, &name, number, bytes).await;
        listed.push(CompletedPart { number, etag, checksum: None });
    }
    let range = KeyRange::prefix(&info.upload_id.to_bytes());
    let parts: Vec<(Vec<u8>, PartRow)> = rows_in(&*ground.kv, PARTS, &range, 10).unwrap();
    let told = scan_logs(ground);
    for (number, (_, part)) in (1..).zip(&parts) {
        let body = &part.body;
        let secret = ground.keys.load(body.key_slot, body.body_id).unwrap();
        let [(EntryForm::Part, sealed)] = &told[&body.body_id].entries[..] else { panic!() };
        let entry = PartEntry::open(&secret, body.body_id, sealed).unwrap();
        assert!(Entry::open(&secret, body.body_id, sealed).is_err());
        assert_eq!((entry.upload_id, entry.number), (info.upload_id, number));
        assert_eq!((entry.body_bytes, entry.body_digest), (body.bytes, body.digest));
        assert_eq!((entry.md5, entry.checksum), (part.md5, part.checksum.clone()));
    }
    // A refused completion leaves no entries of the object behind.
    let refused = Completion {
        name: name.clone(),
        listed: listed.clone(),
        condition: WriteCondition { etag: Some("none".to_owned()), ..WriteCondition::default() },
        checksum: None,
    };
    multipart::complete(ground, refused).await.unwrap_err();
    let rows: Vec<BodyRow> = parts.into_iter().map(|(_, part)| part.body).collect();
    check_accounts(ground, &rows);
    assert!(scan_logs(ground).values().all(|told| forms(told) == [EntryForm::Part]));
    let condition = WriteCondition::default();
    let completion = Completion { name: name.clone(), listed, condition, checksum: None };
    multipart::complete(ground, completion).await.unwrap();
    let object = require_object(&*ground.kv, &bucket, &key).unwrap();
    let rows = bodies(&*ground.kv, &object).unwrap();
    check_accounts(ground, &rows);
    let told = scan_logs(ground);
    for (index, body) in (0..).zip(&rows) {
        let told = &told[&body.body_id];
        assert_eq!(forms(told), [EntryForm::Part, EntryForm::Object]);
        let secret = ground.keys.load(body.key_slot, body.body_id).unwrap();
        let expected =
            Entry::new(&*ground.kv, &testing::name("parts"), &object, index, body).unwrap();
        assert_eq!(Entry::open(&secret, body.body_id, &told.entries[1].1).unwrap(), expected);
    }
    put::delete(ground, &bucket, &key).await.unwrap();
    check_accounts(ground, &[]);
}
