//! Tests that a ledger is restored from its file, and that damage is reported.

use std::fs;
use std::path::PathBuf;

use fulgurite_units::ErrorKind;
use tempfile::TempDir;

use super::{hour, place, spin_up};
use crate::{Cause, CauseKind, DisksError, LedgerFile, LoadReport};

fn ledger_path() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("spin-ups.ndjson");
    (folder, path)
}

#[test]
fn lines_match_the_format() {
    let (_folder, path) = ledger_path();
    let (mut file, reloaded) = LedgerFile::open(&path).unwrap();
    assert_eq!(reloaded, LoadReport::default());
    file.record(spin_up(hour(0), &[4, 5], Cause::Request(9))).unwrap();
    file.record(spin_up(hour(1), &[4], Cause::Scrub)).unwrap();
    file.replaced(place(5)).unwrap();
    file.record_start(7).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        r#"{"format":"fulgurite-spin-up-ledger","version":1,"start":[0,0],"places":[],"groups":[]}
{"spin-up":{"at":1700000000000,"group":0,"places":[4,5],"cause":{"request":9}}}
{"spin-up":{"at":1700003600000,"group":0,"places":[4],"cause":"scrub"}}
{"replaced":5}
{"start":[7,7]}
"#
    );
    drop(file);
    assert_eq!(LedgerFile::open(&path).unwrap().0.ledger().start(), 7);
}

/// A damaged digit is not another count: the file is reported as damaged, and its other content is
/// kept.
#[test]
fn start_count_needs_both_numbers_to_agree() {
    let (_folder, path) = ledger_path();
    let (mut file, _) = LedgerFile::open(&path).unwrap();
    file.record_start(7).unwrap();
    file.record(spin_up(hour(1), &[4], Cause::Scrub)).unwrap();
    drop(file);
    let text = fs::read_to_string(&path).unwrap();
    for (good, bad) in [("[7,7]", "[7,5]"), ("[7,7]", "[3,7]"), ("[0,0]", "[4,0]")] {
        fs::write(&path, text.replace(good, bad)).unwrap();
        assert!(matches!(LedgerFile::open(&path), Err(DisksError::Ledger { .. })), "{bad}");
        let (file, reloaded) = LedgerFile::open_or_quarantine(&path).unwrap();
        assert!(reloaded.set_aside.is_some() && reloaded.spin_ups == 1, "{bad}: {reloaded:?}");
        assert_eq!(file.ledger().start(), if good == "[0,0]" { 7 } else { 0 }, "{bad}");
    }
}

#[test]
fn ledger_is_restored_after_a_restart() {
    let (_folder, path) = ledger_path();
    let (mut file, _) = LedgerFile::open(&path).unwrap();
    file.record(spin_up(hour(0), &[4, 5], Cause::Init)).unwrap();
    file.record(spin_up(hour(1), &[4], Cause::External)).unwrap();
    file.replaced(place(5)).unwrap();
    drop(file);
    let (mut file, reloaded) = LedgerFile::open(&path).unwrap();
    assert_eq!(reloaded, LoadReport { spin_ups: 2, ..LoadReport::default() });
    assert_eq!(file.ledger().disk_totals(place(4)).unwrap().day(hour(2)), 2);
    assert!(file.ledger().disk_totals(place(5)).is_none());
    file.record(spin_up(hour(2), &[5], Cause::Rebuild)).unwrap();
    drop(file);
    let (file, reloaded) = LedgerFile::open(&path).unwrap();
    assert_eq!(reloaded.spin_ups, 3);
    assert_eq!(file.ledger().spin_ups_by(CauseKind::Rebuild), 1);
}

/// A crash may tear the last line anywhere.
#[test]
fn torn_last_line_is_dropped_and_reported() {
    let (_folder, path) = ledger_path();
    let (mut file, _) = LedgerFile::open(&path).unwrap();
    file.record(spin_up(hour(0), &[1], Cause::Init)).unwrap();
    let sound = fs::metadata(&path).unwrap().len();
    file.record(spin_up(hour(1), &[1], Cause::Scrub)).unwrap();
    drop(file);
    let whole = fs::read(&path).unwrap();
    for bytes in usize::try_from(sound).unwrap() + 1..whole.len() {
        fs::write(&path, &whole[..bytes]).unwrap();
        let (mut file, reloaded) = LedgerFile::open(&path).unwrap();
        let torn_bytes = bytes as u64 - sound;
        assert_eq!(reloaded, LoadReport { spin_ups: 1, torn_bytes, set_aside: None });
        file.record(spin_up(hour(1), &[1], Cause::Scrub)).unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), whole, "the next line is complete");
    }
}

#[test]
fn invalid_ledger_is_rejected_and_left_unchanged() {
    let (_folder, path) = ledger_path();
    let (mut file, _) = LedgerFile::open(&path).unwrap();
    file.record(spin_up(hour(0), &[1], Cause::Init)).unwrap();
    drop(file);
    let whole = fs::read_to_string(&path).unwrap();
    let newer = whole.replace("\"version\":1", "\"version\":2");
    let odd = whole.replace("\"init\"", "\"whim\"");
    let cases = [(String::new(), 1), ("x".into(), 1), (newer, 1), (odd, 2), (whole + "\n", 3)];
    for (text, line) in cases {
        fs::write(&path, &text).unwrap();
        let error = LedgerFile::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(&format!("line {line}: ")), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn long_ledger_is_rotated_with_its_totals() {
    let (folder, path) = ledger_path();
    let (mut file, _) = LedgerFile::open_up_to(2000, &path).unwrap();
    let before = folder.path().join("spin-ups.ndjson.before");
    file.record_start(5).unwrap();
    let mut begun = 0;
    for number in 0..60 {
        let was_long = fs::metadata(&path).unwrap().len();
        file.record(spin_up(hour(number), &[1, 2], Cause::Request(number))).unwrap();
        if fs::metadata(&path).unwrap().len() < was_long {
            begun += 1;
            let ended = LedgerFile::open(&before).unwrap().0;
            assert_eq!(ended.ledger().disk_totals(place(2)).unwrap().lifetime_count(), number + 1);
        }
    }
    assert!(begun >= 2, "rotated {begun} times");
    let known = file.ledger().disk_totals(place(1)).unwrap().clone();
    drop(file);
    let (file, reloaded) = LedgerFile::open(&path).unwrap();
    assert!(reloaded.spin_ups < 40, "the others are in the totals");
    assert_eq!(file.ledger().start(), 5);
    assert_eq!(file.ledger().disk_totals(place(1)), Some(&known));
    assert_eq!(known.last(), Some((hour(59), Cause::Request(59))));
}

/// Each kind of damage, and how many of three records are left.
#[test]
fn damaged_ledger_is_set_aside_and_salvaged() {
    let (folder, path) = ledger_path();
    let (mut file, _) = LedgerFile::open(&path).unwrap();
    for number in 0..3 {
        file.record(spin_up(hour(number), &[1], Cause::Init)).unwrap();
    }
    drop(file);
    let whole = fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let second = whole.iter().position(|&byte| byte == b'\n').unwrap() + 3;
    let cases = [(Vec::new(), 0), (flipped(second), 2), (flipped(3), 3), (vec![b'x'; 100], 0)];
    for (number, (bytes, left)) in (1..).zip(cases) {
        fs::write(&path, &bytes).unwrap();
        let (mut file, reloaded) = LedgerFile::open_or_quarantine(&path).unwrap();
        let (aside, problem) = reloaded.set_aside.unwrap();
        assert_eq!(aside, folder.path().join(format!("spin-ups.ndjson.damaged-{number}")));
        assert!(problem.starts_with("line "), "{problem}");
        assert_eq!(fs::read(&aside).unwrap(), bytes, "the damaged file is kept unchanged");
        assert_eq!(file.ledger().spin_ups_by(CauseKind::Init), left);
        file.record(spin_up(hour(9), &[1], Cause::Scrub)).unwrap();
        drop(file);
        let (file, reloaded) = LedgerFile::open_or_quarantine(&path).unwrap();
        assert_eq!((reloaded.set_aside, file.ledger().places().count()), (None, 1));
    }
    let whole = String::from_utf8(whole.clone()).unwrap();
    for version in ["\"version\":2", "\"version\":2,\"added\":[]"] {
        let newer = whole.replace("\"version\":1", version);
        fs::write(&path, &newer).unwrap();
        let error = LedgerFile::open_or_quarantine(&path).unwrap_err().to_string();
        assert!(error.contains("of version 2"), "{error}");
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            newer,
            "a newer program's file is left unchanged"
        );
    }
}

#[test]
fn failed_ledger_file_is_replaced_at_the_next_record() {
    let (folder, path) = ledger_path();
    drop(LedgerFile::open(&path).unwrap());
    let mut file = LedgerFile::unwritable(&path);
    file.record(spin_up(hour(0), &[1], Cause::Init)).unwrap_err();
    assert!(file.ledger().disk_totals(place(1)).is_none(), "no spin-up is counted");
    // A new file cannot be begun either: a directory occupies the name of the old one.
    let before = folder.path().join("spin-ups.ndjson.before");
    fs::create_dir(&before).unwrap();
    file.record(spin_up(hour(1), &[1], Cause::Init)).unwrap_err();
    fs::remove_dir(&before).unwrap();
    file.record(spin_up(hour(2), &[1], Cause::Scrub)).unwrap();
    drop(file);
    let (file, reloaded) = LedgerFile::open(&path).unwrap();
    assert_eq!(
        (reloaded.spin_ups, file.ledger().disk_totals(place(1)).unwrap().lifetime_count()),
        (1, 1)
    );
    assert!(before.is_file());
}
