//! Errors of `object_store` as ours: whether it happened or not.
//!
//! | what it says | of a write | of a read |
//! | --- | --- | --- |
//! | exists, precondition | conflict; S3's 409 too, which says that another write is on its way, for nothing was written | - |
//! | not found | unavailable: the bucket is gone | absent, unless it is the bucket that is gone |
//! | denied | denied | denied |
//! | connection refused, name unknown | unavailable | unavailable |
//! | 429, 503 with `SlowDown` | throttled | throttled |
//! | 501, and what is not implemented | unsupported | unsupported |
//! | other 4xx | unavailable: refused before anything changed | unavailable |
//! | 5xx, resets, timeouts, anything else | unknown | unavailable |

use std::error::Error as _;
use std::time::Duration;

use fulgurite_units::error_chain;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use super::statuses::Status;
use crate::{BlobError, Cause, TableError};

/// Beginnings of what stores say when not the object is missing but all of it.
const GONE: [&str; 4] =
    ["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "bucket does not exist"];

/// What an error means, of whatever.
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

fn meaning(error: &Error) -> Meaning {
    match error {
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            Meaning::Conflict
        }
        Error::NotFound { source, .. } => {
            let text = error_chain(source.as_ref());
            if GONE.iter().any(|gone| text.contains(gone)) { Meaning::Gone } else { Meaning::Absent }
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Meaning::Denied,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => Meaning::Unsupported,
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => Meaning::Refused,
        _ => of_transport(error),
    }
}

/// Looks for what the connection said.
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
    meaning
}

fn of_status(status: &Status) -> Meaning {
    match status.status {
        429 => Meaning::Throttled(status.wait),
        503 if status.to_string().contains("SlowDown") => Meaning::Throttled(status.wait),
        501 => Meaning::Unsupported,
        // The server waited in vain for the rest of the request.
        408 => Meaning::Unknown,
        400..=499 => Meaning::Refused,
        _ => Meaning::Unknown,
    }
}

fn cause(error: &Error) -> Cause {
    Cause::new(error_chain(error))
}

/// Of a write of a row.
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

/// Of a read: what is not known did not happen either.
pub(super) fn of_read(error: &Error) -> TableError {
    match of_write(error) {
        TableError::Unknown(cause) => TableError::Unavailable(cause),
        TableError::Conflict(_) => TableError::Unavailable(cause(error)),
        other => other,
    }
}

/// Of a read of one row: whether it says that there is none.
pub(super) fn absent(error: &Error) -> Result<(), TableError> {
    match meaning(error) {
        Meaning::Absent => Ok(()),
        _ => Err(of_read(error)),
    }
}

/// Of a call about a blob.
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

/// Of a read of a blob.
pub(super) fn of_blob_read(error: &Error) -> BlobError {
    match of_blob(error) {
        BlobError::Unknown(cause) => BlobError::Unavailable(cause),
        other => other,
    }
}
