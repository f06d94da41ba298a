//! Maps errors of `object_store` to ours: whether the call had an effect.
//!
//! | error | of a write | of a read |
//! | --- | --- | --- |
//! | exists, precondition, 409 | conflict | - |
//! | not found | unavailable: bucket is gone; update: conflict | absent, unless it is the bucket |
//! | denied | denied | denied |
//! | connection refused, name unknown | unavailable | unavailable |
//! | 429, 503 with `SlowDown` | throttled | throttled |
//! | 501, and what is not implemented | unsupported | unsupported |
//! | other 4xx | unavailable: refused before anything changed | unavailable |
//! | 5xx, resets, timeouts, anything else | unknown | unavailable |
//!
//! S3's 409 means that another write of the row is in flight. Nothing was written, and the row must
//! be read again, as after any conflict.

use std::error::Error as _;
use std::time::Duration;

use fulgurite_units::error_chain;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use super::http_status::Status;
use crate::stores::{BlobError, Cause, TableError};

/// Error prefixes of stores that mean that the whole bucket is missing, not just the object.
const BUCKET_GONE: [&str; 4] =
    ["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "bucket does not exist"];

/// Errors of `object_store` for a tag of another store, raised before it sends anything.
const WRONG_TAG: [&str; 2] = ["ETag required for conditional", "Version required for conditional"];

/// Meaning of an error, of any call.
enum ErrorClass {
    Conflict,
    Absent,
    BucketGone,
    Denied,
    NotSent,
    Throttled(Option<Duration>),
    Unsupported,
    Refused,
    Unknown,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other crate may add errors")]
fn classify(error: &Error) -> ErrorClass {
    match error {
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            ErrorClass::Conflict
        }
        Error::NotFound { source, .. } => {
            let text = error_chain(source.as_ref());
            if BUCKET_GONE.iter().any(|gone| text.contains(gone)) {
                ErrorClass::BucketGone
            } else {
                ErrorClass::Absent
            }
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorClass::Denied,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => ErrorClass::Unsupported,
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => ErrorClass::Refused,
        _ => classify_transport(error),
    }
}

/// Finds the meaning in the errors of the connection.
fn classify_transport(error: &Error) -> ErrorClass {
    let mut source = error.source();
    let mut class = ErrorClass::Unknown;
    while let Some(cause) = source {
        if let Some(status) = cause.downcast_ref::<Status>() {
            return classify_status(status);
        }
        if let Some(http) = cause.downcast_ref::<HttpError>()
            && http.kind() == HttpErrorKind::Connect
        {
            class = ErrorClass::NotSent;
        }
        source = cause.source();
    }
    // A tag of another kind of store never matches a row here. No request was sent.
    if WRONG_TAG.iter().any(|text| error_chain(error).contains(text)) {
        return ErrorClass::Conflict;
    }
    class
}

fn classify_status(status: &Status) -> ErrorClass {
    match status.status {
        429 => ErrorClass::Throttled(status.wait),
        503 if status.to_string().contains("SlowDown") => ErrorClass::Throttled(status.wait),
        501 => ErrorClass::Unsupported,
        // The server timed out waiting for the rest of the request.
        408 => ErrorClass::Unknown,
        400..=499 => ErrorClass::Refused,
        _ => ErrorClass::Unknown,
    }
}

fn cause(error: &Error) -> Cause {
    Cause::new(error_chain(error))
}

/// Maps the error of a row write.
pub(super) fn to_write_error(error: &Error) -> TableError {
    match classify(error) {
        ErrorClass::Conflict => TableError::Conflict(None),
        ErrorClass::Denied => TableError::Denied(cause(error)),
        ErrorClass::Throttled(wait) => TableError::Throttled(wait),
        ErrorClass::Unsupported => TableError::Unsupported("write conditionally"),
        ErrorClass::Absent | ErrorClass::BucketGone | ErrorClass::NotSent | ErrorClass::Refused => {
            TableError::Unavailable(cause(error))
        }
        ErrorClass::Unknown => TableError::Unknown(cause(error)),
    }
}

/// Maps the error of a read: an unknown outcome counts as not done.
pub(super) fn into_read_error(error: &Error) -> TableError {
    if matches!(classify(error), ErrorClass::Conflict) {
        return TableError::Unavailable(cause(error));
    }
    to_write_error(error).into_read_error()
}

/// Maps the error of a row read: whether it states that the row does not exist.
pub(super) fn check_absent(error: &Error) -> Result<(), TableError> {
    if matches!(classify(error), ErrorClass::Absent) { Ok(()) } else { Err(into_read_error(error)) }
}

/// Maps the error of a blob call.
pub(super) fn to_blob_error(error: &Error) -> BlobError {
    match classify(error) {
        ErrorClass::Conflict => BlobError::Exists,
        ErrorClass::Absent => BlobError::NotFound,
        ErrorClass::Denied => BlobError::Denied(cause(error)),
        ErrorClass::Throttled(wait) => BlobError::Throttled(wait),
        ErrorClass::BucketGone
        | ErrorClass::NotSent
        | ErrorClass::Refused
        | ErrorClass::Unsupported => BlobError::Unavailable(cause(error)),
        ErrorClass::Unknown => BlobError::Unknown(cause(error)),
    }
}

/// Maps the error of a blob read.
pub(super) fn to_blob_read_error(error: &Error) -> BlobError {
    to_blob_error(error).into_read_error()
}
