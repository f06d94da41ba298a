//! Headers encode to these bytes and decode from them, and any flipped bit makes them invalid.

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn hex_lines(bytes: &[u8]) -> String {
    bytes.chunks(16).map(|line| hex::encode(line) + "\n").collect()
}

fn segment_header() -> SegmentHeader {
    SegmentHeader {
        archive: ArchiveId::from_bytes([0xA1; 16]),
        kind: LogKind::Online,
        number: 7,
        run: 0x0102_0304,
    }
}

fn entry_header() -> RecordHeader {
    RecordHeader {
        log: LogKind::Staging,
        segment: 9,
        offset: 0x1000,
        body: ObjectId::from_bytes([0xB0; 16]),
        run: 3,
        bytes: 300,
        kind: RecordKind::Entry {
            form: EntryForm::Object,
            written: UnixTime::from_millis(1_767_609_000_250),
            payload_crc: 0xDEAD_BEEF,
        },
    }
}

#[test]
fn headers_match_golden_bytes() {
    let segment = segment_header().encode();
    assert_eq!(SegmentHeader::parse(&segment), Some(segment_header()));
    expect![[r#"
        46475345474d4e540101000007000000
        a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1
        04030201000000000000000000000000
        000000000000000000000000199fdd72
    "#]]
    .assert_eq(&hex_lines(&segment));
    let data = RecordHeader {
        kind: RecordKind::Data { body_offset: 65_552, commits: 0 },
        bytes: 4096,
        ..entry_header()
    };
    expect![[r#"
        46474c5201010000b0b0b0b0b0b0b0b0
        b0b0b0b0b0b0b0b00300000000000000
        10000100000000000010000000000000
        000000000900000040000000643cacd8
    "#]]
    .assert_eq(&hex_lines(&data.encode()));
    expect![[r#"
        46474c5201020001b0b0b0b0b0b0b0b0
        b0b0b0b0b0b0b0b00300000000000000
        3ae1b48d9b0100002c01000000000000
        efbeadde09000000400000004d011c58
    "#]]
    .assert_eq(&hex_lines(&entry_header().encode()));
}

#[test]
fn flipped_bit_invalidates_a_header() {
    let (segment, entry) = (segment_header().encode(), entry_header().encode());
    for bit in 0..HEADER_LEN * 8 {
        let flip = |mut bytes: [u8; HEADER_LEN]| {
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        assert_eq!(SegmentHeader::parse(&flip(segment)), None, "bit {bit}");
        assert_eq!(RecordHeader::parse(&flip(entry), 0x1000), None, "bit {bit}");
    }
}

#[test]
fn misplaced_or_out_of_bounds_header_is_invalid() {
    let bytes = entry_header().encode();
    assert!(RecordHeader::parse(&bytes, 0x1000).is_some());
    assert_eq!(RecordHeader::parse(&bytes, 0x1040), None);
    let long = RecordHeader { bytes: ENTRY_RECORD_BYTES_MAX as u64 + 1, ..entry_header() };
    assert_eq!(RecordHeader::parse(&long.encode(), 0x1000), None);
    // The encoder rejects this, but arbitrary bytes can still state it.
    let mut beyond = RecordHeader {
        kind: RecordKind::Data { body_offset: 0, commits: 0 },
        bytes: SEGMENT_BYTES - 0x1000 - HEADER_BYTES,
        ..entry_header()
    }
    .encode();
    assert!(RecordHeader::parse(&beyond, 0x1000).is_some());
    beyond[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
    write_crc(&mut beyond);
    assert_eq!(RecordHeader::parse(&beyond, 0x1000), None);
}

proptest! {
    #[test]
    fn headers_round_trip(
        body in any::<[u8; 16]>(),
        unit in 0u64..1000,
        segment in any::<u32>(),
        run in any::<u64>(),
        bytes in 0u64..100_000,
        word in any::<u64>(),
        crc in any::<u32>(),
        shape in 0u8..3,
    ) {
        let kind = if shape == 0 {
            RecordKind::Data { body_offset: word, commits: crc }
        } else {
            let form = if shape == 1 { EntryForm::Object } else { EntryForm::Part };
            RecordKind::Entry { form, written: UnixTime::from_millis(word), payload_crc: crc }
        };
        let header = RecordHeader {
            log: LogKind::ALL[usize::from(shape)],
            segment,
            offset: unit * HEADER_BYTES,
            body: ObjectId::from_bytes(body),
            run,
            bytes,
            kind,
        };
        prop_assert_eq!(RecordHeader::parse(&header.encode(), unit * HEADER_BYTES), Some(header));
    }

    #[test]
    fn parsing_arbitrary_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 64)) {
        let mut unit = [0; HEADER_LEN];
        unit.copy_from_slice(&bytes);
        // Valid magic, version and CRC let the parser reach the fields.
        unit[..4].copy_from_slice(RECORD_MAGIC);
        unit[4] = VERSION;
        unit[5] = 1 + unit[5] % 2;
        write_crc(&mut unit);
        let offset = u64::from(u32::from_le_bytes(field(&unit, 56))) * HEADER_BYTES;
        if let Some(header) = RecordHeader::parse(&unit, offset) {
            prop_assert!(header.end() <= SEGMENT_BYTES);
        }
    }
}
