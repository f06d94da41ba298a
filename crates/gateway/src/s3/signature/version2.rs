//! Signature version 2 in the query of a URL: the default of `aws s3 presign` and `s3cmd signurl`.
//! It is accepted for reads only, and only in a query.
//!
//! ```text
//!   METHOD \n Content-MD5 \n Content-Type \n Expires \n
//!   x-amz-name:value \n ...
//!   /bucket/key?sub-resource&sub-resource=value
//! ```
//!
//! Of the query it covers only the sub-resources. A parameter that it does not cover is refused, so
//! that nobody between signer and server can add one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{CONTENT_TYPE, HeaderName};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;
use ring::hmac;

use super::fields::unique;
use super::{Payload, Refusal, format_time, header, mismatch, pairs, spaced_hex, unknown_key};
use crate::Credentials;
use crate::percent;
use crate::s3::parameters::parse_integer;

/// The parameters of the signature itself.
pub(super) const QUERY_NAMES: [&str; 3] = ["AWSAccessKeyId", "Signature", "Expires"];
/// The parameters that a signature covers.
const COVERED: [&str; 35] = [
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "defaultObjectAcl",
    "delete",
    "inventory",
    "lifecycle",
    "location",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "partNumber",
    "policy",
    "replication",
    "requestPayment",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "restore",
    "select",
    "select-type",
    "storageClass",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
];

/// Returns whether a query has a version 2 signature.
pub(crate) fn is_in_query(query: &str) -> bool {
    percent::query_value(query, "Signature").is_some()
}

/// Returns whether a request of this method may be signed with version 2.
pub(crate) fn may_sign(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Verifies a version 2 signature; `None` when the query has none. `bucket` is the one that the
/// host names, if any.
pub(crate) fn verify(
    parts: &Parts,
    bucket: Option<&str>,
    credentials: &Credentials,
    now: Timestamp,
) -> Result<Option<Payload>, Refusal> {
    let query = parts.uri.query().unwrap_or_default();
    if !is_in_query(query) {
        return Ok(None);
    }
    let pairs = pairs(query)?;
    let claim = Claim::parse(&pairs)?;
    check_covered(&pairs)?;
    if now > claim.expires {
        return Err(denied("Request has expired")
            .with_detail("Expires", format_time(claim.expires))
            .with_detail("ServerTime", format_time(now)));
    }
    let secret =
        credentials.secret_of(claim.access_key).ok_or_else(|| unknown_key(claim.access_key))?;
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.expose().as_bytes());
    let strings_to_sign = strings_to_sign(parts, bucket, claim.expires, &pairs)?;
    if strings_to_sign.iter().any(|text| hmac::verify(&key, text, &claim.signature).is_ok()) {
        return Ok(Some(Payload::Unsigned));
    }
    Err(claim.signature_mismatch(&strings_to_sign[0]))
}

/// The claimed signature of a query.
struct Claim<'a> {
    access_key: &'a str,
    expires: Timestamp,
    signature: Vec<u8>,
}

impl<'a> Claim<'a> {
    fn parse(pairs: &'a [(String, String)]) -> Result<Self, Refusal> {
        let value = |name| unique(pairs, name).map_err(denied);
        let [access_key, signature, expires] =
            [value("AWSAccessKeyId")?, value("Signature")?, value("Expires")?];
        let (Some(access_key), Some(signature), Some(expires)) = (access_key, signature, expires)
        else {
            let message = "Query-string authentication requires the Signature, Expires and \
                           AWSAccessKeyId parameters";
            return Err(denied(message));
        };
        let time = parse_integer(expires).filter(|seconds| *seconds >= 0);
        let expires = time.and_then(|seconds| Timestamp::from_second(seconds).ok());
        let expires =
            expires.ok_or_else(|| denied("Invalid date (should be seconds since epoch)"))?;
        // Invalid base64 counts as an empty signature, which never matches.
        let signature = BASE64.decode(signature).unwrap_or_default();
        Ok(Self { access_key, expires, signature })
    }

    /// Like `signature_mismatch` of version 4: shows neither the secret nor the right signature.
    fn signature_mismatch(&self, text: &[u8]) -> Refusal {
        let message = "The request signature we calculated does not match the signature you \
                       provided. Check your key and signing method.";
        mismatch(message)
            .with_detail("AWSAccessKeyId", self.access_key)
            .with_detail("StringToSign", String::from_utf8_lossy(text))
            .with_detail("SignatureProvided", BASE64.encode(&self.signature))
            .with_detail("StringToSignBytes", spaced_hex(text))
    }
}

fn check_covered(pairs: &[(String, String)]) -> Result<(), Refusal> {
    let is_uncovered = |name: &&str| !QUERY_NAMES.contains(name) && !COVERED.contains(name);
    let uncovered: Vec<&str> =
        pairs.iter().map(|(name, _)| name.as_str()).filter(is_uncovered).collect();
    if uncovered.is_empty() {
        return Ok(());
    }
    let message = format!(
        "A signature of version 2 does not cover these parameters of the query: {}. Sign with \
         version 4.",
        uncovered.join(", ")
    );
    Err(denied(&message))
}

/// Returns the strings that may have been signed: with the path encoded as S3 does it, and as sent.
fn strings_to_sign(
    parts: &Parts,
    bucket: Option<&str>,
    expires: Timestamp,
    pairs: &[(String, String)],
) -> Result<Vec<Vec<u8>>, Refusal> {
    let value = |name: &str| header(&parts.headers, name).map(Option::unwrap_or_default);
    let mut head = format!(
        "{}\n{}\n{}\n{}\n",
        parts.method,
        value("content-md5")?,
        value(CONTENT_TYPE.as_str())?,
        expires.as_second()
    )
    .into_bytes();
    push_amz_headers(&mut head, &parts.headers);
    let bucket = bucket.map_or_else(String::new, |bucket| format!("/{bucket}"));
    let sub_resources = sub_resources(pairs);
    let path = parts.uri.path();
    let encoded = percent::encode_bytes(&percent::decode_bytes(path), true);
    let text = |path: &str| {
        let resource = format!("{bucket}{path}{sub_resources}");
        [head.as_slice(), resource.as_bytes()].concat()
    };
    let mut strings_to_sign = vec![text(&encoded)];
    if encoded != path {
        strings_to_sign.push(text(path));
    }
    Ok(strings_to_sign)
}

fn push_amz_headers(text: &mut Vec<u8>, headers: &HeaderMap) {
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.retain(|name| name.starts_with("x-amz-"));
    names.sort_unstable();
    for name in names {
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        for (index, value) in headers.get_all(name).iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(value.as_bytes().trim_ascii());
        }
        text.push(b'\n');
    }
}

/// Returns the covered parameters, decoded and sorted. One without a value is just its name.
fn sub_resources(pairs: &[(String, String)]) -> String {
    let covered = pairs.iter().filter(|(name, _)| COVERED.contains(&name.as_str()));
    let mut covered: Vec<(&str, &str)> =
        covered.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    covered.sort_unstable();
    let shown = |(name, value): (&str, &str)| {
        if value.is_empty() { name.to_owned() } else { format!("{name}={value}") }
    };
    let shown: Vec<String> = covered.into_iter().map(shown).collect();
    if shown.is_empty() { String::new() } else { format!("?{}", shown.join("&")) }
}

fn denied(message: &str) -> Refusal {
    Refusal::new("AccessDenied", StatusCode::FORBIDDEN, message)
}

#[cfg(test)]
mod tests;
