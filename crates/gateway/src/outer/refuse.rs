//! Requests that are turned away before s3s sees them: what it would let in too easily.

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use super::answers::Refusal;
use crate::limits::PRESIGNED_SECONDS_MAX;
use crate::percent::query_value;

/// Headers of S3's namespace that a client may add without signing them: the first follows from
/// the body of a presigned upload, the second is only told to logs.
const MAY_BE_UNSIGNED: [&str; 2] = ["x-amz-content-sha256", "x-amz-user-agent"];

/// Refuses signatures of version 2, form uploads, and signatures that leave out what they should
/// protect.
pub(super) fn check(parts: &Parts) -> Result<(), Refusal> {
    let query = parts.uri.query().unwrap_or_default();
    let header = header_text(&parts.headers, AUTHORIZATION.as_str());
    let signed_in_query = query_value(query, "X-Amz-Signature").is_some();
    let is_v2 = header.is_some_and(|value| value.starts_with("AWS "))
        || query_value(query, "Signature").is_some();
    if is_v2 {
        let message = "The authorization mechanism you have provided is not supported. \
                       Please use AWS4-HMAC-SHA256.";
        return Err(Refusal::new("InvalidRequest", StatusCode::BAD_REQUEST, message));
    }
    if is_form_upload(parts) {
        let message = "Uploads by HTML form are not implemented.";
        return Err(Refusal::new("NotImplemented", StatusCode::NOT_IMPLEMENTED, message));
    }
    if header.is_some() && signed_in_query {
        let message = "Only one auth mechanism allowed.";
        return Err(Refusal::new("InvalidArgument", StatusCode::BAD_REQUEST, message));
    }
    if signed_in_query {
        check_expiry(query)?;
    }
    let signed = if signed_in_query {
        query_value(query, "X-Amz-SignedHeaders")
    } else {
        header.and_then(signed_headers).map(str::to_owned)
    };
    signed.map_or(Ok(()), |signed| check_signed_headers(&parts.headers, &signed))
}

/// s3s would read the whole form into memory before it asks who sent it.
fn is_form_upload(parts: &Parts) -> bool {
    parts.method == Method::POST
        && header_text(&parts.headers, CONTENT_TYPE.as_str()).is_some_and(|value| {
            value.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
        })
}

fn check_expiry(query: &str) -> Result<(), Refusal> {
    let seconds = query_value(query, "X-Amz-Expires").and_then(|text| text.parse::<u64>().ok());
    if seconds.is_some_and(|seconds| seconds <= PRESIGNED_SECONDS_MAX) {
        return Ok(());
    }
    let message = "X-Amz-Expires must be a number of seconds of at most a week (604800).";
    let code = "AuthorizationQueryParametersError";
    Err(Refusal::new(code, StatusCode::BAD_REQUEST, message))
}

/// `host` and every `x-amz-*` header must be under the signature, or somebody between client and
/// server could add one that changes what the request means.
fn check_signed_headers(headers: &HeaderMap, signed: &str) -> Result<(), Refusal> {
    let is_signed = |name: &str| signed.split(';').any(|part| part.eq_ignore_ascii_case(name));
    let unsigned = headers.keys().map(http::HeaderName::as_str).find(|name| {
        let protected = *name == "host" || name.starts_with("x-amz-");
        protected && !MAY_BE_UNSIGNED.contains(name) && !is_signed(name)
    });
    unsigned.map_or(Ok(()), |name| {
        let message =
            format!("There were headers present in the request which were not signed: {name}");
        Err(Refusal::new("AccessDenied", StatusCode::FORBIDDEN, message))
    })
}

fn signed_headers(authorization: &str) -> Option<&str> {
    let (_, after) = authorization.split_once("SignedHeaders=")?;
    after.split([',', ' ']).next()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
