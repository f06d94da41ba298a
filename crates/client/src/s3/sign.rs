//! Signature version 4 of one request.
//!
//! Bodies are sent as `UNSIGNED-PAYLOAD` with a checksum header instead: the checksum is signed, so
//! the body is bound to the request without a second hash over it.

use std::borrow::Cow;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;

use super::error::S3Error;

/// Returns the headers that sign `method url` with `headers`, to be added to it.
pub(super) fn signature_headers(
    credentials: &Credentials,
    region: &str,
    method: &str,
    url: &str,
    headers: &[(Cow<'static, str>, String)],
) -> Result<Vec<(String, String)>, S3Error> {
    let unsigned = |reason: String| S3Error::Unsigned { reason };
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let identity = credentials.clone().into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("s3")
        .time(SystemTime::now())
        .settings(settings)
        .build()
        .map_err(|error| unsigned(error.to_string()))?
        .into();
    let pairs = headers.iter().map(|(name, value)| (name.as_ref(), value.as_str()));
    let request = SignableRequest::new(method, url, pairs, SignableBody::UnsignedPayload)
        .map_err(|error| unsigned(error.to_string()))?;
    let output = sign(request, &params).map_err(|error| unsigned(error.to_string()))?;
    let (instructions, _signature) = output.into_parts();
    Ok(instructions.headers().map(|(n, v)| (n.to_owned(), v.to_owned())).collect())
}
