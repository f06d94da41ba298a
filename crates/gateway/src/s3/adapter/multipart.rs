//! Multipart uploads: create, complete, abort. Their parts are written in `write` and `copy`.

use std::collections::BTreeSet;

use fulgurite_archive::{
    Archive, ArchiveError, BucketName, ChecksumAlgorithm, CompletedPart, ObjectKey, UploadInfo,
    UploadOptions,
};
use fulgurite_units::UploadId;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, ChecksumType,
    CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CreateMultipartUploadInput,
    CreateMultipartUploadOutput,
};
use s3s::{S3Request, S3Response, S3Result};

use super::conversions::{
    algorithm_name, checksum_type, checksum_type_name, encryption, etag, invalid_argument,
    invalid_request, malformed_xml, new_object_name, object_name, set_checksum, storage_class,
    upload_id,
};
use super::copy::parse_algorithm;
use super::errors::to_s3_error;
use super::{claims, conditions, meta};
use crate::limits::{PAGE_ENTRIES_MAX, PART_NUMBER_MAX};

pub(super) async fn create(
    archive: &Archive,
    request: S3Request<CreateMultipartUploadInput>,
) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
    let S3Request { input, headers, .. } = request;
    let (bucket, key) = new_object_name(&input.bucket, &input.key)?;
    let algorithm = input.checksum_algorithm.as_ref();
    let algorithm = algorithm.map(|name| parse_algorithm(name.as_str())).transpose()?;
    let full_object = is_full_object(algorithm, input.checksum_type.as_ref())?;
    let options = UploadOptions {
        class: storage_class(input.storage_class.as_ref().map(|class| class.as_str()))?,
        meta: meta::from_request(&headers, input.metadata)?,
        algorithm,
        full_object,
    };
    let upload = archive.create_upload(&bucket, &key, options).await.map_err(to_s3_error)?;
    Ok(S3Response::new(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(upload.upload_id.to_string()),
        checksum_algorithm: algorithm.map(algorithm_name),
        checksum_type: algorithm.map(|_| checksum_type_name(full_object)),
        server_side_encryption: Some(encryption()),
        ..Default::default()
    }))
}

pub(super) async fn complete(
    archive: &Archive,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
    let S3Request { input, headers, .. } = request;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    let upload = upload_id(&input.upload_id)?;
    let parts = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
    if parts.is_empty() {
        return Err(malformed_xml());
    }
    let parts = parts.into_iter().map(completed_part).collect::<S3Result<Vec<_>>>()?;
    let condition = conditions::for_write(&headers)?;
    let checksum = claims::checksum_of(&headers)?;
    if let Some(info) = find_upload(archive, (&bucket, &key), upload).await? {
        check_type(&info, input.checksum_type.as_ref())?;
        check_digests(&info, &parts)?;
    }
    if let Some(bytes) = input.mpu_object_size {
        check_size(archive, (&bucket, &key), upload, &parts, bytes).await?;
    }
    let object = archive
        .complete_upload(&bucket, &key, upload, parts, condition, checksum)
        .await
        .map_err(to_s3_error)?;
    let mut output = CompleteMultipartUploadOutput {
        location: Some(format!("/{}/{}", input.bucket, crate::percent::encode(&input.key))),
        bucket: Some(input.bucket),
        key: Some(input.key),
        e_tag: Some(etag(&object.etag)),
        checksum_type: object.checksum.as_ref().map(checksum_type),
        server_side_encryption: Some(encryption()),
        ..Default::default()
    };
    set_checksum!(output, &object.checksum);
    Ok(S3Response::new(output))
}

pub(super) async fn abort(
    archive: &Archive,
    request: S3Request<AbortMultipartUploadInput>,
) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
    let input = request.input;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    let upload = upload_id(&input.upload_id)?;
    archive.abort_upload(&bucket, &key, upload).await.map_err(to_s3_error)?;
    Ok(S3Response::new(AbortMultipartUploadOutput::default()))
}

/// Returns the upload as it was created; `None` when it no longer exists.
async fn find_upload(
    archive: &Archive,
    (bucket, key): (&BucketName, &ObjectKey),
    upload: UploadId,
) -> S3Result<Option<UploadInfo>> {
    match archive.list_parts(bucket, key, upload, 0, 1).await {
        Ok((info, _, _)) => Ok(Some(info)),
        Err(ArchiveError::NoSuchUpload { .. }) => Ok(None),
        Err(error) => Err(to_s3_error(error)),
    }
}

/// Returns the algorithm of an upload with a composite checksum (a checksum of its parts'
/// checksums), for which every part must have one.
fn composite_algorithm(upload: &UploadInfo) -> Option<ChecksumAlgorithm> {
    upload.algorithm.filter(|_| !upload.full_object)
}

/// Refuses a part without a checksum if its upload requires one.
pub(super) async fn check_digest_is_optional(
    archive: &Archive,
    name: (&BucketName, &ObjectKey),
    upload: UploadId,
) -> S3Result<()> {
    let info = find_upload(archive, name, upload).await?;
    let Some(algorithm) = info.as_ref().and_then(composite_algorithm) else { return Ok(()) };
    Err(invalid_request(format!(
        "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: null",
        algorithm.name().to_ascii_lowercase()
    )))
}

/// Compares the checksum type of a completion with that of its upload.
fn check_type(upload: &UploadInfo, named: Option<&ChecksumType>) -> S3Result<()> {
    let Some(named) = parse_type(named)? else { return Ok(()) };
    if named == upload.full_object {
        return Ok(());
    }
    Err(invalid_request(format!(
        "The upload was created using the {} checksum mode. The complete request must use the \
         same checksum mode.",
        checksum_type_name(upload.full_object).as_str()
    )))
}

fn check_digests(upload: &UploadInfo, parts: &[CompletedPart]) -> S3Result<()> {
    let Some(algorithm) = composite_algorithm(upload) else { return Ok(()) };
    let has_digest = |part: &CompletedPart| {
        part.checksum.as_ref().is_some_and(|checksum| checksum.algorithm == algorithm)
    };
    let Some(missing) = parts.iter().find(|part| !has_digest(part)) else { return Ok(()) };
    Err(invalid_request(format!(
        "The upload was created using a {} checksum. The complete request must include the \
         checksum for each part. It was missing for part {} in the request.",
        algorithm.name().to_ascii_lowercase(),
        missing.number
    )))
}

/// Parses a checksum type; true for the full object.
fn parse_type(named: Option<&ChecksumType>) -> S3Result<Option<bool>> {
    match named.map(ChecksumType::as_str) {
        None => Ok(None),
        Some(ChecksumType::FULL_OBJECT) => Ok(Some(true)),
        Some(ChecksumType::COMPOSITE) => Ok(Some(false)),
        Some(_) => Err(invalid_request("Value for x-amz-checksum-type header is invalid.")),
    }
}

/// Compares the size that the client expects with the sizes of its parts. An upload that no longer
/// exists was completed before, when the same comparison was made.
async fn check_size(
    archive: &Archive,
    (bucket, key): (&BucketName, &ObjectKey),
    upload: UploadId,
    named: &[CompletedPart],
    expected: i64,
) -> S3Result<()> {
    let numbers: BTreeSet<u32> = named.iter().map(|part| part.number).collect();
    let mut bytes = 0;
    let mut after = 0;
    loop {
        let page = archive.list_parts(bucket, key, upload, after, PAGE_ENTRIES_MAX).await;
        let (_, parts, has_more) = match page {
            Ok(page) => page,
            Err(ArchiveError::NoSuchUpload { .. }) => return Ok(()),
            Err(error) => return Err(to_s3_error(error)),
        };
        let requested = parts.iter().filter(|part| numbers.contains(&part.number));
        bytes += requested.map(|part| part.bytes).sum::<u64>();
        match parts.last() {
            Some(last) if has_more => after = last.number,
            _ => break,
        }
    }
    if u64::try_from(expected).ok() == Some(bytes) {
        return Ok(());
    }
    Err(invalid_request(format!(
        "The provided 'x-amz-mp-object-size' header value {expected} does not match what was \
         computed: {bytes}"
    )))
}

/// Checks a part number: 1 to 10,000.
pub(super) fn part_number(number: i32) -> S3Result<u32> {
    match u32::try_from(number) {
        Ok(checked @ 1..) if number <= PART_NUMBER_MAX => Ok(checked),
        _ => Err(invalid_argument("Part number must be an integer between 1 and 10000, inclusive")),
    }
}

fn completed_part(part: s3s::dto::CompletedPart) -> S3Result<CompletedPart> {
    use ChecksumAlgorithm::{Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
    let named = [
        (Crc32, &part.checksum_crc32),
        (Crc32c, &part.checksum_crc32c),
        (Crc64Nvme, &part.checksum_crc64nvme),
        (Sha1, &part.checksum_sha1),
        (Sha256, &part.checksum_sha256),
    ];
    let mut named =
        named.into_iter().filter_map(|(algorithm, text)| Some((algorithm, text.as_ref()?)));
    let checksum = named.next().map(|(algorithm, text)| {
        fulgurite_archive::Checksum::parse(algorithm, text)
            .map_err(|_| invalid_request("a part's checksum is not valid"))
    });
    if named.next().is_some() {
        return Err(invalid_request("a part has more than one checksum"));
    }
    Ok(CompletedPart {
        number: part_number(part.part_number.ok_or_else(malformed_xml)?)?,
        etag: part.e_tag.ok_or_else(malformed_xml)?.into_value(),
        checksum: checksum.transpose()?,
    })
}

/// Returns whether the checksum covers the full object. CRCs of parts can be combined to one of the
/// whole, SHAs cannot.
fn is_full_object(
    algorithm: Option<ChecksumAlgorithm>,
    requested: Option<&ChecksumType>,
) -> S3Result<bool> {
    let Some(algorithm) = algorithm else {
        return match requested {
            Some(_) => Err(invalid_request(
                "The x-amz-checksum-type header can only be used with the \
                 x-amz-checksum-algorithm header.",
            )),
            None => Ok(true),
        };
    };
    let only = match algorithm {
        ChecksumAlgorithm::Crc64Nvme => Some(true),
        ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => Some(false),
        ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c => None,
    };
    match (parse_type(requested)?, only) {
        (Some(requested), Some(only)) if requested != only => Err(invalid_request(format!(
            "The {} checksum type cannot be used with the {} checksum algorithm.",
            checksum_type_name(requested).as_str(),
            algorithm.name().to_ascii_lowercase(),
        ))),
        (requested, only) => Ok(requested.or(only).unwrap_or(false)),
    }
}

#[cfg(test)]
mod tests;
