//! A file whose sync failed accepts nothing more, from any caller.

use super::*;

/// Returns a target that accepts writes and fails syncs: `/dev/null` cannot be synced.
fn unsyncable() -> SyncTarget {
    let path = PathBuf::from("/dev/null");
    SyncTarget::new(1, File::options().write(true).open(&path).unwrap(), path)
}

#[test]
fn failed_sync_is_final_for_its_file_only() {
    let dir = crate::testing::dir();
    let path = dir.path().join("good");
    let good = SyncTarget::new(2, File::create(&path).unwrap(), path);
    let bad = unsyncable();
    let sync = GroupSync::start("test").unwrap();
    bad.write_at(b"before", 0).unwrap();
    assert!(!bad.is_failed());
    let first = sync.sync_blocking(vec![good.clone(), bad.clone()]).unwrap_err().to_string();
    assert!(first.contains("cannot sync \"/dev/null\""), "{first}");
    assert!(bad.is_failed());
    assert_eq!(sync.sync_blocking(vec![bad.clone()]).unwrap_err().to_string(), first);
    assert_eq!(bad.write_at(b"after", 0).unwrap_err().to_string(), first);
    good.write_at(b"after", 0).unwrap();
    sync.sync_blocking(vec![good]).unwrap();
}

#[test]
fn failed_asynchronous_sync_is_final_too() {
    let bad = unsyncable();
    let sync = GroupSync::start("test").unwrap();
    bad.write_at(b"before", 0).unwrap();
    sync.begin(vec![bad.clone()]);
    // Queued after the others and without targets: it returns when they are done.
    sync.sync_blocking(Vec::new()).unwrap();
    assert!(bad.is_failed());
    assert!(bad.write_at(b"after", 0).is_err() && sync.sync_blocking(vec![bad]).is_err());
}

#[test]
fn full_disk_does_not_fail_a_file_but_other_errors_do() {
    let full = PathBuf::from("/dev/full");
    let full = SyncTarget::new(1, File::options().write(true).open(&full).unwrap(), full);
    assert!(matches!(full.write_at(b"x", 0), Err(ArchiveError::Full { .. })));
    assert!(!full.is_failed());
    // A file opened for reading rejects writes.
    let path = PathBuf::from("/dev/zero");
    let broken = SyncTarget::new(1, File::open(&path).unwrap(), path);
    assert!(matches!(broken.write_at(b"x", 0), Err(ArchiveError::Io { .. })));
    assert!(broken.is_failed());
    assert!(matches!(broken.write_at(b"x", 0), Err(ArchiveError::Internal { .. })));
}
