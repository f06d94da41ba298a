//! Reads of bucket settings that cannot be set here, answered like S3 for a new bucket: with the
//! default, or with the error that there is none. Some tools read all of them before they do
//! anything (Terraform), when a bucket is opened (Cyberduck) or for information (s3cmd), and fail
//! at `NotImplemented`.
//!
//! Every response is true: one account owns everything, nothing is public, every body is encrypted
//! with AES-256, and there are no other payers, notifications or replicas.

use fulgurite_archive::{Archive, BucketName};
use http::StatusCode;
use s3s::dto::{
    GetBucketAccelerateConfigurationInput, GetBucketAccelerateConfigurationOutput,
    GetBucketAclInput, GetBucketAclOutput, GetBucketAnalyticsConfigurationInput,
    GetBucketAnalyticsConfigurationOutput, GetBucketCorsInput, GetBucketCorsOutput,
    GetBucketEncryptionInput, GetBucketEncryptionOutput,
    GetBucketIntelligentTieringConfigurationInput, GetBucketIntelligentTieringConfigurationOutput,
    GetBucketInventoryConfigurationInput, GetBucketInventoryConfigurationOutput,
    GetBucketLifecycleConfigurationInput, GetBucketLifecycleConfigurationOutput,
    GetBucketLoggingInput, GetBucketLoggingOutput, GetBucketMetricsConfigurationInput,
    GetBucketMetricsConfigurationOutput, GetBucketNotificationConfigurationInput,
    GetBucketNotificationConfigurationOutput, GetBucketOwnershipControlsInput,
    GetBucketOwnershipControlsOutput, GetBucketPolicyInput, GetBucketPolicyOutput,
    GetBucketPolicyStatusInput, GetBucketPolicyStatusOutput, GetBucketReplicationInput,
    GetBucketReplicationOutput, GetBucketRequestPaymentInput, GetBucketRequestPaymentOutput,
    GetBucketTaggingInput, GetBucketTaggingOutput, GetBucketVersioningInput,
    GetBucketVersioningOutput, GetBucketWebsiteInput, GetBucketWebsiteOutput, GetObjectAclInput,
    GetObjectAclOutput, GetObjectLegalHoldInput, GetObjectLegalHoldOutput,
    GetObjectLockConfigurationInput, GetObjectLockConfigurationOutput, GetObjectRetentionInput,
    GetObjectRetentionOutput, GetObjectTaggingInput, GetObjectTaggingOutput,
    GetPublicAccessBlockInput, GetPublicAccessBlockOutput, Grant, Grantee,
    ListBucketAnalyticsConfigurationsInput, ListBucketAnalyticsConfigurationsOutput,
    ListBucketIntelligentTieringConfigurationsInput,
    ListBucketIntelligentTieringConfigurationsOutput, ListBucketInventoryConfigurationsInput,
    ListBucketInventoryConfigurationsOutput, ListBucketMetricsConfigurationsInput,
    ListBucketMetricsConfigurationsOutput, ObjectOwnership, OwnershipControls,
    OwnershipControlsRule, Payer, Permission, PublicAccessBlockConfiguration, ServerSideEncryption,
    ServerSideEncryptionByDefault, ServerSideEncryptionConfiguration, ServerSideEncryptionRule,
    Type,
};
use s3s::{S3Error, S3Request, S3Response, S3Result};

use super::conversions::{
    bucket_name, check_version, encryption, invalid_request, object_name, owner,
};
use super::errors::{s3_error, to_s3_error, with_details};

/// Bucket settings for which S3 returns an error when they are not set: code and message.
macro_rules! not_configured {
    ($($name:ident($input:ty) -> $output:ty = $code:literal, $message:literal;)*) => {
        $(
            pub(super) async fn $name(
                archive: &Archive,
                request: S3Request<$input>,
            ) -> S3Result<S3Response<$output>> {
                let bucket = require_bucket(archive, &request.input.bucket).await?;
                Err(not_configured(&bucket, $code, $message))
            }
        )*
    };
}

/// Bucket settings for which S3 has a default.
macro_rules! default {
    ($($name:ident($input:ty) -> $output:ty = $value:expr;)*) => {
        $(
            pub(super) async fn $name(
                archive: &Archive,
                request: S3Request<$input>,
            ) -> S3Result<S3Response<$output>> {
                require_bucket(archive, &request.input.bucket).await?;
                Ok(S3Response::new($value))
            }
        )*
    };
}

not_configured! {
    policy(GetBucketPolicyInput) -> GetBucketPolicyOutput
        = "NoSuchBucketPolicy", "The bucket policy does not exist";
    policy_status(GetBucketPolicyStatusInput) -> GetBucketPolicyStatusOutput
        = "NoSuchBucketPolicy", "The bucket policy does not exist";
    cors(GetBucketCorsInput) -> GetBucketCorsOutput
        = "NoSuchCORSConfiguration", "The CORS configuration does not exist";
    lifecycle(GetBucketLifecycleConfigurationInput) -> GetBucketLifecycleConfigurationOutput
        = "NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist";
    tagging(GetBucketTaggingInput) -> GetBucketTaggingOutput
        = "NoSuchTagSet", "The TagSet does not exist";
    website(GetBucketWebsiteInput) -> GetBucketWebsiteOutput
        = "NoSuchWebsiteConfiguration",
          "The specified bucket does not have a website configuration";
    replication(GetBucketReplicationInput) -> GetBucketReplicationOutput
        = "ReplicationConfigurationNotFoundError",
          "The replication configuration was not found";
    object_lock(GetObjectLockConfigurationInput) -> GetObjectLockConfigurationOutput
        = "ObjectLockConfigurationNotFoundError",
          "Object Lock configuration does not exist for this bucket";
    analytics(GetBucketAnalyticsConfigurationInput) -> GetBucketAnalyticsConfigurationOutput
        = "NoSuchConfiguration", "The specified configuration does not exist.";
    intelligent_tiering(GetBucketIntelligentTieringConfigurationInput)
        -> GetBucketIntelligentTieringConfigurationOutput
        = "NoSuchConfiguration", "The specified configuration does not exist.";
    inventory(GetBucketInventoryConfigurationInput) -> GetBucketInventoryConfigurationOutput
        = "NoSuchConfiguration", "The specified configuration does not exist.";
    metrics(GetBucketMetricsConfigurationInput) -> GetBucketMetricsConfigurationOutput
        = "NoSuchConfiguration", "The specified configuration does not exist.";
}

default! {
    acl(GetBucketAclInput) -> GetBucketAclOutput
        = GetBucketAclOutput { grants: Some(vec![grant()]), owner: Some(owner()) };
    encryption_rules(GetBucketEncryptionInput) -> GetBucketEncryptionOutput
        = GetBucketEncryptionOutput {
            server_side_encryption_configuration: Some(encryption_config()),
        };
    ownership(GetBucketOwnershipControlsInput) -> GetBucketOwnershipControlsOutput
        = GetBucketOwnershipControlsOutput { ownership_controls: Some(bucket_owner_enforced()) };
    public_access(GetPublicAccessBlockInput) -> GetPublicAccessBlockOutput
        = GetPublicAccessBlockOutput {
            public_access_block_configuration: Some(public_access_block()),
        };
    request_payment(GetBucketRequestPaymentInput) -> GetBucketRequestPaymentOutput
        = GetBucketRequestPaymentOutput { payer: Some(Payer::from_static(Payer::BUCKET_OWNER)) };
    // A bucket that never had versioning has no status at all; the same goes for acceleration.
    versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput
        = GetBucketVersioningOutput::default();
    acceleration(GetBucketAccelerateConfigurationInput) -> GetBucketAccelerateConfigurationOutput
        = GetBucketAccelerateConfigurationOutput::default();
    logging(GetBucketLoggingInput) -> GetBucketLoggingOutput = GetBucketLoggingOutput::default();
    notification(GetBucketNotificationConfigurationInput)
        -> GetBucketNotificationConfigurationOutput
        = GetBucketNotificationConfigurationOutput::default();
    list_analytics(ListBucketAnalyticsConfigurationsInput)
        -> ListBucketAnalyticsConfigurationsOutput
        = ListBucketAnalyticsConfigurationsOutput {
            is_truncated: Some(false),
            ..Default::default()
        };
    list_intelligent_tiering(ListBucketIntelligentTieringConfigurationsInput)
        -> ListBucketIntelligentTieringConfigurationsOutput
        = ListBucketIntelligentTieringConfigurationsOutput {
            is_truncated: Some(false),
            ..Default::default()
        };
    list_inventory(ListBucketInventoryConfigurationsInput)
        -> ListBucketInventoryConfigurationsOutput
        = ListBucketInventoryConfigurationsOutput {
            is_truncated: Some(false),
            ..Default::default()
        };
    list_metrics(ListBucketMetricsConfigurationsInput) -> ListBucketMetricsConfigurationsOutput
        = ListBucketMetricsConfigurationsOutput { is_truncated: Some(false), ..Default::default() };
}

pub(super) async fn object_acl(
    archive: &Archive,
    request: S3Request<GetObjectAclInput>,
) -> S3Result<S3Response<GetObjectAclOutput>> {
    let (bucket, key) = object_name(&request.input.bucket, &request.input.key)?;
    check_version(request.input.version_id.as_deref())?;
    archive.head(&bucket, &key).await.map_err(to_s3_error)?;
    Ok(S3Response::new(GetObjectAclOutput {
        grants: Some(vec![grant()]),
        owner: Some(owner()),
        request_charged: None,
    }))
}

/// Tags are not supported, so every object has none.
pub(super) async fn object_tagging(
    archive: &Archive,
    request: S3Request<GetObjectTaggingInput>,
) -> S3Result<S3Response<GetObjectTaggingOutput>> {
    let (bucket, key) = object_name(&request.input.bucket, &request.input.key)?;
    check_version(request.input.version_id.as_deref())?;
    archive.head(&bucket, &key).await.map_err(to_s3_error)?;
    Ok(S3Response::new(GetObjectTaggingOutput::default()))
}

pub(super) async fn retention(
    archive: &Archive,
    request: S3Request<GetObjectRetentionInput>,
) -> S3Result<S3Response<GetObjectRetentionOutput>> {
    let bucket = require_bucket(archive, &request.input.bucket).await?;
    Err(no_object_lock(&bucket))
}

pub(super) async fn legal_hold(
    archive: &Archive,
    request: S3Request<GetObjectLegalHoldInput>,
) -> S3Result<S3Response<GetObjectLegalHoldOutput>> {
    let bucket = require_bucket(archive, &request.input.bucket).await?;
    Err(no_object_lock(&bucket))
}

/// Checks first that the bucket exists.
async fn require_bucket(archive: &Archive, name: &str) -> S3Result<BucketName> {
    let bucket = bucket_name(name)?;
    archive.head_bucket(&bucket).await.map_err(to_s3_error)?;
    Ok(bucket)
}

fn not_configured(bucket: &BucketName, code: &'static str, message: &'static str) -> S3Error {
    let error = s3_error(code, StatusCode::NOT_FOUND, message);
    with_details(error, [("BucketName", bucket.as_str())])
}

fn no_object_lock(bucket: &BucketName) -> S3Error {
    let error = invalid_request("Bucket is missing Object Lock Configuration");
    with_details(error, [("BucketName", bucket.as_str())])
}

fn grant() -> Grant {
    let owner = owner();
    Grant {
        grantee: Some(Grantee {
            display_name: owner.display_name,
            email_address: None,
            id: owner.id,
            type_: Type::from_static(Type::CANONICAL_USER),
            uri: None,
        }),
        permission: Some(Permission::from_static(Permission::FULL_CONTROL)),
    }
}

fn encryption_config() -> ServerSideEncryptionConfiguration {
    let sse_algorithm: ServerSideEncryption = encryption();
    ServerSideEncryptionConfiguration {
        rules: vec![ServerSideEncryptionRule {
            apply_server_side_encryption_by_default: Some(ServerSideEncryptionByDefault {
                kms_master_key_id: None,
                sse_algorithm,
            }),
            bucket_key_enabled: Some(false),
        }],
    }
}

/// ACLs are disabled.
fn bucket_owner_enforced() -> OwnershipControls {
    let name = ObjectOwnership::BUCKET_OWNER_ENFORCED;
    OwnershipControls {
        rules: vec![OwnershipControlsRule { object_ownership: ObjectOwnership::from_static(name) }],
    }
}

fn public_access_block() -> PublicAccessBlockConfiguration {
    PublicAccessBlockConfiguration {
        block_public_acls: Some(true),
        block_public_policy: Some(true),
        ignore_public_acls: Some(true),
        restrict_public_buckets: Some(true),
    }
}
