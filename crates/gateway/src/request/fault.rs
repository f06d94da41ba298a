//! Faults of a request's body, of whatever operation.

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
    /// The digest differs from `x-amz-content-sha256`.
    #[error("the provided 'x-amz-content-sha256' header does not match what was computed")]
    ContentSha256,
    /// The digest differs from `Content-MD5` or a checksum.
    #[error("the Content-MD5 or checksum you specified did not match what we received")]
    Digest,
    /// A chunk's or the trailer's signature is wrong.
    #[error("the request signature we calculated does not match the signature you provided")]
    Signature,
    /// The framing of an `aws-chunked` body is broken.
    #[error("the aws-chunked encoding of the body is not well-formed")]
    Framing,
    /// The trailer announced by `x-amz-trailer` did not arrive, or one arrived that was not
    /// announced.
    #[error("the request contained trailing data that was not well-formed or did not conform")]
    Trailer,
}

impl BodyFault {
    /// The S3 error code and status.
    pub(crate) const fn code_and_status(self) -> (&'static str, StatusCode) {
        match self {
            Self::Incomplete => ("IncompleteBody", StatusCode::BAD_REQUEST),
            Self::TimedOut => ("RequestTimeout", StatusCode::BAD_REQUEST),
            Self::ContentSha256 => ("XAmzContentSHA256Mismatch", StatusCode::BAD_REQUEST),
            Self::Digest => ("BadDigest", StatusCode::BAD_REQUEST),
            Self::Signature => ("SignatureDoesNotMatch", StatusCode::FORBIDDEN),
            Self::Framing => ("InvalidRequest", StatusCode::BAD_REQUEST),
            Self::Trailer => ("MalformedTrailerError", StatusCode::BAD_REQUEST),
        }
    }

    /// Returns the fault behind an error of a body stream. An error that is not ours comes from the
    /// connection.
    pub(crate) fn from_stream_error(error: &(dyn std::error::Error + 'static)) -> Self {
        error.downcast_ref::<Self>().copied().unwrap_or(Self::Incomplete)
    }
}
