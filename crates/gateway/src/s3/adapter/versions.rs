//! ListObjectVersions: buckets are not versioned, so every object is its only version, whose id is
//! `null`.

use fulgurite_archive::{Archive, ListQuery, ObjectInfo};
use s3s::dto::{
    CommonPrefix, ListObjectVersionsInput, ListObjectVersionsOutput, ObjectVersion,
    ObjectVersionStorageClass,
};
use s3s::{S3Request, S3Response, S3Result};

use super::conversions::{
    NULL_VERSION, algorithm_name, bucket_name, check_version, checksum_type, etag,
    invalid_argument, length, owner, page_limit, timestamp,
};
use super::list::{Encoding, page, restore_status, wants_restore};
use crate::limits::PAGE_ENTRIES_MAX;

pub(super) async fn list(
    archive: &Archive,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<S3Response<ListObjectVersionsOutput>> {
    let input = request.input;
    let bucket = bucket_name(&input.bucket)?;
    let encoding = Encoding::parse(input.encoding_type.as_ref())?;
    let with_restore = wants_restore(input.optional_object_attributes.as_deref());
    let limit = page_limit(input.max_keys, PAGE_ENTRIES_MAX, "max-keys")?;
    check_marker(input.key_marker.as_deref(), input.version_id_marker.as_deref())?;
    let delimiter = input.delimiter.filter(|text| !text.is_empty());
    let query = ListQuery {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: delimiter.clone(),
        // A key has one version, which is also its last.
        after: input.key_marker.clone().filter(|text| !text.is_empty()),
        limit,
    };
    let page = page(archive, &bucket, query).await?;
    let ends_in_prefix = page.next.is_some() && page.next.as_ref() == page.prefixes.last();
    let next_version = page.next.as_ref().filter(|_| !ends_in_prefix).map(|_| NULL_VERSION);
    let prefixes = page.prefixes.into_iter();
    let prefixes = prefixes.map(|text| CommonPrefix { prefix: Some(encoding.encode(text)) });
    let versions = page.objects.into_iter();
    Ok(S3Response::new(ListObjectVersionsOutput {
        name: Some(input.bucket),
        prefix: Some(encoding.encode(input.prefix.unwrap_or_default())),
        key_marker: Some(encoding.encode(input.key_marker.unwrap_or_default())),
        version_id_marker: Some(input.version_id_marker.unwrap_or_default()),
        max_keys: i32::try_from(limit).ok(),
        is_truncated: Some(page.next.is_some()),
        next_key_marker: page.next.map(|text| encoding.encode(text)),
        next_version_id_marker: next_version.map(str::to_owned),
        versions: Some(versions.map(|object| encode(object, encoding, with_restore)).collect()),
        common_prefixes: Some(prefixes.collect()),
        delimiter: delimiter.map(|text| encoding.encode(text)),
        encoding_type: input.encoding_type,
        ..Default::default()
    }))
}

/// Checks that a version marker comes with its key.
fn check_marker(key: Option<&str>, version: Option<&str>) -> S3Result<()> {
    let Some(version) = version.filter(|version| !version.is_empty()) else { return Ok(()) };
    if key.is_none_or(str::is_empty) {
        let message = "A version-id marker cannot be specified without a key marker.";
        return Err(invalid_argument(message));
    }
    check_version(Some(version))
}

fn encode(object: ObjectInfo, encoding: Encoding, with_restore: bool) -> ObjectVersion {
    ObjectVersion {
        checksum_algorithm: object
            .checksum
            .as_ref()
            .map(|checksum| vec![algorithm_name(checksum.algorithm)]),
        checksum_type: object.checksum.as_ref().map(checksum_type),
        e_tag: Some(etag(&object.etag)),
        is_latest: Some(true),
        key: Some(encoding.encode(object.key)),
        last_modified: Some(timestamp(object.modified)),
        owner: Some(owner()),
        restore_status: object.restore.filter(|_| with_restore).map(restore_status),
        size: length(object.bytes),
        storage_class: Some(ObjectVersionStorageClass::from_static(object.class.name())),
        version_id: Some(NULL_VERSION.to_owned()),
    }
}
