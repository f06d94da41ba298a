//! Files that are the same for everybody: the description of the admin API.
//!
//! They are in the program, so that they fit it, and hold nothing of the archive that it serves.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use ring::digest;
use s3s::Body;

/// One of the files.
#[derive(Debug)]
pub(crate) struct Asset {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
    tag: String,
}

static ASSETS: LazyLock<[Asset; 1]> = LazyLock::new(|| {
    [Asset::new(
        "/-/openapi.json",
        "application/json",
        include_str!("../../../../docs/admin-openapi.json"),
    )]
});

impl Asset {
    fn new(path: &'static str, kind: &'static str, text: &'static str) -> Self {
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest));
        Self { path, kind, text, tag }
    }

    /// The file that a request asks for. No bucket is called `-`, so a signature takes none away.
    pub(crate) fn of(parts: &Parts) -> Option<&'static Self> {
        let is_plain = (parts.method == Method::GET || parts.method == Method::HEAD)
            && parts.uri.query().is_none();
        Self::at(parts.uri.path()).filter(|_| is_plain)
    }

    /// The file at a path.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        ASSETS.iter().find(|asset| asset.path == path)
    }

    /// All of it.
    #[cfg(test)]
    pub(crate) const fn text(&self) -> &'static str {
        self.text
    }

    /// The answer: the file, or that the asker has it already.
    pub(crate) fn response(&self, parts: &Parts) -> Response<Body> {
        let known = parts.headers.get_all(IF_NONE_MATCH).iter();
        let is_known = known
            .filter_map(|value| value.to_str().ok())
            .any(|text| text.split(',').any(|tag| tag.trim().trim_start_matches("W/") == self.tag));
        let text = if is_known { "" } else { self.text };
        let mut response = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        // Asked for again each time, and sent only when the program is another.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Ok(tag) = HeaderValue::from_str(&self.tag) {
            headers.insert(ETAG, tag);
        }
        response
    }
}
