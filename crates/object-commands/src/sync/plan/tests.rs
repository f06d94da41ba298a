//! Every decision of a sync, without files or servers.

use super::*;

const fn file(bytes: u64) -> Entry {
    Entry { bytes, is_folder: false }
}

const FOLDER: Entry = Entry { bytes: 0, is_folder: true };

#[test]
fn compare_entries_decides_from_listings() {
    use Compare::{Checksum, Size, Time};
    let cases = [
        (Time, file(1), None, Comparison::Differs(Reason::New)),
        (Time, FOLDER, None, Comparison::Differs(Reason::New)),
        (Time, file(1), Some(file(2)), Comparison::Differs(Reason::Size)),
        (Time, file(1), Some(file(1)), Comparison::NeedsQuery),
        (Checksum, file(1), Some(file(1)), Comparison::NeedsQuery),
        (Checksum, file(1), Some(file(2)), Comparison::Differs(Reason::Size)),
        (Size, file(1), Some(file(1)), Comparison::Same),
        (Size, file(1), Some(file(2)), Comparison::Differs(Reason::Size)),
        (Time, file(0), Some(file(0)), Comparison::Same),
        (Time, FOLDER, Some(FOLDER), Comparison::Same),
        (Time, file(0), Some(FOLDER), Comparison::Differs(Reason::Size)),
    ];
    for (compare, source, target, expected) in cases {
        assert_eq!(
            compare_entries(compare, source, target),
            expected,
            "{compare:?} {source:?} {target:?}"
        );
    }
}

#[test]
fn recorded_mtime_is_compared_in_both_directions() {
    let time = FileTime::parse_seconds;
    let later = time("2000000000");
    for direction in [Direction::Up, Direction::Down] {
        for (local, recorded, differs) in [
            ("1000000000.5", "1000000000.5", false),
            ("1000000000.5", "1000000000.6", true),
            ("1000000001", "1000000000", true),
            ("999999999", "1000000000", true),
            // A file system that stores whole seconds cannot do better.
            ("1000000000", "1000000000.6", false),
        ] {
            let found = differs_in_time(direction, time(local), time(recorded), later);
            assert_eq!(found, differs, "{direction:?} {local} {recorded}");
        }
    }
}

#[test]
fn newer_side_wins_without_recorded_mtime() {
    let (old, new) = (FileTime::parse_seconds("1"), FileTime::parse_seconds("2"));
    assert!(!differs_in_time(Direction::Up, old, None, new), "put after the last change");
    assert!(differs_in_time(Direction::Up, new, None, old), "changed since it was put");
    assert!(differs_in_time(Direction::Down, old, None, new), "put since it was fetched");
    assert!(!differs_in_time(Direction::Down, new, None, old), "fetched after it was put");
    for direction in [Direction::Up, Direction::Down] {
        assert!(!differs_in_time(direction, old, None, old));
        assert!(differs_in_time(direction, None, old, old), "a file without a time");
        assert!(differs_in_time(direction, old, None, None), "an object without a date");
    }
}

#[test]
fn only_in_target_lists_surplus_keys() {
    let map = |keys: &[&str]| -> BTreeMap<String, ()> {
        keys.iter().map(|key| ((*key).to_owned(), ())).collect()
    };
    assert_eq!(only_in_target(&map(&["a", "b"]), &map(&["a", "c", "d/"])), ["c", "d/"]);
    assert!(only_in_target(&map(&["a"]), &map(&[])).is_empty());
}
