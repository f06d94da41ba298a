//! A client of one endpoint: connections, signatures, retries, and the calls without bodies.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use aws_credential_types::Credentials;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, Url};

use super::checksum::{Verifier, md5_text};
use super::error::S3Error;
use super::sign::signature_headers;
use super::uri::{is_addressable, percent_encode};
use super::xml::{self, DeleteFailure, ListPage, ListedBucket, ListedObject, RestoreStatus};
use crate::file_time::{FileTime, MTIME_HEADER};
use crate::limits;

/// Which certificates are trusted.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// The system's certificate authorities.
    #[default]
    System,
    /// Only those in this PEM file.
    File(PathBuf),
    /// Any certificate: for tests against a server whose certificate is not available.
    Insecure,
}

/// The configuration of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// `http://host:port` or `https://..`, without a path.
    pub endpoint: String,
    /// Access key and secret key.
    pub credentials: Credentials,
    /// Region that signatures name.
    pub region: String,
    /// The trusted certificates.
    pub trust: Trust,
}

/// A client. Cheap to share by reference; connections are pooled.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    endpoint: Url,
    credentials: Credentials,
    region: String,
}

/// Names in lower case, with their values.
pub(super) type Headers = Vec<(Cow<'static, str>, String)>;

/// One request, before it is signed.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) operation: &'static str,
    pub(super) method: Method,
    pub(super) bucket: &'a str,
    pub(super) key: &'a str,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: Headers,
    pub(super) body: Bytes,
}

impl<'a> Call<'a> {
    pub(super) fn new(operation: &'static str, method: Method, bucket: &'a str) -> Self {
        let (query, headers) = (Vec::new(), Vec::new());
        Self { operation, method, bucket, key: "", query, headers, body: Bytes::new() }
    }

    pub(super) fn key(mut self, key: &'a str) -> Self {
        self.key = key;
        self
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((Cow::Borrowed(name), value.into()));
        self
    }

    pub(super) fn headers(mut self, more: Headers) -> Self {
        self.headers.extend(more);
        self
    }

    pub(super) fn body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// Returns the name of the target, for errors.
    pub(super) fn target(&self) -> String {
        match (self.bucket, self.key) {
            ("", _) => "the list of buckets".to_owned(),
            (bucket, "") => format!("s3://{bucket}"),
            (bucket, key) => format!("s3://{bucket}/{key}"),
        }
    }
}

/// The scope of a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListScope<'a> {
    /// Bucket.
    pub bucket: &'a str,
    /// Only keys with this prefix.
    pub prefix: &'a str,
    /// Keys that share a part up to a `/` after the prefix become one common prefix.
    pub by_folder: bool,
}

/// An object, as HEAD returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectHead {
    /// Plain bytes.
    pub bytes: u64,
    /// Entity tag without quotes.
    pub etag: String,
    /// `Last-Modified` as sent.
    pub modified: String,
    /// Storage class.
    pub class: String,
    /// Restored copy, if any.
    pub restore: Option<RestoreStatus>,
    /// When its file was last changed, if the client that put it recorded that.
    pub file_time: Option<FileTime>,
}

impl ObjectHead {
    /// Converts it to an entry of a listing.
    pub fn into_listed(self, key: &str) -> ListedObject {
        let Self { bytes, etag, modified, class, restore, file_time: _ } = self;
        ListedObject { key: key.to_owned(), bytes, modified, etag, class, restore }
    }
}

/// The answer to a RestoreObject request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreResponse {
    /// 202: the copy will be made.
    Accepted,
    /// 200: the copy exists and is kept longer.
    Extended,
    /// 409: a restore is running already.
    InProgress,
    /// 403: the object is not in an archive class.
    NotArchived,
}

impl Client {
    /// Creates a client of `config.endpoint`.
    pub fn new(config: ClientConfig) -> Result<Self, S3Error> {
        let bad =
            |reason: String| S3Error::BadEndpoint { endpoint: config.endpoint.clone(), reason };
        let endpoint = Url::parse(&config.endpoint).map_err(|error| bad(error.to_string()))?;
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(bad("it must begin with http:// or https://".to_owned()));
        }
        if endpoint.path() != "/" || endpoint.query().is_some() {
            return Err(bad("it must have no path; name buckets by s3:// URLs".to_owned()));
        }
        let builder = http_builder(&config.trust).map_err(bad)?;
        let http = builder
            .connect_timeout(limits::CONNECT_TIMEOUT)
            .read_timeout(limits::READ_TIMEOUT)
            .build()
            .map_err(|error| bad(error.to_string()))?;
        Ok(Self { http, endpoint, credentials: config.credentials, region: config.region })
    }

    /// Creates a bucket; returns `false` if it existed and is ours.
    pub async fn create_bucket(&self, bucket: &str) -> Result<bool, S3Error> {
        let mut call = Call::new("CreateBucket", Method::PUT, bucket);
        if self.region != "us-east-1" {
            let region = percent_encode(&self.region, false);
            call = call.body(Bytes::from(format!(
                "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint>\
                 </CreateBucketConfiguration>"
            )));
        }
        match self.send(&call).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == "BucketAlreadyOwnedByYou" => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes an empty bucket.
    pub async fn delete_bucket(&self, bucket: &str) -> Result<(), S3Error> {
        self.send(&Call::new("DeleteBucket", Method::DELETE, bucket)).await.map(drop)
    }

    /// Lists all buckets.
    pub async fn list_buckets(&self) -> Result<Vec<ListedBucket>, S3Error> {
        let call = Call::new("ListBuckets", Method::GET, "");
        xml::parse_buckets(&self.document(&call).await?)
    }

    /// Returns one page of a listing, from `token` on.
    pub async fn list(
        &self,
        scope: ListScope<'_>,
        token: Option<&str>,
    ) -> Result<ListPage, S3Error> {
        let mut call = Call::new("ListObjectsV2", Method::GET, scope.bucket)
            .query("list-type", "2")
            .query("encoding-type", "url")
            .query("prefix", scope.prefix)
            .header("x-amz-optional-object-attributes", "RestoreStatus");
        if scope.by_folder {
            call = call.query("delimiter", "/");
        }
        if let Some(token) = token {
            call = call.query("continuation-token", token);
        }
        xml::parse_list(&self.document(&call).await?)
    }

    /// Returns an object's properties.
    pub async fn head(&self, bucket: &str, key: &str) -> Result<ObjectHead, S3Error> {
        let call = Call::new("HeadObject", Method::HEAD, bucket).key(key);
        Ok(parse_head(self.send(&call).await?.headers()))
    }

    /// Returns an object's properties, and a verifier of its bytes.
    pub async fn head_to_verify(
        &self,
        bucket: &str,
        key: &str,
    ) -> Result<(ObjectHead, Verifier), S3Error> {
        let call = Call::new("HeadObject", Method::HEAD, bucket)
            .key(key)
            .header("x-amz-checksum-mode", "ENABLED");
        let response = self.send(&call).await?;
        Ok((parse_head(response.headers()), Verifier::new(response.headers())))
    }

    /// Deletes one object; succeeds if it does not exist.
    pub async fn delete(&self, bucket: &str, key: &str) -> Result<(), S3Error> {
        self.send(&Call::new("DeleteObject", Method::DELETE, bucket).key(key)).await.map(drop)
    }

    /// Deletes up to 1,000 objects and returns those that could not be deleted.
    pub async fn delete_many(
        &self,
        bucket: &str,
        keys: &[String],
    ) -> Result<Vec<DeleteFailure>, S3Error> {
        assert!(keys.len() <= limits::DELETE_KEYS_MAX, "S3 takes 1,000 keys in one call");
        let body = xml::delete_request(keys);
        let call = Call::new("DeleteObjects", Method::POST, bucket)
            .query("delete", "")
            .header("content-md5", md5_text(body.as_bytes()))
            .header("content-type", "application/xml")
            .body(Bytes::from(body));
        xml::parse_delete(&self.document(&call).await?)
    }

    /// Requests a restored copy that is kept for `days` days.
    pub async fn restore(
        &self,
        bucket: &str,
        key: &str,
        days: u32,
        tier: &str,
    ) -> Result<RestoreResponse, S3Error> {
        let body = xml::restore_request(days, tier);
        let call = Call::new("RestoreObject", Method::POST, bucket)
            .key(key)
            .query("restore", "")
            .header("content-md5", md5_text(body.as_bytes()))
            .header("content-type", "application/xml")
            .body(Bytes::from(body));
        match self.send(&call).await {
            Ok(response) if response.status().as_u16() == 202 => Ok(RestoreResponse::Accepted),
            Ok(_) => Ok(RestoreResponse::Extended),
            Err(error) if error.code() == "RestoreAlreadyInProgress" => {
                Ok(RestoreResponse::InProgress)
            }
            Err(error)
                if matches!(
                    error.code(),
                    "InvalidObjectState" | "ObjectAlreadyInActiveTierError"
                ) =>
            {
                Ok(RestoreResponse::NotArchived)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends `call` and returns the XML document of the answer.
    pub(super) fn document<'a>(
        &'a self,
        call: &'a Call<'_>,
    ) -> BoxFuture<'a, Result<String, S3Error>> {
        Box::pin(self.read_text(call))
    }

    async fn read_text(&self, call: &Call<'_>) -> Result<String, S3Error> {
        let response = self.send(call).await?;
        let to_error = |source| self.unreachable(call, source);
        let bytes = read_document(call.operation, response, to_error).await?;
        String::from_utf8(bytes.to_vec()).map_err(|_| S3Error::Protocol {
            operation: call.operation,
            reason: "it is not UTF-8".to_owned(),
        })
    }

    /// Sends `call`, with retries of transient failures, and returns a successful answer. Boxed, so
    /// that HTTP is compiled here, and not again wherever a call is awaited.
    pub(super) fn send<'a>(
        &'a self,
        call: &'a Call<'_>,
    ) -> BoxFuture<'a, Result<Response, S3Error>> {
        Box::pin(self.send_with_retries(call))
    }

    async fn send_with_retries(&self, call: &Call<'_>) -> Result<Response, S3Error> {
        let mut attempt = 1;
        loop {
            match self.send_once(call).await {
                Ok(response) => return Ok(response),
                Err(error) if error.is_transient() && attempt < limits::ATTEMPTS_MAX => {
                    tracing::debug!(attempt, %error, "retrying the request");
                    back_off(attempt).await;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn send_once(&self, call: &Call<'_>) -> Result<Response, S3Error> {
        let url = self.url(call)?;
        let signed = signature_headers(
            &self.credentials,
            &self.region,
            call.method.as_str(),
            url.as_str(),
            &call.headers,
        )?;
        let mut request = self.http.request(call.method.clone(), url);
        for (name, value) in &call.headers {
            request = request.header(name.as_ref(), value);
        }
        for (name, value) in signed {
            request = request.header(name, value);
        }
        let has_body = !call.body.is_empty() || matches!(call.method, Method::PUT | Method::POST);
        if has_body {
            request = request.body(call.body.clone());
        }
        let response = request.send().await.map_err(|source| self.unreachable(call, source))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.to_service_error(call, response).await)
    }

    fn url(&self, call: &Call<'_>) -> Result<Url, S3Error> {
        if !is_addressable(call.key) {
            return Err(S3Error::UnaddressableKey { key: call.key.to_owned() });
        }
        let mut url = self.endpoint.clone();
        let key = percent_encode(call.key, true);
        match call.bucket {
            "" => url.set_path("/"),
            bucket if call.key.is_empty() => url.set_path(&percent_encode(bucket, false)),
            bucket => url.set_path(&format!("{}/{key}", percent_encode(bucket, false))),
        }
        let pairs = call.query.iter();
        let query: Vec<String> =
            pairs.map(|(n, v)| format!("{n}={}", percent_encode(v, false))).collect();
        url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
        Ok(url)
    }

    pub(super) fn unreachable(&self, call: &Call<'_>, source: reqwest::Error) -> S3Error {
        S3Error::Unreachable {
            operation: call.operation,
            target: call.target(),
            endpoint: self.endpoint.origin().ascii_serialization(),
            source: source.without_url(),
        }
    }

    /// Converts an error answer; a HEAD has no document, so its status decides.
    async fn to_service_error(&self, call: &Call<'_>, response: Response) -> S3Error {
        let status = response.status();
        let mut document = response.text().await.map(|t| xml::parse_error(&t)).unwrap_or_default();
        if document.code.is_empty() {
            document.code = match status.as_u16() {
                404 if call.key.is_empty() => "NoSuchBucket".to_owned(),
                404 => "NoSuchKey".to_owned(),
                403 => "AccessDenied".to_owned(),
                _ => status.canonical_reason().unwrap_or("Unknown").replace(' ', ""),
            };
        }
        if document.message.is_empty() {
            document.message = "the server gave no reason".to_owned();
        }
        S3Error::Service {
            operation: call.operation,
            target: call.target(),
            status: status.as_u16(),
            code: document.code,
            message: document.message,
        }
    }
}

/// Creates a connection builder that trusts the certificates of `trust`.
pub fn http_builder(trust: &Trust) -> Result<reqwest::ClientBuilder, String> {
    let builder = reqwest::Client::builder();
    let file = match trust {
        Trust::Insecure => return Ok(builder.danger_accept_invalid_certs(true)),
        Trust::File(path) => Some(path.clone()),
        Trust::System => system_certificates(),
    };
    let Some(path) = file else { return Ok(builder.tls_certs_only([])) };
    let shown = path.display();
    let pem = std::fs::read(&path).map_err(|error| format!("cannot read \"{shown}\": {error}"))?;
    let certificates = reqwest::Certificate::from_pem_bundle(&pem)
        .map_err(|error| format!("\"{shown}\" holds no certificates: {error}"))?;
    Ok(builder.tls_certs_only(certificates))
}

/// Returns the bundle of the operating system: `SSL_CERT_FILE`, or where distributions keep it.
fn system_certificates() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let known = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    named.or_else(|| known.iter().map(PathBuf::from).find(|path| path.is_file()))
}

/// Sleeps with exponential backoff and jitter, so that many clients do not retry at once.
pub(super) async fn back_off(attempt: u32) {
    let full = limits::BACKOFF_FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let full = full.min(limits::BACKOFF_MAX);
    let mut random = [0u8; 1];
    let share = match getrandom::fill(&mut random) {
        Ok(()) => f64::from(random[0]) / 255.0,
        Err(_) => 1.0,
    };
    tokio::time::sleep(full.mul_f64(0.5 + share / 2.0).max(Duration::from_millis(1))).await;
}

/// Reads a document of bounded size.
pub(super) async fn read_document<E: From<S3Error>>(
    operation: &'static str,
    mut response: Response,
    to_error: impl Fn(reqwest::Error) -> E,
) -> Result<Bytes, E> {
    let mut document = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(&to_error)? {
        if document.len() + chunk.len() > limits::DOCUMENT_BYTES_MAX {
            let reason = format!("longer than {} bytes", limits::DOCUMENT_BYTES_MAX);
            return Err(S3Error::Protocol { operation, reason }.into());
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document.freeze())
}

pub(super) fn parse_head(headers: &HeaderMap) -> ObjectHead {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
    let class = match text("x-amz-storage-class") {
        "" => "STANDARD",
        class => class,
    };
    ObjectHead {
        bytes: text("content-length").parse().unwrap_or(0),
        etag: text("etag").trim_matches('"').to_owned(),
        modified: text("last-modified").to_owned(),
        class: class.to_owned(),
        restore: parse_restore_header(text("x-amz-restore")),
        file_time: FileTime::parse_seconds(text(MTIME_HEADER)),
    }
}

/// Parses `ongoing-request="false", expiry-date="Fri, 21 Dec 2012 00:00:00 GMT"`.
pub(super) fn parse_restore_header(text: &str) -> Option<RestoreStatus> {
    let value = |name: &str| {
        let start = text.find(&format!("{name}=\""))? + name.len() + 2;
        let end = text[start..].find('"')? + start;
        Some(&text[start..end])
    };
    let in_progress = value("ongoing-request")? == "true";
    Some(RestoreStatus { in_progress, expiry: value("expiry-date").map(str::to_owned) })
}
