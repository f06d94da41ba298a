//! A scan finds every intact record, whatever lies between them.

use std::os::unix::fs::FileExt as _;

use fulgurite_units::{ArchiveId, ObjectId, UnixTime};
use proptest::prelude::*;

use super::*;
use crate::bodies::log::record::{EntryForm, align};

const NUMBER: u32 = 5;

/// What is between two records.
#[derive(Clone, Debug)]
enum Gap {
    Nothing,
    Hole(u64),
    Foreign(usize),
}

fn between() -> impl Strategy<Value = Gap> {
    prop_oneof![
        3 => Just(Gap::Nothing),
        1 => (1u64..40).prop_map(|pages| Gap::Hole(pages * PAGE_BYTES)),
        1 => (1usize..200).prop_map(|units| Gap::Foreign(units * HEADER_LEN)),
    ]
}

/// A segment that the test writes record by record.
struct Segment {
    _dir: tempfile::TempDir,
    path: PathBuf,
    file: File,
    at: u64,
}

impl Segment {
    fn new() -> Self {
        let dir = crate::testing::dir();
        let path = dir.path().join("00000005.seg");
        let file = File::options().write(true).create_new(true).open(&path).unwrap();
        Self { _dir: dir, path, file, at: HEADER_BYTES }
    }

    fn header(self, run: u64) -> Self {
        let archive = ArchiveId::from_bytes([1; 16]);
        let header = SegmentHeader { archive, kind: LogKind::Staging, number: NUMBER, run };
        self.file.write_all_at(&header.encode(), 0).unwrap();
        self
    }

    fn add(&mut self, body: u8, kind: RecordKind, content: &[u8]) -> RecordHeader {
        let header = RecordHeader {
            log: LogKind::Staging,
            segment: NUMBER,
            offset: self.at,
            body: ObjectId::from_bytes([body; 16]),
            run: 2,
            bytes: content.len() as u64,
            kind,
        };
        self.file.write_all_at(&header.encode(), self.at).unwrap();
        self.file.write_all_at(content, self.at + HEADER_BYTES).unwrap();
        self.at = header.end();
        self.file.set_len(self.at).unwrap();
        header
    }

    fn data(&mut self, body: u8, bytes: usize) -> RecordHeader {
        // Bytes that look like the start of a header, wherever one could begin.
        let content: Vec<u8> = b"FGLR".iter().copied().cycle().take(bytes).collect();
        self.add(body, RecordKind::Data { body_offset: 0, commits: 0 }, &content)
    }

    fn entry(&mut self, body: u8, payload: &[u8]) -> RecordHeader {
        let kind = RecordKind::Entry {
            form: EntryForm::Object,
            written: UnixTime::from_millis(9),
            payload_crc: crc32c(payload),
        };
        self.add(body, kind, payload)
    }

    fn skip(&mut self, between: &Gap) {
        match *between {
            Gap::Nothing => {}
            Gap::Hole(bytes) => self.at = align(self.at + bytes),
            Gap::Foreign(bytes) => {
                let noise: Vec<u8> = b"FGLR\x01".iter().copied().cycle().take(bytes).collect();
                self.file.write_all_at(&noise, self.at).unwrap();
                self.at += bytes as u64;
            }
        }
    }

    fn scan(&self) -> SegmentScan {
        SegmentScan::open(&self.path, LogKind::Staging, NUMBER).unwrap()
    }

    /// Returns every record as (body, is it torn, its entry).
    fn records(&self) -> Vec<(u8, bool, Option<Vec<u8>>)> {
        let mut scan = self.scan();
        let mut found = Vec::new();
        while let Some(record) = scan.next_record().unwrap() {
            let entry = match record {
                ScannedRecord::Entry(_, payload) => Some(payload.to_vec()),
                ScannedRecord::Data(_) | ScannedRecord::Torn(_) => None,
            };
            let is_torn = matches!(record, ScannedRecord::Torn(_));
            found.push((record.header().body.to_bytes()[0], is_torn, entry));
        }
        found
    }
}

#[test]
fn segment_from_before_headers_has_no_records() {
    let segment = Segment::new();
    segment.file.write_all_at(&[0x5A; 100_000], 0).unwrap();
    let mut scan = segment.scan();
    assert_eq!(scan.header(), None);
    assert_eq!(scan.next_record().unwrap(), None);
    assert!(scan.unrecognized_bytes() > 90_000);
}

#[test]
fn damaged_segment_header_does_not_hide_records() {
    let mut segment = Segment::new().header(4);
    assert_eq!(segment.scan().header().map(|header| header.run), Some(4));
    segment.data(1, 100);
    segment.entry(1, b"sealed");
    segment.file.write_all_at(b"X", 3).unwrap();
    assert_eq!(segment.scan().header(), None);
    assert_eq!(segment.records(), [(1, false, None), (1, false, Some(b"sealed".to_vec()))]);
}

#[test]
fn misnamed_segment_has_no_header_and_no_records() {
    let mut segment = Segment::new().header(4);
    segment.data(1, 100);
    let mut scan = SegmentScan::open(&segment.path, LogKind::Staging, NUMBER + 1).unwrap();
    assert_eq!(scan.header(), None);
    assert_eq!(scan.next_record().unwrap(), None);
}

#[test]
fn torn_records_are_reported_and_scanned_inside() {
    let mut segment = Segment::new().header(1);
    let torn = segment.entry(1, &[1; 200]);
    segment.data(2, 5000);
    let cut = segment.data(3, 5000);
    segment.file.write_all_at(&[0], torn.offset + HEADER_BYTES + 100).unwrap();
    assert_eq!(segment.records(), [(1, true, None), (2, false, None), (3, false, None)]);
    segment.file.set_len(cut.offset + HEADER_BYTES + 4999).unwrap();
    assert_eq!(segment.records(), [(1, true, None), (2, false, None), (3, true, None)]);
    segment.file.set_len(cut.offset + 63).unwrap();
    assert_eq!(segment.records(), [(1, true, None), (2, false, None)]);
}

#[test]
fn entries_across_buffer_edges_are_read_whole() {
    let mut segment = Segment::new().header(1);
    segment.data(1, SCAN_BUFFER_BYTES - 4 * HEADER_LEN);
    let payload = vec![7; ENTRY_RECORD_BYTES_MAX];
    segment.entry(2, &payload);
    assert_eq!(segment.records(), [(1, false, None), (2, false, Some(payload))]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_record_is_found(
        records in prop::collection::vec(
            (any::<bool>(), 0usize..20_000, between(), any::<bool>()), 1..40,
        ),
    ) {
        let mut segment = Segment::new().header(1);
        let mut expected = Vec::new();
        for (index, (is_entry, bytes, between, is_damaged)) in records.iter().enumerate() {
            let body = u8::try_from(index).unwrap();
            let header = if *is_entry {
                segment.entry(body, &vec![body; bytes % 700])
            } else {
                segment.data(body, *bytes)
            };
            if *is_damaged {
                // A damaged header loses its own record and no other.
                segment.file.write_all_at(b"torn", header.offset + 20).unwrap();
            } else {
                expected.push((body, false, is_entry.then(|| vec![body; bytes % 700])));
            }
            segment.skip(between);
        }
        prop_assert_eq!(segment.records(), expected);
    }
}

#[test]
fn tail_scan_finds_every_record_that_begins_in_it() {
    let mut segment = Segment::new().header(4);
    for body in 1..20 {
        segment.data(body, 40_000 + usize::from(body) * 64);
    }
    let mut all = Vec::new();
    let mut scan = segment.scan();
    while let Some(record) = scan.next_record().unwrap() {
        all.push(*record.header());
    }
    assert_eq!(all.len(), 19);
    let end = segment.file.metadata().unwrap().len();
    for bytes in [0, 1, 64, 39_999, 100_000, 500_000, end, u64::MAX] {
        let mut scan = segment.scan();
        scan.skip_to_last(bytes);
        let from = end.saturating_sub(bytes);
        let expected = all.iter().filter(|header| header.offset + 64 > from);
        for header in expected {
            let found = scan.next_record().unwrap().map(|record| *record.header());
            assert_eq!(found.as_ref(), Some(header), "{bytes} bytes");
        }
        assert_eq!(scan.next_record().unwrap(), None, "{bytes} bytes");
    }
}

#[test]
fn records_of_a_newer_program_are_noticed() {
    let mut segment = Segment::new().header(2);
    segment.entry(1, b"known");
    let newer = segment.entry(2, b"newer");
    let mut bytes = newer.encode();
    bytes[4] += 1;
    let crc = crc32c(&bytes[..60]).to_le_bytes();
    bytes[60..].copy_from_slice(&crc);
    segment.file.write_all_at(&bytes, newer.offset).unwrap();
    let mut scan = SegmentScan::open(&segment.path, LogKind::Staging, NUMBER).unwrap();
    let first = scan.next_record().unwrap().map(|record| record.header().body);
    assert_eq!(first, Some(ObjectId::from_bytes([1; 16])));
    scan.refuse_newer().unwrap();
    assert!(scan.next_record().unwrap().is_none());
    assert!(matches!(scan.refuse_newer(), Err(ArchiveError::Newer { .. })));
}
