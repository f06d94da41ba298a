//! The text format: round trips, and rejection of invalid input by name.

use fulgurite_units::{ByteCount, Instant};
use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

const HEADER: &str = "fulgurite-trace 1\ntime_ns,size,key\n";

fn refuse(body: &str, expected: &str) {
    let error = Trace::parse(&format!("{HEADER}{body}")).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn trace_is_written_as_text() {
    let read =
        |at, size, key| TraceRead { at: Instant::from_nanos(at), size: ByteCount::new(size), key };
    let trace = Trace::new(vec![read(0, 4096, 17), read(5, 1, u64::MAX)]).unwrap();
    let mut text = Vec::new();
    trace.write(&mut text).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        format!("{HEADER}0,4096,17\n5,1,18446744073709551615\n")
    );
    // The last line may lack its terminator, and CRLF is accepted.
    let dos = "fulgurite-trace 1\r\ntime_ns,size,key\r\n0,4096,17\r\n5,1,18446744073709551615";
    assert_eq!(Trace::parse(dos).unwrap(), trace);
}

#[test]
fn invalid_lines_are_reported_with_their_field() {
    refuse("", "the trace has no reads");
    refuse(
        "0,1,1\n9,1,1\n3,1,1\n",
        "line 5, field time: 3 ns is before 9 ns, the time of an earlier line",
    );
    refuse("0,4MB,1\n", "line 3, field size: \"4MB\" has an unknown unit");
    refuse("0,-4,1\n", "line 3, field size: \"-4\" is negative");
    refuse("1.5,4,1\n", "line 3, field time_ns: \"1.5\" is not a number in the expected format");
    refuse("0,4,+1\n", "line 3, field key: \"+1\" is not a number in the expected format");
    refuse("0,,1\n", "line 3, field size: \"\" is empty");
    refuse(
        "0,1,18446744073709551616\n",
        "line 3, field key: \"18446744073709551616\" is too large",
    );
    refuse("0,1\n", "line 3: 2 fields, expected 3");
    refuse("0,1,1,1\n", "line 3: 4 fields, expected 3");
    refuse("0,1,1\n\n", "line 4: 1 fields, expected 3");
    refuse(&"1".repeat(70_000), "line 3: longer than 65536 bytes");
}

#[test]
fn unknown_headers_are_rejected() {
    let error = |text: &str| Trace::parse(text).unwrap_err().to_string();
    assert_eq!(error(""), "the trace has no reads");
    assert_eq!(
        error("fulgurite-trace 2\n"),
        "line 1: expected \"fulgurite-trace 1\", found \"fulgurite-trace 2\""
    );
    assert_eq!(
        error("fulgurite-trace 1\ntime_s,size,key\n"),
        "line 2: expected \"time_ns,size,key\", found \"time_s,size,key\""
    );
    let bytes: &[u8] = b"fulgurite-trace 1\ntime_ns,size,key\n0,1,\xff\n";
    assert_eq!(Trace::read(bytes).unwrap_err().to_string(), "line 3: not UTF-8");
}

#[test]
fn reading_ends_at_the_first_error() {
    let text = format!("{HEADER}0,1,1\nbad\n1,1,1\n");
    let read: Vec<_> = TraceReader::new(text.as_bytes()).unwrap().collect();
    assert_eq!(read.len(), 2);
    assert!(read[0].is_ok() && read[1].is_err());
}

#[test]
fn invalid_traces_are_neither_created_nor_written() {
    let at = |nanos| TraceRead { at: Instant::from_nanos(nanos), size: ByteCount::new(1), key: 0 };
    assert!(matches!(Trace::new(Vec::new()), Err(Error::EmptyTrace)));
    assert!(matches!(Trace::new(vec![at(2), at(1)]), Err(Error::OutOfOrder { line: 2, .. })));
    assert!(matches!(write_trace(Vec::new(), []), Err(Error::EmptyTrace)));
    let unordered = write_trace(Vec::new(), [at(2), at(1)]);
    assert!(matches!(unordered, Err(Error::OutOfOrder { line: 4, .. })));
    // A full sink.
    let mut small = [0u8; 10];
    let error = write_trace(&mut small[..], [at(1)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

proptest! {
    #[test]
    fn round_trip(mut reads in prop::collection::vec(any::<(u64, u64, u64)>(), 1..100)) {
        reads.sort_unstable();
        let reads = reads.into_iter().map(|(at, size, key)| TraceRead {
            at: Instant::from_nanos(at),
            size: ByteCount::new(size),
            key,
        });
        let trace = Trace::new(reads.collect()).unwrap();
        let mut text = Vec::new();
        trace.write(&mut text).unwrap();
        prop_assert_eq!(Trace::read(text.as_slice()).unwrap(), trace);
    }

    #[test]
    fn any_text_parses_or_fails_without_panic(text in "\\PC*", body in "[0-9,.\n-]*") {
        let _ = Trace::parse(&text);
        let _ = Trace::parse(&format!("{HEADER}{body}"));
    }
}
