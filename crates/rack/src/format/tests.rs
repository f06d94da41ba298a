//! Tests the bytes against docs/formats/stack.md, and what a damaged header or trailer is parsed
//! as.

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn header() -> Header {
    Header {
        rack: RackId::from_bytes(*b"a rack's 16 byte"),
        blob: BlobId::from_bytes(*b"a blob's 16 byte"),
        coding: Coding::PELICAN,
        index: 17,
        entry: br#"{"key":"bodies/1"}"#.to_vec(),
    }
}

fn trailer() -> Trailer {
    Trailer {
        blob: header().blob,
        index: 17,
        length: ByteCount::new(1_000_000),
        sequence: 42,
        sum: 0x0123_4567_89AB_CDEF,
    }
}

/// Formats bytes in rows of 16, omitting trailing zeros.
fn rows(bytes: &[u8]) -> String {
    let rows = bytes.chunks(16).enumerate().filter(|(_, row)| row.iter().any(|&byte| byte != 0));
    rows.map(|(number, row)| format!("{:04x}  {}\n", number * 16, hex::encode(row))).collect()
}

#[test]
fn headers_and_trailers_match_version_1() {
    let bytes = header().encode().unwrap();
    assert_eq!(bytes.len(), 4096);
    expect![[r#"
        0000  46554c475354434b010f031100000200
        0010  61207261636b27732031362062797465
        0020  6120626c6f6227732031362062797465
        0030  00100000120000007b226b6579223a22
        0040  626f646965732f31227d000000000000
        0ff0  000000000000000013c65254ecc054cd
    "#]]
    .assert_eq(&rows(&bytes));
    expect![[r#"
        0000  46554c4753544b456120626c6f622773
        0010  20313620627974651100000000000000
        0020  40420f00000000002a00000000000000
        0030  efcdab89674523012c1e39388b5cc056
    "#]]
    .assert_eq(&rows(&trailer().encode()));
    let sum = fragment_sum(header().blob, 17, 3, b"fragment");
    expect!["81f218e25e7f67b5"].assert_eq(&format!("{sum:016x}"));
}

#[test]
fn impossible_codings_are_rejected() {
    assert!(Coding::new(15, 3).is_ok_and(|coding| coding == Coding::PELICAN));
    assert!(Coding::new(254, 1).is_ok());
    for (information, redundancy) in [(0, 3), (15, 0), (255, 1), (200, 200)] {
        let refused = Coding::new(information, redundancy).unwrap_err();
        assert!(matches!(refused, RackError::Invalid { .. }), "{refused}");
    }
}

#[test]
fn too_long_entry_is_rejected() {
    let with = |bytes| Header { entry: vec![b'x'; bytes], ..header() };
    let longest = with(ENTRY_BYTES_MAX);
    let bytes = longest.encode().unwrap();
    assert_eq!(Header::length(&bytes).unwrap(), bytes.len());
    assert_eq!(Header::parse(&bytes).unwrap(), longest);
    let refused = with(ENTRY_BYTES_MAX + 1).encode().unwrap_err();
    assert!(refused.to_string().contains("65536 are allowed"), "{refused}");
}

#[test]
fn newer_version_and_no_stack_are_different_faults() {
    let mut bytes = header().encode().unwrap();
    bytes[8] = 2;
    assert_eq!(Header::parse(&bytes), Err(Fault::Newer { version: 2 }));
    bytes[0] = b'f';
    assert_eq!(Header::parse(&bytes), Err(Fault::NoStack));
    assert_eq!(Trailer::parse(&[0; TRAILER_BYTES]), Err(Fault::Unfinished));
}

#[test]
fn stripes_at_boundary_lengths() {
    let whole = 15 * 131_072;
    let shape = |length: u64| {
        let stripes = Stripes::new(Coding::PELICAN, ByteCount::new(length));
        let last = stripes.count().saturating_sub(1);
        (stripes.count(), stripes.fragment_bytes(last), stripes.stack_bytes(4096))
    };
    assert_eq!(shape(0), (0, 0, 4096 + 64));
    assert_eq!(shape(1), (1, 1, 4096 + 1 + 8 + 64));
    assert_eq!(shape(16), (1, 2, 4096 + 2 + 8 + 64));
    assert_eq!(shape(whole), (1, 131_072, 4096 + 131_072 + 8 + 64));
    assert_eq!(shape(whole + 1), (2, 1, 4096 + 131_072 + 8 + 1 + 8 + 64));
}

proptest! {
    #[test]
    fn stripes_cover_every_byte_once(k in 1_u8..40, length in 0_u64..50_000_000) {
        let stripes = Stripes::new(Coding::new(k, 3).unwrap(), ByteCount::new(length));
        let each = (0..stripes.count()).map(|stripe| stripes.data_bytes(stripe));
        prop_assert_eq!(each.map(bytes).sum::<u64>(), length);
        prop_assert_eq!(stripes.data_bytes(stripes.count()), 0);
        for stripe in 0..stripes.count() {
            let room = stripes.fragment_bytes(stripe) * usize::from(k);
            prop_assert!(room >= stripes.data_bytes(stripe));
            prop_assert!(room < stripes.data_bytes(stripe) + usize::from(k));
        }
    }

    #[test]
    fn damaged_header_is_never_misread(
        entry in proptest::collection::vec(any::<u8>(), 0..5000),
        at in any::<prop::sample::Index>(), bit in 0..8,
    ) {
        let header = Header { entry, ..header() };
        let mut bytes = header.encode().unwrap();
        prop_assert_eq!(Header::parse(&bytes), Ok(header));
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(Header::parse(&bytes).is_err());
    }

    #[test]
    fn damaged_trailer_is_never_misread(at in 0..TRAILER_BYTES, bit in 0..8) {
        let mut bytes = trailer().encode();
        prop_assert_eq!(Trailer::parse(&bytes), Ok(trailer()));
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(Trailer::parse(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_header_or_fault(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Header::parse(&bytes);
        let mut begins = header().encode().unwrap();
        begins.truncate(bytes.len());
        prop_assert!(Header::parse(&begins).is_err());
    }
}
