//! RestoreObject: brings an archived object back for some days.

use fulgurite_archive::{Archive, RestoreOutcome, RestoreRequest, Retrieval};
use http::StatusCode;
use s3s::dto::{RestoreObjectInput, RestoreObjectOutput};
use s3s::{S3Request, S3Response, S3Result};

use super::conversions::{
    check_version, invalid_argument, malformed_xml, not_implemented, object_name,
};
use super::errors::to_s3_error;
use crate::s3::responses::StatusOverride;

pub(super) async fn restore(
    archive: &Archive,
    request: S3Request<RestoreObjectInput>,
) -> S3Result<S3Response<RestoreObjectOutput>> {
    let input = request.input;
    let (bucket, key) = object_name(&input.bucket, &input.key)?;
    check_version(input.version_id.as_deref())?;
    let retrieval_request = restore_request(input.restore_request)?;
    let outcome = archive.restore(&bucket, &key, retrieval_request).await.map_err(to_s3_error)?;
    let mut response = S3Response::new(RestoreObjectOutput::default());
    // s3s always answers 200. `responses` sets the status by which clients tell 202 (accepted) from
    // 200 (extended).
    response.extensions.insert(StatusOverride(match outcome {
        RestoreOutcome::Accepted => StatusCode::ACCEPTED,
        RestoreOutcome::Extended => StatusCode::OK,
    }));
    Ok(response)
}

fn restore_request(request: Option<s3s::dto::RestoreRequest>) -> S3Result<RestoreRequest> {
    let request = request.ok_or_else(malformed_xml)?;
    let selects = request.select_parameters.is_some() || request.output_location.is_some();
    if selects || request.type_.is_some() {
        return Err(not_implemented("Restores of type SELECT"));
    }
    let days = request.days.ok_or_else(malformed_xml)?;
    let days = u32::try_from(days).ok().filter(|&days| days > 0);
    let days = days.ok_or_else(|| invalid_argument("restoration days should be at least 1"))?;
    let tier = request.glacier_job_parameters.map(|job| job.tier).or(request.tier);
    let retrieval = match tier.as_ref().map(s3s::dto::Tier::as_str) {
        None | Some(s3s::dto::Tier::STANDARD) => Retrieval::Standard,
        Some(s3s::dto::Tier::BULK) => Retrieval::Bulk,
        Some(s3s::dto::Tier::EXPEDITED) => Retrieval::Expedited,
        Some(_) => return Err(malformed_xml()),
    };
    Ok(RestoreRequest { days, retrieval })
}
