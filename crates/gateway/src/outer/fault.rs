//! What can be wrong with a request's body, whatever it is meant for.

use http::StatusCode;

/// A fault of a body, found while it streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    /// The connection ended, or the body did, before the declared length.
    #[error("you did not provide the number of bytes specified by the Content-Length header")]
    Incomplete,
    /// No bytes came for too long.
    #[error("your socket connection was not read from or written to within the timeout period")]
    TimedOut,
    /// `x-amz-content-sha256` names another digest.
    #[error("the provided 'x-amz-content-sha256' header does not match what was computed")]
    ContentSha256,
    /// `Content-MD5` or a checksum names another digest.
    #[error("the Content-MD5 or checksum you specified did not match what we received")]
    Digest,
    /// A chunk's or the trailer's signature is wrong.
    #[error("the request signature we calculated does not match the signature you provided")]
    Signature,
    /// A signed chunk is larger than can be held until its signature is checked.
    #[error("a signed chunk is larger than 16 MiB")]
    ChunkTooLarge,
    /// The framing of an `aws-chunked` body is broken.
    #[error("the aws-chunked encoding of the body is not well-formed")]
    Framing,
    /// The trailer that `x-amz-trailer` promised did not come.
    #[error("the request contained trailing data that was not well-formed or did not conform")]
    Trailer,
}

impl BodyFault {
    /// The S3 error code and status.
    pub(crate) const fn row(self) -> (&'static str, StatusCode) {
        match self {
            Self::Incomplete => ("IncompleteBody", StatusCode::BAD_REQUEST),
            Self::TimedOut => ("RequestTimeout", StatusCode::BAD_REQUEST),
            Self::ContentSha256 => ("XAmzContentSHA256Mismatch", StatusCode::BAD_REQUEST),
            Self::Digest => ("BadDigest", StatusCode::BAD_REQUEST),
            Self::Signature => ("SignatureDoesNotMatch", StatusCode::FORBIDDEN),
            Self::ChunkTooLarge => ("InvalidChunkSizeError", StatusCode::BAD_REQUEST),
            Self::Framing => ("InvalidRequest", StatusCode::BAD_REQUEST),
            Self::Trailer => ("MalformedTrailerError", StatusCode::BAD_REQUEST),
        }
    }

    /// The fault behind an error of a body stream.
    ///
    /// s3s verifies payload digests and chunk signatures, but keeps its error types to itself, so
    /// they are told apart by their text. The version is pinned exactly and a test holds each
    /// text, so a change cannot pass unseen.
    pub(crate) fn of_stream_error(error: &(dyn std::error::Error + 'static)) -> Self {
        if let Some(fault) = error.downcast_ref::<Self>() {
            return *fault;
        }
        let text = error.to_string();
        let says = |part: &str| text.contains(part);
        if says("Sha256Mismatch") {
            Self::ContentSha256
        } else if says("SignatureMismatch") {
            Self::Signature
        } else if says("FormatError") || says("TooLarge") || says("TooManyTrailerHeaders") {
            Self::Framing
        } else {
            Self::Incomplete
        }
    }
}
