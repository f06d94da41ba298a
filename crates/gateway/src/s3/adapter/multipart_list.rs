//! ListMultipartUploads and ListParts.

use fulgurite_archive::{Archive, BucketName, PartInfo, UploadInfo};
use fulgurite_units::UploadId;
use s3s::dto::{
    CommonPrefix, ListMultipartUploadsInput, ListMultipartUploadsOutput, ListPartsInput,
    ListPartsOutput, MultipartUpload, Part, StorageClass,
};
use s3s::{S3Request, S3Response, S3Result};

use super::conversions::{
    algorithm_name, bucket_name, checksum_type_name, etag, initiator, invalid_argument, length,
    object_name, owner, page_limit, set_checksum, timestamp, upload_id,
};
use super::errors::to_s3_error;
use super::list::Encoding;
use crate::limits::PAGE_ENTRIES_MAX;

/// Where a page of uploads begins.
type Marker = (String, Option<UploadId>);

pub(super) async fn uploads(
    archive: &Archive,
    request: S3Request<ListMultipartUploadsInput>,
) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
    let input = request.input;
    let bucket = bucket_name(&input.bucket)?;
    let encoding = Encoding::parse(input.encoding_type.as_ref())?;
    let limit = page_limit(input.max_uploads, PAGE_ENTRIES_MAX, "max-uploads")?;
    let marker = marker(input.key_marker.as_deref(), input.upload_id_marker.as_deref())?;
    let query = UploadQuery {
        prefix: input.prefix.as_deref().unwrap_or_default(),
        delimiter: input.delimiter.as_deref().filter(|text| !text.is_empty()),
        limit,
    };
    let page = collect(archive, &bucket, &query, marker).await?;
    let (next_key, next_upload) = page.next.map_or((None, None), |(key, id)| (Some(key), id));
    let encode = |text: Option<String>| text.map(|text| encoding.encode(text));
    Ok(S3Response::new(ListMultipartUploadsOutput {
        bucket: Some(input.bucket),
        common_prefixes: Some(
            page.prefixes
                .into_iter()
                .map(|text| CommonPrefix { prefix: Some(encoding.encode(text)) })
                .collect(),
        ),
        delimiter: encode(input.delimiter),
        is_truncated: Some(next_key.is_some()),
        key_marker: Some(encoding.encode(input.key_marker.unwrap_or_default())),
        max_uploads: i32::try_from(limit).ok(),
        next_key_marker: encode(next_key),
        next_upload_id_marker: next_upload.map(|id| id.to_string()),
        prefix: Some(encoding.encode(input.prefix.unwrap_or_default())),
        upload_id_marker: Some(input.upload_id_marker.unwrap_or_default()),
        uploads: Some(
            page.uploads.into_iter().map(|upload| encode_upload(upload, encoding)).collect(),
        ),
        encoding_type: input.encoding_type,
        request_charged: None,
    }))
}

pub(super) async fn parts(
    archive: &Archive,
    request: S3Request<ListPartsInput>,
) -> S3Result<S3Response<ListPartsOutput>> {
    let input = request.input;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    let id = upload_id(&input.upload_id)?;
    let limit = page_limit(input.max_parts, PAGE_ENTRIES_MAX, "max-parts")?;
    let after = u32::try_from(input.part_number_marker.unwrap_or(0))
        .map_err(|_| invalid_argument("part-number-marker is negative"))?;
    let (upload, parts, has_more) =
        archive.list_parts(&bucket, &key, id, after, limit).await.map_err(to_s3_error)?;
    let last = parts.last().map_or(after, |part| part.number);
    Ok(S3Response::new(ListPartsOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        checksum_algorithm: upload.algorithm.map(algorithm_name),
        checksum_type: upload.algorithm.map(|_| checksum_type_name(upload.full_object)),
        initiator: Some(initiator()),
        owner: Some(owner()),
        is_truncated: Some(has_more),
        max_parts: i32::try_from(limit).ok(),
        part_number_marker: i32::try_from(after).ok(),
        next_part_number_marker: i32::try_from(last).ok(),
        parts: Some(parts.into_iter().map(encode_part).collect()),
        storage_class: Some(StorageClass::from_static(upload.class.name())),
        ..Default::default()
    }))
}

fn marker(key: Option<&str>, upload: Option<&str>) -> S3Result<Option<Marker>> {
    let Some(key) = key.filter(|key| !key.is_empty()) else { return Ok(None) };
    let upload = upload.filter(|id| !id.is_empty()).map(str::parse).transpose();
    let upload = upload.map_err(|_| invalid_argument("Invalid uploadId marker"))?;
    Ok(Some((key.to_owned(), upload)))
}

struct UploadQuery<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    limit: usize,
}

impl UploadQuery<'_> {
    /// Returns the common prefix that `key` is grouped under, if it has one.
    fn common_prefix(&self, key: &str) -> Option<String> {
        let delimiter = self.delimiter?;
        let rest = key.strip_prefix(self.prefix)?;
        let end = rest.find(delimiter)? + delimiter.len();
        Some(format!("{}{}", self.prefix, &rest[..end]))
    }
}

#[derive(Default)]
struct UploadPage {
    uploads: Vec<UploadInfo>,
    prefixes: Vec<String>,
    next: Option<Marker>,
}

/// Collects a page. Uploads in progress are few, so those under a common prefix are read and
/// skipped.
async fn collect(
    archive: &Archive,
    bucket: &BucketName,
    query: &UploadQuery<'_>,
    mut marker: Option<Marker>,
) -> S3Result<UploadPage> {
    let mut page = UploadPage::default();
    if query.limit == 0 {
        archive.head_bucket(bucket).await.map_err(to_s3_error)?;
        return Ok(page);
    }
    loop {
        let after = marker.clone();
        let (found, has_more) = archive
            .list_uploads(bucket, query.prefix, after, PAGE_ENTRIES_MAX)
            .await
            .map_err(to_s3_error)?;
        for upload in found {
            let position = (upload.key.clone(), Some(upload.upload_id));
            let common = query.common_prefix(&upload.key);
            let is_known = common.is_some() && common.as_ref() == page.prefixes.last();
            if !is_known && page.uploads.len() + page.prefixes.len() == query.limit {
                page.next = marker;
                return Ok(page);
            }
            match common {
                Some(_) if is_known => {}
                Some(prefix) => page.prefixes.push(prefix),
                None => page.uploads.push(upload),
            }
            marker = Some(position);
        }
        if !has_more {
            return Ok(page);
        }
    }
}

fn encode_upload(upload: UploadInfo, encoding: Encoding) -> MultipartUpload {
    MultipartUpload {
        checksum_algorithm: upload.algorithm.map(algorithm_name),
        checksum_type: upload.algorithm.map(|_| checksum_type_name(upload.full_object)),
        initiated: Some(timestamp(upload.initiated)),
        initiator: Some(initiator()),
        key: Some(encoding.encode(upload.key)),
        owner: Some(owner()),
        storage_class: Some(StorageClass::from_static(upload.class.name())),
        upload_id: Some(upload.upload_id.to_string()),
    }
}

fn encode_part(part: PartInfo) -> Part {
    let mut shown = Part {
        e_tag: Some(etag(&part.etag)),
        last_modified: Some(timestamp(part.modified)),
        part_number: i32::try_from(part.number).ok(),
        size: length(part.bytes),
        ..Default::default()
    };
    set_checksum!(shown, &part.checksum);
    shown
}
