//! The one table that maps the archive's errors to S3 error codes.

use fulgurite_archive::{ArchiveError, ErrorKind};
use fulgurite_units::error_chain;
use http::StatusCode;
use s3s::{S3Error, S3ErrorCode};

use crate::request::BodyFault;
use crate::s3::responses::{DETAIL, detail};

/// The message for clients instead of the paths and system errors of our machine.
const INTERNAL_MESSAGE: &str = "We encountered an internal error. The request id is in the log.";

/// The message for clients while the catalog takes no writes; the reason is in the log and in
/// `archive status`.
const CATALOG_MESSAGE: &str =
    "The catalog cannot be written at this moment. Nothing else is wrong; try again.";

/// Converts an error of the archive to an S3 error. Errors that are not the client's fault are
/// logged here, and only here.
pub(super) fn to_s3_error(error: ArchiveError) -> S3Error {
    let (code, status) = code_and_status(&error);
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(error = error_chain(&error), "the archive failed");
    }
    let is_catalog = matches!(error, ArchiveError::Catalog(_));
    let message = if is_catalog && status == StatusCode::SERVICE_UNAVAILABLE {
        CATALOG_MESSAGE.to_owned()
    } else if is_internal(&error) {
        INTERNAL_MESSAGE.to_owned()
    } else {
        error.to_string()
    };
    with_details(s3_error(code, status, message), details(&error))
}

/// Like `to_s3_error`, for the source of a copy, for which S3 has separate codes.
pub(super) fn to_copy_error(error: ArchiveError) -> S3Error {
    if !matches!(error, ArchiveError::NotRestored { .. }) {
        return to_s3_error(error);
    }
    s3_error("ObjectNotInActiveTierError", StatusCode::FORBIDDEN, error.to_string())
}

/// Converts a fault of the body to an S3 error.
pub(super) fn to_body_error(fault: BodyFault) -> S3Error {
    let (code, status) = fault.code_and_status();
    s3_error(code, status, fault.to_string())
}

/// Creates an error of any code; s3s knows most of them by name, the others become custom ones.
pub(super) fn s3_error(
    code: &'static str,
    status: StatusCode,
    message: impl Into<std::borrow::Cow<'static, str>>,
) -> S3Error {
    let code = S3ErrorCode::from_bytes(code.as_bytes()).unwrap_or(S3ErrorCode::InternalError);
    let mut error = S3Error::with_message(code, message);
    error.set_status_code(status);
    error
}

/// Adds elements to the document of an error.
pub(super) fn with_details<T: AsRef<str>>(
    mut error: S3Error,
    details: impl IntoIterator<Item = (&'static str, T)>,
) -> S3Error {
    let mut headers = error.headers().cloned().unwrap_or_default();
    for (name, value) in details {
        headers.append(DETAIL, detail(name, value.as_ref()));
    }
    error.set_headers(headers);
    error
}

/// Returns the elements of S3's error document besides code and message.
#[expect(clippy::wildcard_enum_match_arm, reason = "most errors name nothing")]
fn details(error: &ArchiveError) -> Vec<(&'static str, String)> {
    use ArchiveError as E;
    let text = |text: &dyn std::fmt::Display| text.to_string();
    match error {
        E::NoSuchBucket { bucket }
        | E::BucketAlreadyOwnedByYou { bucket }
        | E::BucketNotEmpty { bucket }
        | E::InvalidBucketName { name: bucket, .. } => vec![("BucketName", text(bucket))],
        E::NoSuchKey { key, .. } => vec![("Key", text(key))],
        E::NoSuchUpload { upload } => vec![("UploadId", text(upload))],
        E::KeyTooLong { bytes, max } => {
            vec![("Size", text(bytes)), ("MaxSizeAllowed", text(max))]
        }
        E::MetadataTooLarge { bytes } => vec![("Size", text(bytes))],
        E::EntityTooLarge { bytes, max } => {
            vec![("ProposedSize", text(bytes)), ("MaxSizeAllowed", text(max))]
        }
        E::EntityTooSmall { part, bytes, min } => vec![
            ("ProposedSize", text(bytes)),
            ("MinSizeAllowed", text(min)),
            ("PartNumber", text(part)),
        ],
        E::InvalidPart { part } => vec![("PartNumber", text(part))],
        E::BadDigest { expected, actual, .. } => {
            vec![("ExpectedDigest", text(expected)), ("CalculatedDigest", text(actual))]
        }
        E::PreconditionFailed { condition } => vec![("Condition", text(condition))],
        E::InvalidStorageClass { class } => vec![("StorageClassRequested", text(class))],
        E::ExpeditedNotAvailable { .. } => {
            vec![("ArgumentName", "Tier".to_owned()), ("ArgumentValue", "Expedited".to_owned())]
        }
        E::NotRestored { class } | E::NotArchived { class } => vec![("StorageClass", text(class))],
        _ => Vec::new(),
    }
}

/// Returns whether the message reveals paths or system errors.
fn is_internal(error: &ArchiveError) -> bool {
    code_and_status(error).0 == "InternalError"
        && !matches!(
            error,
            ArchiveError::Unreadable { .. }
                | ArchiveError::PlatterUnreadable { .. }
                | ArchiveError::Corrupt { .. }
                | ArchiveError::Newer { .. }
        )
}

/// Returns S3's code and status of each error.
fn code_and_status(error: &ArchiveError) -> (&'static str, StatusCode) {
    use ArchiveError as E;
    match error {
        E::NoSuchBucket { .. } => ("NoSuchBucket", StatusCode::NOT_FOUND),
        E::BucketAlreadyOwnedByYou { .. } => ("BucketAlreadyOwnedByYou", StatusCode::CONFLICT),
        E::BucketNotEmpty { .. } => ("BucketNotEmpty", StatusCode::CONFLICT),
        E::InvalidBucketName { .. } => ("InvalidBucketName", StatusCode::BAD_REQUEST),
        E::NoSuchKey { .. } => ("NoSuchKey", StatusCode::NOT_FOUND),
        E::KeyTooLong { .. } => ("KeyTooLongError", StatusCode::BAD_REQUEST),
        E::NotShared { .. } => ("InvalidRequest", StatusCode::BAD_REQUEST),
        E::MetadataTooLarge { .. } => ("MetadataTooLarge", StatusCode::BAD_REQUEST),
        E::EntityTooLarge { .. } => ("EntityTooLarge", StatusCode::BAD_REQUEST),
        E::EntityTooSmall { .. } => ("EntityTooSmall", StatusCode::BAD_REQUEST),
        E::NoSuchUpload { .. } => ("NoSuchUpload", StatusCode::NOT_FOUND),
        E::InvalidPart { .. } => ("InvalidPart", StatusCode::BAD_REQUEST),
        E::InvalidPartOrder { .. } => ("InvalidPartOrder", StatusCode::BAD_REQUEST),
        E::BadDigest { .. } => ("BadDigest", StatusCode::BAD_REQUEST),
        E::IncompleteBody { .. } | E::BodyTooLong { .. } => {
            ("IncompleteBody", StatusCode::BAD_REQUEST)
        }
        E::PreconditionFailed { .. } => ("PreconditionFailed", StatusCode::PRECONDITION_FAILED),
        E::InvalidRange { .. } => ("InvalidRange", StatusCode::RANGE_NOT_SATISFIABLE),
        E::InvalidPartNumber { .. } => ("InvalidPartNumber", StatusCode::RANGE_NOT_SATISFIABLE),
        E::PartsNotKept { .. } => ("NotImplemented", StatusCode::NOT_IMPLEMENTED),
        E::InvalidStorageClass { .. } => ("InvalidStorageClass", StatusCode::BAD_REQUEST),
        E::NotRestored { .. } | E::NotArchived { .. } => {
            ("InvalidObjectState", StatusCode::FORBIDDEN)
        }
        E::RestoreAlreadyInProgress => ("RestoreAlreadyInProgress", StatusCode::CONFLICT),
        // Not 503: that means a lack of capacity, and clients retry it.
        E::ExpeditedNotAvailable { .. } => ("InvalidArgument", StatusCode::BAD_REQUEST),
        E::InvalidArgument { .. } => ("InvalidArgument", StatusCode::BAD_REQUEST),
        E::Busy { .. } => ("SlowDown", StatusCode::SERVICE_UNAVAILABLE),
        // Clients retry 503 by themselves, but not 507: the catalog is reopened in a moment, but
        // nobody frees space that fast.
        E::Full { .. } => ("InsufficientStorage", StatusCode::INSUFFICIENT_STORAGE),
        E::Catalog(_) if error.kind() == ErrorKind::Unavailable => {
            ("ServiceUnavailable", StatusCode::SERVICE_UNAVAILABLE)
        }
        E::Stopping
        | E::KeysFailed { .. }
        | E::PlatterOutOfReach { .. }
        | E::TierUnavailable { .. }
        | E::SharedElsewhere { .. }
        | E::Undecoded { .. } => ("ServiceUnavailable", StatusCode::SERVICE_UNAVAILABLE),
        E::Unreadable { .. }
        | E::PlatterUnreadable { .. }
        | E::Corrupt { .. }
        | E::Newer { .. }
        | E::Locked { .. }
        | E::Unusable { .. }
        | E::WrongMasterKey { .. }
        | E::WrongSharedKey { .. }
        | E::Catalog(_)
        | E::Io { .. }
        | E::Internal { .. } => ("InternalError", StatusCode::INTERNAL_SERVER_ERROR),
        // The enum may grow; an unknown error is ours.
        _ => ("InternalError", StatusCode::INTERNAL_SERVER_ERROR),
    }
}

#[cfg(test)]
mod tests;
