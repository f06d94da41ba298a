//! The few XML documents this client reads and writes.

use std::fmt::Write as _;

use quick_xml::escape::escape;
use serde::Deserialize;

use super::error::S3Error;
use super::uri::percent_decode;

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Key.
    pub key: String,
    /// Plain bytes.
    pub bytes: u64,
    /// RFC 3339 text as the server sent it.
    pub modified: String,
    /// Entity tag without quotes.
    pub etag: String,
    /// Storage class; `STANDARD` when the server did not say.
    pub class: String,
    /// Restored copy, when the server reports one.
    pub restore: Option<RestoreStatus>,
}

impl ListedObject {
    /// Whether GET now answers 403 `InvalidObjectState`.
    pub fn needs_restore(&self) -> bool {
        is_archived_class(&self.class)
            && !matches!(self.restore, Some(RestoreStatus { in_progress: false, .. }))
    }
}

/// Whether objects of `class` must be restored before they are read.
pub fn is_archived_class(class: &str) -> bool {
    matches!(class, "GLACIER" | "DEEP_ARCHIVE")
}

/// State of a restored copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreStatus {
    /// The copy is being made.
    pub in_progress: bool,
    /// When it expires.
    pub expiry: Option<String>,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Objects in key order.
    pub objects: Vec<ListedObject>,
    /// Common prefixes, when a delimiter was given.
    pub prefixes: Vec<String>,
    /// Token of the next page.
    pub next: Option<String>,
}

/// A bucket in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBucket {
    /// Name.
    pub name: String,
    /// RFC 3339 text as the server sent it.
    pub created: String,
}

/// The error document of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct ErrorDocument {
    /// S3 error code.
    pub code: String,
    /// Text for people.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListBucketResult {
    #[serde(default)]
    contents: Vec<Contents>,
    #[serde(default)]
    common_prefixes: Vec<CommonPrefix>,
    #[serde(default)]
    is_truncated: bool,
    next_continuation_token: Option<String>,
    encoding_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Contents {
    #[serde(default)]
    key: String,
    size: u64,
    #[serde(default)]
    last_modified: String,
    #[serde(rename = "ETag", default)]
    etag: String,
    storage_class: Option<String>,
    restore_status: Option<RestoreStatusXml>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RestoreStatusXml {
    #[serde(default)]
    is_restore_in_progress: bool,
    restore_expiry_date: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CommonPrefix {
    #[serde(default)]
    prefix: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListAllMyBucketsResult {
    #[serde(default)]
    buckets: Buckets,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Buckets {
    bucket: Vec<BucketXml>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BucketXml {
    name: String,
    #[serde(default)]
    creation_date: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InitiateMultipartUploadResult {
    upload_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeleteResult {
    #[serde(default, rename = "Error")]
    errors: Vec<DeleteFailure>,
}

/// A key that `DeleteObjects` could not delete.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeleteFailure {
    /// Key.
    #[serde(default)]
    pub key: String,
    /// S3 error code.
    #[serde(default)]
    pub code: String,
    /// Text for people.
    #[serde(default)]
    pub message: String,
}

fn parse<'de, T: Deserialize<'de>>(operation: &'static str, text: &'de str) -> Result<T, S3Error> {
    quick_xml::de::from_str(text)
        .map_err(|error| S3Error::Protocol { operation, reason: error.to_string() })
}

/// Parses a `ListObjectsV2` answer.
pub(super) fn parse_list(text: &str) -> Result<ListPage, S3Error> {
    let operation = "ListObjectsV2";
    let document: ListBucketResult = parse(operation, text)?;
    let is_encoded = document.encoding_type.as_deref() == Some("url");
    let name = |raw: String| -> Result<String, S3Error> {
        if !is_encoded {
            return Ok(raw);
        }
        percent_decode(&raw).ok_or_else(|| S3Error::Protocol {
            operation,
            reason: format!("key \"{raw}\" is not percent-encoded UTF-8"),
        })
    };
    let objects = document.contents.into_iter().map(|contents| {
        Ok(ListedObject {
            key: name(contents.key)?,
            bytes: contents.size,
            modified: contents.last_modified,
            etag: contents.etag.trim_matches('"').to_owned(),
            class: contents.storage_class.unwrap_or_else(|| "STANDARD".to_owned()),
            restore: contents.restore_status.map(|status| RestoreStatus {
                in_progress: status.is_restore_in_progress,
                expiry: status.restore_expiry_date,
            }),
        })
    });
    let objects = objects.collect::<Result<Vec<_>, S3Error>>()?;
    let prefixes = document.common_prefixes.into_iter().map(|common| name(common.prefix));
    let prefixes = prefixes.collect::<Result<Vec<_>, S3Error>>()?;
    let next = document.next_continuation_token.filter(|_| document.is_truncated);
    if document.is_truncated && next.is_none() {
        let reason = "truncated without a continuation token".to_owned();
        return Err(S3Error::Protocol { operation, reason });
    }
    Ok(ListPage { objects, prefixes, next })
}

/// Parses a `ListBuckets` answer.
pub(super) fn parse_buckets(text: &str) -> Result<Vec<ListedBucket>, S3Error> {
    let document: ListAllMyBucketsResult = parse("ListBuckets", text)?;
    let buckets = document.buckets.bucket.into_iter();
    Ok(buckets.map(|b| ListedBucket { name: b.name, created: b.creation_date }).collect())
}

/// Parses a `CreateMultipartUpload` answer.
pub(super) fn parse_upload_id(text: &str) -> Result<String, S3Error> {
    parse::<InitiateMultipartUploadResult>("CreateMultipartUpload", text).map(|d| d.upload_id)
}

/// Parses a `DeleteObjects` answer: the keys that could not be deleted.
pub(super) fn parse_delete(text: &str) -> Result<Vec<DeleteFailure>, S3Error> {
    parse::<DeleteResult>("DeleteObjects", text).map(|d| d.errors)
}

/// Parses an error document; returns an empty one for anything else.
pub(super) fn parse_error(text: &str) -> ErrorDocument {
    if text.contains("<Error") {
        quick_xml::de::from_str(text).unwrap_or_default()
    } else {
        ErrorDocument::default()
    }
}

/// Writes a `DeleteObjects` request.
pub(super) fn delete_request(keys: &[String]) -> String {
    let mut xml = String::from("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for key in keys {
        let _ = write!(xml, "<Object><Key>{}</Key></Object>", escape(key.as_str()));
    }
    xml.push_str("<Quiet>true</Quiet></Delete>");
    xml
}

/// An uploaded part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UploadedPart {
    /// 1 to 10,000.
    pub number: u64,
    /// Entity tag as the server sent it.
    pub etag: String,
    /// Its CRC-64/NVME.
    pub crc: u64,
    /// Its length.
    pub bytes: u64,
}

/// Writes a `CompleteMultipartUpload` request.
pub(super) fn complete_request(parts: &[UploadedPart]) -> String {
    let namespace = "http://s3.amazonaws.com/doc/2006-03-01/";
    let mut xml = format!("<CompleteMultipartUpload xmlns=\"{namespace}\">");
    for part in parts {
        let crc = super::checksum::crc64_text(part.crc);
        let etag = escape(part.etag.as_str());
        let _ = write!(
            xml,
            "<Part><ChecksumCRC64NVME>{crc}</ChecksumCRC64NVME><ETag>{etag}</ETag>\
             <PartNumber>{}</PartNumber></Part>",
            part.number
        );
    }
    xml.push_str("</CompleteMultipartUpload>");
    xml
}

/// Writes a `CompleteMultipartUpload` request for parts that the server copied: numbers and tags.
pub(super) fn complete_copy_request(parts: &[(u64, String)]) -> String {
    let namespace = "http://s3.amazonaws.com/doc/2006-03-01/";
    let mut xml = format!("<CompleteMultipartUpload xmlns=\"{namespace}\">");
    for (number, etag) in parts {
        let etag = escape(etag.as_str());
        let _ = write!(
            xml,
            "<Part><ETag>&quot;{etag}&quot;</ETag><PartNumber>{number}</PartNumber></Part>"
        );
    }
    xml.push_str("</CompleteMultipartUpload>");
    xml
}

/// Writes a `RestoreObject` request.
pub(super) fn restore_request(days: u32, tier: &str) -> String {
    format!(
        "<RestoreRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Days>{days}</Days>\
         <GlacierJobParameters><Tier>{tier}</Tier></GlacierJobParameters></RestoreRequest>"
    )
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct CompleteMultipartUploadResult {
    #[serde(rename = "ETag")]
    etag: String,
}

/// Returns the ETag of the answer to `CompleteMultipartUpload`, `CopyObject` or `UploadPartCopy`,
/// without quotes; empty when it has none.
pub(super) fn parse_etag(text: &str) -> String {
    let document: CompleteMultipartUploadResult = quick_xml::de::from_str(text).unwrap_or_default();
    document.etag.trim_matches('"').to_owned()
}
