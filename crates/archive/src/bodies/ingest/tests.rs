//! What is put can be found in the logs without the catalog, and occupies there what its rows
//! state.

use std::collections::BTreeMap;

use fulgurite_catalog::{KeyRange, Transaction};

use super::*;
use crate::bodies::log::record::{EntryForm, RecordKind};
use crate::bodies::log::scan::{ScannedRecord, SegmentScan};
use crate::bodies::log::{list_segments, segment_path};
use crate::directory::Paths;
use crate::model::object::{
    CompletedPart, ObjectMeta, PutOptions, StorageClass, UploadOptions, WriteCondition,
};
use crate::objects::multipart::{self, Completion, PartWriter, UploadName};
use crate::objects::put::{self, LocalWriter};
use crate::rows::lookup::{bodies, require_object, rows_in};
use crate::rows::{self, BUCKETS, BucketRow, PARTS, PartRow, SEGMENTS};
use crate::testing;

/// What the logs hold of a body.
#[derive(Debug, Default)]
struct LoggedBody {
    cipher_bytes: u64,
    entries: Vec<(EntryForm, Vec<u8>)>,
}

fn scan_logs(state: &ArchiveState) -> BTreeMap<ObjectId, LoggedBody> {
    let mut logged: BTreeMap<ObjectId, LoggedBody> = BTreeMap::new();
    for kind in [LogKind::Staging, LogKind::Online] {
        let dir = Paths::new(&state.config.data).log(kind);
        for number in list_segments(&dir).unwrap() {
            let path = segment_path(&dir, number);
            let mut scan = SegmentScan::open(&path, kind, number).unwrap();
            let header = scan.header().unwrap();
            assert_eq!((header.archive, header.run), (state.archive, state.run));
            while let Some(record) = scan.next_record().unwrap() {
                let body = logged.entry(record.header().body).or_default();
                match (record, record.header().kind) {
                    (ScannedRecord::Data(header), RecordKind::Data { body_offset, .. }) => {
                        assert_eq!(body_offset, body.cipher_bytes);
                        body.cipher_bytes += header.bytes;
                    }
                    (ScannedRecord::Entry(_, sealed), RecordKind::Entry { form, .. }) => {
                        body.entries.push((form, sealed.to_vec()));
                    }
                    (other, _) => panic!("{other:?}"),
                }
            }
        }
    }
    logged
}

/// Asserts that segment rows, budget and body rows agree.
fn check_accounts(state: &ArchiveState, rows: &[BodyRow]) {
    let all = KeyRange::prefix(b"");
    let live: Vec<(Vec<u8>, u64)> = rows_in(&*state.kv, SEGMENTS, &all, usize::MAX).unwrap();
    let live: u64 = live.into_iter().map(|(_, bytes)| bytes).sum();
    let named: u64 = rows
        .iter()
        .filter_map(BodyRow::in_log)
        .flat_map(rows::LoggedBody::all_extents)
        .map(|e| e.bytes)
        .sum();
    assert_eq!((live, state.budget.used()), (named, named));
}

fn new_store(dir: &tempfile::TempDir) -> Arc<ArchiveState> {
    let state = testing::state(dir);
    let create = |tx: &mut Transaction<'_>| -> Result<()> {
        let row = BucketRow { created: UnixTime::from_millis(77_000) };
        rows::put(tx, BUCKETS, rows::bucket_key("vault"), &row)
    };
    state.committer.commit_blocking(create).unwrap();
    state
}

async fn put_object(state: &Arc<ArchiveState>, name: &str, class: StorageClass, bytes: usize) {
    let claim = BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() };
    let (meta, condition) = (ObjectMeta::default(), WriteCondition::default());
    let options = PutOptions { class, meta, condition, claim };
    let (bucket, key) = (testing::bucket("vault"), testing::key(name));
    let mut writer = LocalWriter::begin(state, &bucket, &key, options).unwrap();
    writer.write(Bytes::from(vec![7; bytes])).await.unwrap();
    writer.finish(None).await.unwrap();
}

#[test]
fn log_entry_of_a_body_equals_its_glass_entry() {
    let dir = testing::dir();
    // Opening blocks, so it happens outside of the runtime.
    let state = new_store(&dir);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check_objects(&state));
}

async fn check_objects(state: &Arc<ArchiveState>) {
    let mut named = Vec::new();
    for class in [StorageClass::Standard, StorageClass::DeepArchive] {
        for bytes in [0, 1, 4096, 65_536, 65_537, 700_001] {
            let name = format!("{class:?}/{bytes}");
            put_object(state, &name, class, bytes).await;
            named.push(name);
        }
    }
    let mut logged = scan_logs(state);
    let mut rows = Vec::new();
    for name in &named {
        let (bucket, key) = (testing::bucket("vault"), testing::key(name));
        let object = require_object(&*state.kv, &bucket, &key).unwrap();
        let body = bodies(&*state.kv, &object).unwrap().remove(0);
        let logged = logged.remove(&body.body_id).unwrap();
        assert_eq!(logged.cipher_bytes, cipher_bytes(body.bytes), "{name}");
        let [(EntryForm::Object, sealed)] = &logged.entries[..] else { panic!("{logged:?}") };
        let secret = state.keys.load(body.key_slot, body.body_id).unwrap();
        let expected = Entry::new(&*state.kv, &testing::name(name), &object, 0, &body).unwrap();
        assert_eq!(Entry::open(&secret, body.body_id, sealed).unwrap(), expected);
        assert!(PartEntry::open(&secret, body.body_id, sealed).is_err());
        assert_eq!(expected.bucket_created, UnixTime::from_millis(77_000));
        rows.push(body);
    }
    assert!(logged.is_empty());
    check_accounts(state, &rows);
    for name in &named {
        put::delete(state, &testing::bucket("vault"), &testing::key(name)).await.unwrap();
    }
    check_accounts(state, &[]);
    state.close_logs();
    for kind in [LogKind::Staging, LogKind::Online] {
        assert_eq!(
            list_segments(&Paths::new(&state.config.data).log(kind)).unwrap(),
            Vec::<u32>::new()
        );
    }
}

async fn put_part(
    state: &Arc<ArchiveState>,
    name: &UploadName,
    number: u32,
    bytes: usize,
) -> String {
    let claim = BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() };
    let mut writer = PartWriter::begin(state, name.clone(), number, claim).unwrap();
    writer.write(Bytes::from(vec![9; bytes])).await.unwrap();
    writer.finish(None).await.unwrap().etag
}

fn forms(logged: &LoggedBody) -> Vec<EntryForm> {
    logged.entries.iter().map(|&(form, _)| form).collect()
}

#[test]
fn log_entries_describe_parts_and_completed_objects() {
    let dir = testing::dir();
    let state = new_store(&dir);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check_upload(&state));
}

async fn check_upload(state: &Arc<ArchiveState>) {
    let (bucket, key) = (testing::bucket("vault"), testing::key("parts"));
    let (class, meta) = (StorageClass::Glacier, ObjectMeta::default());
    let options = UploadOptions { class, meta, algorithm: None, full_object: false };
    let info = multipart::create(state, &bucket, &key, options).await.unwrap();
    let name = UploadName { bucket: bucket.clone(), key: key.clone(), upload: info.upload_id };
    let mut listed = Vec::new();
    for (number, bytes) in [(1, 5 << 20), (2, 70_000)] {
        let etag = put_part(state, &name, number, bytes).await;
        listed.push(CompletedPart { number, etag, checksum: None });
    }
    let range = KeyRange::prefix(&info.upload_id.to_bytes());
    let parts: Vec<(Vec<u8>, PartRow)> = rows_in(&*state.kv, PARTS, &range, 10).unwrap();
    let logged = scan_logs(state);
    for (number, (_, part)) in (1..).zip(&parts) {
        let body = &part.body;
        let secret = state.keys.load(body.key_slot, body.body_id).unwrap();
        let [(EntryForm::Part, sealed)] = &logged[&body.body_id].entries[..] else { panic!() };
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
    multipart::complete(state, refused).await.unwrap_err();
    let rows: Vec<BodyRow> = parts.into_iter().map(|(_, part)| part.body).collect();
    check_accounts(state, &rows);
    assert!(scan_logs(state).values().all(|logged| forms(logged) == [EntryForm::Part]));
    let condition = WriteCondition::default();
    let completion = Completion { name: name.clone(), listed, condition, checksum: None };
    multipart::complete(state, completion).await.unwrap();
    let object = require_object(&*state.kv, &bucket, &key).unwrap();
    let rows = bodies(&*state.kv, &object).unwrap();
    check_accounts(state, &rows);
    let logged = scan_logs(state);
    for (index, body) in (0..).zip(&rows) {
        let logged = &logged[&body.body_id];
        assert_eq!(forms(logged), [EntryForm::Part, EntryForm::Object]);
        let secret = state.keys.load(body.key_slot, body.body_id).unwrap();
        let expected =
            Entry::new(&*state.kv, &testing::name("parts"), &object, index, body).unwrap();
        assert_eq!(Entry::open(&secret, body.body_id, &logged.entries[1].1).unwrap(), expected);
    }
    put::delete(state, &bucket, &key).await.unwrap();
    check_accounts(state, &[]);
}
