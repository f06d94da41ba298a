//! The mark has exactly these bytes, either of the two is enough, and no damage makes it greater.

use expect_test::expect;

use super::file::{Mark, read};
use super::*;
use crate::testing;

fn archive() -> ArchiveId {
    ArchiveId::from_bytes([0xA1; 16])
}

fn record(paths: &Paths, run: u64, commits: &[u64]) {
    let count = Arc::<CommitCounter>::default();
    let file = MarkFile::new(paths.clone(), archive(), run, Arc::clone(&count));
    for &commits in commits {
        count.set(commits);
        file.record(false).unwrap();
    }
}

fn mark(run: u64, commits: u64) -> Mark {
    Mark { age: CatalogAge { run, commits }, is_last: false }
}

#[test]
fn mark_matches_golden_bytes() {
    let dir = testing::dir();
    let paths = Paths::new(dir.path());
    record(&paths, 0x0102, &[1, 0x0304]);
    let bytes = std::fs::read(paths.catalog_mark()).unwrap();
    assert_eq!(bytes.len(), 576);
    assert!(bytes[64..512].iter().all(|&byte| byte == 0));
    let lines: String = bytes[512..].chunks(16).map(|line| hex::encode(line) + "\n").collect();
    expect![[r#"
        46474341544d524b0100000000000000
        a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1
        02010000000000000403000000000000
        000000000000000000000000634579a3
    "#]]
    .assert_eq(&lines);
    assert_eq!(read(&paths, archive()), Some(mark(0x0102, 0x0304)));
    assert_eq!(read(&paths, ArchiveId::from_bytes([0xA2; 16])), None);
}

#[test]
fn damaged_mark_falls_back_to_the_previous_one() {
    let dir = testing::dir();
    let paths = Paths::new(dir.path());
    // The second run continues where the first ended: the newest mark is never overwritten.
    record(&paths, 1, &[1, 2, 3]);
    record(&paths, 2, &[1]);
    let path = paths.catalog_mark();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(read(&paths, archive()), Some(mark(2, 1)));
    for bit in 512 * 8..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(read(&paths, archive()), Some(mark(1, 3)), "bit {bit}");
    }
    for (bytes, left) in [(&bytes[..512], Some(mark(1, 3))), (&bytes[..40], None), (&[], None)] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read(&paths, archive()), left);
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read(&paths, archive()), None);
}

#[test]
fn unsynced_mark_never_replaces_the_last_synced_one() {
    let dir = testing::dir();
    let paths = Paths::new(dir.path());
    let count = Arc::<CommitCounter>::default();
    let file = MarkFile::new(paths.clone(), archive(), 1, Arc::clone(&count));
    file.record(false).unwrap();
    let synced = std::fs::read(paths.catalog_mark()).unwrap()[..64].to_vec();
    for commits in 1..5 {
        count.set(commits);
        file.record_unsynced();
        assert_eq!(read(&paths, archive()), Some(mark(1, commits)));
        assert!(std::fs::read(paths.catalog_mark()).unwrap()[..64] == synced);
    }
}

#[test]
fn last_mark_of_a_run_records_the_shutdown() {
    let dir = testing::dir();
    let paths = Paths::new(dir.path());
    let file = MarkFile::new(paths.clone(), archive(), 4, Arc::default());
    file.record(false).unwrap();
    file.record(true).unwrap();
    assert_eq!(read(&paths, archive()), Some(Mark { is_last: true, ..mark(4, 0) }));
}

#[test]
fn count_beyond_the_record_field_saturates() {
    for (count, word) in [(0, 0), (7, 7), (u64::from(u32::MAX) + 5, u32::MAX)] {
        let commits = CommitCounter::default();
        commits.set(count);
        assert_eq!(commits.saturating_u32(), word);
    }
}

/// A start commits unconfirmed bodies before it records its run. If it is interrupted there, the
/// catalog is not older than the one it found.
#[test]
fn catalog_age_is_the_later_of_run_and_batches() {
    for (run, counted, age) in
        [(3, Some((4, 1)), (4, 1)), (3, Some((2, 9)), (3, 0)), (3, None, (3, 0))]
    {
        let kv = fulgurite_catalog::MemoryStore::new(&rows::SPACES);
        let mut batch = Batch::new();
        let totals = rows::Totals { run, ..rows::Totals::default() };
        batch.put(META, rows::TOTALS_KEY, rows::encode(&totals).unwrap()).unwrap();
        if let Some((run, commits)) = counted {
            let row = rows::encode(&CatalogAge { run, commits }).unwrap();
            batch.put(META, rows::COMMITS_KEY, row).unwrap();
        }
        kv.apply(batch).unwrap();
        let (run, commits) = age;
        assert_eq!(rows::catalog_age(&kv).unwrap(), CatalogAge { run, commits });
    }
}
