//! Times survive a round trip through a header, and onto a file.

use proptest::prelude::*;

use super::*;

#[test]
fn s3_dates_and_rclone_mtimes_parse_to_same_time() {
    let moment = FileTime::parse_seconds("1445412480").unwrap();
    assert_eq!(FileTime::parse_date("2015-10-21T07:28:00.000Z"), Some(moment));
    assert_eq!(FileTime::parse_date("Wed, 21 Oct 2015 07:28:00 GMT"), Some(moment));
    let half = FileTime::parse_seconds("1445412480.5").unwrap();
    assert_eq!(FileTime::parse_date("2015-10-21T07:28:00.500Z"), Some(half));
    assert!(moment < half);
    assert_eq!(FileTime::parse_seconds("0.1234567899"), FileTime::parse_seconds("0.123456789"));
}

#[test]
fn invalid_times_are_rejected() {
    for text in ["", "-", ".", ".5", "1.5.5", "1e9", "+1", "1.-5", "99999999999999999999", "noon"] {
        assert_eq!(FileTime::parse_seconds(text), None, "{text}");
    }
    assert_eq!(FileTime::parse_date("yesterday"), None);
}

#[test]
fn file_mtime_round_trips() {
    let file = tempfile::tempfile().unwrap();
    for text in ["-1.5", "0", "1445412480.123456789"] {
        let time = FileTime::parse_seconds(text).unwrap();
        time.set(&file).unwrap();
        assert_eq!(FileTime::from_metadata(&file.metadata().unwrap()), Some(time), "{text}");
    }
}

proptest! {
    #[test]
    fn mtime_header_round_trips(seconds in -(1i64 << 40)..1 << 40, rest in 0u32..999_999_999) {
        let time = FileTime(i128::from(seconds) * NANOS + i128::from(rest));
        prop_assert_eq!(FileTime::parse_seconds(&time.to_string()), Some(time));
    }

    #[test]
    fn parsing_any_text_does_not_panic(text in ".*") {
        let _ = (FileTime::parse_seconds(&text), FileTime::parse_date(&text));
    }
}
