//! Static files: the page at `/-/` and its scripts, and the description of the admin API.
//!
//! They are compiled in, so that they match the program's version, and hold nothing of the archive
//! that it serves.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use ring::digest;
use s3s::Body;

/// Scripts, styles and calls come from this server only, and none are inline; the icon is inline,
/// which saves a request. Text from the server can never become elements.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A static file.
#[derive(Debug)]
pub(crate) struct Asset {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
    tag: String,
}

static ASSETS: LazyLock<[Asset; 7]> = LazyLock::new(|| {
    [
        Asset::new("/-/", "text/html; charset=utf-8", include_str!("files/index.html")),
        Asset::new("/-/page.css", "text/css; charset=utf-8", include_str!("files/page.css")),
        script("/-/page.js", include_str!("files/page.js")),
        script("/-/calls.js", include_str!("files/calls.js")),
        script("/-/shown.js", include_str!("files/shown.js")),
        script("/-/tomes.js", include_str!("files/tomes.js")),
        Asset::new(
            "/-/openapi.json",
            "application/json",
            include_str!("../../../../docs/admin-openapi.json"),
        ),
    ]
});

fn script(path: &'static str, text: &'static str) -> Asset {
    Asset::new(path, "text/javascript; charset=utf-8", text)
}

impl Asset {
    fn new(path: &'static str, kind: &'static str, text: &'static str) -> Self {
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest));
        Self { path, kind, text, tag }
    }

    /// Returns the file that a request asks for. No bucket is called `-`, so a signature does not
    /// matter.
    pub(crate) fn for_request(parts: &Parts) -> Option<&'static Self> {
        let is_plain = (parts.method == Method::GET || parts.method == Method::HEAD)
            && parts.uri.query().is_none();
        Self::find(parts.uri.path()).filter(|_| is_plain)
    }

    /// Returns the file at a path.
    pub(crate) fn find(path: &str) -> Option<&'static Self> {
        ASSETS.iter().find(|asset| asset.path == path)
    }

    /// The content of the file.
    #[cfg(test)]
    pub(crate) const fn text(&self) -> &'static str {
        self.text
    }

    /// Returns the response: the file, or 304 if the client has it already.
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
        // Clients revalidate each time; the file is sent again only when the program has changed.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Ok(tag) = HeaderValue::from_str(&self.tag) {
            headers.insert(ETAG, tag);
        }
        response
    }
}
