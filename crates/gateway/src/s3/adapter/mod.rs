//! Maps S3's operations to calls of the archive. Each is a few lines of translation of the request
//! and the response. Nothing is decided here that the archive could decide.
//!
//! Operations that are not in this list answer `NotImplemented`; `docs/s3-compatibility.md` is the
//! same list for people.

mod access;
mod bucket_settings;
mod buckets;
mod claims;
mod conditions;
mod conversions;
mod copy;
mod delete;
mod errors;
mod list;
mod meta;
mod multipart;
mod multipart_list;
mod ranges;
mod read;
mod restore;
mod versions;
mod write;

use std::sync::Arc;

use fulgurite_archive::Archive;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CreateBucketInput,
    CreateBucketOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteBucketInput,
    DeleteBucketOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, GetBucketAccelerateConfigurationInput,
    GetBucketAccelerateConfigurationOutput, GetBucketAclInput, GetBucketAclOutput,
    GetBucketAnalyticsConfigurationInput, GetBucketAnalyticsConfigurationOutput,
    GetBucketCorsInput, GetBucketCorsOutput, GetBucketEncryptionInput, GetBucketEncryptionOutput,
    GetBucketIntelligentTieringConfigurationInput, GetBucketIntelligentTieringConfigurationOutput,
    GetBucketInventoryConfigurationInput, GetBucketInventoryConfigurationOutput,
    GetBucketLifecycleConfigurationInput, GetBucketLifecycleConfigurationOutput,
    GetBucketLocationInput, GetBucketLocationOutput, GetBucketLoggingInput, GetBucketLoggingOutput,
    GetBucketMetricsConfigurationInput, GetBucketMetricsConfigurationOutput,
    GetBucketNotificationConfigurationInput, GetBucketNotificationConfigurationOutput,
    GetBucketOwnershipControlsInput, GetBucketOwnershipControlsOutput, GetBucketPolicyInput,
    GetBucketPolicyOutput, GetBucketPolicyStatusInput, GetBucketPolicyStatusOutput,
    GetBucketReplicationInput, GetBucketReplicationOutput, GetBucketRequestPaymentInput,
    GetBucketRequestPaymentOutput, GetBucketTaggingInput, GetBucketTaggingOutput,
    GetBucketVersioningInput, GetBucketVersioningOutput, GetBucketWebsiteInput,
    GetBucketWebsiteOutput, GetObjectAclInput, GetObjectAclOutput, GetObjectAttributesInput,
    GetObjectAttributesOutput, GetObjectInput, GetObjectLegalHoldInput, GetObjectLegalHoldOutput,
    GetObjectLockConfigurationInput, GetObjectLockConfigurationOutput, GetObjectOutput,
    GetObjectRetentionInput, GetObjectRetentionOutput, GetObjectTaggingInput,
    GetObjectTaggingOutput, GetPublicAccessBlockInput, GetPublicAccessBlockOutput, HeadBucketInput,
    HeadBucketOutput, HeadObjectInput, HeadObjectOutput, ListBucketAnalyticsConfigurationsInput,
    ListBucketAnalyticsConfigurationsOutput, ListBucketIntelligentTieringConfigurationsInput,
    ListBucketIntelligentTieringConfigurationsOutput, ListBucketInventoryConfigurationsInput,
    ListBucketInventoryConfigurationsOutput, ListBucketMetricsConfigurationsInput,
    ListBucketMetricsConfigurationsOutput, ListBucketsInput, ListBucketsOutput,
    ListMultipartUploadsInput, ListMultipartUploadsOutput, ListObjectVersionsInput,
    ListObjectVersionsOutput, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, ListPartsInput, ListPartsOutput, PutObjectInput, PutObjectOutput,
    RestoreObjectInput, RestoreObjectOutput, UploadPartCopyInput, UploadPartCopyOutput,
    UploadPartInput, UploadPartOutput,
};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3, S3Request, S3Response, S3Result};

pub(crate) use self::access::Hosts;
use self::access::{Admission, BucketNameRules, NoKeys};
use super::raw_headers;
use crate::limits::XML_BYTES_MAX;

/// Returns the S3 service over `archive`, for requests whose signature was verified.
pub(crate) fn service(archive: Archive, hosts: Hosts) -> S3Service {
    let mut config = S3Config::default();
    config.xml_max_body_size = XML_BYTES_MAX;
    let mut builder = S3ServiceBuilder::new(Adapter { archive });
    builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
    builder.set_auth(NoKeys);
    builder.set_access(Admission);
    builder.set_host(hosts);
    builder.set_validation(BucketNameRules);
    builder.build()
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
                    mut request: S3Request<$input>,
                ) -> S3Result<S3Response<$output>> {
                    raw_headers::restore(&mut request.headers, &mut request.extensions);
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
    put_object(PutObjectInput) -> PutObjectOutput = write::put;
    get_object(GetObjectInput) -> GetObjectOutput = read::get;
    head_object(HeadObjectInput) -> HeadObjectOutput = read::head;
    get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput
        = read::attributes;
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
    get_bucket_accelerate_configuration(GetBucketAccelerateConfigurationInput)
        -> GetBucketAccelerateConfigurationOutput = bucket_settings::acceleration;
    get_bucket_acl(GetBucketAclInput) -> GetBucketAclOutput = bucket_settings::acl;
    get_bucket_analytics_configuration(GetBucketAnalyticsConfigurationInput)
        -> GetBucketAnalyticsConfigurationOutput = bucket_settings::analytics;
    get_bucket_cors(GetBucketCorsInput) -> GetBucketCorsOutput = bucket_settings::cors;
    get_bucket_encryption(GetBucketEncryptionInput) -> GetBucketEncryptionOutput
        = bucket_settings::encryption_rules;
    get_bucket_intelligent_tiering_configuration(GetBucketIntelligentTieringConfigurationInput)
        -> GetBucketIntelligentTieringConfigurationOutput = bucket_settings::intelligent_tiering;
    get_bucket_inventory_configuration(GetBucketInventoryConfigurationInput)
        -> GetBucketInventoryConfigurationOutput = bucket_settings::inventory;
    get_bucket_lifecycle_configuration(GetBucketLifecycleConfigurationInput)
        -> GetBucketLifecycleConfigurationOutput = bucket_settings::lifecycle;
    get_bucket_logging(GetBucketLoggingInput) -> GetBucketLoggingOutput = bucket_settings::logging;
    get_bucket_metrics_configuration(GetBucketMetricsConfigurationInput)
        -> GetBucketMetricsConfigurationOutput = bucket_settings::metrics;
    get_bucket_notification_configuration(GetBucketNotificationConfigurationInput)
        -> GetBucketNotificationConfigurationOutput = bucket_settings::notification;
    get_bucket_ownership_controls(GetBucketOwnershipControlsInput)
        -> GetBucketOwnershipControlsOutput = bucket_settings::ownership;
    get_bucket_policy(GetBucketPolicyInput) -> GetBucketPolicyOutput = bucket_settings::policy;
    get_bucket_policy_status(GetBucketPolicyStatusInput) -> GetBucketPolicyStatusOutput
        = bucket_settings::policy_status;
    get_bucket_replication(GetBucketReplicationInput) -> GetBucketReplicationOutput
        = bucket_settings::replication;
    get_bucket_request_payment(GetBucketRequestPaymentInput) -> GetBucketRequestPaymentOutput
        = bucket_settings::request_payment;
    get_bucket_tagging(GetBucketTaggingInput) -> GetBucketTaggingOutput = bucket_settings::tagging;
    get_bucket_versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput
        = bucket_settings::versioning;
    get_bucket_website(GetBucketWebsiteInput) -> GetBucketWebsiteOutput = bucket_settings::website;
    get_object_acl(GetObjectAclInput) -> GetObjectAclOutput = bucket_settings::object_acl;
    get_object_legal_hold(GetObjectLegalHoldInput) -> GetObjectLegalHoldOutput
        = bucket_settings::legal_hold;
    get_object_lock_configuration(GetObjectLockConfigurationInput)
        -> GetObjectLockConfigurationOutput = bucket_settings::object_lock;
    get_object_retention(GetObjectRetentionInput) -> GetObjectRetentionOutput
        = bucket_settings::retention;
    get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput
        = bucket_settings::object_tagging;
    get_public_access_block(GetPublicAccessBlockInput) -> GetPublicAccessBlockOutput
        = bucket_settings::public_access;
    list_bucket_analytics_configurations(ListBucketAnalyticsConfigurationsInput)
        -> ListBucketAnalyticsConfigurationsOutput = bucket_settings::list_analytics;
    list_bucket_intelligent_tiering_configurations(ListBucketIntelligentTieringConfigurationsInput)
        -> ListBucketIntelligentTieringConfigurationsOutput
        = bucket_settings::list_intelligent_tiering;
    list_bucket_inventory_configurations(ListBucketInventoryConfigurationsInput)
        -> ListBucketInventoryConfigurationsOutput = bucket_settings::list_inventory;
    list_bucket_metrics_configurations(ListBucketMetricsConfigurationsInput)
        -> ListBucketMetricsConfigurationsOutput = bucket_settings::list_metrics;
}
