//! Fragments of version 1, byte by byte, and all possible defects of one.

use std::fmt::Write as _;

use expect_test::{expect, expect_file};
use fulgurite_units::{ByteCount, Seed, UnixTime};
use proptest::prelude::*;

use super::*;

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seed::new(seed).stream().fill(&mut bytes);
    bytes
}

/// Returns the fragments of one chunk.
fn fragments(data: u8, parity: u8, chunk: &[u8]) -> Vec<Vec<u8>> {
    let code = ChunkCode::new(data, parity).unwrap();
    let each = (0..).zip(code.encode(chunk));
    let each = each.map(|(fragment, payload)| {
        encode(&header(data, parity, fragment, chunk.len()), &payload).unwrap()
    });
    each.collect()
}

fn header(data: u8, parity: u8, fragment: u8, chunk_bytes: usize) -> Header {
    let chunk_bytes = u32::try_from(chunk_bytes).unwrap();
    Header {
        put: PutId::new(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
        object: b"bucket/a key".to_vec(),
        object_bytes: ByteCount::new(10_000_000),
        chunk_offset: ByteCount::new(4 << 20),
        chunk: 1,
        chunk_bytes,
        fragment,
        data,
        parity,
        payload_bytes: chunk_bytes.div_ceil(u32::from(data)),
        time: UnixTime::from_millis(1_700_000_000_000),
    }
}

#[test]
fn fragment_format_v1_is_stable() {
    let mut golden = String::new();
    // The second has a payload of two blocks, the last of one byte.
    let chunks = [(2, 1, b"a chunk of 26 bytes, coded".to_vec()), (1, 1, vec![7; 65_537])];
    for (data, parity, chunk) in chunks {
        for fragment in fragments(data, parity, &chunk) {
            writeln!(golden, "{data}+{parity} {} bytes", fragment.len()).unwrap();
            for line in fragment.chunk_by(|a, b| a == b) {
                match line.len() {
                    ..8 => write!(golden, "{}", hex::encode(line)).unwrap(),
                    length => write!(golden, " {:02x}*{length} ", line[0]).unwrap(),
                }
            }
            golden.push('\n');
        }
    }
    expect_file!["../../../../../tests/fixtures/fragments-1.txt"].assert_eq(&golden);
}

#[test]
fn any_k_fragments_decode_the_chunk() {
    for (data, parity) in [(1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (5, 1), (1, 4)] {
        for length in [1, 2, 7, 100, 65_536 * usize::from(data) + 1] {
            let chunk = noise(length.try_into().unwrap(), length);
            let code = ChunkCode::new(data, parity).unwrap();
            let all = fragments(data, parity, &chunk);
            let read: Vec<Vec<u8>> = all.iter().map(|one| decode(one).unwrap().1).collect();
            for some in 0_u32..1 << all.len() {
                let available = read.iter().enumerate().filter(|(index, _)| some >> index & 1 == 1);
                let available: Vec<(usize, &[u8])> =
                    available.map(|(i, payload)| (i, &**payload)).collect();
                let decoded = code.decode(u32::try_from(length).unwrap(), &available);
                match available.len() >= code.data() {
                    true => assert!(decoded.unwrap() == chunk, "{data}+{parity} {some:b}"),
                    false => assert!(decoded.is_err(), "{data}+{parity} {some:b}"),
                }
            }
        }
    }
}

/// Returns the defect of these bytes.
fn fault(fragment: &[u8]) -> String {
    decode(fragment).unwrap_err().to_string()
}

#[test]
fn every_fragment_defect_is_named() {
    let chunk = noise(1, 200_000);
    let all = fragments(2, 1, &chunk);
    let whole = &all[1];
    let (parsed, _) = decode(whole).unwrap();
    assert_eq!(parsed, header(2, 1, 1, 200_000));
    assert_eq!(parsed.check(&header(2, 1, 1, 200_000)), Ok(()));
    let mut names = String::new();
    let mut name = |what: &str, fault: String| writeln!(names, "{what}: {fault}").unwrap();
    let last = whole.len();
    name("nothing", fault(&[]));
    name("another file", fault(b"FULGSTCK, and so on"));
    name("half a header", fault(&whole[..50]));
    name("cut", fault(&whole[..last - 1]));
    name("cut by a block", fault(&whole[..last - 34_472]));
    name("too long", fault(&[whole, &b"x"[..]].concat()));
    let flipped = |index: usize| {
        let mut bytes = whole.clone();
        bytes[index] ^= 0x10;
        fault(&bytes)
    };
    name("a bit of the version", flipped(8));
    name("a bit of the header", flipped(40));
    name("a bit of the first block", flipped(parsed.bytes() + 9));
    name("a bit of the last sum", flipped(last - 1));
    // The first two blocks are swapped.
    let (begin, stride) = (parsed.bytes(), 65_544);
    let mut swapped = whole.clone();
    let first = swapped[begin..begin + 34_000].to_vec();
    swapped.copy_within(begin + stride..begin + stride + 34_000, begin);
    swapped[begin + stride..begin + stride + 34_000].copy_from_slice(&first);
    name("blocks swapped", fault(&swapped));
    // Blocks of another fragment, put and chunk, under this header.
    let under = |header: &Header, number: usize| {
        let other = encode(header, &ChunkCode::new(2, 1).unwrap().encode(&chunk)[number]).unwrap();
        fault(&[&whole[..begin], &other[header.bytes()..]].concat())
    };
    name("blocks of fragment 0", under(&header(2, 1, 0, 200_000), 0));
    let stale = Header { put: PutId::new(5), ..header(2, 1, 1, 200_000) };
    name("blocks of an older put", under(&stale, 1));
    let moved = Header { chunk: 2, ..header(2, 1, 1, 200_000) };
    name("blocks of another chunk", under(&moved, 1));
    expect![[r#"
        nothing: it is not a fragment
        another file: it is not a fragment
        half a header: it has 50 bytes instead of 128
        cut: it has 100143 bytes instead of 100144
        cut by a block: it has 65672 bytes instead of 100144
        too long: it has 100145 bytes instead of 100144
        a bit of the version: it has format version 17, which this program does not support
        a bit of the header: its header is damaged: its checksum does not match
        a bit of the first block: block 0 is not what was written for this put, chunk and fragment
        a bit of the last sum: block 1 is not what was written for this put, chunk and fragment
        blocks swapped: block 0 is not what was written for this put, chunk and fragment
        blocks of fragment 0: block 0 is not what was written for this put, chunk and fragment
        blocks of an older put: block 0 is not what was written for this put, chunk and fragment
        blocks of another chunk: block 0 is not what was written for this put, chunk and fragment
    "#]]
    .assert_eq(&names);
}

#[test]
fn mismatched_fragment_names_the_field() {
    let whole = header(2, 1, 1, 200_000);
    assert_eq!(whole.check(&whole), Ok(()));
    let mut names = String::new();
    let mut mismatch = |expected: Header| {
        let message = whole.check(&expected).unwrap_err().to_string();
        writeln!(names, "{}", message.replace(&"0".repeat(31), "")).unwrap();
    };
    mismatch(Header { put: PutId::new(5), ..whole.clone() });
    mismatch(Header { chunk: 2, ..whole.clone() });
    mismatch(Header { chunk_offset: ByteCount::new(0), ..whole.clone() });
    mismatch(Header { object_bytes: ByteCount::new(1), ..whole.clone() });
    mismatch(Header { object: b"b".to_vec(), ..whole.clone() });
    mismatch(Header { payload_bytes: 7, ..whole.clone() });
    mismatch(header(2, 1, 0, 200_000));
    mismatch(header(2, 2, 1, 200_000));
    expect![[r#"
        it is another fragment: the put is 00112233445566778899aabbccddeeff, not 5
        it is another fragment: the chunk is 1, not 2
        it is another fragment: the chunk's span is 200000 bytes at 4194304, not 200000 bytes at 0
        it is another fragment: the object's size is 10000000, not 1
        it is another fragment: the object is bucket/a key, not b
        it is another fragment: the payload's size is 100000, not 7
        it is another fragment: the fragment is 1, not 0
        it is another fragment: the code is 2 + 1, not 2 + 2
    "#]]
    .assert_eq(&names);
}

#[test]
fn every_bit_of_a_fragment_is_checked() {
    let whole = &fragments(3, 2, &noise(9, 100))[4];
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bytes).is_err(), "bit {bit}");
    }
    for length in 0..whole.len() {
        assert!(decode(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn invalid_headers_are_not_encoded() {
    let right = header(2, 1, 1, 100);
    let wrong = [
        Header { data: 0, ..right.clone() },
        Header { parity: 0, ..right.clone() },
        Header { data: 200, parity: 56, payload_bytes: 1, ..right.clone() },
        Header { fragment: 3, ..right.clone() },
        Header { payload_bytes: 51, ..right.clone() },
        Header { chunk_bytes: 0, payload_bytes: 0, ..right.clone() },
        Header { object_bytes: ByteCount::new(100), ..right.clone() },
        Header { object: vec![b'k'; 2049], ..right.clone() },
    ];
    for wrong in wrong {
        let payload = vec![0; usize::try_from(wrong.payload_bytes).unwrap()];
        assert!(matches!(encode(&wrong, &payload), Err(Fault::Unwritable { .. })), "{wrong:?}");
    }
    assert!(matches!(encode(&right, &[0; 49]), Err(Fault::Unwritable { .. })));
    let longest = Header { object: vec![b'k'; 2048], ..right };
    assert_eq!(decode(&encode(&longest, &[0; 50]).unwrap()).unwrap().0, longest);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A part of a payload is read from the blocks it touches, and from nothing else.
    #[test]
    fn partial_read_touches_only_its_blocks(
        length in 1_u32..300_000,
        begin in 0_u32..300_000,
        more in 0_u32..200_000,
    ) {
        let end = begin.saturating_add(more).min(length);
        let begin = begin.min(end);
        let bytes = noise(length.into(), usize::try_from(length).unwrap());
        let header = header(1, 1, 1, bytes.len());
        let fragment = encode(&header, &bytes).unwrap();
        prop_assert_eq!(fragment.len() as u64, header.bytes() as u64 + stored_bytes(length));
        let stored = stored_range(header.bytes(), length, &(begin..end));
        let offset = |value: u64| usize::try_from(value).unwrap();
        let stored = &fragment[offset(stored.start)..offset(stored.end)];
        // No more than the blocks it touches.
        let blocks = end.div_ceil(BLOCK_BYTES) - begin / BLOCK_BYTES;
        let touched = if begin == end { 0 } else { u64::from(blocks) };
        prop_assert!(stored.len() as u64 <= touched * (u64::from(BLOCK_BYTES) + 8));
        let read = payload(&header.place(), length, begin..end, stored).unwrap();
        prop_assert!(read == bytes[offset(begin.into())..offset(end.into())]);
        if !stored.is_empty() {
            let other = Place { fragment: 0, ..header.place() };
            prop_assert!(payload(&other, length, begin..end, stored).is_err());
            prop_assert!(payload(&header.place(), length, begin..end, &stored[1..]).is_err());
        }
    }

    /// The pieces of a range are the range.
    #[test]
    fn pieces_cover_the_range(
        data in 1_u8..9,
        length in 1_u32..5000,
        begin in 0_u32..5000,
        more in 0_u32..5000,
    ) {
        let end = begin.saturating_add(more).min(length);
        let begin = begin.min(end);
        let chunk = noise(7, usize::try_from(length).unwrap());
        let code = ChunkCode::new(data, 1).unwrap();
        let payloads = code.encode(&chunk);
        let mut read = Vec::new();
        for piece in code.pieces(length, &(begin..end)) {
            prop_assert!(piece.fragment < data && !piece.range.is_empty());
            let range = piece.range.start as usize..piece.range.end as usize;
            read.extend_from_slice(&payloads[usize::from(piece.fragment)][range.clone()]);
            let others: Vec<(usize, &[u8])> = (0..payloads.len())
                .filter(|&other| other != usize::from(piece.fragment))
                .map(|other| (other, &payloads[other][range.clone()]))
                .collect();
            let part = code.part(piece.fragment.into(), range.len(), &others).unwrap();
            prop_assert!(part == payloads[usize::from(piece.fragment)][range]);
        }
        prop_assert!(read == chunk[begin as usize..end as usize]);
    }
}
