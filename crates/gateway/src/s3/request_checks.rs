//! Refuses requests by their head alone, before their signature is verified.

use http::header::{ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use super::responses::Refusal;
use super::signature::version2;
use crate::percent::query_value;
use crate::request::BodyFault;

/// S3's message, and the settings that help clients.
const USE_SIGNATURE_V4: &str = "The authorization mechanism you have provided is not supported. \
     Please use AWS4-HMAC-SHA256: with signature_version = s3v4 in the settings of the AWS CLI and \
     boto3, signature_v2 = False in those of s3cmd, v2_auth = false in those of rclone.";

impl From<BodyFault> for Refusal {
    fn from(fault: BodyFault) -> Self {
        let (code, status) = fault.code_and_status();
        Self::new(code, status, fault.to_string())
    }
}

/// Refuses preflights, version 2 signatures other than in the URL of a read, two signatures at
/// once, and form uploads.
pub(crate) fn check(parts: &Parts) -> Result<(), Refusal> {
    if parts.method == Method::OPTIONS {
        return Err(preflight(&parts.headers));
    }
    let query = parts.uri.query().unwrap_or_default();
    let header = header_text(&parts.headers, AUTHORIZATION.as_str());
    let signed_in_query = query_value(query, "X-Amz-Signature").is_some();
    let is_version2 = version2::is_in_query(query);
    if header.is_some_and(|value| value.starts_with("AWS "))
        || is_version2 && !version2::may_sign(&parts.method)
    {
        return Err(Refusal::new("InvalidRequest", StatusCode::BAD_REQUEST, USE_SIGNATURE_V4));
    }
    if is_form_upload(parts) {
        let message = "Uploads by HTML form are not implemented.";
        return Err(Refusal::new("NotImplemented", StatusCode::NOT_IMPLEMENTED, message));
    }
    let mechanisms = [header.is_some(), signed_in_query, is_version2];
    if mechanisms.into_iter().filter(|&is_used| is_used).count() > 1 {
        let message = "Only one auth mechanism allowed.";
        return Err(Refusal::new("InvalidArgument", StatusCode::BAD_REQUEST, message));
    }
    Ok(())
}

/// Answers a CORS preflight: OPTIONS, without a signature. No bucket has CORS rules, so the answer
/// is the same whether it exists or not.
fn preflight(headers: &HeaderMap) -> Refusal {
    let bad = |message| Refusal::new("BadRequest", StatusCode::BAD_REQUEST, message);
    if !headers.contains_key(ORIGIN) {
        return bad("Insufficient information. Origin request header needed.");
    }
    let Some(method) = header_text(headers, ACCESS_CONTROL_REQUEST_METHOD.as_str()) else {
        return bad("Invalid Access-Control-Request-Method: null");
    };
    let message = "CORSResponse: CORS is not enabled for this bucket.";
    Refusal::new("AccessForbidden", StatusCode::FORBIDDEN, message).with_detail("Method", method)
}

/// s3s would read the whole form into memory before it authenticates the sender.
fn is_form_upload(parts: &Parts) -> bool {
    parts.method == Method::POST
        && header_text(&parts.headers, CONTENT_TYPE.as_str()).is_some_and(|value| {
            value.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
        })
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
