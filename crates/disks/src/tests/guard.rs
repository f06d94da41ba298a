//! Tests that nothing of a sleeping disk is opened, and no disk is spun down while in use.

use std::fs;
use std::path::Path;

use fulgurite_units::{ByteCount, ErrorKind};
use proptest::prelude::*;
use tempfile::TempDir;

use super::place;
use crate::{DisksError, Guard, Lease, Power};

fn guarded() -> (TempDir, Guard) {
    let folder = TempDir::new().unwrap();
    let guard = Guard::new();
    guard.add(place(3), folder.path().join("disk"));
    (folder, guard)
}

fn spin_up(guard: &Guard) {
    guard.turn(place(3), Power::SpinningUp).unwrap();
    guard.turn(place(3), Power::Active).unwrap();
}

fn awake() -> (TempDir, Guard, Lease) {
    let (folder, guard) = guarded();
    spin_up(&guard);
    let lease = guard.acquire(place(3)).unwrap();
    lease.prepare().unwrap();
    (folder, guard, lease)
}

#[test]
fn only_active_disks_grant_leases() {
    for power in Power::ALL {
        let (folder, guard) = guarded();
        let way = match power {
            Power::Standby => &[][..],
            Power::SpinningUp => &[Power::SpinningUp],
            Power::Active => &[Power::SpinningUp, Power::Active],
            Power::Unmounting => &[Power::SpinningUp, Power::Active, Power::Unmounting],
            Power::Failed => &[Power::Failed],
            Power::Absent => &[Power::Absent],
            Power::Unclean => &[Power::Unclean],
        };
        way.iter().for_each(|&power| guard.turn(place(3), power).unwrap());
        assert_eq!(guard.power(place(3)), Some(power));
        match guard.acquire(place(3)) {
            Ok(_) => assert_eq!(power, Power::Active),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                assert!(error.to_string().contains(power.name()), "{error}");
                assert_eq!(guard.leases_granted(place(3)), 0);
            }
        }
        assert!(!folder.path().join("disk").exists(), "granting a lease touches no file");
    }
}

#[test]
fn disk_with_an_open_file_is_not_spun_down() {
    let (_folder, guard, lease) = awake();
    let file = lease.create_new("file").unwrap();
    let folder = lease.list("").unwrap();
    drop(lease);
    let refused = |leases| {
        let refused = guard.turn(place(3), Power::Unmounting).unwrap_err();
        assert!(matches!(refused, DisksError::InUse { leases: found, .. } if found == leases));
        assert_eq!(guard.power(place(3)), Some(Power::Active));
    };
    refused(2);
    folder.for_each(|entry| assert_eq!(entry.unwrap().name, "file"));
    refused(1);
    drop(file);
    guard.turn(place(3), Power::Unmounting).unwrap();
}

#[test]
fn leases_of_a_lost_disk_fail_even_when_it_is_back() {
    let (_folder, guard, lease) = awake();
    let file = lease.create_new("file").unwrap();
    file.write_all_at(b"bytes", 0).unwrap();
    guard.turn(place(3), Power::Unclean).unwrap();
    assert_eq!(guard.leases(place(3)), 0, "leases of a lost disk do not count");
    for _ in 0..2 {
        let gone = file.read_exact_at(&mut [0], 0).unwrap_err();
        assert!(matches!(gone, DisksError::Gone { power: Power::Unclean, .. }), "{gone}");
        assert!(matches!(lease.list(""), Err(DisksError::Gone { .. })));
        assert!(matches!(lease.open("file"), Err(DisksError::Gone { .. })));
        if guard.power(place(3)) == Some(Power::Unclean) {
            guard.turn(place(3), Power::Standby).unwrap();
            spin_up(&guard);
        }
    }
    let mut buffer = [0; 5];
    let again = guard.acquire(place(3)).unwrap().open("file").unwrap();
    again.read_exact_at(&mut buffer, 0).unwrap();
    assert_eq!(&buffer, b"bytes");
}

#[test]
fn paths_cannot_leave_the_disk() {
    let (folder, _guard, lease) = awake();
    fs::write(folder.path().join("outside"), "x").unwrap();
    for path in ["../outside", "/etc/passwd", "a/../../outside", "./a"] {
        let refused = lease.open(path).unwrap_err();
        let is_inside = !matches!(refused, DisksError::OutsideDisk { .. });
        assert!(!is_inside, "{path}: {refused}");
        assert!(matches!(lease.remove(path), Err(DisksError::OutsideDisk { .. })));
        assert!(matches!(lease.rename_new("a", path), Err(DisksError::OutsideDisk { .. })));
    }
    assert!(folder.path().join("outside").exists());
}

#[test]
fn files_can_be_created_renamed_resized_and_removed() {
    let (_folder, _guard, lease) = awake();
    lease.create_folder("a/b").unwrap();
    let file = lease.create_new("a/b/new").unwrap();
    file.reserve(ByteCount::kib(64)).unwrap();
    file.write_all_at(&[7; 100], 10).unwrap();
    file.set_bytes(ByteCount::new(50)).unwrap();
    file.sync().unwrap();
    file.drop_cache().unwrap();
    assert_eq!(file.bytes().unwrap(), ByteCount::new(50));
    assert_eq!(lease.create_new("a/b/new").unwrap_err().kind(), ErrorKind::Conflict);

    lease.create_new("a/taken").unwrap();
    assert_eq!(lease.rename_new("a/b/new", "a/taken").unwrap_err().kind(), ErrorKind::Conflict);
    lease.rename_new("a/b/new", "a/whole").unwrap();
    lease.replace("a/whole", "a/taken").unwrap();
    lease.sync_folder("a").unwrap();
    assert!(!lease.exists("a/whole").unwrap());

    let mut entries: Vec<_> = lease.list("a").unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort();
    let entries: Vec<_> =
        entries.iter().map(|entry| (entry.name.to_str().unwrap(), entry.is_folder)).collect();
    assert_eq!(entries, [("b", true), ("taken", false)]);

    lease.remove("a/taken").unwrap();
    lease.remove("a/taken").unwrap();
    assert_eq!(lease.open("a/taken").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(lease.list(Path::new("none")).unwrap_err().kind(), ErrorKind::NotFound);
    let space = lease.space().unwrap();
    assert!(space.free <= space.total && space.total > ByteCount::ZERO);
}

#[test]
fn unknown_place_is_named_in_the_error() {
    let guard = Guard::new();
    assert_eq!(guard.power(place(9)), None);
    assert_eq!(guard.acquire(place(9)).unwrap_err().to_string(), "there is no place 9");
    assert_eq!(guard.turn(place(9), Power::Failed).unwrap_err().kind(), ErrorKind::NotFound);
}

proptest! {
    /// In any order of calls, a lease is granted only while the disk is active, works as long as it
    /// stays so, and prevents a spin-down.
    #[test]
    fn lease_works_while_its_disk_is_active(
        choices in prop::collection::vec((0..3u8, 0..Power::ALL.len()), 1..60)
    ) {
        let guard = Guard::new();
        guard.add(place(0), "nowhere");
        let mut leases: Vec<(Lease, bool)> = Vec::new();
        for (choice, number) in choices {
            let before = guard.power(place(0)).unwrap();
            let used = leases.iter().filter(|(_, works)| *works).count();
            match choice {
                0 => match guard.acquire(place(0)) {
                    Ok(lease) => {
                        prop_assert_eq!(before, Power::Active);
                        leases.push((lease, true));
                    }
                    Err(_) => prop_assert_ne!(before, Power::Active),
                },
                1 => {
                    leases.pop();
                }
                _ => {
                    let to = Power::ALL[number];
                    let is_allowed = guard.turn(place(0), to).is_ok();
                    let is_held = to == Power::Unmounting && used > 0;
                    prop_assert_eq!(is_allowed, before.can_become(to) && !is_held);
                    if is_allowed && to.is_out_of_service() {
                        leases.iter_mut().for_each(|(_, works)| *works = false);
                    }
                }
            }
            for (lease, works) in &leases {
                prop_assert_eq!(lease.check_active().is_ok(), *works);
            }
        }
    }
}
