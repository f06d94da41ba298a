//! The parsers of untrusted input as functions of plain bytes, for the fuzz targets in `fuzz/` and
//! the tests with seeded bytes. Nothing else needs them.

use std::collections::VecDeque;

use bytes::Bytes;
use s3s::dto::{CompletedMultipartUpload, CreateBucketConfiguration, Delete, RestoreRequest};
use s3s::xml::{Deserialize, Deserializer};

use crate::admin::reads_authorization;
use crate::s3::signature::{ChunkSigner, SignatureClaim, pairs, parse_basic, parse_date};
use crate::s3::{ChunkDecoder, DOCUMENTS};

/// Parses an `Authorization` header and formats its claim again; `None` when it is malformed.
#[must_use]
pub fn signature_header(text: &str) -> Option<String> {
    SignatureClaim::from_header(text).ok().map(|claim| format_claim(&claim))
}

/// Parses the query of a presigned URL and formats its claim as a header; `None` when it is
/// malformed.
#[must_use]
pub fn signature_query(query: &str) -> Option<String> {
    let pairs = pairs(query).ok()?;
    SignatureClaim::from_query(&pairs).ok().map(|claim| format_claim(&claim))
}

fn format_claim(claim: &SignatureClaim) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
        claim.access_key,
        claim.scope(),
        claim.signed_headers.join(";"),
        hex::encode(claim.signature)
    )
}

/// Parses a `Date` or `x-amz-date` header to seconds since 1970.
#[must_use]
pub fn date(text: &str) -> Option<i64> {
    let date = parse_date(text).map(|time| time.as_second());
    let basic = parse_basic(text).map(|time| time.as_second());
    assert!(basic.is_none() || basic == date, "{text:?} has two meanings");
    date
}

/// Returns whether an operator's `Authorization` header is well-formed.
#[must_use]
pub fn operator_header(text: &str) -> bool {
    reads_authorization(text)
}

/// Returns the data of an `aws-chunked` body that arrives in pieces of `piece` bytes. With a `key`,
/// its chunks are signed; `trailer` is the header that is announced to follow them.
///
/// # Errors
/// The fault, with the message that the client gets.
///
/// # Panics
/// When a piece has no bytes.
pub fn chunked(
    body: &[u8],
    piece: usize,
    key: Option<&[u8]>,
    trailer: Option<&'static str>,
) -> Result<Vec<u8>, String> {
    let mut decoder = ChunkDecoder::new(key.map(ChunkSigner::from_key), true, trailer);
    let mut out = VecDeque::new();
    for part in body.chunks(piece) {
        decoder.push(Bytes::copy_from_slice(part), &mut out).map_err(|fault| fault.to_string())?;
    }
    decoder.finish().map_err(|fault| fault.to_string())?;
    Ok(out.into_iter().flatten().collect())
}

/// Returns a body in the plain form of each document that it could be: of DeleteObjects,
/// CompleteMultipartUpload, RestoreObject, CreateBucket.
#[must_use]
pub fn documents(body: &[u8]) -> [Option<Vec<u8>>; 4] {
    std::array::from_fn(|index| document(index, body))
}

/// Returns a body in the plain form of the document at that index of `documents`.
#[must_use]
pub fn document(index: usize, body: &[u8]) -> Option<Vec<u8>> {
    DOCUMENTS.get(index)?.rewrite(body).ok().map(Vec::from)
}

/// Returns the fields that operations act on, by element and text, as s3s reads them from the plain
/// form of the document at that index of `documents`; `None` when it refuses the document.
#[must_use]
pub fn read_document(index: usize, plain: &[u8]) -> Option<Vec<(&'static str, String)>> {
    match index {
        0 => read::<Delete>(plain).map(|delete| {
            let quiet = delete.quiet.map(|quiet| ("Quiet", quiet.to_string()));
            let objects = delete.objects.into_iter().flat_map(|object| {
                let version = object.version_id.map(|version| ("VersionId", version));
                std::iter::once(("Key", object.key)).chain(version)
            });
            objects.chain(quiet).collect()
        }),
        1 => read::<CompletedMultipartUpload>(plain).map(|upload| {
            let parts = upload.parts.unwrap_or_default().into_iter();
            let numbers = parts.filter_map(|part| part.part_number);
            numbers.map(|number| ("PartNumber", number.to_string())).collect()
        }),
        2 => read::<RestoreRequest>(plain).map(|request| {
            let days = request.days.map(|days| ("Days", days.to_string()));
            let tiers = [request.glacier_job_parameters.map(|job| job.tier), request.tier];
            let tiers = tiers.into_iter().flatten().map(|tier| ("Tier", tier.as_str().to_owned()));
            days.into_iter().chain(tiers).collect()
        }),
        _ => read::<CreateBucketConfiguration>(plain).map(|bucket| {
            let location = bucket.location_constraint;
            location
                .map(|location| ("LocationConstraint", location.as_str().to_owned()))
                .into_iter()
                .collect()
        }),
    }
}

fn read<'xml, T: Deserialize<'xml>>(plain: &'xml [u8]) -> Option<T> {
    let mut document = Deserializer::new(plain);
    let found = T::deserialize(&mut document).ok()?;
    document.expect_eof().ok().map(|()| found)
}
