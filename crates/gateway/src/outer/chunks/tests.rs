//! Framing survives any cut of the stream, with chunks of any size; broken framing is named.

use std::collections::VecDeque;

use bytes::Bytes;

use super::ChunkGuard;
use crate::outer::fault::BodyFault;

/// Feeds `body` in pieces of `piece` bytes; what s3s would see.
fn pass(signed: bool, body: &[u8], piece: usize) -> Result<(Vec<u8>, bool, usize), BodyFault> {
    let mut guard = ChunkGuard::new(signed);
    let mut out = VecDeque::new();
    for part in body.chunks(piece) {
        guard.push(Bytes::copy_from_slice(part), &mut out)?;
    }
    let largest = out.iter().map(Bytes::len).max().unwrap_or(0);
    Ok((out.into_iter().flatten().collect(), guard.is_complete(), largest))
}

/// A straightforward decoder of whole bodies.
fn decode(mut body: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut data = Vec::new();
    loop {
        let end = body.iter().position(|&b| b == b'\n').unwrap();
        let line = std::str::from_utf8(&body[..end]).unwrap().trim_end();
        let size = usize::from_str_radix(line.split(';').next().unwrap(), 16).unwrap();
        body = &body[end + 1..];
        if size == 0 {
            return (data, body.to_vec());
        }
        data.extend_from_slice(&body[..size]);
        assert_eq!(&body[size..size + 2], b"\r\n");
        body = &body[size + 2..];
    }
}

#[test]
fn unsigned_chunks_are_cut_and_keep_their_bytes() {
    let data: Vec<u8> = (0..5000u32).map(|n| n.to_le_bytes()[0]).collect();
    let mut body = b"1388\r\n".to_vec();
    body.extend_from_slice(&data);
    body.extend_from_slice(b"\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n");
    for piece in [1, 2, 3, 7, 64, 1000, body.len()] {
        let (seen, complete, largest) = pass(false, &body, piece).unwrap();
        let (bytes, trailer) = decode(&seen);
        assert_eq!(bytes, data, "piece {piece}");
        assert_eq!(trailer, b"x-amz-checksum-crc32:AAAAAA==\r\n\r\n", "piece {piece}");
        assert!(complete);
        assert!(largest <= piece.max(8), "piece {piece} gave {largest}");
    }
}

#[test]
fn signed_chunks_pass_as_they_came() {
    let body = b"3;chunk-signature=abc\r\nxyz\r\n0;chunk-signature=def\r\n\r\n";
    for piece in [1, 5, body.len()] {
        let (seen, complete, _) = pass(true, body, piece).unwrap();
        assert_eq!(seen, body);
        assert!(complete);
    }
}

#[test]
fn broken_framing_is_named() {
    assert_eq!(pass(false, b"zz\r\n", 4), Err(BodyFault::Framing));
    assert_eq!(pass(false, b"\r\n", 4), Err(BodyFault::Framing));
    assert_eq!(pass(false, b"+5\r\nhello\r\n", 4), Err(BodyFault::Framing));
    assert_eq!(pass(false, b"1\r\naXX", 4), Err(BodyFault::Framing));
    assert_eq!(pass(true, b"40000000;chunk-signature=a\r\n", 64), Err(BodyFault::ChunkTooLarge));
    assert_eq!(pass(false, &[b'1'; 2000], 64), Err(BodyFault::Framing));
    let (_, complete, _) = pass(false, b"5\r\nhel", 64).unwrap();
    assert!(!complete, "a body cut off in a chunk is not complete");
}
