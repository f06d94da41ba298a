//! The parsers of what strangers send, as functions of plain bytes: what the fuzz targets in
//! `fuzz/` call, and the tests with seeded bytes. Nothing else needs them.

use std::collections::VecDeque;

use bytes::Bytes;
use s3s::dto::{CompletedMultipartUpload, CreateBucketConfiguration, Delete, RestoreRequest};
use s3s::xml::{Deserialize, Deserializer};

use crate::admin::reads_authorization;
use crate::percent;
use crate::s3::ChunkDecoder;
use crate::s3::signature::{ChunkSigner, Claimed, parse_basic, parse_date};

/// What an `Authorization` header claims, written anew; `None` when it is malformed.
#[must_use]
pub fn signature_header(text: &str) -> Option<String> {
    Claimed::of_header(text).ok().map(|claimed| written(&claimed))
}

/// What the query of a presigned URL claims, written as a header; `None` when it is malformed.
#[must_use]
pub fn signature_query(query: &str) -> Option<String> {
    let pairs = query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((percent::decode_query(name)?, percent::decode_query(value)?))
    });
    let pairs: Vec<(String, String)> = pairs.collect::<Option<_>>()?;
    Claimed::of_query(&pairs).ok().map(|claimed| written(&claimed))
}

fn written(claimed: &Claimed) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
        claimed.access_key,
        claimed.scope(),
        claimed.signed_headers.join(";"),
        hex::encode(claimed.signature)
    )
}

/// The second since 1970 that a `Date` or `x-amz-date` header means.
#[must_use]
pub fn date(text: &str) -> Option<i64> {
    let date = parse_date(text).map(|time| time.as_second());
    let basic = parse_basic(text).map(|time| time.as_second());
    assert!(basic.is_none() || basic == date, "{text:?} has two meanings");
    date
}

/// Whether an operator's `Authorization` header is well-formed.
#[must_use]
pub fn operator_header(text: &str) -> bool {
    reads_authorization(text)
}

/// The data of an `aws-chunked` body that comes in pieces of `piece` bytes; with a `key`, its
/// chunks are signed.
///
/// # Errors
/// The fault, in the words that the client is told.
///
/// # Panics
/// When a piece has no bytes.
pub fn chunked(body: &[u8], piece: usize, key: Option<&[u8]>) -> Result<Vec<u8>, String> {
    let mut decoder = ChunkDecoder::new(key.map(ChunkSigner::of_key), true);
    let mut out = VecDeque::new();
    for part in body.chunks(piece) {
        decoder.push(Bytes::copy_from_slice(part), &mut out).map_err(|fault| fault.to_string())?;
    }
    decoder.finish().map_err(|fault| fault.to_string())?;
    Ok(out.into_iter().flatten().collect())
}

/// Which of the XML documents that are read a body could be: of DeleteObjects,
/// CompleteMultipartUpload, RestoreObject, CreateBucket.
#[must_use]
pub fn documents(body: &[u8]) -> [bool; 4] {
    [
        reads::<Delete>(body),
        reads::<CompletedMultipartUpload>(body),
        reads::<RestoreRequest>(body),
        reads::<CreateBucketConfiguration>(body),
    ]
}

fn reads<'xml, T: Deserialize<'xml>>(body: &'xml [u8]) -> bool {
    let mut document = Deserializer::new(body);
    T::deserialize(&mut document).is_ok() && document.expect_eof().is_ok()
}
