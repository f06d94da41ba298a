//! What is put can be found in the logs without the catalog, and takes there what its rows say.

use std::collections::BTreeMap;

use fulgurite_catalog::{KeyRange, Transaction};

use super::*;
use crate::commit::{bodies, require_object, rows_in};
use crate::log::record::{EntryForm, RecordKind};
use crate::log::scan::{Scanned, SegmentScan};
use crate::log::{list_segments, segment_path};
use crate::multipart::{self, Completion, PartWriter, UploadName};
use crate::object::{
    CompletedPart, ObjectMeta, PutOptions, StorageClass, UploadOptions, WriteCondition,
};
use crate::put::{self, ObjectWriter};
use crate::rows::{self, BUCKETS, BucketRow, PARTS, PartRow, SEGMENTS};
use crate::testing;

/// What the logs say of a body.
#[derive(Debug, Default)]
struct Told {
    cipher_bytes: u64,
    entries: Vec<(EntryForm, Vec<u8>)>,
}

fn scan_logs(store: &Store) -> BTreeMap<ObjectId, Told> {
    let mut told: BTreeMap<ObjectId, Told> = BTreeMap::new();
    for kind in [LogKind::Staging, LogKind::Online] {
        let dir = store.layout().log(kind);
        for number in list_segments(&dir).unwrap() {
            let path = segment_path(&dir, number);
            let mut scan = SegmentScan::open(&path, kind, number).unwrap();
            let header = scan.header().unwrap();
            assert_eq!((header.archive, header.run), (store.archive, store.run));
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

/// Asserts that rows of segments, budget and bodies agree.
fn check_accounts(store: &Store, rows: &[BodyRow]) {
    let all = KeyRange::prefix(b"");
    let live: Vec<(Vec<u8>, u64)> = rows_in(&*store.kv, SEGMENTS, &all, usize::MAX).unwrap();
    let live: u64 = live.into_iter().map(|(_, bytes)| bytes).sum();
    let named: u64 =
        rows.iter().filter_map(BodyRow::in_log).flat_map(|(_, e)| e).map(|e| e.bytes).sum();
    assert_eq!((live, store.budget.used()), (named, named));
}

fn new_store(dir: &tempfile::TempDir) -> Arc<Store> {
    let store = testing::store(dir);
    let create = |tx: &mut Transaction<'_>| -> Result<()> {
        let row = BucketRow { created: UnixTime::from_millis(77_000) };
        rows::put(tx, BUCKETS, rows::bucket_key("vault"), &row)
    };
    store.committer.commit_blocking(create).unwrap();
    store
}

async fn put_object(store: &Arc<Store>, name: &str, class: StorageClass, bytes: usize) {
    let claim = BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() };
    let (meta, condition) = (ObjectMeta::default(), WriteCondition::default());
    let options = PutOptions { class, meta, condition, claim };
    let (bucket, key) = (testing::bucket("vault"), testing::key(name));
    let mut writer = ObjectWriter::begin(store, &bucket, &key, options).unwrap();
    writer.write(Bytes::from(vec![7; bytes])).await.unwrap();
    writer.finish(None).await.unwrap();
}

#[test]
fn every_body_is_found_in_the_log_with_the_entry_that_glass_would_have() {
    let dir = testing::dir();
    // Opened outside of the runtime, for that blocks.
    let store = new_store(&dir);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check_objects(&store));
}

async fn check_objects(store: &Arc<Store>) {
    let mut named = Vec::new();
    for class in [StorageClass::Standard, StorageClass::DeepArchive] {
        for bytes in [0, 1, 4096, 65_536, 65_537, 700_001] {
            let name = format!("{class:?}/{bytes}");
            put_object(store, &name, class, bytes).await;
            named.push(name);
        }
    }
    let mut told = scan_logs(store);
    let mut rows = Vec::new();
    for name in &named {
        let (bucket, key) = (testing::bucket("vault"), testing::key(name));
        let object = require_object(&*store.kv, &bucket, &key).unwrap();
        let body = bodies(&*store.kv, &object).unwrap().remove(0);
        let told = told.remove(&body.body_id).unwrap();
        assert_eq!(told.cipher_bytes, cipher_bytes(body.bytes), "{name}");
        let [(EntryForm::Object, sealed)] = &told.entries[..] else { panic!("{told:?}") };
        let secret = store.keys.load(body.key_slot, body.body_id).unwrap();
        let expected = Entry::new(&*store.kv, "vault", name, &object, 0, &body).unwrap();
        assert_eq!(Entry::open(&secret, body.body_id, sealed).unwrap(), expected);
        assert!(PartEntry::open(&secret, body.body_id, sealed).is_err());
        assert_eq!(expected.bucket_created, UnixTime::from_millis(77_000));
        rows.push(body);
    }
    assert!(told.is_empty());
    check_accounts(store, &rows);
    for name in &named {
        put::delete(store, &testing::bucket("vault"), &testing::key(name)).await.unwrap();
    }
    check_accounts(store, &[]);
    store.close_logs();
    for kind in [LogKind::Staging, LogKind::Online] {
        assert_eq!(list_segments(&store.layout().log(kind)).unwrap(), Vec::<u32>::new());
    }
}

async fn put_part(store: &Arc<Store>, name: &UploadName, number: u32, bytes: usize) -> String {
    let claim = BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() };
    let mut writer = PartWriter::begin(store, name.clone(), number, claim).unwrap();
    writer.write(Bytes::from(vec![9; bytes])).await.unwrap();
    writer.finish(None).await.unwrap().etag
}

fn forms(told: &Told) -> Vec<EntryForm> {
    told.entries.iter().map(|&(form, _)| form).collect()
}

#[test]
fn parts_say_what_they_are_and_a_completion_what_they_became() {
    let dir = testing::dir();
    let store = new_store(&dir);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check_upload(&store));
}

async fn check_upload(store: &Arc<Store>) {
    let (bucket, key) = (testing::bucket("vault"), testing::key("parts"));
    let (class, meta) = (StorageClass::Glacier, ObjectMeta::default());
    let options = UploadOptions { class, meta, algorithm: None, full_object: false };
    let info = multipart::create(store, &bucket, &key, options).await.unwrap();
    let name = UploadName { bucket: bucket.clone(), key: key.clone(), upload: info.upload_id };
    let mut listed = Vec::new();
    for (number, bytes) in [(1, 5 << 20), (2, 70_000)] {
        let etag = put_part(store, &name, number, bytes).await;
        listed.push(CompletedPart { number, etag, checksum: None });
    }
    let range = KeyRange::prefix(&info.upload_id.to_bytes());
    let parts: Vec<(Vec<u8>, PartRow)> = rows_in(&*store.kv, PARTS, &range, 10).unwrap();
    let told = scan_logs(store);
    for (number, (_, part)) in (1..).zip(&parts) {
        let body = &part.body;
        let secret = store.keys.load(body.key_slot, body.body_id).unwrap();
        let [(EntryForm::Part, sealed)] = &told[&body.body_id].entries[..] else { panic!() };
        let entry = PartEntry::open(&secret, body.body_id, sealed).unwrap();
        assert!(Entry::open(&secret, body.body_id, sealed).is_err());
        assert_eq!((entry.upload_id, entry.number), (info.upload_id, number));
        assert_eq!((entry.body_bytes, entry.body_digest), (body.bytes, body.digest));
        assert_eq!((entry.md5, entry.checksum), (part.md5, part.checksum.clone()));
    }
    // Refused, a completion leaves no entries that say otherwise.
    let refused = Completion {
        name: name.clone(),
        listed: listed.clone(),
        condition: WriteCondition { etag: Some("none".to_owned()), absent: false },
        checksum: None,
    };
    multipart::complete(store, refused).await.unwrap_err();
    let rows: Vec<BodyRow> = parts.into_iter().map(|(_, part)| part.body).collect();
    check_accounts(store, &rows);
    assert!(scan_logs(store).values().all(|told| forms(told) == [EntryForm::Part]));
    let condition = WriteCondition::default();
    let completion = Completion { name: name.clone(), listed, condition, checksum: None };
    multipart::complete(store, completion).await.unwrap();
    let object = require_object(&*store.kv, &bucket, &key).unwrap();
    let rows = bodies(&*store.kv, &object).unwrap();
    check_accounts(store, &rows);
    let told = scan_logs(store);
    for (index, body) in (0..).zip(&rows) {
        let told = &told[&body.body_id];
        assert_eq!(forms(told), [EntryForm::Part, EntryForm::Object]);
        let secret = store.keys.load(body.key_slot, body.body_id).unwrap();
        let expected = Entry::new(&*store.kv, "vault", "parts", &object, index, body).unwrap();
        assert_eq!(Entry::open(&secret, body.body_id, &told.entries[1].1).unwrap(), expected);
    }
    put::delete(store, &bucket, &key).await.unwrap();
    check_accounts(store, &[]);
}
