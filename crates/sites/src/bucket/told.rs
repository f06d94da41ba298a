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

use super::statuses::Status;
use crate::{BlobError, Cause, TableError};

/// Error prefixes of stores that mean that the whole bucket is missing, not just the object.
const GONE: [&str; 4] =
    ["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "bucket does not exist"];

/// Errors of `object_store` for a tag of another store, raised before it sends anything.
const FOREIGN: [&str; 2] = ["ETag required for conditional", "Version required for conditional"];

/// Meaning of an error, of any call.
enum Meaning {
    Conflict,
    Absent,
    Gone,
    Denied,
    NotSent,
    Throttled(Option<Duration>),
    Unsupported,
    Refused,
    Unknown,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "errors of another crate may become more")]
fn meaning(error: &Error) -> Meaning {
    match error {
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            Meaning::Conflict
        }
        Error::NotFound { source, .. } => {
            let text = error_chain(source.as_ref());
            if GONE.iter().any(|gone| text.contains(gone)) {
                Meaning::Gone
            } else {
                Meaning::Absent
            }
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Meaning::Denied,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => Meaning::Unsupported,
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => Meaning::Refused,
        _ => of_transport(error),
    }
}

/// Finds the meaning in the errors of the connection.
fn of_transport(error: &Error) -> Meaning {
    let mut source = error.source();
    let mut meaning = Meaning::Unknown;
    while let Some(cause) = source {
        if let Some(status) = cause.downcast_ref::<Status>() {
            return of_status(status);
        }
        if let Some(http) = cause.downcast_ref::<HttpError>()
            && http.kind() == HttpErrorKind::Connect
        {
            meaning = Meaning::NotSent;
        }
        source = cause.source();
    }
    // A tag of another kind of store never matches a row here. No request was sent.
    if FOREIGN.iter().any(|foreign| error_chain(error).contains(foreign)) {
        return Meaning::Conflict;
    }
    meaning
}

fn of_status(status: &Status) -> Meaning {
    match status.status {
        429 => Meaning::Throttled(status.wait),
        503 if status.to_string().contains("SlowDown") => Meaning::Throttled(status.wait),
        501 => Meaning::Unsupported,
        // The server timed out waiting for the rest of the request.
        408 => Meaning::Unknown,
        400..=499 => Meaning::Refused,
        _ => Meaning::Unknown,
    }
}

fn cause(error: &Error) -> Cause {
    Cause::new(error_chain(error))
}

/// Maps the error of a row write.
pub(super) fn of_write(error: &Error) -> TableError {
    match meaning(error) {
        Meaning::Conflict => TableError::Conflict(None),
        Meaning::Denied => TableError::Denied(cause(error)),
        Meaning::Throttled(wait) => TableError::Throttled(wait),
        Meaning::Unsupported => TableError::Unsupported("write on a condition"),
        Meaning::Absent | Meaning::Gone | Meaning::NotSent | Meaning::Refused => {
            TableError::Unavailable(cause(error))
        }
        Meaning::Unknown => TableError::Unknown(cause(error)),
    }
}

/// Maps the error of a read: an unknown outcome counts as not done.
pub(super) fn of_read(error: &Error) -> TableError {
    if matches!(meaning(error), Meaning::Conflict) {
        return TableError::Unavailable(cause(error));
    }
    of_write(error).of_read()
}

/// Maps the error of a row read: whether it states that the row does not exist.
pub(super) fn absent(error: &Error) -> Result<(), TableError> {
    if matches!(meaning(error), Meaning::Absent) { Ok(()) } else { Err(of_read(error)) }
}

/// Maps the error of a blob call.
pub(super) fn of_blob(error: &Error) -> BlobError {
    match meaning(error) {
        Meaning::Conflict => BlobError::Exists,
        Meaning::Absent => BlobError::NotFound,
        Meaning::Denied => BlobError::Denied(cause(error)),
        Meaning::Throttled(wait) => BlobError::Throttled(wait),
        Meaning::Gone | Meaning::NotSent | Meaning::Refused | Meaning::Unsupported => {
            BlobError::Unavailable(cause(error))
        }
        Meaning::Unknown => BlobError::Unknown(cause(error)),
    }
}

/// Maps the error of a blob read.
pub(super) fn of_blob_read(error: &Error) -> BlobError {
    of_blob(error).of_read()
}
