//! Objects on their way out: GetObject, HeadObject, GetObjectAttributes.

use bytes::Bytes;
use fulgurite_archive::{Archive, ArchiveError, BucketName, ObjectInfo, ObjectKey, ObjectReader};
use fulgurite_units::error_chain;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{HeaderMap, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use s3s::dto::{
    Checksum, ChecksumMode, GetObjectAttributesInput, GetObjectAttributesOutput,
    GetObjectAttributesParts, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput,
    ObjectAttributes, StorageClass, StreamingBlob,
};
use s3s::{Body, S3Request, S3Response, S3Result};

use super::conditions::{self, ReadConditions};
use super::errors::{fail, s3_error};
use super::words::{
    check_version, checksum_type, class_header, encryption, etag, length, names, not_implemented,
    object_name, restore_header, set_checksum, timestamp,
};
use super::{meta, ranges};
use crate::s3::answers::StatusOverride;

/// The fields that GetObject and HeadObject have in common, filled from an object.
macro_rules! described {
    ($output:ident, $object:expr, $with_checksum:expr) => {{
        let object: &ObjectInfo = $object;
        let stored = &object.meta;
        let content_type = stored.content_type.as_deref().unwrap_or(meta::DEFAULT_CONTENT_TYPE);
        let mut output = $output {
            accept_ranges: Some("bytes".to_owned()),
            cache_control: stored.cache_control.clone(),
            content_disposition: stored.content_disposition.clone(),
            content_encoding: stored.content_encoding.clone(),
            content_language: stored.content_language.clone(),
            content_type: Some(content_type.to_owned()),
            e_tag: Some(etag(&object.etag)),
            last_modified: Some(timestamp(object.modified)),
            metadata: meta::user(stored),
            parts_count: object.part_count.and_then(|count| i32::try_from(count).ok()),
            restore: object.restore.map(restore_header),
            server_side_encryption: Some(encryption()),
            storage_class: class_header(object.class),
            website_redirect_location: stored.website_redirect.clone(),
            ..Default::default()
        };
        if $with_checksum {
            output.checksum_type = object.checksum.as_ref().map(checksum_type);
            set_checksum!(output, &object.checksum);
        }
        output
    }};
}

pub(super) async fn get(
    archive: &Archive,
    request: S3Request<GetObjectInput>,
) -> S3Result<S3Response<GetObjectOutput>> {
    let S3Request { input, headers, extensions, .. } = request;
    let name = object_name(&input.bucket, &input.key)?;
    check_version(input.version_id.as_deref())?;
    let Opened { mut reader, is_range } = open(archive, &name, &headers).await?;
    check_part(input.part_number, &reader.info)?;
    // Bytes that cannot be read must be an error and not a broken connection, if that is known
    // before the first of them is sent.
    let first = reader.next().await.transpose().map_err(fail)?;
    let is_part = is_range || input.part_number.is_some() && reader.info.bytes > 0;
    let with_checksum = !is_range && wants_checksum(input.checksum_mode.as_ref());
    let mut output = described!(GetObjectOutput, &reader.info, with_checksum);
    output.content_length = length(reader.bytes);
    output.content_range =
        is_part.then(|| content_range(reader.first, reader.bytes, reader.info.bytes));
    let response_headers = match extensions.get() {
        Some(wanted) => meta::expires_wanted(wanted)?,
        None => meta::expires_header(&reader.info.meta),
    };
    output.body = Some(body(first, reader));
    Ok(S3Response::with_headers(output, response_headers))
}

/// An object that is read, and whether only the range that was asked for.
struct Opened {
    reader: ObjectReader,
    is_range: bool,
}

/// Opens an object if it is the one that is meant. Whether it is comes before which bytes of it are
/// wanted.
async fn open(
    archive: &Archive,
    (bucket, key): &(BucketName, ObjectKey),
    headers: &HeaderMap,
) -> S3Result<Opened> {
    let conditions = ReadConditions::of_read(headers);
    let range = ranges::of_read(headers);
    match archive.get(bucket, key, range).await {
        Ok(reader) if range.is_none() || conditions::range_holds(headers, &reader.info) => {
            conditions.check(&reader.info)?;
            return Ok(Opened { reader, is_range: range.is_some() });
        }
        Ok(_) => {}
        Err(ArchiveError::InvalidRange { .. }) => {
            let object = archive.head(bucket, key).await.map_err(fail)?;
            conditions.check(&object)?;
            if conditions::range_holds(headers, &object) {
                return Err(ranges::unsatisfiable(headers, object.bytes));
            }
        }
        Err(error) => return Err(fail(error)),
    }
    let reader = archive.get(bucket, key, None).await.map_err(fail)?;
    conditions.check(&reader.info)?;
    Ok(Opened { reader, is_range: false })
}

pub(super) async fn head(
    archive: &Archive,
    request: S3Request<HeadObjectInput>,
) -> S3Result<S3Response<HeadObjectOutput>> {
    let S3Request { input, headers, .. } = request;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    check_version(input.version_id.as_deref())?;
    let object = archive.head(&bucket, &key).await.map_err(fail)?;
    ReadConditions::of_read(&headers).check(&object)?;
    check_part(input.part_number, &object)?;
    let range = ranges::of_read(&headers).filter(|_| conditions::range_holds(&headers, &object));
    let with_checksum = range.is_none() && wants_checksum(input.checksum_mode.as_ref());
    let mut output = described!(HeadObjectOutput, &object, with_checksum);
    output.content_length = length(object.bytes);
    let mut part = None;
    if let Some(range) = range {
        let resolved = range.resolve(object.bytes);
        part = Some(resolved.map_err(|_| ranges::unsatisfiable(&headers, object.bytes))?);
    } else if input.part_number.is_some() && object.bytes > 0 {
        part = Some((0, object.bytes));
    }
    if let Some((first, bytes)) = part {
        output.content_length = length(bytes);
        output.content_range = Some(content_range(first, bytes, object.bytes));
    }
    let mut response = S3Response::with_headers(output, meta::expires_header(&object.meta));
    if part.is_some() {
        response.extensions.insert(StatusOverride(StatusCode::PARTIAL_CONTENT));
    }
    Ok(response)
}

pub(super) async fn attributes(
    archive: &Archive,
    request: S3Request<GetObjectAttributesInput>,
) -> S3Result<S3Response<GetObjectAttributesOutput>> {
    let input = request.input;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    check_version(input.version_id.as_deref())?;
    let object = archive.head(&bucket, &key).await.map_err(fail)?;
    let wanted: Vec<&str> = input.object_attributes.iter().map(ObjectAttributes::as_str).collect();
    let wants = |name: &str| names(wanted.iter().copied(), name);
    let mut output = GetObjectAttributesOutput {
        last_modified: Some(timestamp(object.modified)),
        ..Default::default()
    };
    if wants(ObjectAttributes::ETAG) {
        output.e_tag = Some(etag(&object.etag));
    }
    if wants(ObjectAttributes::OBJECT_SIZE) {
        output.object_size = length(object.bytes);
    }
    if wants(ObjectAttributes::STORAGE_CLASS) {
        output.storage_class = Some(StorageClass::from_static(object.class.name()));
    }
    if wants(ObjectAttributes::CHECKSUM)
        && let Some(checksum) = &object.checksum
    {
        let mut shown =
            Checksum { checksum_type: Some(checksum_type(checksum)), ..Default::default() };
        set_checksum!(shown, Some(checksum));
        output.checksum = Some(shown);
    }
    if wants(ObjectAttributes::OBJECT_PARTS) {
        output.object_parts = object.part_count.map(|count| GetObjectAttributesParts {
            total_parts_count: i32::try_from(count).ok(),
            ..Default::default()
        });
    }
    Ok(S3Response::new(output))
}

fn content_range(first: u64, bytes: u64, whole: u64) -> String {
    format!("bytes {first}-{}/{whole}", first + bytes.saturating_sub(1))
}

fn wants_checksum(mode: Option<&ChecksumMode>) -> bool {
    mode.is_some_and(|mode| mode.as_str() == ChecksumMode::ENABLED)
}

/// An object that was put in one call is its own only part. Where the parts of others began is not
/// kept.
fn check_part(number: Option<i32>, object: &ObjectInfo) -> S3Result<()> {
    match (number, object.part_count) {
        (None, _) | (Some(1), None) => Ok(()),
        (Some(_), Some(_)) => Err(not_implemented("Reading an object by partNumber")),
        (Some(_), None) => {
            let message = "The requested partnumber is not satisfiable";
            Err(s3_error("InvalidPartNumber", StatusCode::RANGE_NOT_SATISFIABLE, message))
        }
    }
}

/// The bytes of a reader as a body, without copying. An error in mid-body ends the connection: the
/// length was promised already, so the client cannot take the rest for whole.
fn body(first: Option<Bytes>, reader: ObjectReader) -> StreamingBlob {
    let rest = stream::unfold(reader, |mut reader| async move {
        let bytes = reader.next().await?;
        Some((bytes, reader))
    });
    let all = stream::iter(first.map(Ok))
        .chain(rest)
        .inspect_err(|error: &ArchiveError| {
            tracing::error!(error = error_chain(error), "an object could not be read to its end");
        })
        .map_ok(Frame::data);
    StreamingBlob::from(Body::http_body_unsync(StreamBody::new(all)))
}
