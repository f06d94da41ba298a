//! Converts between the archive's types and S3's.

use std::time::{Duration, SystemTime};

use fulgurite_archive::{
    BucketName, Checksum, ChecksumAlgorithm, ObjectKey, RestoreState, StorageClass,
};
use fulgurite_units::{UnixTime, UploadId};
use http::StatusCode;
use s3s::dto::{
    ChecksumType, ETag, Initiator, Owner, ServerSideEncryption, Timestamp, TimestampFormat,
};
use s3s::{S3Error, S3Result};

use super::errors::{s3_error, to_s3_error, with_details};

/// The one account, in the form of an AWS account id.
pub(super) const ACCOUNT: &str = "000000000000";
/// The one region.
pub(super) const REGION: &str = "us-east-1";
/// The one owner, in the form of a canonical user id.
const OWNER_ID: &str = "0000000000000000000000000000000000000000000066756c67757269746500";
const OWNER_NAME: &str = "fulgurite";
/// The id of the only version there is: buckets keep none.
pub(super) const NULL_VERSION: &str = "null";

pub(super) fn owner() -> Owner {
    Owner { display_name: Some(OWNER_NAME.to_owned()), id: Some(OWNER_ID.to_owned()) }
}

pub(super) fn initiator() -> Initiator {
    Initiator { display_name: Some(OWNER_NAME.to_owned()), id: Some(OWNER_ID.to_owned()) }
}

pub(super) fn bucket_name(name: &str) -> S3Result<BucketName> {
    BucketName::new(name).map_err(to_s3_error)
}

pub(super) fn object_name(bucket: &str, key: &str) -> S3Result<(BucketName, ObjectKey)> {
    Ok((bucket_name(bucket)?, ObjectKey::new(key).map_err(to_s3_error)?))
}

/// Like `object_name`, for an object that is to be created. Clients map keys to paths: a key that
/// climbs above its start with `..` would be written outside of the target directory. Older objects
/// with such keys can still be read and deleted.
pub(super) fn new_object_name(bucket: &str, key: &str) -> S3Result<(BucketName, ObjectKey)> {
    if has_path_traversal(key) {
        let message = "The key must not lead above its start with .. segments.";
        return Err(s3_error("InvalidURI", StatusCode::BAD_REQUEST, message));
    }
    object_name(bucket, key)
}

/// Returns whether the key, read as a path from left to right, climbs above its start.
fn has_path_traversal(key: &str) -> bool {
    let mut depth = 0_usize;
    for segment in key.split('/') {
        match segment {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

/// Parses an upload id; an invalid one names no upload.
pub(super) fn upload_id(text: &str) -> S3Result<UploadId> {
    text.parse().map_err(|_| {
        let message = "The specified multipart upload does not exist.";
        let error = s3_error("NoSuchUpload", StatusCode::NOT_FOUND, message);
        with_details(error, [("UploadId", text)])
    })
}

pub(super) fn check_version(version: Option<&str>) -> S3Result<()> {
    match version {
        None | Some(NULL_VERSION) => Ok(()),
        Some(version) => {
            let error = invalid_argument("Invalid version id specified");
            Err(with_details(error, [("ArgumentName", "versionId"), ("ArgumentValue", version)]))
        }
    }
}

/// Parses the class named in a request; STANDARD when there is none.
pub(super) fn storage_class(name: Option<&str>) -> S3Result<StorageClass> {
    name.map_or(Ok(StorageClass::Standard), StorageClass::parse).map_err(to_s3_error)
}

/// Returns the class for headers: none for STANDARD.
pub(super) fn class_header(class: StorageClass) -> Option<s3s::dto::StorageClass> {
    (class != StorageClass::Standard).then(|| s3s::dto::StorageClass::from_static(class.name()))
}

/// S3's name for encryption with keys that the service manages. Every body is encrypted with
/// AES-256-GCM and a key of its own, whether a client asks for it or not; AWS answers the same.
pub(super) fn encryption() -> ServerSideEncryption {
    ServerSideEncryption::from_static(ServerSideEncryption::AES256)
}

pub(super) fn etag(text: &str) -> ETag {
    ETag::Strong(text.to_owned())
}

/// Truncates to whole seconds: headers have no finer resolution, so listings must not have either.
pub(super) fn timestamp(time: UnixTime) -> Timestamp {
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs()))
}

pub(super) fn http_date(time: UnixTime) -> String {
    let mut text = Vec::new();
    // Times before year 10,000 always format.
    let _ = timestamp(time).format(TimestampFormat::HttpDate, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Formats `x-amz-restore`, in the only two forms that clients can parse.
pub(super) fn restore_header(state: RestoreState) -> String {
    match state {
        RestoreState::Ongoing => "ongoing-request=\"true\"".to_owned(),
        RestoreState::Restored { expiry } => {
            format!("ongoing-request=\"false\", expiry-date=\"{}\"", http_date(expiry))
        }
    }
}

pub(super) fn length(bytes: u64) -> Option<i64> {
    i64::try_from(bytes).ok()
}

pub(super) fn algorithm_name(algorithm: ChecksumAlgorithm) -> s3s::dto::ChecksumAlgorithm {
    s3s::dto::ChecksumAlgorithm::from_static(algorithm.name())
}

pub(super) fn checksum_type(checksum: &Checksum) -> ChecksumType {
    checksum_type_name(checksum.composite_parts.is_none())
}

pub(super) fn checksum_type_name(full_object: bool) -> ChecksumType {
    ChecksumType::from_static(if full_object {
        ChecksumType::FULL_OBJECT
    } else {
        ChecksumType::COMPOSITE
    })
}

/// Sets the checksum field of an S3 output that matches the algorithm of `checksum`.
macro_rules! set_checksum {
    ($output:expr, $checksum:expr) => {
        if let Some(checksum) = $checksum {
            let text = Some(checksum.text());
            match checksum.algorithm {
                ::fulgurite_archive::ChecksumAlgorithm::Crc32 => $output.checksum_crc32 = text,
                ::fulgurite_archive::ChecksumAlgorithm::Crc32c => $output.checksum_crc32c = text,
                ::fulgurite_archive::ChecksumAlgorithm::Crc64Nvme => {
                    $output.checksum_crc64nvme = text;
                }
                ::fulgurite_archive::ChecksumAlgorithm::Sha1 => $output.checksum_sha1 = text,
                ::fulgurite_archive::ChecksumAlgorithm::Sha256 => $output.checksum_sha256 = text,
            }
        }
    };
}
pub(super) use set_checksum;

pub(super) fn invalid_argument(message: impl Into<String>) -> S3Error {
    s3_error("InvalidArgument", StatusCode::BAD_REQUEST, message.into())
}

pub(super) fn invalid_request(message: impl Into<String>) -> S3Error {
    s3_error("InvalidRequest", StatusCode::BAD_REQUEST, message.into())
}

pub(super) fn malformed_xml() -> S3Error {
    let message = "The XML you provided was not well-formed or did not validate against our \
                   published schema";
    s3_error("MalformedXML", StatusCode::BAD_REQUEST, message)
}

pub(super) fn not_implemented(message: &'static str) -> S3Error {
    s3_error("NotImplemented", StatusCode::NOT_IMPLEMENTED, message)
}

/// Returns whether a header's list contains `name`. s3s splits such lists by header line only, but
/// clients separate them with commas.
pub(super) fn list_contains<'a>(list: impl IntoIterator<Item = &'a str>, name: &str) -> bool {
    list.into_iter().flat_map(|line| line.split(',')).any(|part| part.trim() == name)
}

/// Returns the requested page size, capped at `most`.
pub(super) fn page_limit(requested: Option<i32>, most: usize, name: &str) -> S3Result<usize> {
    let requested = requested.map_or(Ok(most), usize::try_from);
    let requested = requested.map_err(|_| invalid_argument(format!("{name} is negative")))?;
    Ok(requested.min(most))
}

#[cfg(test)]
mod tests;
