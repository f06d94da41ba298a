//! Bytes can be read from wherever the log put them, freed space is punched out of the file, and no
//! segment is unlinked that might hold acknowledged data.

use fulgurite_units::{ByteCount, UnixTime};
use proptest::prelude::*;

use super::record::EntryForm;
use super::scan::{ScannedRecord, SegmentScan};
use super::*;

/// Opens the log in run `run`, with a catalog that knows the runs up to `run - 1`.
fn open_in_run(
    data: &Path,
    kind: LogKind,
    live: &[(u32, u64)],
    capacity: u64,
    run: u64,
) -> Arc<SegmentLog> {
    let budget = Arc::new(Budget::new(ByteCount::new(capacity)));
    let live = live.iter().copied().collect();
    let archive = ArchiveId::from_bytes([1; 16]);
    let (data, commits) = (data.to_owned(), Arc::default());
    let place = LogPlace { data, kind, archive, run, catalog_run: run - 1, commits };
    Arc::new(SegmentLog::open(&place, &live, budget).unwrap())
}

fn open(data: &Path, live: &[(u32, u64)], capacity: u64) -> Arc<SegmentLog> {
    open_in_run(data, LogKind::Restored, live, capacity, 1)
}

fn put(log: &Arc<SegmentLog>, bytes: &[u8], expected: u64) -> Vec<Extent> {
    let mut writer = log.writer(body(0), expected).unwrap();
    for piece in bytes.chunks(1000) {
        writer.write(piece).unwrap();
    }
    LogWriter::sync_many(std::iter::once(&writer)).unwrap();
    let extents = writer.extents();
    writer.keep();
    extents
}

fn body(number: usize) -> ObjectId {
    ObjectId::from_bytes([u8::try_from(number).unwrap(); 16])
}

fn entry(bytes: usize) -> SealedEntry {
    let written = UnixTime::from_millis(5);
    SealedEntry { form: EntryForm::Object, written, sealed: vec![0xE7; bytes] }
}

/// Writes a body with its entry; returns the extents of its ciphertext and its framing.
fn put_framed(
    log: &Arc<SegmentLog>,
    number: usize,
    bytes: &[u8],
    expected: Option<u64>,
) -> (Vec<Extent>, Vec<Extent>) {
    let mut writer = log.writer(body(number), expected.unwrap_or(0)).unwrap();
    if expected.is_some() {
        bytes.chunks(1000).for_each(|piece| writer.write(piece).unwrap());
        writer.finish(&entry(100 + number)).unwrap();
    } else {
        writer.write_small(&mut bytes.to_vec(), &entry(100 + number)).unwrap();
    }
    LogWriter::sync_many(std::iter::once(&writer)).unwrap();
    writer.keep();
    (writer.extents(), writer.framing())
}

fn get(log: &Arc<SegmentLog>, extents: &[Extent]) -> Vec<u8> {
    let mut bytes = vec![0; extents.iter().map(|e| to_usize(e.bytes)).sum()];
    log.reader(extents.to_vec()).read_at(0, &mut bytes).unwrap();
    bytes
}

fn orphans(data: &Path) -> Vec<(LogKind, u32, Option<u64>)> {
    let found = Orphans::new(data).list().unwrap();
    found.into_iter().map(|orphan| (orphan.kind, orphan.number, orphan.run)).collect()
}

#[test]
fn unnamed_segment_is_unlinked_only_by_newer_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let staging = dir.path().join("staging");
    let open =
        |live: &[(u32, u64)], run| open_in_run(dir.path(), LogKind::Staging, live, 1 << 30, run);
    let log = open(&[], 7);
    let (lost, _) = put_framed(&log, 1, &[1; 5000], None);
    drop(log);
    // The catalog knows run 7, but nothing in a segment of that run: it may be behind.
    let log = open(&[], 8);
    assert_eq!(list_segments(&staging).unwrap(), Vec::<u32>::new());
    assert_eq!(orphans(dir.path()), [(LogKind::Staging, 0, Some(7))]);
    // The orphan's number is not reused.
    assert_eq!(put_framed(&log, 2, &[2; 10], None).0[0].segment, 1);
    drop(log);
    // Run 9 began after everything that run 8 wrote.
    drop(open(&[], 10));
    assert_eq!(list_segments(&staging).unwrap(), Vec::<u32>::new());
    assert_eq!(orphans(dir.path()), [(LogKind::Staging, 0, Some(7))]);
    // When a catalog names the orphan, it is restored, however late.
    let log = open(&[(0, 5000)], 20);
    assert_eq!(get(&log, &lost), vec![1; 5000]);
    assert_eq!(orphans(dir.path()), []);
}

#[test]
fn unknown_segments_become_orphans_without_overwriting() {
    let dir = tempfile::tempdir().unwrap();
    let staging = dir.path().join("staging");
    std::fs::create_dir_all(&staging).unwrap();
    for round in 0..3 {
        std::fs::write(segment_path(&staging, 4), [round; 100]).unwrap();
        drop(open_in_run(dir.path(), LogKind::Staging, &[], 1 << 30, 100));
    }
    assert_eq!(orphans(dir.path()), [(LogKind::Staging, 4, None); 3]);
    let mut contents: Vec<u8> = Orphans::new(dir.path())
        .list()
        .unwrap()
        .iter()
        .map(|orphan| std::fs::read(&orphan.path).unwrap()[0])
        .collect();
    contents.sort_unstable();
    assert_eq!(contents, [0, 1, 2]);
    // From another archive: old enough, but not ours to unlink.
    let (archive, kind) = (ArchiveId::from_bytes([9; 16]), LogKind::Staging);
    let header = SegmentHeader { archive, kind, number: 5, run: 1 };
    std::fs::write(segment_path(&staging, 5), header.encode()).unwrap();
    drop(open_in_run(dir.path(), LogKind::Staging, &[], 1 << 30, 100));
    assert_eq!(orphans(dir.path()).len(), 4);
}

#[test]
fn shutdown_leaves_no_empty_segment() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), &[], 1 << 30);
    let extents = put(&log, &[1; 5000], 5000);
    log.close_active();
    assert_eq!(list_segments(&log.dir).unwrap(), [0]);
    log.free(&extents);
    assert_eq!(list_segments(&log.dir).unwrap(), Vec::<u32>::new());
    let extents = put(&log, &[1; 5000], 5000);
    log.free(&extents);
    assert_eq!(list_segments(&log.dir).unwrap(), [1]);
    log.close_active();
    assert_eq!(list_segments(&log.dir).unwrap(), Vec::<u32>::new());
}

#[test]
fn full_log_refuses_and_releases_all_space() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), &[], 10_000);
    let extents = put(&log, &[1; 6000], 6000);
    assert!(matches!(log.writer(body(0), 5000), Err(ArchiveError::Full { .. })));
    assert_eq!(log.budget.used(), 6000);
    drop(log.writer(body(0), 4000).unwrap());
    assert_eq!(log.budget.used(), 6000);
    log.free(&extents);
    assert_eq!(log.budget.used(), 0);
}

#[test]
fn lost_segments_return_no_space() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), &[(3, 5000)], 10_000);
    assert_eq!(log.budget.used(), 0);
    let kept = put(&log, &[1; 6000], 6000);
    log.free(&[Extent { segment: 3, offset: 64, bytes: 5000 }]);
    assert_eq!(log.budget.used(), 6000);
    // Freeing more than the segment holds returns only what it holds.
    log.free(&[Extent { bytes: 1 << 40, ..kept[0] }]);
    assert_eq!(log.budget.used(), 0);
    assert_eq!(get(&log, &put(&log, &[2; 9000], 9000)), vec![2; 9000]);
}

#[test]
fn open_reader_keeps_freed_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), &[], 1 << 30);
    let body = vec![7; 2 << 20];
    let extents = put(&log, &body, 2 << 20);
    let mut reader = log.reader(extents.clone());
    log.free(&extents);
    let mut bytes = vec![0; 2 << 20];
    reader.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, body);
    drop(reader);
    assert_eq!(get(&log, &extents), vec![0; 2 << 20]);
}

#[test]
fn adjacent_free_ranges_are_punched_together() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), &[], 1 << 30);
    let bodies: Vec<_> = (0..40).map(|_| put(&log, &[7; 60_000], 60_000)).collect();
    let kept = put(&log, &[8; 60_000], 60_000);
    // Out of order, so that free ranges merge at both ends.
    for body in bodies.iter().step_by(2).chain(bodies.iter().skip(1).step_by(2)) {
        log.free(body);
    }
    let zeros = bodies.iter().filter(|body| get(&log, body) == vec![0; 60_000]).count();
    assert!(zeros >= 20, "{zeros} of 40 bodies were punched out");
    assert_eq!(get(&log, &kept), vec![8; 60_000]);
}

#[test]
fn log_continues_in_a_new_segment_after_write_failure() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_in_run(dir.path(), LogKind::Online, &[], 1 << 30, 1);
    let (kept, _) = put_framed(&log, 1, &[1; 5000], Some(5000));
    let mut waiting = log.writer(body(2), 5000).unwrap();
    waiting.write(&[2; 1000]).unwrap();
    log.lock().active.as_ref().unwrap().1.fail("a failing disk".to_owned());
    let refused = waiting.write(&[2; 1000]).unwrap_err().to_string();
    assert!(refused.contains("a failing disk"), "{refused}");
    assert!(LogWriter::sync_many(std::iter::once(&waiting)).is_err());
    drop(waiting);
    let (next, framing) = put_framed(&log, 3, &[3; 5000], Some(5000));
    assert_eq!((next[0].segment, framing[0].segment), (1, 1));
    // Bodies acknowledged earlier can still be read.
    assert_eq!(get(&log, &kept), vec![1; 5000]);
    assert_eq!(get(&log, &next), vec![3; 5000]);
}

#[test]
fn failed_segment_creation_does_not_block_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path(), &[], 1 << 30);
    // Syncing /dev/null fails everywhere.
    let good = std::mem::replace(
        &mut Arc::get_mut(&mut log).unwrap().dir_file,
        File::open("/dev/null").unwrap(),
    );
    for _ in 0..2 {
        assert!(matches!(log.writer(body(0), 5000), Err(ArchiveError::Io { .. })));
    }
    assert_eq!(list_segments(&log.dir).unwrap(), Vec::<u32>::new());
    assert_eq!(log.budget.used(), 0);
    Arc::get_mut(&mut log).unwrap().dir_file = good;
    assert_eq!(put(&log, &[1; 10], 10)[0].segment, 2);
    // An existing file in the place of the next segment costs one number.
    log.close_active();
    std::fs::write(segment_path(&log.dir, 3), b"not ours").unwrap();
    log.writer(body(0), 10).unwrap_err();
    assert_eq!(put(&log, &[1; 10], 10)[0].segment, 4);
}

/// Returns every body that a scan of the log finds: its ciphertext and the length of its entry.
fn scanned(log: &SegmentLog) -> BTreeMap<ObjectId, (Vec<u8>, Option<usize>)> {
    let mut found: BTreeMap<ObjectId, (Vec<u8>, Option<usize>)> = BTreeMap::new();
    for number in list_segments(&log.dir).unwrap() {
        let path = segment_path(&log.dir, number);
        let bytes = std::fs::read(&path).unwrap();
        let mut scan = SegmentScan::open(&path, log.kind, number).unwrap();
        assert_eq!(scan.header().map(|header| header.run), Some(log.run));
        while let Some(record) = scan.next_record().unwrap() {
            let place = record.header().content();
            let content = &bytes[to_usize(place.offset)..to_usize(place.end())];
            let body = found.entry(record.header().body).or_default();
            match (record, record.header().kind) {
                (ScannedRecord::Data(_), record::RecordKind::Data { body_offset, .. }) => {
                    assert_eq!(body_offset, body.0.len() as u64);
                    body.0.extend_from_slice(content);
                }
                (ScannedRecord::Entry(_, sealed), _) => body.1 = Some(sealed.len()),
                (other, _) => panic!("{other:?}"),
            }
        }
        assert_eq!(scan.unrecognized_bytes(), 0);
    }
    found
}

#[test]
fn body_spanning_segments_has_a_header_in_each() {
    let dir = crate::testing::dir();
    let log = open_in_run(dir.path(), LogKind::Staging, &[], 1 << 40, 1);
    // Starts in segments that are nearly full, judging by their tail.
    let near = |log: &SegmentLog| {
        let mut state = log.lock();
        let active = state.active.as_ref().unwrap().0;
        state.segments.get_mut(&active).unwrap().tail = SEGMENT_BYTES - 1024;
    };
    put_framed(&log, 1, &[1; 100], None);
    near(&log);
    let bytes: Vec<u8> = (0..5000u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let (extents, framing) = put_framed(&log, 2, &bytes, Some(3000));
    assert_eq!(
        extents.iter().map(|e| (e.segment, e.bytes)).collect::<Vec<_>>(),
        [(0, 960), (1, 4040)]
    );
    assert_eq!(get(&log, &extents), bytes);
    let found = scanned(&log);
    assert_eq!(found[&body(2)], (bytes, Some(102)));
    assert_eq!(found[&body(1)], (vec![1; 100], Some(101)));
    // A record that does not fit goes to the next segment whole.
    near(&log);
    let (small, entry) = put_framed(&log, 3, &[3; 2000], None);
    assert_eq!((small.len(), small[0].segment, entry[0].segment), (1, 2, 2));
    assert!(
        framing.iter().all(|e| e.offset % HEADER_BYTES == 0 || e.bytes < HEADER_BYTES + 64 + 102)
    );
}

#[test]
fn dropped_entries_are_unreadable() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_in_run(dir.path(), LogKind::Staging, &[], 1 << 30, 1);
    put_framed(&log, 1, &[1; 100], None);
    let used = log.budget.used();
    for is_kept in [false, true] {
        let mut entries = log.entry_writer();
        let place = entries.write(body(1), &entry(300)).unwrap();
        entries.write(body(2), &entry(200)).unwrap();
        entries.sync_blocking().unwrap();
        assert_eq!(place.bytes, 384);
        if is_kept {
            entries.keep();
        } else {
            drop(entries);
            assert_eq!(log.budget.used(), used);
        }
        let segment = segment_path(&log.dir, 0);
        let mut scan = SegmentScan::open(&segment, LogKind::Staging, 0).unwrap();
        let mut lengths = Vec::new();
        while let Some(record) = scan.next_record().unwrap() {
            lengths.push(record.header().bytes);
        }
        let expected: &[u64] = if is_kept { &[100, 101, 300, 200] } else { &[100, 101] };
        assert_eq!(lengths, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn bodies_of_any_size_round_trip(
        bodies in prop::collection::vec((0usize..20_000, 0u64..30_000), 1..12),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path(), &[], 1 << 40);
        let mut kept = Vec::new();
        for (i, &(bytes, expected)) in bodies.iter().enumerate() {
            let body = vec![u8::try_from(i).unwrap() + 1; bytes];
            kept.push((put(&log, &body, expected), body));
        }
        for (extents, body) in &kept {
            prop_assert_eq!(&get(&log, extents), body);
        }
        let live: u64 = bodies.iter().map(|&(bytes, _)| bytes as u64).sum();
        prop_assert_eq!(log.budget.used(), live);
    }

    #[test]
    fn framed_bodies_round_trip_and_free_all_space(
        bodies in prop::collection::vec(
            (0usize..20_000, prop::option::of(0u64..30_000)), 1..12,
        ),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let log = open_in_run(dir.path(), LogKind::Staging, &[], 1 << 40, 3);
        let mut kept = Vec::new();
        for (i, &(bytes, expected)) in bodies.iter().enumerate() {
            let content = vec![u8::try_from(i).unwrap() + 1; bytes];
            let (extents, framing) = put_framed(&log, i, &content, expected);
            prop_assert_eq!(&get(&log, &extents), &content);
            kept.push((extents, framing, content));
        }
        let found = scanned(&log);
        for (i, (_, _, content)) in kept.iter().enumerate() {
            prop_assert_eq!(&found[&body(i)], &(content.clone(), Some(100 + i)));
        }
        let all = kept.iter().flat_map(|(extents, framing, _)| extents.iter().chain(framing));
        let live: u64 = all.clone().map(|extent| extent.bytes).sum();
        prop_assert_eq!(log.budget.used(), live);
        // Extents are exact: none overlap, and every byte can be read.
        let mut places: Vec<Extent> = all.copied().collect();
        places.sort_unstable_by_key(|extent| (extent.segment, extent.offset));
        for pair in places.windows(2) {
            prop_assert!(pair[0].segment < pair[1].segment || pair[0].end() <= pair[1].offset);
        }
        log.free(&places);
        prop_assert_eq!(log.budget.used(), 0);
        log.close_active();
        prop_assert_eq!(list_segments(&log.dir).unwrap(), Vec::<u32>::new());
    }
}
