//! S3's operations in terms of the archive. Each is a few lines of translation: what S3 says goes
//! in, what the archive answers goes out. Nothing is decided here that the archive could decide.
//!
//! Operations that are not in this list answer `NotImplemented`; `docs/s3-compatibility.md` is the
//! same list for people.

mod access;
mod buckets;
mod claims;
mod conditions;
mod copy;
mod delete;
mod errors;
mod list;
mod meta;
mod multipart;
mod multipart_list;
mod read;
mod restore;
mod versions;
mod words;
mod write;

use std::sync::Arc;

use fulgurite_archive::Archive;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CreateBucketInput,
    CreateBucketOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteBucketInput,
    DeleteBucketOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, GetBucketLocationInput, GetBucketLocationOutput, GetBucketVersioningInput,
    GetBucketVersioningOutput, GetObjectAttributesInput, GetObjectAttributesOutput, GetObjectInput,
    GetObjectOutput, GetObjectTaggingInput, GetObjectTaggingOutput, HeadBucketInput,
    HeadBucketOutput, HeadObjectInput, HeadObjectOutput, ListBucketsInput, ListBucketsOutput,
    ListMultipartUploadsInput, ListMultipartUploadsOutput, ListObjectVersionsInput,
    ListObjectVersionsOutput, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, ListPartsInput, ListPartsOutput, PutObjectInput, PutObjectOutput,
    RestoreObjectInput, RestoreObjectOutput, UploadPartCopyInput, UploadPartCopyOutput,
    UploadPartInput, UploadPartOutput,
};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3, S3Request, S3Response, S3Result};

pub(crate) use self::access::Hosts;
use self::access::{Admission, Names, NoKeys};
use crate::Result;
use crate::limits::XML_BYTES_MAX;

/// The S3 service over `archive`, for requests whose signature was verified.
pub(crate) fn service(archive: Archive, domain: Option<&str>) -> Result<S3Service> {
    let mut config = S3Config::default();
    config.xml_max_body_size = XML_BYTES_MAX;
    let mut builder = S3ServiceBuilder::new(Adapter { archive });
    builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
    builder.set_auth(NoKeys);
    builder.set_access(Admission);
    builder.set_host(Hosts::new(domain)?);
    builder.set_validation(Names);
    Ok(builder.build())
}

struct Adapter {
    archive: Archive,
}

/// One line per operation: S3's name, and the function that serves it.
macro_rules! operations {
    ($($name:ident($input:ty) -> $output:ty = $function:path;)*) => {
        #[async_trait::async_trait]
        impl S3 for Adapter {
            $(
                async fn $name(
                    &self,
                    request: S3Request<$input>,
                ) -> S3Result<S3Response<$output>> {
                    $function(&self.archive, request).await
                }
            )*
        }
    };
}

operations! {
    create_bucket(CreateBucketInput) -> CreateBucketOutput = buckets::create;
    delete_bucket(DeleteBucketInput) -> DeleteBucketOutput = buckets::delete;
    head_bucket(HeadBucketInput) -> HeadBucketOutput = buckets::head;
    list_buckets(ListBucketsInput) -> ListBucketsOutput = buckets::list;
    get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput = buckets::location;
    get_bucket_versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput
        = buckets::versioning;
    put_object(PutObjectInput) -> PutObjectOutput = write::put;
    get_object(GetObjectInput) -> GetObjectOutput = read::get;
    head_object(HeadObjectInput) -> HeadObjectOutput = read::head;
    get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput
        = read::attributes;
    get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput = read::tagging;
    list_objects(ListObjectsInput) -> ListObjectsOutput = list::v1;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output = list::v2;
    list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput = versions::list;
    delete_object(DeleteObjectInput) -> DeleteObjectOutput = delete::one;
    delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput = delete::many;
    copy_object(CopyObjectInput) -> CopyObjectOutput = copy::object;
    restore_object(RestoreObjectInput) -> RestoreObjectOutput = restore::restore;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput
        = multipart::create;
    upload_part(UploadPartInput) -> UploadPartOutput = write::part;
    upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput = copy::part;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput
        = multipart::complete;
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput
        = multipart::abort;
    list_multipart_uploads(ListMultipartUploadsInput) -> ListMultipartUploadsOutput
        = multipart_list::uploads;
    list_parts(ListPartsInput) -> ListPartsOutput = multipart_list::parts;
}
