//! Buckets: create, list, delete. All are in one region, and none is versioned.

use fulgurite_archive::Archive;
use s3s::dto::{
    Bucket, CreateBucketInput, CreateBucketOutput, DeleteBucketInput, DeleteBucketOutput,
    GetBucketLocationInput, GetBucketLocationOutput, HeadBucketInput, HeadBucketOutput,
    ListBucketsInput, ListBucketsOutput,
};
use s3s::{S3Request, S3Response, S3Result};

use super::conversions::{REGION, bucket_name, owner, page_limit, timestamp};
use super::errors::to_s3_error;
use crate::limits::BUCKETS_MAX;

pub(super) async fn create(
    archive: &Archive,
    request: S3Request<CreateBucketInput>,
) -> S3Result<S3Response<CreateBucketOutput>> {
    let bucket = bucket_name(&request.input.bucket)?;
    archive.create_bucket(&bucket).await.map_err(to_s3_error)?;
    let location = Some(format!("/{bucket}"));
    Ok(S3Response::new(CreateBucketOutput { location }))
}

pub(super) async fn delete(
    archive: &Archive,
    request: S3Request<DeleteBucketInput>,
) -> S3Result<S3Response<DeleteBucketOutput>> {
    let bucket = bucket_name(&request.input.bucket)?;
    archive.delete_bucket(&bucket).await.map_err(to_s3_error)?;
    Ok(S3Response::new(DeleteBucketOutput::default()))
}

pub(super) async fn head(
    archive: &Archive,
    request: S3Request<HeadBucketInput>,
) -> S3Result<S3Response<HeadBucketOutput>> {
    let bucket = bucket_name(&request.input.bucket)?;
    archive.head_bucket(&bucket).await.map_err(to_s3_error)?;
    let bucket_region = Some(REGION.to_owned());
    Ok(S3Response::new(HeadBucketOutput { bucket_region, ..Default::default() }))
}

pub(super) async fn list(
    archive: &Archive,
    request: S3Request<ListBucketsInput>,
) -> S3Result<S3Response<ListBucketsOutput>> {
    let input = request.input;
    let limit = page_limit(input.max_buckets, BUCKETS_MAX, "max-buckets")?;
    let prefix = input.prefix.clone().unwrap_or_default();
    let after = input.continuation_token.unwrap_or_default();
    let mut found = archive.list_buckets().await.map_err(to_s3_error)?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found.retain(|bucket| bucket.name.starts_with(&prefix) && bucket.name > after);
    let has_more = found.len() > limit;
    found.truncate(limit);
    let continuation_token = found.last().filter(|_| has_more).map(|bucket| bucket.name.clone());
    let buckets = found
        .into_iter()
        .map(|bucket| Bucket {
            bucket_region: Some(REGION.to_owned()),
            creation_date: Some(timestamp(bucket.created)),
            name: Some(bucket.name),
        })
        .collect();
    Ok(S3Response::new(ListBucketsOutput {
        buckets: Some(buckets),
        continuation_token,
        owner: Some(owner()),
        prefix: input.prefix,
    }))
}

/// Returns the region of a bucket. For the default region the constraint is an empty element.
pub(super) async fn location(
    archive: &Archive,
    request: S3Request<GetBucketLocationInput>,
) -> S3Result<S3Response<GetBucketLocationOutput>> {
    let bucket = bucket_name(&request.input.bucket)?;
    archive.head_bucket(&bucket).await.map_err(to_s3_error)?;
    Ok(S3Response::new(GetBucketLocationOutput::default()))
}
