//! The claims of a client about a body: length, MD5, checksums in headers or trailers. s3s verifies
//! none of them; they are passed to the archive, which compares them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fulgurite_archive::{BodyClaim, Checksum, ChecksumAlgorithm};
use http::{HeaderMap, StatusCode};
use s3s::S3Result;

use super::conversions::invalid_request;
use super::errors::{s3_error, to_body_error};
use crate::request::BodyFault;

const CHECKSUM_PREFIX: &str = "x-amz-checksum-";

/// Reads the claims of a request's headers. `bytes` is the plain length, without `aws-chunked`
/// framing.
pub(super) fn from_headers(headers: &HeaderMap, bytes: Option<i64>) -> S3Result<BodyClaim> {
    let checksum = checksum_of(headers)?;
    let promised = trailer_algorithm(headers)?;
    if checksum.is_some() && promised.is_some() {
        return Err(invalid_request("Expecting a single x-amz-checksum- header or trailer"));
    }
    let named = named_algorithm(headers)?;
    let found = checksum.as_ref().map(|checksum| checksum.algorithm).or(promised);
    if let (Some(named), Some(found)) = (named, found)
        && named != found
    {
        let message = "Value for x-amz-sdk-checksum-algorithm header is invalid: it is not the \
                       algorithm of the checksum that was sent.";
        return Err(invalid_request(message));
    }
    Ok(BodyClaim {
        bytes: bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        md5: content_md5(headers)?,
        checksum,
        algorithm: found.or(named),
    })
}

/// Returns the `x-amz-checksum-*` value of the headers; an error if there are several.
pub(super) fn checksum_of(headers: &HeaderMap) -> S3Result<Option<Checksum>> {
    let mut found = None;
    for algorithm in ChecksumAlgorithm::ALL {
        for value in headers.get_all(algorithm.header()) {
            if found.is_some() {
                let message = "Expecting a single x-amz-checksum- header. Multiple checksum Types \
                               are not allowed.";
                return Err(invalid_request(message));
            }
            found = Some(parse_checksum(algorithm, value)?);
        }
    }
    Ok(found)
}

/// Returns the checksum in the trailer, which must be present if it was announced.
pub(super) fn trailer_checksum(
    headers: &HeaderMap,
    trailers: Option<&HeaderMap>,
) -> S3Result<Option<Checksum>> {
    let Some(algorithm) = trailer_algorithm(headers)? else { return Ok(None) };
    match trailers.and_then(|trailers| trailers.get(algorithm.header())) {
        Some(value) => parse_checksum(algorithm, value).map(Some),
        None => Err(to_body_error(BodyFault::Trailer)),
    }
}

fn parse_checksum(algorithm: ChecksumAlgorithm, value: &http::HeaderValue) -> S3Result<Checksum> {
    value.to_str().ok().and_then(|text| Checksum::parse(algorithm, text).ok()).ok_or_else(|| {
        invalid_request(format!("Value for {} header is invalid.", algorithm.header()))
    })
}

/// Returns whether a checksum follows the body.
pub(super) fn promises_trailer(headers: &HeaderMap) -> S3Result<bool> {
    Ok(trailer_algorithm(headers)?.is_some())
}

/// Returns the algorithm of the checksum that `x-amz-trailer` announces.
fn trailer_algorithm(headers: &HeaderMap) -> S3Result<Option<ChecksumAlgorithm>> {
    let Some(value) = headers.get("x-amz-trailer") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let mut found = None;
    for name in text.split(',').map(|name| name.trim().to_ascii_lowercase()) {
        let Some(short) = name.strip_prefix(CHECKSUM_PREFIX) else { continue };
        let algorithm = ChecksumAlgorithm::parse(short);
        if algorithm.is_none() || found.is_some() {
            let message = "The value specified in the x-amz-trailer header is not supported";
            return Err(invalid_request(message));
        }
        found = algorithm;
    }
    Ok(found)
}

/// Returns the algorithm that the client's SDK declares.
fn named_algorithm(headers: &HeaderMap) -> S3Result<Option<ChecksumAlgorithm>> {
    let Some(value) = headers.get("x-amz-sdk-checksum-algorithm") else { return Ok(None) };
    match value.to_str().ok().and_then(ChecksumAlgorithm::parse) {
        Some(algorithm) => Ok(Some(algorithm)),
        None => Err(invalid_request("Value for x-amz-sdk-checksum-algorithm header is invalid.")),
    }
}

fn content_md5(headers: &HeaderMap) -> S3Result<Option<[u8; 16]>> {
    let Some(value) = headers.get("content-md5") else { return Ok(None) };
    match BASE64.decode(value).map(<[u8; 16]>::try_from) {
        Ok(Ok(md5)) => Ok(Some(md5)),
        _ => {
            let message = "The Content-MD5 you specified is not valid.";
            Err(s3_error("InvalidDigest", StatusCode::BAD_REQUEST, message))
        }
    }
}

#[cfg(test)]
mod tests;
