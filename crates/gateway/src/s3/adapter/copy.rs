//! CopyObject and UploadPartCopy. A copy is a body of its own with a key of its own: the archive
//! reads the source and encrypts it again, so deleting one never touches the other.

use fulgurite_archive::{
    Archive, BodyClaim, BucketName, ByteRange, ChecksumAlgorithm, ObjectInfo, ObjectKey,
    ObjectMeta, PutOptions,
};
use http::HeaderMap;
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopyPartResult, CopySource, Metadata,
    MetadataDirective, Range, UploadPartCopyInput, UploadPartCopyOutput,
};
use s3s::{S3Error, S3Request, S3Response, S3Result};

use super::conditions::ReadConditions;
use super::conversions::{
    check_version, checksum_type, encryption, etag, invalid_argument, invalid_request,
    new_object_name, not_implemented, object_name, set_checksum, storage_class, timestamp,
    upload_id,
};
use super::errors::{to_copy_error, to_s3_error};
use super::multipart::part_number;
use super::{conditions, meta};

const SELF_COPY: &str = "This copy request is illegal because it is trying to copy an object to \
                         itself without changing the object's metadata, storage class, website \
                         redirect location or encryption attributes.";

pub(super) async fn object(
    archive: &Archive,
    request: S3Request<CopyObjectInput>,
) -> S3Result<S3Response<CopyObjectOutput>> {
    let S3Request { input, headers, .. } = request;
    let to = new_object_name(&input.bucket, &input.key)?;
    let from = source_name(&input.copy_source)?;
    let source = archive.head(&from.0, &from.1).await.map_err(to_s3_error)?;
    ReadConditions::for_copy(&headers)?.check_copy(&source)?;
    let replaces = replaces_metadata(input.metadata_directive.as_ref())?;
    let class_name = input.storage_class.as_ref().map(|class| class.as_str());
    let redirect = meta::website_redirect(&headers)?;
    // Any attribute that the request names counts as a change, even if the object already has that
    // value.
    let names_change = replaces
        || class_name.is_some()
        || redirect.is_some()
        || input.server_side_encryption.is_some();
    if from == to && !names_change {
        return Err(invalid_request(SELF_COPY));
    }
    let algorithm = match &input.checksum_algorithm {
        Some(name) => Some(parse_algorithm(name.as_str())?),
        None => source.checksum.as_ref().map(|checksum| checksum.algorithm),
    };
    let options = PutOptions {
        class: storage_class(class_name)?,
        meta: copied_meta(replaces, &headers, input.metadata, &source, redirect)?,
        condition: conditions::for_write(&headers)?,
        claim: BodyClaim { algorithm, ..Default::default() },
    };
    let copied = archive.copy((&from.0, &from.1), (&to.0, &to.1), options).await;
    let copied = copied.map_err(to_copy_error)?;
    let mut result = CopyObjectResult {
        e_tag: Some(etag(&copied.etag)),
        last_modified: Some(timestamp(copied.modified)),
        checksum_type: copied.checksum.as_ref().map(checksum_type),
        ..Default::default()
    };
    set_checksum!(result, &copied.checksum);
    Ok(S3Response::new(CopyObjectOutput {
        copy_object_result: Some(result),
        server_side_encryption: Some(encryption()),
        ..Default::default()
    }))
}

pub(super) async fn part(
    archive: &Archive,
    request: S3Request<UploadPartCopyInput>,
) -> S3Result<S3Response<UploadPartCopyOutput>> {
    let S3Request { input, headers, .. } = request;
    let to = object_name(&input.bucket, &input.key)?;
    let from = source_name(&input.copy_source)?;
    let upload = upload_id(&input.upload_id)?;
    let number = part_number(input.part_number)?;
    let range = input.copy_source_range.as_deref().map(source_range).transpose()?;
    let source = archive.head(&from.0, &from.1).await.map_err(to_s3_error)?;
    ReadConditions::for_copy(&headers)?.check_copy(&source)?;
    if let Some((_, last)) = range
        && last >= source.bytes
    {
        return Err(range_beyond_source(source.bytes));
    }
    let requested = range.map(|(first, last)| last - first + 1);
    let range = range.map(|(first, last)| ByteRange::From { first, last: Some(last) });
    let copied = archive
        .copy_part((&from.0, &from.1), range, &to.0, &to.1, upload, number)
        .await
        .map_err(to_copy_error)?;
    // The source may have been overwritten since its length was read. The part is stored, but the
    // client gets an error: uploading or copying the part again replaces it.
    if requested.is_some_and(|requested| requested != copied.bytes) {
        return Err(range_beyond_source(source.bytes));
    }
    let mut result = CopyPartResult {
        e_tag: Some(etag(&copied.etag)),
        last_modified: Some(timestamp(copied.modified)),
        ..Default::default()
    };
    set_checksum!(result, &copied.checksum);
    Ok(S3Response::new(UploadPartCopyOutput {
        copy_part_result: Some(result),
        server_side_encryption: Some(encryption()),
        ..Default::default()
    }))
}

fn source_name(source: &CopySource) -> S3Result<(BucketName, ObjectKey)> {
    match source {
        CopySource::Bucket { bucket, key, version_id } => {
            check_version(version_id.as_deref())?;
            object_name(bucket, key)
        }
        CopySource::AccessPoint { .. } | CopySource::Outpost { .. } => {
            Err(not_implemented("Copies from access points"))
        }
    }
}

fn replaces_metadata(directive: Option<&MetadataDirective>) -> S3Result<bool> {
    match directive.map(MetadataDirective::as_str) {
        None | Some(MetadataDirective::COPY) => Ok(false),
        Some(MetadataDirective::REPLACE) => Ok(true),
        Some(_) => Err(invalid_argument("Unknown metadata directive.")),
    }
}

fn copied_meta(
    replaces: bool,
    headers: &HeaderMap,
    user: Option<Metadata>,
    source: &ObjectInfo,
    website_redirect: Option<String>,
) -> S3Result<ObjectMeta> {
    if replaces {
        return meta::from_request(headers, user);
    }
    Ok(ObjectMeta { website_redirect, ..source.meta.clone() })
}

pub(super) fn parse_algorithm(name: &str) -> S3Result<ChecksumAlgorithm> {
    ChecksumAlgorithm::parse(name).ok_or_else(|| {
        invalid_request(
            "Checksum algorithm provided is unsupported. Please try again with any of \
                         the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
        )
    })
}

/// Returns the error for a range beyond the source. A short part instead would be a hole in an
/// object.
fn range_beyond_source(bytes: u64) -> S3Error {
    invalid_argument(format!("Range specified is not valid for source object of size: {bytes}"))
}

/// Parses a range of a source to its first and its last byte.
fn source_range(text: &str) -> S3Result<(u64, u64)> {
    match Range::parse(text) {
        Ok(Range::Int { first, last: Some(last) }) if first <= last => Ok((first, last)),
        _ => Err(invalid_argument(
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first \
             and last are the zero-based offsets of the first and last bytes to copy",
        )),
    }
}
