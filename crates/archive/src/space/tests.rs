//! Admission against the free space of the test's disk, which others change meanwhile: the amounts
//! requested are far beyond any such change.

use std::sync::Arc;

use fulgurite_units::ByteCount;

use super::{Space, SpaceOptions, allocated};
use crate::{ArchiveError, ErrorKind};

fn space(dir: &tempfile::TempDir, free_min: u64, reserve: u64) -> Arc<Space> {
    let options = SpaceOptions {
        free_min: Some(ByteCount::new(free_min)),
        reserve: Some(ByteCount::new(reserve)),
        ..SpaceOptions::default()
    };
    Arc::new(Space::open(dir.path(), &options).unwrap())
}

#[test]
fn admitted_bytes_count_until_written_or_dropped() {
    let dir = crate::testing::dir();
    let space = space(&dir, 0, 0);
    let free = space.free().unwrap();
    let most = free / 4 * 3;
    let mut first = space.admit(most).unwrap();
    let error = space.admit(most).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(matches!(error, ArchiveError::Full { .. }) && error.to_string().contains("reserved"));
    assert!(space.check(most).is_err());
    // The disk counts written bytes itself. Here none were written, so the space is free again.
    first.written(most - 10);
    let second = space.admit(most).unwrap();
    assert!(first.cover(most).is_err(), "a body of unknown length is checked as it goes");
    drop(second);
    first.cover(most).unwrap();
    drop(first);
    space.check(most).unwrap();
}

#[test]
fn minimum_free_space_is_never_admitted() {
    let dir = crate::testing::dir();
    let free = space(&dir, 0, 0).free().unwrap();
    assert!(space(&dir, free / 2, 0).admit(free / 4 * 3).is_err());
    assert!(space(&dir, u64::MAX, 0).admit(0).is_err());
    assert!(space(&dir, 0, 0).admit(free / 4 * 3).is_ok());
}

#[test]
fn reserve_is_allocated_and_recreated() {
    let dir = crate::testing::dir();
    let bytes = 3 << 20;
    let disk_space = space(&dir, 0, bytes);
    let path = dir.path().join("reserve");
    disk_space.keep_reserve().unwrap();
    assert!(allocated(&path) >= bytes, "blocks are allocated");
    assert_eq!(disk_space.reserve(), (bytes, bytes));
    // A later start finds the reserve.
    let found = space(&dir, 0, bytes);
    assert_eq!(found.reserve(), (bytes, bytes));
    assert!(found.make_room(true), "there is space once the reserve is deleted");
    assert!(!path.exists() && !found.give_up_reserve());
    assert_eq!(found.reserve(), (0, bytes));
    found.keep_reserve().unwrap();
    assert_eq!(found.reserve(), (bytes, bytes));
    // It is not created if that would violate the minimum free space.
    found.give_up_reserve();
    drop(found);
    let poor = space(&dir, u64::MAX / 2, bytes);
    poor.keep_reserve().unwrap();
    assert_eq!(poor.reserve(), (0, bytes));
}

#[test]
fn failed_disk_is_probed_until_it_works() {
    let dir = crate::testing::dir();
    let space = space(&dir, 0, 0);
    let (here, away) = (dir.path().join("here"), dir.path().join("away"));
    let space = Space { data: here.clone(), ..Arc::into_inner(space).unwrap() };
    space.check_disk().unwrap();
    space.record_failure(&ArchiveError::Busy { what: "not a disk failure".to_owned() });
    space.check_disk().unwrap();
    space.record_failure(&ArchiveError::Internal { what: "it failed".to_owned() });
    let error = space.check_disk().unwrap_err();
    assert!(error.to_string().contains("probe"), "{error}");
    std::fs::create_dir(&here).unwrap();
    space.check_disk().unwrap();
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), 0, "the probe file is removed");
    std::fs::rename(&here, &away).unwrap();
    space.check_disk().unwrap();
}
