//! Each kind of error reaches the client under its S3 error code.

use fulgurite_archive::{ArchiveError as E, CatalogError};
use http::StatusCode;

use super::{to_copy_error, to_s3_error};
use crate::s3::responses::{DETAIL, detail};

fn text(name: &str) -> String {
    name.to_owned()
}

#[test]
fn archive_errors_map_to_s3_codes() {
    let rows = [
        (E::NoSuchBucket { bucket: text("b") }, "NoSuchBucket", 404),
        (E::BucketAlreadyOwnedByYou { bucket: text("b") }, "BucketAlreadyOwnedByYou", 409),
        (E::BucketNotEmpty { bucket: text("b") }, "BucketNotEmpty", 409),
        (E::InvalidBucketName { name: text("B"), rule: "r" }, "InvalidBucketName", 400),
        (E::NoSuchKey { bucket: text("b"), key: text("k") }, "NoSuchKey", 404),
        (E::KeyTooLong { bytes: 1025, max: 1024 }, "KeyTooLongError", 400),
        (E::MetadataTooLarge { bytes: 3000 }, "MetadataTooLarge", 400),
        (E::EntityTooLarge { bytes: 2, max: 1 }, "EntityTooLarge", 400),
        (E::EntityTooSmall { part: 1, bytes: 1, min: 2 }, "EntityTooSmall", 400),
        (E::NoSuchUpload { upload: text("u") }, "NoSuchUpload", 404),
        (E::InvalidPart { part: 1 }, "InvalidPart", 400),
        (E::InvalidPartOrder { part: 1 }, "InvalidPartOrder", 400),
        (E::IncompleteBody { declared: 2, received: 1 }, "IncompleteBody", 400),
        (E::BodyTooLong { declared: 2 }, "IncompleteBody", 400),
        (E::PreconditionFailed { condition: "If-Match" }, "PreconditionFailed", 412),
        (E::InvalidRange { start: 9, bytes: 1 }, "InvalidRange", 416),
        (E::InvalidStorageClass { class: text("X") }, "InvalidStorageClass", 400),
        (E::NotRestored { class: "GLACIER" }, "InvalidObjectState", 403),
        (E::NotArchived { class: "STANDARD" }, "InvalidObjectState", 403),
        (E::RestoreAlreadyInProgress, "RestoreAlreadyInProgress", 409),
        (E::InvalidPartNumber { number: 3, count: 2 }, "InvalidPartNumber", 416),
        (E::PartsNotKept { key: text("k") }, "NotImplemented", 501),
        (E::ExpeditedNotAvailable { class: "DEEP_ARCHIVE" }, "InvalidArgument", 400),
        (E::Full { what: text("staging") }, "InsufficientStorage", 507),
        (E::Busy { what: text("restores") }, "SlowDown", 503),
        (E::Stopping, "ServiceUnavailable", 503),
        (E::Corrupt { what: text("frame 3") }, "InternalError", 500),
        (E::Newer { what: text("a row") }, "InternalError", 500),
    ];
    for (error, code, status) in rows {
        let shown = error.to_string();
        let answer = to_s3_error(error);
        assert_eq!(answer.code().as_str(), code, "{shown}");
        assert_eq!(answer.status_code().map(|s| s.as_u16()), Some(status), "{shown}");
        assert_eq!(answer.message(), Some(shown.as_str()));
    }
}

#[test]
fn errors_include_class_but_no_local_paths() {
    let answer = to_s3_error(E::NotRestored { class: "DEEP_ARCHIVE" });
    assert_eq!(answer.headers().unwrap()[DETAIL], detail("StorageClass", "DEEP_ARCHIVE"));
    let answer = to_copy_error(E::NotRestored { class: "DEEP_ARCHIVE" });
    assert_eq!(answer.code().as_str(), "ObjectNotInActiveTierError");
    assert_eq!(answer.status_code(), Some(StatusCode::FORBIDDEN));
    let failed = || std::sync::Arc::new(std::io::Error::other("/secret/place"));
    let answer = to_s3_error(E::Catalog(CatalogError::Io { action: "write", source: failed() }));
    assert_eq!(answer.status_code(), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert!(answer.message().unwrap().contains("try again"));
    let reason = "cannot write /secret/place".to_owned();
    let answer = to_s3_error(E::Catalog(CatalogError::Poisoned { reason }));
    assert_eq!(answer.code().as_str(), "ServiceUnavailable");
    assert!(!answer.message().unwrap().contains("/secret/place"));
    let source = std::io::Error::other("broken");
    let answer = to_s3_error(E::Io { action: "read", path: text("/secret/place"), source });
    assert!(!answer.message().unwrap().contains("/secret/place"));
}

#[test]
fn error_details_name_the_resource() {
    let rows = [
        (E::NoSuchBucket { bucket: text("b") }, vec![("BucketName", "b")]),
        (E::BucketNotEmpty { bucket: text("b") }, vec![("BucketName", "b")]),
        (E::NoSuchKey { bucket: text("b"), key: text("a=\r") }, vec![("Key", "a=\r")]),
        (E::NoSuchUpload { upload: text("u") }, vec![("UploadId", "u")]),
        (
            E::KeyTooLong { bytes: 1025, max: 1024 },
            vec![("Size", "1025"), ("MaxSizeAllowed", "1024")],
        ),
        (
            E::EntityTooSmall { part: 1, bytes: 3, min: 5 },
            vec![("ProposedSize", "3"), ("MinSizeAllowed", "5"), ("PartNumber", "1")],
        ),
        (E::PreconditionFailed { condition: "If-Match" }, vec![("Condition", "If-Match")]),
        (E::InvalidStorageClass { class: text("X") }, vec![("StorageClassRequested", "X")]),
        (
            E::ExpeditedNotAvailable { class: "DEEP_ARCHIVE" },
            vec![("ArgumentName", "Tier"), ("ArgumentValue", "Expedited")],
        ),
        (E::Stopping, Vec::new()),
    ];
    for (error, expected) in rows {
        let shown = error.to_string();
        let answer = to_s3_error(error);
        let found: Vec<_> = answer.headers().unwrap().get_all(DETAIL).iter().cloned().collect();
        let expected: Vec<_> =
            expected.into_iter().map(|(name, value)| detail(name, value)).collect();
        assert_eq!(found, expected, "{shown}");
    }
}
