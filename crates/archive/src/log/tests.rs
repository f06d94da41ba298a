//! Bytes come back from wherever the log put them, and room that is given back is gone from disk.

use proptest::prelude::*;

use super::*;

fn open(dir: &Path, live: &[(u32, u64)], capacity: u64) -> Arc<SegmentLog> {
    let budget = Arc::new(Budget::new(ByteCount::new(capacity)));
    let live = live.iter().copied().collect();
    Arc::new(SegmentLog::open(dir.to_owned(), LogKind::Staging, &live, budget).unwrap())
}

fn put(log: &Arc<SegmentLog>, bytes: &[u8], expected: u64) -> Vec<Extent> {
    let mut writer = log.writer(expected).unwrap();
    for piece in bytes.chunks(1000) {
        writer.write(piece).unwrap();
    }
    LogWriter::sync_many(std::iter::once(&writer)).unwrap();
    let extents = writer.extents();
    writer.keep();
    extents
}

fn get(log: &Arc<SegmentLog>, extents: &[Extent]) -> Vec<u8> {
    let mut bytes = vec![0; extents.iter().map(|e| to_usize(e.bytes)).sum()];
    log.reader(extents.to_vec()).read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn segments_without_rows_are_unlinked_and_never_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), &[], 1 << 30);
    let kept = put(&log, &[1; 5000], 5000);
    drop(log);
    let log = open(dir.path(), &[(0, 5000)], 1 << 30);
    let next = put(&log, &[2; 10], 10);
    assert_eq!(next[0].segment, 1);
    assert_eq!(get(&log, &kept), vec![1; 5000]);
    drop(log);
    let log = open(dir.path(), &[(1, 10)], 1 << 30);
    assert_eq!(list_segments(dir.path()).unwrap(), [1]);
    assert_eq!(get(&log, &next), vec![2; 10]);
}

#[test]
fn a_full_log_refuses_and_gives_everything_back() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), &[], 10_000);
    let extents = put(&log, &[1; 6000], 6000);
    assert!(matches!(log.writer(5000), Err(ArchiveError::Full { .. })));
    assert_eq!(log.budget.used(), 6000);
    drop(log.writer(4000).unwrap());
    assert_eq!(log.budget.used(), 6000);
    log.free(&extents);
    assert_eq!(log.budget.used(), 0);
}

#[test]
fn a_reader_keeps_freed_bytes_until_it_goes() {
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
fn small_neighbors_are_given_back_together() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path(), &[], 1 << 30);
    let bodies: Vec<_> = (0..40).map(|_| put(&log, &[7; 60_000], 60_000)).collect();
    let kept = put(&log, &[8; 60_000], 60_000);
    // Out of order, so that stretches join at both ends.
    for body in bodies.iter().step_by(2).chain(bodies.iter().skip(1).step_by(2)) {
        log.free(body);
    }
    let zeros = bodies.iter().filter(|body| get(&log, body) == vec![0; 60_000]).count();
    assert!(zeros >= 20, "{zeros} of 40 bodies were punched out");
    assert_eq!(get(&log, &kept), vec![8; 60_000]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn bodies_of_any_size_and_expectation_return(
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
}
