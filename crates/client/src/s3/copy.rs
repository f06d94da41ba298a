//! Server-side copies: no byte passes through the client.
//!
//! ```text
//! up to 5 GiB  CopyObject, bound to the entity tag that was seen
//! above        CreateMultipartUpload with the source's metadata, UploadPartCopy of ranges, then
//!              CompleteMultipartUpload
//! ```

use std::borrow::Cow;

use futures::{StreamExt as _, TryStreamExt as _};
use reqwest::Method;
use reqwest::header::HeaderMap;

use super::client::{Call, Client, Headers};
use super::error::S3Error;
use super::uri::percent_encode;
use super::xml;
use crate::limits;

/// The source of a copy.
#[derive(Clone, Copy, Debug)]
pub struct CopySource<'a> {
    /// Bucket.
    pub bucket: &'a str,
    /// Key.
    pub key: &'a str,
    /// Its length when it was listed.
    pub bytes: u64,
    /// Its entity tag then: another object of that name is not copied.
    pub etag: &'a str,
}

impl CopySource<'_> {
    fn headers(self) -> Headers {
        let path = format!("/{}/{}", self.bucket, percent_encode(self.key, true));
        vec![
            ("x-amz-copy-source".into(), path),
            ("x-amz-copy-source-if-match".into(), format!("\"{}\"", self.etag)),
        ]
    }
}

impl Client {
    /// Copies `source` with its metadata to `key` in `class`. Returns the copy's entity tag.
    pub async fn copy(
        &self,
        source: CopySource<'_>,
        bucket: &str,
        key: &str,
        class: &str,
    ) -> Result<String, S3Error> {
        self.copy_with_limit(limits::COPY_BYTES_MAX, source, bucket, key, class).await
    }

    /// Does the same, in parts above `single_copy_max` bytes.
    pub(super) async fn copy_with_limit(
        &self,
        single_copy_max: u64,
        source: CopySource<'_>,
        bucket: &str,
        key: &str,
        class: &str,
    ) -> Result<String, S3Error> {
        if source.bytes > single_copy_max {
            return self.copy_parts(single_copy_max, source, bucket, key, class).await;
        }
        let call = Call::new("CopyObject", Method::PUT, bucket)
            .key(key)
            .headers(source.headers())
            .header("x-amz-storage-class", class);
        Ok(xml::parse_etag(&self.slow_document(&call).await?))
    }

    async fn copy_parts(
        &self,
        single_copy_max: u64,
        source: CopySource<'_>,
        bucket: &str,
        key: &str,
        class: &str,
    ) -> Result<String, S3Error> {
        let head = Call::new("HeadObject", Method::HEAD, source.bucket)
            .key(source.key)
            .header("if-match", format!("\"{}\"", source.etag));
        let mut headers = metadata_of(self.send(&head).await?.headers());
        headers.push(("x-amz-storage-class".into(), class.to_owned()));
        let create = Call::new("CreateMultipartUpload", Method::POST, bucket)
            .key(key)
            .query("uploads", "")
            .headers(headers);
        let upload = xml::parse_upload_id(&self.document(&create).await?)?;
        let part_bytes = single_copy_max.min(limits::COPY_PART_BYTES);
        let part_bytes = part_bytes.max(source.bytes.div_ceil(limits::PARTS_MAX));
        let count = source.bytes.div_ceil(part_bytes);
        let upload_id = upload.as_str();
        let parts = futures::stream::iter(0..count).map(|index| async move {
            let first = index * part_bytes;
            let last = (first + part_bytes).min(source.bytes) - 1;
            let call = Call::new("UploadPartCopy", Method::PUT, bucket)
                .key(key)
                .query("partNumber", (index + 1).to_string())
                .query("uploadId", upload_id)
                .headers(source.headers())
                .header("x-amz-copy-source-range", format!("bytes={first}-{last}"));
            let etag = xml::parse_etag(&self.slow_document(&call).await?);
            Ok::<_, S3Error>((index + 1, etag))
        });
        let parts = parts.buffered(limits::PARTS_IN_FLIGHT_MAX).try_collect::<Vec<_>>().await;
        let done = match parts {
            Ok(parts) => {
                let call = Call::new("CompleteMultipartUpload", Method::POST, bucket)
                    .key(key)
                    .query("uploadId", upload_id)
                    .header("content-type", "application/xml")
                    .body(xml::complete_copy_request(&parts).into());
                self.slow_document(&call).await.map(|answer| xml::parse_etag(&answer))
            }
            Err(error) => Err(error),
        };
        if done.is_err() {
            self.abort_upload(bucket, key, upload_id).await;
        }
        done
    }
}

/// Returns the headers of an object that are metadata for its copy.
fn metadata_of(headers: &HeaderMap) -> Headers {
    const COPIED_HEADERS: [&str; 6] = [
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-type",
        "expires",
    ];
    let is_copied = |name: &str| COPIED_HEADERS.contains(&name) || name.starts_with("x-amz-meta-");
    let text = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (Cow::Owned(name.as_str().to_owned()), value)
    };
    headers.iter().filter(|(name, _)| is_copied(name.as_str())).map(text).collect()
}
