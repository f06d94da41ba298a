//! Framing is removed however the stream is cut and whatever size chunks have; broken framing gets
//! its own error.

use std::collections::VecDeque;

use bytes::Bytes;
use http::HeaderMap;

use super::ChunkDecoder;
use crate::request::BodyFault;
use crate::s3::signature::ChunkSigner;

/// Feeds `body` in pieces of `piece` bytes; returns the data and the trailer.
fn decode(
    mut decoder: ChunkDecoder,
    body: &[u8],
    piece: usize,
) -> Result<(Vec<u8>, HeaderMap), BodyFault> {
    let mut out = VecDeque::new();
    for part in body.chunks(piece) {
        decoder.push(Bytes::copy_from_slice(part), &mut out)?;
        assert!(out.iter().all(|bytes| bytes.len() <= piece), "bytes were held back");
    }
    Ok((out.into_iter().flatten().collect(), decoder.finish()?))
}

const CRC32: &str = "x-amz-checksum-crc32";

fn unsigned() -> ChunkDecoder {
    ChunkDecoder::new(None, true, None)
}

#[test]
fn chunks_are_not_buffered() {
    let data: Vec<u8> = (0..5000u32).map(|n| n.to_le_bytes()[0]).collect();
    let mut body = b"1388\r\n".to_vec();
    body.extend_from_slice(&data);
    body.extend_from_slice(b"\r\n0\r\nX-Amz-Checksum-Crc32: AAAAAA==\r\n\r\n");
    for piece in [1, 2, 3, 7, 64, 1000, body.len()] {
        let decoder = ChunkDecoder::new(None, true, Some(CRC32));
        let (seen, trailers) = decode(decoder, &body, piece).unwrap();
        assert_eq!(seen, data, "piece {piece}");
        assert_eq!(trailers["x-amz-checksum-crc32"], "AAAAAA==", "piece {piece}");
    }
}

#[test]
fn broken_framing_is_reported() {
    use BodyFault::{Framing, Incomplete, Trailer};
    let nines = vec![b'1'; 2000];
    let flood = [b"0\r\n".to_vec(), b"x-a: b\r\n".repeat(4000)].concat();
    for (body, fault) in [
        (b"zz\r\n".as_slice(), Framing),
        (b"\r\n", Framing),
        (b"+5\r\nhello\r\n", Framing),
        (b"1\r\naXX", Framing),
        (b"5\nhello\r\n0\r\n\r\n", Framing),
        (b"10000000000000000\r\n", Framing),
        (&nines, Framing),
        (b"5\r\nhel", Incomplete),
        (b"5\r\nhello\r\n", Incomplete),
        (b"", Incomplete),
        (b"0\r\nno colon\r\n\r\n", Trailer),
        (b"0\r\nbad name: 1\r\n\r\n", Trailer),
        (&flood, Trailer),
    ] {
        for piece in [1, 64, 4096] {
            let found = decode(unsigned(), body, piece).err();
            let shown = String::from_utf8_lossy(&body[..body.len().min(40)]);
            assert_eq!(found, Some(fault), "{shown:?} in pieces of {piece}");
        }
    }
}

#[test]
fn trailers_must_match_the_announcement() {
    let crc32 = "x-amz-checksum-crc32:AAAAAA==\r\n";
    let sha1 = "x-amz-checksum-sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n";
    for (announced, trailer, is_match) in [
        (None, String::new(), true),
        (None, crc32.to_owned(), false),
        (None, "x-amz-trailer-signature:00\r\n".to_owned(), false),
        (Some(CRC32), String::new(), false),
        (Some(CRC32), crc32.to_owned(), true),
        (Some(CRC32), sha1.to_owned(), false),
        (Some(CRC32), crc32.repeat(2), false),
        (Some(CRC32), format!("{crc32}{sha1}"), false),
        (Some(CRC32), format!("{crc32}\r\n{sha1}"), false),
        (Some(CRC32), format!("{crc32}x-amz-trailer-signature:00\r\n"), false),
    ] {
        let body = format!("1\r\na\r\n0\r\n{trailer}\r\n");
        let decoder = ChunkDecoder::new(None, true, announced);
        let fault = decode(decoder, body.as_bytes(), 64).err();
        assert_eq!(fault, (!is_match).then_some(BodyFault::Trailer), "{announced:?} {trailer:?}");
    }
    // A body without trailers ends without any, whatever was announced.
    let fault = decode(ChunkDecoder::new(None, false, Some(CRC32)), b"0\r\n\r\n", 64).err();
    assert_eq!(fault, Some(BodyFault::Trailer));
}

#[test]
fn signed_chunks_require_signatures() {
    use BodyFault::{Framing, Signature};
    let zeros = "0".repeat(64);
    let signed = || ChunkDecoder::new(Some(ChunkSigner::from_key(b"key")), false, None);
    for (body, fault) in [
        ("3\r\nxyz\r\n".to_owned(), Framing),
        ("3;chunk-signature=00\r\nxyz\r\n".to_owned(), Framing),
        (format!("3;chunk-signature={zeros};chunk-signature={zeros}\r\nxyz\r\n"), Framing),
        (format!("3;chunk-signature={zeros}\r\nxyz\r\n"), Signature),
        (format!("0;chunk-signature={zeros}\r\n\r\n"), Signature),
    ] {
        assert_eq!(decode(signed(), body.as_bytes(), 64).err(), Some(fault), "{body:?}");
    }
}
