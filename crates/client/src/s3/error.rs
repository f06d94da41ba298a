//! Errors between this client and an S3 endpoint.

use fulgurite_terminal::exit::Exit;

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum S3ErrorKind {
    /// The bucket or object does not exist.
    NotFound,
    /// The object is archived: restore it first.
    Archived,
    /// The credentials are refused.
    Denied,
    /// The state of the bucket or object forbids it.
    Conflict,
    /// Retry later.
    Unavailable,
    /// Bytes differ from their checksum.
    Corrupt,
    /// The request itself is wrong.
    Invalid,
    /// The server failed, or answered something that is not S3.
    Internal,
}

impl S3ErrorKind {
    /// Returns the exit code of a command that fails with it.
    pub const fn exit(self) -> Exit {
        match self {
            Self::NotFound => Exit::NotFound,
            Self::Archived => Exit::Archived,
            Self::Denied => Exit::Denied,
            Self::Unavailable => Exit::Unavailable,
            Self::Corrupt => Exit::Corrupt,
            Self::Invalid => Exit::Usage,
            Self::Conflict | Self::Internal => Exit::Failure,
        }
    }
}

/// A request to an S3 endpoint failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what the fields are")]
#[non_exhaustive]
pub enum S3Error {
    #[error("{operation} of {target} was refused with {status} {code}: {message}")]
    Service { operation: &'static str, target: String, status: u16, code: String, message: String },
    #[error("{operation} of {target}: no response from {endpoint}")]
    Unreachable {
        operation: &'static str,
        target: String,
        endpoint: String,
        source: reqwest::Error,
    },
    #[error("cannot parse the response to {operation}: {reason}")]
    Protocol { operation: &'static str, reason: String },
    #[error("{algorithm} of {target} is {actual}, not {expected}: it was damaged in transit")]
    Damaged { target: String, algorithm: &'static str, expected: String, actual: String },
    #[error("{target} ended after {received} of {expected} bytes")]
    Short { target: String, received: u64, expected: u64 },
    #[error("key \"{key}\" has a segment \".\" or \"..\", which an HTTP path cannot carry")]
    UnaddressableKey { key: String },
    #[error("cannot sign the request: {reason}")]
    Unsigned { reason: String },
    #[error("endpoint \"{endpoint}\" is not usable: {reason}")]
    BadEndpoint { endpoint: String, reason: String },
    #[error("file \"{path}\" changed while it was read")]
    FileChanged { path: String },
    #[error("the input is longer than {bytes} bytes, the most that fits one object")]
    InputTooLong { bytes: u64 },
    #[error("standard output was closed by its reader")]
    ReaderGone,
    #[error("cannot {action} \"{path}\"")]
    File { action: &'static str, path: String, source: std::io::Error },
}

impl S3Error {
    /// Returns what the caller should do.
    pub fn kind(&self) -> S3ErrorKind {
        match self {
            Self::Service { status, code, .. } => kind_of_response(*status, code),
            Self::Unreachable { .. } => S3ErrorKind::Unavailable,
            Self::Damaged { .. } | Self::Short { .. } => S3ErrorKind::Corrupt,
            Self::UnaddressableKey { .. }
            | Self::BadEndpoint { .. }
            | Self::InputTooLong { .. } => S3ErrorKind::Invalid,
            Self::File { source, .. } => match source.kind() == std::io::ErrorKind::NotFound {
                true => S3ErrorKind::NotFound,
                false => S3ErrorKind::Internal,
            },
            Self::Protocol { .. }
            | Self::Unsigned { .. }
            | Self::FileChanged { .. }
            | Self::ReaderGone => S3ErrorKind::Internal,
        }
    }

    /// Returns the S3 error code, if the server sent one.
    pub fn code(&self) -> &str {
        if let Self::Service { code, .. } = self { code } else { "" }
    }

    /// Whether a retry of the same request can succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Service { status, code, .. } => {
                matches!(status, 429 | 500 | 502 | 503 | 504)
                    && code != "GlacierExpeditedRetrievalNotAvailable"
                    && code != "NotImplemented"
            }
            Self::Unreachable { source, .. } => !source.is_builder(),
            Self::Short { .. } => true,
            Self::Protocol { .. }
            | Self::Damaged { .. }
            | Self::UnaddressableKey { .. }
            | Self::Unsigned { .. }
            | Self::BadEndpoint { .. }
            | Self::FileChanged { .. }
            | Self::InputTooLong { .. }
            | Self::ReaderGone
            | Self::File { .. } => false,
        }
    }
}

fn kind_of_response(status: u16, code: &str) -> S3ErrorKind {
    match (status, code) {
        (404, _) => S3ErrorKind::NotFound,
        // The second code is returned for a copy from such an object.
        (403, "InvalidObjectState" | "ObjectNotInActiveTierError") => S3ErrorKind::Archived,
        (401 | 403, _) => S3ErrorKind::Denied,
        (409 | 412, _) => S3ErrorKind::Conflict,
        (429 | 503, _) => S3ErrorKind::Unavailable,
        (400, "BadDigest" | "InvalidDigest" | "IncompleteBody") => S3ErrorKind::Corrupt,
        (400..=499, _) => S3ErrorKind::Invalid,
        _ => S3ErrorKind::Internal,
    }
}
