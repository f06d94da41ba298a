//! Signature version 4: authenticates the client and binds the request's body.
//!
//! ```text
//!   header or query -> claim: access key, scope, names, signature      fields
//!   request         -> canonical form -> string to sign                canonical
//!   secret, scope   -> signing key -> HMAC of the string = signature?  here
//!   each chunk of the body, if chunks are signed one by one            stream
//! ```
//!
//! Reads may be signed in the query with version 2 as well: `version2`.
//!
//! s3s could verify signatures too, but would not do: it refuses upper-case regions (`US`, the
//! default of s3cmd) and requests that have `Date` in place of `x-amz-date`, and it buffers every
//! signed chunk whole until its signature is verified. A request whose signature was verified is
//! marked in its `RequestContext`, and s3s gets it without the signature.

mod canonical;
mod fields;
mod stream;
mod timestamp;
pub(crate) mod version2;

use std::borrow::Cow;

use http::header::{AUTHORIZATION, DATE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, StatusCode, Uri};
use jiff::{SignedDuration, Timestamp};
use ring::{digest, hmac};

use self::canonical::CanonicalRequest;
pub(crate) use self::fields::SignatureClaim;
pub(crate) use self::stream::ChunkSigner;
pub(crate) use self::timestamp::{parse_basic, parse_date};
use super::parameters::parse_integer;
use super::responses::Refusal;
use crate::Credentials;
use crate::limits::{CLOCK_SKEW_SECONDS_MAX, PRESIGNED_SECONDS_MAX};
use crate::percent;

const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const CONTENT_SHA256: &str = "x-amz-content-sha256";
/// Headers of S3's namespace that a client may add without signing them: the first follows from the
/// body of a presigned upload, the second is only for logs.
const OPTIONALLY_SIGNED: [&str; 2] = [CONTENT_SHA256, "x-amz-user-agent"];
/// The parameters of a presigned URL, which have no meaning once the signature is verified; those
/// of version 2 are listed separately.
const QUERY_NAMES: [&str; 7] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
    "X-Amz-Security-Token",
];

/// What a verified request declares about its body.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// Nothing.
    Unsigned,
    /// Its SHA-256.
    Digest([u8; 32]),
    /// `aws-chunked` framing.
    Chunks {
        /// Present when chunks are signed one by one.
        signer: Option<Box<ChunkSigner>>,
        /// Whether trailers follow the last chunk.
        has_trailer: bool,
    },
}

/// Verifies the signature of a request; `None` when it has none.
pub(crate) fn verify(
    parts: &Parts,
    credentials: &Credentials,
    now: Timestamp,
) -> Result<Option<Payload>, Refusal> {
    let pairs = pairs(parts.uri.query().unwrap_or_default())?;
    if pairs.iter().any(|(name, _)| name == "X-Amz-Signature") {
        return verify_query(parts, &pairs, credentials, now).map(Some);
    }
    match header(&parts.headers, AUTHORIZATION.as_str())? {
        Some(text) => verify_header(parts, text, &pairs, credentials, now).map(Some),
        None => Ok(None),
    }
}

/// Removes the signature from a request, so that no layer below verifies it again.
pub(crate) fn strip(parts: &mut Parts) {
    parts.headers.remove(AUTHORIZATION);
    retain_query(parts, |name| {
        !QUERY_NAMES.contains(&name) && !version2::QUERY_NAMES.contains(&name)
    });
}

/// Removes the query parameters that `keeps` rejects.
pub(crate) fn retain_query(parts: &mut Parts, keeps: impl Fn(&str) -> bool) {
    let Some(query) = parts.uri.query() else { return };
    let is_kept = |pair: &&str| {
        let name = pair.split('=').next().and_then(percent::decode_query);
        name.is_none_or(|name| keeps(&name))
    };
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    let path = parts.uri.path();
    let target =
        if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) };
    let Ok(target) = target.parse::<PathAndQuery>() else { return };
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    uri.path_and_query = Some(target);
    // The parts came from a valid URI, and only the path and query were replaced.
    parts.uri = Uri::from_parts(uri).unwrap_or_default();
}

fn verify_header(
    parts: &Parts,
    text: &str,
    pairs: &[(String, String)],
    credentials: &Credentials,
    now: Timestamp,
) -> Result<Payload, Refusal> {
    let claim = SignatureClaim::from_header(text).map_err(|reason| {
        let message = format!("The authorization header is malformed; {reason}.");
        bad("AuthorizationHeaderMalformed", message)
    })?;
    let time = request_time(&parts.headers, &claim)?;
    if time.duration_since(now).abs() > max_skew() {
        return Err(time_too_skewed(time, now));
    }
    let payload = header(&parts.headers, CONTENT_SHA256)?.ok_or_else(|| {
        bad("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    })?;
    check_covered(&parts.headers, &claim)?;
    let key = Key::derive(&claim, credentials, time)?;
    key.check(parts, pairs, &claim, payload)?;
    parse_payload(payload, || key.chunk_signer(&claim))
}

fn verify_query(
    parts: &Parts,
    pairs: &[(String, String)],
    credentials: &Credentials,
    now: Timestamp,
) -> Result<Payload, Refusal> {
    let malformed = |reason: &str| {
        let message = format!("The query parameters of the signature are malformed; {reason}.");
        bad("AuthorizationQueryParametersError", message)
    };
    let claim = SignatureClaim::from_query(pairs).map_err(malformed)?;
    let time = fields::unique(pairs, "X-Amz-Date").map_err(malformed)?.and_then(parse_basic);
    let time = time.ok_or_else(|| malformed("X-Amz-Date is not YYYYMMDDTHHMMSSZ"))?;
    let seconds = fields::unique(pairs, "X-Amz-Expires").map_err(malformed)?;
    let seconds = seconds
        .and_then(parse_integer)
        .filter(|seconds| (0..=PRESIGNED_SECONDS_MAX).contains(seconds))
        .ok_or_else(|| malformed("X-Amz-Expires is not a number of seconds up to 604800"))?;
    let validity = SignedDuration::from_secs(seconds);
    let denied = |message| {
        Refusal::new("AccessDenied", StatusCode::FORBIDDEN, message)
            .with_detail("X-Amz-Expires", seconds.to_string())
            .with_detail("Expires", format_time(time.saturating_add(validity).unwrap_or(time)))
            .with_detail("ServerTime", format_time(now))
    };
    if time.duration_since(now) > max_skew() {
        return Err(denied("Request is not valid yet"));
    }
    if now.duration_since(time) > validity {
        return Err(denied("Request has expired"));
    }
    check_covered(&parts.headers, &claim)?;
    let key = Key::derive(&claim, credentials, time)?;
    let signed: Vec<(String, String)> =
        pairs.iter().filter(|(name, _)| name != "X-Amz-Signature").cloned().collect();
    key.check(parts, &signed, &claim, UNSIGNED)?;
    // The body was not known when the URL was signed; its user may still declare a digest.
    let payload = header(&parts.headers, CONTENT_SHA256)?.unwrap_or(UNSIGNED);
    if payload.starts_with("STREAMING-") {
        let message = "Presigned requests do not take chunked bodies.";
        return Err(Refusal::new("NotImplemented", StatusCode::NOT_IMPLEMENTED, message));
    }
    parse_payload(payload, || key.chunk_signer(&claim))
}

/// The signing key of one day, region and secret, and the time that it signs.
struct Key {
    key: hmac::Key,
    date_time: String,
}

impl Key {
    fn derive(
        claim: &SignatureClaim,
        credentials: &Credentials,
        time: Timestamp,
    ) -> Result<Self, Refusal> {
        let date_time = timestamp::format_basic(time);
        if !date_time.starts_with(&claim.day) {
            let message = "The credential's date is not that of the request.";
            return Err(mismatch(message));
        }
        let secret = credentials
            .secret_of(&claim.access_key)
            .ok_or_else(|| unknown_key(&claim.access_key))?;
        let first = format!("AWS4{}", secret.expose());
        let steps = [claim.day.as_str(), claim.region.as_str(), "s3", "aws4_request"];
        let key = steps.iter().fold(hmac_key(first.as_bytes()), |key, step| {
            hmac_key(hmac::sign(&key, step.as_bytes()).as_ref())
        });
        Ok(Self { key, date_time })
    }

    fn check(
        &self,
        parts: &Parts,
        pairs: &[(String, String)],
        claim: &SignatureClaim,
        payload: &str,
    ) -> Result<(), Refusal> {
        let canonical = CanonicalRequest {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            pairs,
            headers: &parts.headers,
            signed_headers: &claim.signed_headers,
            payload,
        };
        let forms = canonical.forms();
        let string_to_sign = |form: &[u8]| {
            let digest = hex::encode(digest::digest(&digest::SHA256, form));
            format!("AWS4-HMAC-SHA256\n{}\n{}\n{digest}", self.date_time, claim.scope())
        };
        let is_signed = forms.iter().any(|form| {
            hmac::verify(&self.key, string_to_sign(form).as_bytes(), &claim.signature).is_ok()
        });
        if is_signed {
            return Ok(());
        }
        let form = forms.into_iter().next().unwrap_or_default();
        Err(signature_mismatch(claim, &string_to_sign(&form), &form))
    }

    fn chunk_signer(&self, claim: &SignatureClaim) -> ChunkSigner {
        let scope = claim.scope();
        ChunkSigner::new(self.key.clone(), &self.date_time, &scope, &claim.signature)
    }
}

fn hmac_key(bytes: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}

/// Checks that the signature covers `host` and every `x-amz-*` header. Otherwise a man in the
/// middle could add one that changes what the request means.
fn check_covered(headers: &HeaderMap, claim: &SignatureClaim) -> Result<(), Refusal> {
    let unsigned = headers.keys().map(http::HeaderName::as_str).filter(|name| {
        let protected = *name == "host" || name.starts_with("x-amz-");
        protected && !OPTIONALLY_SIGNED.contains(name) && !claim.covers(name)
    });
    let unsigned: Vec<&str> = unsigned.collect();
    if unsigned.is_empty() {
        return Ok(());
    }
    let message = "There were headers present in the request which were not signed";
    let refusal = Refusal::new("AccessDenied", StatusCode::FORBIDDEN, message);
    Err(refusal.with_detail("HeadersNotSigned", unsigned.join(", ")))
}

/// Returns the time of `x-amz-date`, or else of a signed `Date`.
fn request_time(headers: &HeaderMap, claim: &SignatureClaim) -> Result<Timestamp, Refusal> {
    let message = "AWS authentication requires a valid Date or x-amz-date header";
    let denied = || Refusal::new("AccessDenied", StatusCode::FORBIDDEN, message);
    if let Some(text) = header(headers, "x-amz-date")? {
        return parse_basic(text).ok_or_else(denied);
    }
    let date = header(headers, DATE.as_str())?.filter(|_| claim.covers(DATE.as_str()));
    date.and_then(parse_date).ok_or_else(denied)
}

fn parse_payload(text: &str, signer: impl FnOnce() -> ChunkSigner) -> Result<Payload, Refusal> {
    let mut digest = [0; 32];
    match text {
        UNSIGNED => Ok(Payload::Unsigned),
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => {
            Ok(Payload::Chunks { signer: None, has_trailer: true })
        }
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => {
            Ok(Payload::Chunks { signer: Some(Box::new(signer())), has_trailer: false })
        }
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => {
            Ok(Payload::Chunks { signer: Some(Box::new(signer())), has_trailer: true })
        }
        _ if text.starts_with("STREAMING-AWS4-ECDSA-") => {
            let message = "Signatures with elliptic curves are not implemented.";
            Err(Refusal::new("NotImplemented", StatusCode::NOT_IMPLEMENTED, message))
        }
        _ if hex::decode_to_slice(text, &mut digest).is_ok() => Ok(Payload::Digest(digest)),
        _ => Err(bad(
            "InvalidArgument",
            "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, or \
             a valid sha256 value.",
        )),
    }
}

/// Returns the decoded parameters of a query, in their order.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, Refusal> {
    let decode = |text| percent::decode_query(text).map(Cow::into_owned);
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    });
    pairs
        .collect::<Option<_>>()
        .ok_or_else(|| bad("InvalidURI", "Couldn't parse the specified URI."))
}

/// Returns the text of a header that must not be repeated.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(bad("InvalidRequest", format!("The header {name} is repeated.")));
    }
    let text = first.map(|value| value.to_str()).transpose();
    text.map_err(|_| bad("InvalidRequest", format!("The header {name} is not ASCII.")))
}

const fn max_skew() -> SignedDuration {
    SignedDuration::from_secs(CLOCK_SKEW_SECONDS_MAX as i64)
}

fn bad(code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(code, StatusCode::BAD_REQUEST, message)
}

fn time_too_skewed(time: Timestamp, now: Timestamp) -> Refusal {
    let message = "The difference between the request time and the current time is too large.";
    Refusal::new("RequestTimeTooSkewed", StatusCode::FORBIDDEN, message)
        .with_detail("RequestTime", timestamp::format_basic(time))
        .with_detail("ServerTime", format_time(now))
        .with_detail("MaxAllowedSkewMilliseconds", max_skew().as_millis().to_string())
}

/// Formats a time for error documents, to the second.
fn format_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the error for a signature that does not match, with the request as its signer should
/// have seen it: a proxy may have changed a header. All of it came from the client; it contains
/// neither the secret nor the right signature.
fn signature_mismatch(claim: &SignatureClaim, text: &str, form: &[u8]) -> Refusal {
    let message = "The request signature we calculated does not match the signature you provided. \
                   Check your key and signing method.";
    mismatch(message)
        .with_detail("AWSAccessKeyId", &claim.access_key)
        .with_detail("StringToSign", text)
        .with_detail("SignatureProvided", hex::encode(claim.signature))
        .with_detail("StringToSignBytes", spaced_hex(text.as_bytes()))
        .with_detail("CanonicalRequest", String::from_utf8_lossy(form))
        .with_detail("CanonicalRequestBytes", spaced_hex(form))
}

fn spaced_hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}

fn unknown_key(access_key: &str) -> Refusal {
    let message = "The access key Id you provided does not exist in our records.";
    Refusal::new("InvalidAccessKeyId", StatusCode::FORBIDDEN, message)
        .with_detail("AWSAccessKeyId", access_key)
}

fn mismatch(message: &str) -> Refusal {
    Refusal::new("SignatureDoesNotMatch", StatusCode::FORBIDDEN, message)
}

#[cfg(test)]
mod tests;
