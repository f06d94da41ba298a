//! DeleteObject and DeleteObjects.

use fulgurite_archive::{Archive, BucketName};
use futures::{StreamExt as _, stream};
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject,
    Error, ObjectIdentifier,
};
use s3s::{S3Request, S3Response, S3Result};

use super::conversions::{bucket_name, check_version, malformed_xml, not_implemented, object_name};
use super::errors::to_s3_error;
use crate::limits::{DELETE_CONCURRENCY, DELETE_KEYS_MAX};

const CONDITIONAL: &str = "Conditional deletes";

pub(super) async fn one(
    archive: &Archive,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<S3Response<DeleteObjectOutput>> {
    let input = request.input;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    check_version(input.version_id.as_deref())?;
    let is_conditional = input.if_match.is_some()
        || input.if_match_last_modified_time.is_some()
        || input.if_match_size.is_some();
    if is_conditional {
        return Err(not_implemented(CONDITIONAL));
    }
    archive.delete(&bucket, &key).await.map_err(to_s3_error)?;
    Ok(S3Response::new(DeleteObjectOutput::default()))
}

/// Deletes several keys; each succeeds or fails by itself. Several deletes run concurrently, so
/// that they share commits.
pub(super) async fn many(
    archive: &Archive,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<S3Response<DeleteObjectsOutput>> {
    let bucket = bucket_name(&request.input.bucket)?;
    let objects = request.input.delete.objects;
    if objects.is_empty() || objects.len() > DELETE_KEYS_MAX {
        return Err(malformed_xml());
    }
    archive.head_bucket(&bucket).await.map_err(to_s3_error)?;
    let quiet = request.input.delete.quiet.unwrap_or(false);
    let outcomes = stream::iter(objects.into_iter().map(|object| {
        let bucket = &bucket;
        async move {
            let outcome = delete_named(archive, bucket, &object).await;
            (object, outcome)
        }
    }))
    .buffered(DELETE_CONCURRENCY)
    .collect::<Vec<_>>()
    .await;
    let mut deleted = Vec::new();
    let mut errors = Vec::new();
    // The response repeats a version id that the request named.
    for (ObjectIdentifier { key, version_id, .. }, outcome) in outcomes {
        match outcome {
            Ok(()) if quiet => {}
            Ok(()) => {
                deleted.push(DeletedObject { key: Some(key), version_id, ..Default::default() });
            }
            Err(error) => errors.push(Error {
                code: Some(error.code().as_str().to_owned()),
                key: Some(key),
                message: error.message().map(str::to_owned),
                version_id,
            }),
        }
    }
    Ok(S3Response::new(DeleteObjectsOutput {
        deleted: Some(deleted),
        errors: Some(errors),
        request_charged: None,
    }))
}

async fn delete_named(
    archive: &Archive,
    bucket: &BucketName,
    object: &ObjectIdentifier,
) -> S3Result<()> {
    let (_, key) = object_name(bucket.as_str(), &object.key)?;
    check_version(object.version_id.as_deref())?;
    if object.e_tag.is_some() || object.last_modified_time.is_some() || object.size.is_some() {
        return Err(not_implemented(CONDITIONAL));
    }
    archive.delete(bucket, &key).await.map_err(to_s3_error)?;
    Ok(())
}
