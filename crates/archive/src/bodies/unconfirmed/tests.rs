//! Uploads interrupted by a crash between fsync and commit: what starts show and record of them,
//! how puts and deletes resolve them, and what a recovery does with the others.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fulgurite_catalog::CatalogError;
use fulgurite_units::{UnixTime, UploadId};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;
use crate::bodies::cipher::random_bytes;
use crate::bodies::ingest::{BodyEntry, Ingest};
use crate::model::labels::Labels;
use crate::model::object::{
    BodyClaim, CompletedPart, ListQuery, ObjectMeta, PutOptions, StorageClass, UploadOptions,
    WriteCondition,
};
use crate::objects::list;
use crate::objects::multipart::{self, Completion, PartWriter, UploadName};
use crate::objects::put::{self, LocalWriter};
use crate::recover::{RecoverOptions, RecoverReport, recover};
use crate::rows::SettledRow;
use crate::rows::lookup::find_object;
use crate::rows::{LoggedBody, SEGMENTS};
use crate::startup::{finish_shreds, sweep_orphan_keys};
use crate::state::ArchiveState;
use crate::{ArchiveError, clock, testing};

/// A data directory that is opened, used and killed repeatedly.
struct CrashTest {
    dir: TempDir,
    runtime: Runtime,
}

impl CrashTest {
    fn new() -> Self {
        let crash_test = Self { dir: testing::dir(), runtime: Runtime::new().unwrap() };
        let state = crash_test.start();
        crash_test
            .runtime
            .block_on(list::create_bucket(&state, &testing::bucket("vault")))
            .unwrap();
        crash_test
    }

    /// Starts as after a crash: the previous run was not shut down.
    fn start(&self) -> Arc<ArchiveState> {
        // No two events share a timestamp.
        static MS: AtomicU64 = AtomicU64::new(0);
        let tick =
            || UnixTime::from_millis(testing::NOW.as_millis() + MS.fetch_add(1, Ordering::Relaxed));
        let clock = clock::system().with_wall(tick);
        let state = ArchiveState::open(testing::config(&self.dir), clock).unwrap();
        let state = Arc::new(state);
        finish_shreds(&state).unwrap();
        sweep_orphan_keys(&state).unwrap();
        state
    }

    fn put(&self, state: &Arc<ArchiveState>, name: &str, bytes: usize) {
        let claim = BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() };
        let (meta, condition) = (ObjectMeta::default(), WriteCondition::default());
        let options = PutOptions { class: StorageClass::Standard, meta, condition, claim };
        let (bucket, key) = (testing::bucket("vault"), testing::key(name));
        self.runtime.block_on(async {
            let mut writer = LocalWriter::begin(state, &bucket, &key, options).unwrap();
            writer.write(Bytes::from(vec![7; bytes])).await.unwrap();
            writer.finish(None).await.unwrap();
        });
    }

    fn delete(&self, state: &Arc<ArchiveState>, name: &str) -> bool {
        let (bucket, key) = (testing::bucket("vault"), testing::key(name));
        self.runtime.block_on(put::delete(state, &bucket, &key)).unwrap()
    }

    /// Makes all of an object durable except its row.
    fn cut_short(&self, state: &Arc<ArchiveState>, name: &str, bytes: usize) {
        self.cut_short_as(state, &testing::name(name), &Labels::default(), bytes);
    }

    fn cut_short_as(
        &self,
        state: &Arc<ArchiveState>,
        name: &ObjectName,
        labels: &Labels,
        bytes: usize,
    ) {
        let class = StorageClass::Standard;
        let claim = BodyClaim { bytes: Some(bytes as u64), ..BodyClaim::default() };
        self.runtime.block_on(async {
            let mut ingest = Ingest::begin(state, LogKind::Online, claim).unwrap();
            ingest.write(Bytes::from(vec![8; bytes])).await.unwrap();
            let describe = |digests: &crate::BodyDigests, digest| {
                let row = ObjectRow {
                    bytes: digests.bytes,
                    modified: UnixTime::from_millis(testing::NOW.as_secs() * 1000),
                    labels: labels.clone(),
                    ..testing::object_row(class)
                };
                let body = (0, digests.bytes, digest);
                let entry = Entry::build(name.clone(), testing::NOW, &row, body);
                (BodyEntry::Object(entry), ())
            };
            let (staged, ()) = ingest.finish(None, describe).await.unwrap();
            staged.settle::<()>(Err(failure())).unwrap_err();
        });
    }

    fn lose_catalog(&self) {
        std::fs::remove_dir_all(self.dir.path().join("catalog")).unwrap();
    }

    fn recover(&self, salvage: bool) -> RecoverReport {
        self.recover_with(RecoverOptions { salvage, ..RecoverOptions::default() })
    }

    fn recover_with(&self, options: RecoverOptions) -> RecoverReport {
        recover(testing::config(&self.dir), options, &|_| {}).unwrap()
    }

    fn list(&self) -> UnconfirmedList {
        UnconfirmedList::read(&Paths::new(self.dir.path())).unwrap()
    }
}

/// A catalog failure that leaves it unknown whether the row was written.
fn failure() -> ArchiveError {
    let source = Arc::new(std::io::Error::other("cut short"));
    ArchiveError::Catalog(CatalogError::Io { action: "write", source })
}

/// Returns the names and sizes that are listed.
fn shown(state: &ArchiveState) -> Vec<(String, u64)> {
    let query = ListQuery { limit: 100, ..ListQuery::default() };
    let page = list::list(state, &testing::bucket("vault"), &query).unwrap();
    page.objects.into_iter().map(|object| (object.key, object.bytes)).collect()
}

#[track_caller]
fn check_shown(state: &ArchiveState, expected: &[(&str, u64)]) {
    let expected: Vec<(String, u64)> =
        expected.iter().map(|&(name, bytes)| (name.to_owned(), bytes)).collect();
    assert_eq!(shown(state), expected);
}

/// Checks names and sizes of the unconfirmed bodies in the status, and that segments, budget and
/// rows agree.
#[track_caller]
fn check_unconfirmed(state: &ArchiveState, expected: &[(&str, u64)]) {
    let status = crate::status::status(state).unwrap();
    let found: Vec<(&str, u64)> =
        status.objects_unconfirmed.iter().map(|body| (&*body.key, body.bytes)).collect();
    assert_eq!(found, expected);
    assert_eq!(status.bodies_unconfirmed, expected.len() as u64);
    let all = KeyRange::prefix(b"");
    let unconfirmed: Vec<(Vec<u8>, UnconfirmedRow)> =
        rows_in(&*state.kv, UNCONFIRMED, &all, 100).unwrap();
    let bodies: Vec<(Vec<u8>, BodyRow)> = rows_in(&*state.kv, BODIES, &all, 100).unwrap();
    let rows: Vec<BodyRow> = unconfirmed
        .into_iter()
        .map(|(_, row)| row.body)
        .chain(bodies.into_iter().map(|(_, body)| body))
        .collect();
    let named: u64 = rows
        .iter()
        .filter_map(BodyRow::in_log)
        .flat_map(LoggedBody::all_extents)
        .map(|e| e.bytes)
        .sum();
    let live: Vec<(Vec<u8>, u64)> = rows_in(&*state.kv, SEGMENTS, &all, 100).unwrap();
    let live: u64 = live.into_iter().map(|(_, bytes)| bytes).sum();
    assert_eq!((live, state.budget.used()), (named, named));
    // Every key belongs to a body, and that body can be read with it.
    let keys: BTreeSet<ObjectId> =
        state.keys.scan().unwrap().into_iter().map(|slot| slot.body).collect();
    assert_eq!(keys, rows.iter().map(|row| row.body_id).collect());
    for row in &rows {
        state.keys.load(row.key_slot, row.body_id).unwrap();
    }
}

#[test]
fn put_or_delete_resolves_unconfirmed_bodies() {
    let crash_test = CrashTest::new();
    let state = crash_test.start();
    crash_test.put(&state, "deleted", 10);
    crash_test.put(&state, "other", 11);
    for (name, bytes) in [("deleted", 20), ("never shown", 21), ("put", 22), ("put", 23)] {
        crash_test.cut_short(&state, name, bytes);
    }
    drop(state);
    // Repeated starts count them once.
    for _ in 0..3 {
        let state = crash_test.start();
        check_shown(&state, &[("deleted", 10), ("other", 11)]);
        let mut unconfirmed = vec![("deleted", 20), ("never shown", 21), ("put", 22), ("put", 23)];
        let status = crate::status::status(&state).unwrap();
        let found = status.objects_unconfirmed.iter().map(|body| (&*body.key, body.bytes));
        let mut found: Vec<(&str, u64)> = found.collect();
        found.sort_unstable();
        unconfirmed.sort_unstable();
        assert_eq!(found, unconfirmed);
        assert_eq!(crash_test.list().iter().count(), 4);
    }
    let state = crash_test.start();
    assert!(crash_test.delete(&state, "deleted"));
    assert!(!crash_test.delete(&state, "never shown"));
    crash_test.put(&state, "put", 30);
    check_unconfirmed(&state, &[]);
    drop(state);
    crash_test.lose_catalog();
    let report = crash_test.recover(false);
    assert_eq!((report.objects, report.unconfirmed, report.incomplete), (2, 0, 0), "{report:?}");
    assert_eq!(crash_test.list(), UnconfirmedList::default());
    let state = crash_test.start();
    check_shown(&state, &[("other", 11), ("put", 30)]);
    check_unconfirmed(&state, &[]);
}

#[test]
fn recovery_shows_unconfirmed_objects_only_with_salvage() {
    let crash_test = CrashTest::new();
    let state = crash_test.start();
    crash_test.put(&state, "both", 10);
    crash_test.cut_short(&state, "both", 20);
    // Longer than one write, and all zeros.
    crash_test.cut_short(&state, "long", 700_000);
    crash_test.cut_short(&state, "empty", 0);
    drop(state);
    let unconfirmed = [("both", 20), ("empty", 0), ("long", 700_000)];
    check_unconfirmed(&crash_test.start(), &unconfirmed);
    for _ in 0..2 {
        crash_test.lose_catalog();
        let report = crash_test.recover(false);
        assert_eq!((report.objects, report.unconfirmed), (1, 3), "{report:?}");
        assert_eq!((report.incomplete, report.set_aside, report.overwritten), (0, 0, 0));
        assert!(report.unconfirmed_names[0].contains("\" in bucket \"vault\""), "{report:?}");
        let state = crash_test.start();
        check_shown(&state, &[("both", 10)]);
        check_unconfirmed(&state, &unconfirmed);
    }
    let report = crash_test.recover(true);
    assert_eq!((report.objects, report.unconfirmed, report.overwritten), (3, 1, 1), "{report:?}");
    let back = [("both", 20), ("empty", 0), ("long", 700_000)];
    // The salvaged object is confirmed now, and the one it replaced is unconfirmed.
    for _ in 0..2 {
        let state = crash_test.start();
        check_shown(&state, &back);
        check_unconfirmed(&state, &[("both", 10)]);
        drop(state);
        crash_test.lose_catalog();
        crash_test.recover(false);
    }
    // And the other way around.
    crash_test.recover_with(RecoverOptions {
        salvage: true,
        earliest: true,
        ..RecoverOptions::default()
    });
    let state = crash_test.start();
    check_shown(&state, &[("both", 10), ("empty", 0), ("long", 700_000)]);
    check_unconfirmed(&state, &[("both", 20)]);
    assert!(crash_test.delete(&state, "both"));
    check_unconfirmed(&state, &[]);
}

#[test]
fn recovery_shows_latest_upload_and_keeps_earlier_key() {
    let crash_test = CrashTest::new();
    let state = crash_test.start();
    crash_test.put(&state, "both", 10);
    crash_test.cut_short(&state, "both", 20);
    drop(state);
    crash_test.lose_catalog();
    let report = crash_test.recover(false);
    assert_eq!((report.objects, report.unconfirmed, report.overwritten), (1, 1, 1), "{report:?}");
    let state = crash_test.start();
    check_shown(&state, &[("both", 20)]);
    check_unconfirmed(&state, &[("both", 10)]);
}

/// Nothing writes such entries yet. A program that does not support versions must still preserve
/// them.
#[test]
fn recovery_keeps_versions_and_labels() {
    let crash_test = CrashTest::new();
    let state = crash_test.start();
    let version = testing::version(Some([8; 16]));
    let name = ObjectName { version, ..testing::name("both") };
    crash_test.put(&state, "both", 10);
    crash_test.cut_short_as(&state, &name, &testing::labels(), 20);
    drop(state);
    crash_test.lose_catalog();
    let report = crash_test.recover(false);
    assert_eq!((report.objects, report.unconfirmed), (1, 1), "{report:?}");
    let state = crash_test.start();
    let row = find_object(&*state.kv, &name.bucket, &name.key).unwrap().unwrap();
    assert_eq!((row.bytes, row.version, row.labels), (20, version, testing::labels()));
    // The latest version has the name; the one before, which is another version, is unconfirmed.
    check_unconfirmed(&state, &[("both", 10)]);
    drop(state);
    crash_test.recover_with(RecoverOptions {
        salvage: true,
        earliest: true,
        ..RecoverOptions::default()
    });
    let state = crash_test.start();
    check_shown(&state, &[("both", 10)]);
    let unconfirmed: Vec<(Vec<u8>, UnconfirmedRow)> =
        rows_in(&*state.kv, UNCONFIRMED, &KeyRange::prefix(b""), 9).unwrap();
    assert_eq!(unconfirmed.iter().map(|(_, row)| row.version).collect::<Vec<_>>(), [version]);
}

#[test]
fn deleting_a_bucket_drops_its_unconfirmed_bodies() {
    let crash_test = CrashTest::new();
    let state = crash_test.start();
    crash_test.cut_short(&state, "a", 10);
    crash_test.cut_short(&state, "b", 20);
    drop(state);
    let state = crash_test.start();
    check_unconfirmed(&state, &[("a", 10), ("b", 20)]);
    crash_test.runtime.block_on(list::delete_bucket(&state, &testing::bucket("vault"))).unwrap();
    check_unconfirmed(&state, &[]);
}

#[test]
fn interrupted_completion_leaves_the_upload_open() {
    let crash_test = CrashTest::new();
    let state = crash_test.start();
    let upload = crash_test.runtime.block_on(begin_upload(&state));
    // The entries of an object that is never committed.
    let part = only_part(&state, upload);
    let secret = state.keys.load(part.key_slot, part.body_id).unwrap();
    let row = ObjectRow { upload_id: Some(upload), ..testing::object_row(StorageClass::Standard) };
    let place = (0, part.bytes, part.digest);
    let entry = Entry::build(testing::name("parts"), testing::NOW, &row, place);
    let entry = entry.record(&secret, part.body_id, state.now()).unwrap();
    let mut writer = state.online.entry_writer();
    writer.write(part.body_id, &entry).unwrap();
    writer.sync_blocking().unwrap();
    writer.keep_unconfirmed();
    drop((secret, state));
    drop(crash_test.start());
    for _ in 0..2 {
        let state = crash_test.start();
        check_shown(&state, &[]);
        assert_eq!(rows::unconfirmed_count(&*state.kv).unwrap(), 0);
        assert_eq!(crash_test.list().iter().collect::<Vec<_>>(), [(part.body_id, row.object_id)]);
        assert_eq!(only_part(&state, upload).body_id, part.body_id);
        drop(state);
        crash_test.lose_catalog();
        let report = crash_test.recover(false);
        assert_eq!((report.uploads, report.objects, report.unconfirmed), (1, 0, 0), "{report:?}");
    }
    let state = crash_test.start();
    crash_test.runtime.block_on(complete_upload(&state, upload));
    check_shown(&state, &[("parts", 5)]);
    drop(state);
    crash_test.lose_catalog();
    let report = crash_test.recover(false);
    assert_eq!((report.uploads, report.objects), (0, 1), "{report:?}");
}

async fn begin_upload(state: &Arc<ArchiveState>) -> UploadId {
    let options = UploadOptions {
        class: StorageClass::Standard,
        meta: ObjectMeta::default(),
        algorithm: None,
        full_object: false,
    };
    let (bucket, key) = (testing::bucket("vault"), testing::key("parts"));
    let upload = multipart::create(state, &bucket, &key, options).await.unwrap().upload_id;
    let name = UploadName { bucket, key, upload };
    let mut part = PartWriter::begin(state, name, 1, BodyClaim::default()).unwrap();
    part.write(Bytes::from_static(b"bytes")).await.unwrap();
    part.finish(None).await.unwrap();
    upload
}

async fn complete_upload(state: &Arc<ArchiveState>, upload: UploadId) {
    let (bucket, key) = (testing::bucket("vault"), testing::key("parts"));
    let name = UploadName { bucket, key, upload };
    let (_, parts, _) = multipart::list_parts(state, &name, 0, 10).unwrap();
    let listed = parts.into_iter().map(|part| CompletedPart {
        number: part.number,
        etag: part.etag,
        checksum: None,
    });
    let (listed, condition) = (listed.collect(), WriteCondition::default());
    let completion = Completion { name, listed, condition, checksum: None };
    multipart::complete(state, completion).await.unwrap();
}

fn only_part(state: &ArchiveState, upload: UploadId) -> BodyRow {
    let range = KeyRange::prefix(&upload.to_bytes());
    let parts: Vec<(Vec<u8>, PartRow)> = rows_in(&*state.kv, PARTS, &range, 10).unwrap();
    assert_eq!(parts.len(), 1);
    parts.into_iter().next().unwrap().1.body
}

#[test]
fn startup_scans_from_the_first_unsettled_segment() {
    let crash_test = CrashTest::new();
    let state = crash_test.start();
    let online = || {
        state.record_settled().unwrap();
        rows::settled(&*state.kv).unwrap().online
    };
    crash_test.put(&state, "a", 10);
    assert_eq!(online(), 0, "the segment is still written to");
    state.close_logs();
    assert_eq!(online(), 1);
    crash_test.cut_short(&state, "b", 20);
    state.close_logs();
    crash_test.put(&state, "c", 30);
    state.close_logs();
    assert_eq!(online(), 1, "one of its bodies is unconfirmed");
    drop(state);
    let state = crash_test.start();
    assert_eq!(rows::settled(&*state.kv).unwrap(), SettledRow::default(), "the row is of this run");
    check_unconfirmed(&state, &[("b", 20)]);
}

#[test]
fn refused_upload_is_settled_once_its_key_is_destroyed() {
    let crash_test = CrashTest::new();
    let state = crash_test.start();
    crash_test.put(&state, "a", 10);
    let (bucket, key) = (testing::bucket("vault"), testing::key("a"));
    let condition = WriteCondition { absent: true, ..WriteCondition::default() };
    crash_test.runtime.block_on(async {
        let claim = BodyClaim { bytes: Some(5), ..BodyClaim::default() };
        let (class, meta) = (StorageClass::Standard, ObjectMeta::default());
        let options = PutOptions { class, meta, condition: WriteCondition::default(), claim };
        let mut first = LocalWriter::begin(&state, &bucket, &testing::key("b"), options).unwrap();
        first.write(Bytes::from_static(b"bytes")).await.unwrap();
        assert!(!put::delete(&state, &bucket, &testing::key("b")).await.unwrap());
        first.finish(None).await.unwrap();
        let claim = BodyClaim { bytes: Some(5), ..BodyClaim::default() };
        let options = PutOptions { class, meta: ObjectMeta::default(), condition, claim };
        assert!(LocalWriter::begin(&state, &bucket, &key, options).is_err());
    });
    state.close_logs();
    assert_eq!(state.online.settled_below(), 1);
}

/// Copies without a child process: until its exec it would hold the locks of all archives that
/// other tests have open.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}

#[test]
fn recovery_after_a_backup_has_no_unconfirmed_bodies() {
    let crash_test = CrashTest::new();
    let copy = testing::dir();
    let catalog = crash_test.dir.path().join("catalog");
    let kept = copy.path().join("catalog");
    copy_folder(&catalog, &kept);
    drop(crash_test.start());
    let state = crash_test.start();
    crash_test.put(&state, "a", 10);
    drop(state);
    crash_test.lose_catalog();
    std::fs::rename(&kept, &catalog).unwrap();
    let refused =
        ArchiveState::open(testing::config(&crash_test.dir), clock::system()).unwrap_err();
    assert!(refused.to_string().contains("older than the archive"), "{refused}");
    crash_test.lose_catalog();
    assert_eq!(crash_test.recover(false).objects, 1);
}

#[test]
fn damaged_list_skips_invalid_lines() {
    let dir = testing::dir();
    let paths = Paths::new(dir.path());
    let id = || ObjectId::from_random(random_bytes().unwrap());
    let list: UnconfirmedList = [(id(), id()), (id(), id())].into_iter().collect();
    list.write(&paths).unwrap();
    assert_eq!(UnconfirmedList::read(&paths).unwrap(), list);
    let text = std::fs::read(paths.unconfirmed()).unwrap();
    std::fs::write(paths.unconfirmed(), [&b"\xff nothing\n"[..], &text[..text.len() - 9]].concat())
        .unwrap();
    let read = UnconfirmedList::read(&paths).unwrap();
    assert_eq!(read.iter().collect::<Vec<_>>(), list.iter().take(1).collect::<Vec<_>>());
    UnconfirmedList::default().write(&paths).unwrap();
    assert!(!paths.unconfirmed().exists());
}
