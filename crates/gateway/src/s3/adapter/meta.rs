//! Headers and user metadata that are stored with an object and returned unchanged.

use fulgurite_archive::ObjectMeta;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
    HeaderName,
};
use http::{HeaderMap, HeaderValue};
use s3s::S3Result;
use s3s::dto::Metadata;

use super::conversions::invalid_argument;
use crate::s3::raw_headers::ResponseExpires;

/// S3's content type for a body that was stored without one.
pub(super) const DEFAULT_CONTENT_TYPE: &str = "binary/octet-stream";
const WEBSITE_REDIRECT: HeaderName = HeaderName::from_static("x-amz-website-redirect-location");

/// Reads the metadata of a request that stores an object.
pub(super) fn from_request(headers: &HeaderMap, user: Option<Metadata>) -> S3Result<ObjectMeta> {
    let text = |name: &HeaderName| text(headers, name);
    Ok(ObjectMeta {
        content_type: text(&CONTENT_TYPE)?,
        cache_control: text(&CACHE_CONTROL)?,
        content_disposition: text(&CONTENT_DISPOSITION)?,
        content_encoding: text(&CONTENT_ENCODING)?.and_then(|value| without_framing(&value)),
        content_language: text(&CONTENT_LANGUAGE)?,
        expires: text(&EXPIRES)?,
        website_redirect: text(&WEBSITE_REDIRECT)?,
        user: user.unwrap_or_default().into_iter().collect(),
    })
}

/// Returns the website redirect only: it is never copied from the source of a copy.
pub(super) fn website_redirect(headers: &HeaderMap) -> S3Result<Option<String>> {
    text(headers, &WEBSITE_REDIRECT)
}

pub(super) fn user(meta: &ObjectMeta) -> Option<Metadata> {
    (!meta.user.is_empty())
        .then(|| meta.user.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Returns `Expires` as it was stored: s3s handles only dates, and reformats them.
pub(super) fn expires_header(meta: &ObjectMeta) -> HeaderMap {
    let stored = meta.expires.as_ref();
    let value = stored.and_then(|text| HeaderValue::from_bytes(text.as_bytes()).ok());
    value.map(|value| (EXPIRES, value)).into_iter().collect()
}

/// Returns `Expires` as the read overrides it, whatever was stored.
pub(super) fn expires_override(ResponseExpires(text): &ResponseExpires) -> S3Result<HeaderMap> {
    let value = HeaderValue::from_bytes(text.as_bytes());
    let value = value.map_err(|_| invalid_argument("response-expires is not valid"))?;
    Ok([(EXPIRES, value)].into_iter().collect())
}

fn text(headers: &HeaderMap, name: &HeaderName) -> S3Result<Option<String>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match std::str::from_utf8(value.as_bytes()) {
        Ok("") => Ok(None),
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(invalid_argument(format!("{name} is not valid"))),
    }
}

/// Returns a content encoding without the token `aws-chunked`, which describes the transfer and not
/// the object. Everything else stays as it was written.
fn without_framing(value: &str) -> Option<String> {
    let is_framing = |part: &&str| part.trim().eq_ignore_ascii_case("aws-chunked");
    if !value.split(',').any(|part| is_framing(&part)) {
        return Some(value.to_owned());
    }
    let remaining: Vec<&str> = value.split(',').filter(|part| !is_framing(part)).collect();
    let remaining = remaining.join(",").trim().to_owned();
    (!remaining.is_empty()).then_some(remaining)
}

#[cfg(test)]
mod tests;
