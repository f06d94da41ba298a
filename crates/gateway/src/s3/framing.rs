//! Headers that announce the framing of a body. Framing is removed from the payload types that have
//! it, and must not be announced for any other: framing is never stored.

use fulgurite_archive::ChecksumAlgorithm;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, StatusCode};

use super::responses::Refusal;
use crate::request::BodyFault;

pub(super) const DECODED_LENGTH: &str = "x-amz-decoded-content-length";
const TRAILER: &str = "x-amz-trailer";

/// Returns the checksum that `x-amz-trailer` announces. Nothing else may be announced.
pub(super) fn announced_trailer(headers: &HeaderMap) -> Result<Option<ChecksumAlgorithm>, Refusal> {
    let Some(value) = headers.get(TRAILER) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let named = |algorithm: &ChecksumAlgorithm| text.eq_ignore_ascii_case(algorithm.header());
    match ChecksumAlgorithm::ALL.into_iter().find(named) {
        Some(algorithm) => Ok(Some(algorithm)),
        None => {
            let message = "The value specified in the x-amz-trailer header is not supported: it is \
                           one of x-amz-checksum-crc32, -crc32c, -crc64nvme, -sha1 and -sha256";
            Err(Refusal::new("InvalidRequest", StatusCode::BAD_REQUEST, message))
        }
    }
}

/// Refuses headers that announce framing or a trailer when the payload has neither.
pub(super) fn check_unframed(headers: &HeaderMap, is_empty: bool) -> Result<(), Refusal> {
    let is_announced = headers.contains_key(DECODED_LENGTH);
    // Without a body, `Content-Encoding` is metadata of an object whose body is sent elsewhere.
    if is_announced || (names_framing(headers) && !is_empty) {
        let message = "Content-Encoding aws-chunked and x-amz-decoded-content-length need an \
                       x-amz-content-sha256 that begins with STREAMING-: send the body without \
                       framing, or with that header.";
        return Err(Refusal::new("InvalidArgument", StatusCode::BAD_REQUEST, message));
    }
    if headers.contains_key(TRAILER) {
        return Err(BodyFault::Trailer.into());
    }
    Ok(())
}

fn names_framing(headers: &HeaderMap) -> bool {
    let is_framing = |token: &str| token.trim().eq_ignore_ascii_case("aws-chunked");
    let encodings = headers.get_all(CONTENT_ENCODING).iter();
    // Non-ASCII bytes must not hide the rest of the header.
    encodings
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .any(|text| text.split(',').any(is_framing))
}

#[cfg(test)]
mod tests;
