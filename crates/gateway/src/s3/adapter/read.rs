//! Reads: GetObject, HeadObject, GetObjectAttributes.

use bytes::Bytes;
use fulgurite_archive::{
    Archive, ArchiveError, BucketName, ChecksumAlgorithm, ObjectInfo, ObjectKey, ObjectPart,
    ObjectParts, ObjectReader,
};
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
use s3s::{Body, S3Error, S3Request, S3Response, S3Result};

use super::conditions::{self, ReadConditions};
use super::conversions::{
    check_version, checksum_type, class_header, encryption, etag, invalid_argument,
    invalid_request, length, list_contains, object_name, page_limit, restore_header, set_checksum,
    timestamp,
};
use super::errors::to_s3_error;
use super::multipart::part_number;
use super::{meta, ranges};
use crate::limits::PAGE_ENTRIES_MAX;
use crate::s3::responses::{BareEntityTag, StatusOverride};

/// Builds the output of GetObject or HeadObject from an object, and from the requested part, if
/// any.
macro_rules! object_output {
    ($output:ident, $object:expr, $part:expr, $checksum:expr) => {{
        let object: &ObjectInfo = $object;
        let part: Option<&ObjectPart> = $part;
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
            parts_count: part.and(object.part_count).and_then(|count| i32::try_from(count).ok()),
            restore: object.restore.map(restore_header),
            server_side_encryption: Some(encryption()),
            storage_class: class_header(object.class),
            website_redirect_location: stored.website_redirect.clone(),
            ..Default::default()
        };
        if let Some(checksum) = $checksum {
            output.checksum_type = object.checksum.as_ref().map(checksum_type);
            set_checksum!(output, Some(checksum));
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
    let requested = requested_part(input.part_number, &headers)?;
    let Opened { mut reader, is_range } = open(archive, &name, &headers, requested).await?;
    // Read the first bytes before responding: an object that cannot be read should give an error
    // and not a broken connection.
    let first = reader.next().await.transpose().map_err(to_s3_error)?;
    let is_partial = is_range || reader.part.is_some() && reader.bytes > 0;
    let checksum = checksum_of(&reader.info, reader.part.as_ref(), is_range)
        .filter(|_| wants_checksum(input.checksum_mode.as_ref()));
    let mut output = object_output!(GetObjectOutput, &reader.info, reader.part.as_ref(), checksum);
    output.content_length = length(reader.bytes);
    output.content_range =
        is_partial.then(|| content_range(reader.first, reader.bytes, reader.info.bytes));
    let response_headers = match extensions.get() {
        Some(wanted) => meta::expires_override(wanted)?,
        None => meta::expires_header(&reader.info.meta),
    };
    output.body = Some(body(first, reader));
    Ok(S3Response::with_headers(output, response_headers))
}

/// An opened object, and whether only the requested range of it is read.
struct Opened {
    reader: ObjectReader,
    is_range: bool,
}

/// Opens an object, or the requested part of it, if its conditions hold. Conditions are checked
/// before ranges.
async fn open(
    archive: &Archive,
    (bucket, key): &(BucketName, ObjectKey),
    headers: &HeaderMap,
    part: Option<u32>,
) -> S3Result<Opened> {
    let conditions = ReadConditions::for_read(headers);
    let range = ranges::for_read(headers);
    let opened = match part {
        Some(number) => archive.get_part(bucket, key, number).await,
        None => archive.get(bucket, key, range).await,
    };
    match opened {
        Ok(reader) if range.is_none() || conditions::range_holds(headers, &reader.info) => {
            conditions.check(&reader.info)?;
            return Ok(Opened { reader, is_range: range.is_some() });
        }
        Ok(_) => {}
        Err(error @ ArchiveError::InvalidPartNumber { .. }) => {
            let object = archive.head(bucket, key).await.map_err(to_s3_error)?;
            conditions.check(&object)?;
            return Err(to_s3_error(error));
        }
        Err(ArchiveError::InvalidRange { .. }) => {
            let object = archive.head(bucket, key).await.map_err(to_s3_error)?;
            conditions.check(&object)?;
            if conditions::range_holds(headers, &object) {
                return Err(ranges::unsatisfiable(headers, object.bytes));
            }
        }
        Err(error) => return Err(to_s3_error(error)),
    }
    let reader = archive.get(bucket, key, None).await.map_err(to_s3_error)?;
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
    let requested = requested_part(input.part_number, &headers)?;
    let (object, part) = find(archive, (&bucket, &key), requested).await?;
    ReadConditions::for_read(&headers).check(&object)?;
    if let (Some(number), None) = (requested, &part) {
        return Err(no_such_part(number, &object));
    }
    let range = ranges::for_read(&headers).filter(|_| conditions::range_holds(&headers, &object));
    let checksum = checksum_of(&object, part.as_ref(), range.is_some())
        .filter(|_| wants_checksum(input.checksum_mode.as_ref()));
    let mut output = object_output!(HeadObjectOutput, &object, part.as_ref(), checksum);
    output.content_length = length(object.bytes);
    let mut span = None;
    if let Some(range) = range {
        let resolved = range.resolve(object.bytes);
        span = Some(resolved.map_err(|_| ranges::unsatisfiable(&headers, object.bytes))?);
    } else if let Some(part) = &part {
        output.content_length = length(part.bytes);
        span = Some((part.first, part.bytes)).filter(|_| part.bytes > 0);
    }
    if let Some((first, bytes)) = span {
        output.content_length = length(bytes);
        output.content_range = Some(content_range(first, bytes, object.bytes));
    }
    let mut response = S3Response::with_headers(output, meta::expires_header(&object.meta));
    if span.is_some() {
        response.extensions.insert(StatusOverride(StatusCode::PARTIAL_CONTENT));
    }
    Ok(response)
}

/// The attributes that GetObjectAttributes can return.
const ATTRIBUTES: [&str; 5] = [
    ObjectAttributes::CHECKSUM,
    ObjectAttributes::ETAG,
    ObjectAttributes::OBJECT_PARTS,
    ObjectAttributes::OBJECT_SIZE,
    ObjectAttributes::STORAGE_CLASS,
];

pub(super) async fn attributes(
    archive: &Archive,
    request: S3Request<GetObjectAttributesInput>,
) -> S3Result<S3Response<GetObjectAttributesOutput>> {
    let input = request.input;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    check_version(input.version_id.as_deref())?;
    let wanted: Vec<&str> = input.object_attributes.iter().map(ObjectAttributes::as_str).collect();
    let mut requested = wanted.iter().flat_map(|line| line.split(',')).map(str::trim);
    if !requested.all(|name| ATTRIBUTES.contains(&name)) {
        return Err(invalid_argument("Invalid attribute name specified."));
    }
    let wants = |name: &str| list_contains(wanted.iter().copied(), name);
    let (object, parts) = if wants(ObjectAttributes::OBJECT_PARTS) {
        let page = (input.part_number_marker, input.max_parts);
        attributes_of_parts(archive, (&bucket, &key), page).await?
    } else {
        (archive.head(&bucket, &key).await.map_err(to_s3_error)?, None)
    };
    let mut output = GetObjectAttributesOutput {
        last_modified: Some(timestamp(object.modified)),
        object_parts: parts,
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
    let mut response = S3Response::new(output);
    response.extensions.insert(BareEntityTag);
    Ok(response)
}

/// Returns an object and its parts as GetObjectAttributes shows them. As in S3, parts are listed
/// only if the client chose the checksum algorithm and every part has a checksum; otherwise there
/// is only their count.
async fn attributes_of_parts(
    archive: &Archive,
    (bucket, key): (&BucketName, &ObjectKey),
    (marker, limit): (Option<i32>, Option<i32>),
) -> S3Result<(ObjectInfo, Option<GetObjectAttributesParts>)> {
    let limit = page_limit(limit, PAGE_ENTRIES_MAX, "max-parts")?;
    let after = u32::try_from(marker.unwrap_or_default())
        .map_err(|_| invalid_argument("part-number-marker is negative"))?;
    let found = match archive.parts(bucket, key, after, limit).await {
        Err(ArchiveError::PartsNotKept { .. }) => {
            let info = archive.head(bucket, key).await.map_err(to_s3_error)?;
            ObjectParts { info, parts: Vec::new(), is_more: false }
        }
        found => found.map_err(to_s3_error)?,
    };
    let Some(count) = found.info.part_count else { return Ok((found.info, None)) };
    let total_parts_count = i32::try_from(count).ok();
    let mut shown = GetObjectAttributesParts { total_parts_count, ..Default::default() };
    let chosen = found.info.checksum.as_ref().map(|checksum| checksum.algorithm);
    let has_own = chosen.is_some_and(|algorithm| algorithm != ChecksumAlgorithm::Crc64Nvme);
    if has_own && found.parts.iter().all(|part| part.checksum.is_some()) {
        shown.is_truncated = Some(found.is_more);
        shown.max_parts = i32::try_from(limit).ok();
        shown.part_number_marker = i32::try_from(after).ok();
        let last = found.parts.last().map_or(after, |part| part.number);
        shown.next_part_number_marker = i32::try_from(last).ok();
        shown.parts = Some(found.parts.iter().map(attributes_of_part).collect());
    }
    Ok((found.info, Some(shown)))
}

fn attributes_of_part(part: &ObjectPart) -> s3s::dto::ObjectPart {
    let mut shown = s3s::dto::ObjectPart {
        part_number: i32::try_from(part.number).ok(),
        size: length(part.bytes),
        ..Default::default()
    };
    set_checksum!(shown, &part.checksum);
    shown
}

fn content_range(first: u64, bytes: u64, whole: u64) -> String {
    format!("bytes {first}-{}/{whole}", first + bytes.saturating_sub(1))
}

fn wants_checksum(mode: Option<&ChecksumMode>) -> bool {
    mode.is_some_and(|mode| mode.as_str() == ChecksumMode::ENABLED)
}

/// Returns the requested part, which excludes a range.
fn requested_part(number: Option<i32>, headers: &HeaderMap) -> S3Result<Option<u32>> {
    let number = number.map(part_number).transpose()?;
    if number.is_some() && ranges::for_read(headers).is_some() {
        let message = "Cannot specify both Range header and partNumber query parameter";
        return Err(invalid_request(message));
    }
    Ok(number)
}

/// Returns an object, and the requested part of it, if it exists.
async fn find(
    archive: &Archive,
    (bucket, key): (&BucketName, &ObjectKey),
    requested: Option<u32>,
) -> S3Result<(ObjectInfo, Option<ObjectPart>)> {
    let Some(number) = requested else {
        return Ok((archive.head(bucket, key).await.map_err(to_s3_error)?, None));
    };
    let found = archive.parts(bucket, key, number - 1, 1).await.map_err(to_s3_error)?;
    Ok((found.info, found.parts.into_iter().next()))
}

fn no_such_part(number: u32, object: &ObjectInfo) -> S3Error {
    to_s3_error(ArchiveError::InvalidPartNumber { number, count: object.part_count.unwrap_or(1) })
}

/// Returns the checksum of the response: of a part its own, of any other range none.
fn checksum_of<'a>(
    object: &'a ObjectInfo,
    part: Option<&'a ObjectPart>,
    is_range: bool,
) -> Option<&'a fulgurite_archive::Checksum> {
    match part {
        Some(part) => part.checksum.as_ref(),
        None => object.checksum.as_ref().filter(|_| !is_range),
    }
}

/// Streams a reader as a body, without copying. An error in mid-body ends the connection: the
/// length was already sent, so the client cannot mistake the bytes for the whole object.
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
