//! Access control: s3s's hooks for admission, hosts and bucket names.

use std::sync::Arc;

use fulgurite_archive::BucketName;
use http::{HeaderMap, StatusCode};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::host::{S3Host, VirtualHost};
use s3s::validation::NameValidation;
use s3s::{S3Error, S3Result};

use super::conversions::ACCOUNT;
use super::errors::{s3_error, with_details};
use crate::request::RequestContext;
use crate::s3::documents::is_read_for;
use crate::{GatewayError, Result};

/// Canned ACLs that describe the existing state: everything belongs to the one account.
const HARMLESS_ACLS: [&str; 3] = ["private", "bucket-owner-full-control", "bucket-owner-read"];
/// S3 checksums that this archive does not compute. Ignoring one would claim that it was verified.
const UNKNOWN_CHECKSUMS: [&str; 5] = [
    "x-amz-checksum-md5",
    "x-amz-checksum-sha512",
    "x-amz-checksum-xxhash64",
    "x-amz-checksum-xxhash3",
    "x-amz-checksum-xxhash128",
];

/// s3s's hook for secret keys. Signatures are verified and removed before s3s sees a request;
/// without this hook s3s would not call the access hook either.
pub(super) struct NoKeys;

#[async_trait::async_trait]
impl S3Auth for NoKeys {
    async fn get_secret_key(&self, _access_key: &str) -> S3Result<SecretKey> {
        Err(s3_error("AccessDenied", StatusCode::FORBIDDEN, "Access Denied"))
    }
}

/// Admits signed requests, and refuses those that ask for unsupported features.
pub(super) struct Admission;

#[async_trait::async_trait]
impl S3Access for Admission {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        let operation = cx.s3_op().name().to_owned();
        let context = cx.extensions_mut().get::<Arc<RequestContext>>();
        if let Some(context) = context {
            context.set_operation(&operation);
        }
        if !context.is_some_and(|context| context.is_signed()) {
            return Err(s3_error("AccessDenied", StatusCode::FORBIDDEN, "Access Denied"));
        }
        let document = context.and_then(|context| context.document());
        let is_read = is_read_for(cx.method(), &operation, document);
        check_headers(cx.headers())?;
        if is_read {
            return Ok(());
        }
        let message = format!("{operation} is not implemented yet");
        Err(s3_error("NotImplemented", StatusCode::NOT_IMPLEMENTED, message))
    }
}

/// Refuses headers that ask for unsupported features. If they were ignored, the client would
/// believe that they were honored.
fn check_headers(headers: &HeaderMap) -> S3Result<()> {
    for (name, value) in headers {
        let name = name.as_str();
        let Some(short) = name.strip_prefix("x-amz-") else { continue };
        let value = value.to_str().unwrap_or_default();
        let refused = match short {
            "acl" => (!HARMLESS_ACLS.contains(&value)).then(acl_error),
            "server-side-encryption" => check_encryption(name, value).err(),
            "tagging" => (!value.is_empty()).then(|| unsupported_header(name)),
            "write-offset-bytes" | "mfa" => Some(unsupported_header(name)),
            "bucket-object-lock-enabled" => {
                (!value.eq_ignore_ascii_case("false")).then(|| unsupported_header(name))
            }
            "expected-bucket-owner" | "source-expected-bucket-owner" => {
                (value != ACCOUNT).then(|| {
                    s3_error("AccessDenied", StatusCode::FORBIDDEN, "Access Denied: other owner")
                })
            }
            _ if short.starts_with("grant-") => Some(acl_error()),
            _ if short.starts_with("server-side-encryption")
                || short.starts_with("copy-source-server-side-encryption")
                || short.starts_with("object-lock-") =>
            {
                Some(unsupported_header(name))
            }
            _ if UNKNOWN_CHECKSUMS.contains(&name) => Some(s3_error(
                "InvalidRequest",
                StatusCode::BAD_REQUEST,
                format!("The checksum algorithm of {name} is not supported by this archive."),
            )),
            _ => None,
        };
        refused.map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// Every body is encrypted with a key that the archive keeps, which is what `AES256` asks for.
fn check_encryption(name: &str, value: &str) -> S3Result<()> {
    match value {
        "AES256" => Ok(()),
        "aws:kms" | "aws:kms:dsse" => Err(unsupported_header(name)),
        _ => {
            let message = "The encryption method specified is not supported: it is AES256";
            Err(s3_error("InvalidEncryptionAlgorithmError", StatusCode::BAD_REQUEST, message))
        }
    }
}

fn unsupported_header(name: &str) -> S3Error {
    let message =
        format!("A header you provided implies functionality that is not supported: {name}");
    let error = s3_error("NotImplemented", StatusCode::NOT_IMPLEMENTED, message);
    with_details(error, [("Header", name)])
}

fn acl_error() -> S3Error {
    let message = "The bucket does not allow ACLs";
    s3_error("AccessControlListNotSupported", StatusCode::BAD_REQUEST, message)
}

/// Base domains of virtual-host style requests, whose leading labels name the bucket; every other
/// host is path style.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    domains: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(domain: Option<&str>) -> Result<Self> {
        let mut domains = vec!["localhost".to_owned()];
        if let Some(domain) = domain {
            let label = |label: &str| {
                !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            };
            if !domain.split('.').all(label) {
                return Err(GatewayError::Domain { domain: domain.to_owned() });
            }
            domains.push(domain.to_ascii_lowercase());
        }
        Ok(Self { domains })
    }

    /// Returns the base domain of a host, and the bucket that it names.
    pub(crate) fn bucket_of(&self, host: &str) -> Option<(&str, String)> {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.to_ascii_lowercase();
        self.domains.iter().find_map(|domain| {
            let bucket = name.strip_suffix(domain.as_str())?.strip_suffix('.')?;
            Some((domain.as_str(), bucket.to_owned()))
        })
    }
}

impl S3Host for Hosts {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let found = self.bucket_of(host);
        let found = found.map(|(domain, bucket)| VirtualHost::new(domain).with_bucket(bucket));
        Ok(found.unwrap_or_else(|| VirtualHost::new(host)))
    }
}

/// Validates bucket names by the archive's rules, so that there is one set of them.
pub(super) struct BucketNameRules;

impl NameValidation for BucketNameRules {
    fn validate_bucket_name(&self, name: &str) -> bool {
        BucketName::new(name).is_ok()
    }
}

#[cfg(test)]
mod tests;
