//! `If-*` headers. Reads are judged here, with the precedence of RFC 9110 that S3 follows; writes
//! are judged by the archive within the transaction that commits them.

use fulgurite_archive::{ObjectInfo, WriteCondition};
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3Error, S3Result};

use super::errors::s3_error;
use super::words::{http_date, invalid_argument, not_implemented, timestamp};

/// The conditions of a read, or of the source of a copy.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadConditions {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
    pub(super) if_modified_since: Option<Timestamp>,
    pub(super) if_unmodified_since: Option<Timestamp>,
}

impl ReadConditions {
    /// Whether a read of `object` may go on; the error is a 304 or a 412.
    pub(super) fn check(&self, object: &ObjectInfo) -> S3Result<()> {
        let names = |condition: &ETagCondition| {
            condition.as_etag().is_none_or(|etag| etag.value() == object.etag)
        };
        let modified = timestamp(object.modified);
        // An entity tag decides alone when both it and a date are given.
        match (&self.if_match, &self.if_unmodified_since) {
            (Some(tag), _) if !names(tag) => return Err(failed("If-Match")),
            (None, Some(time)) if modified > *time => return Err(failed("If-Unmodified-Since")),
            _ => {}
        }
        match (&self.if_none_match, &self.if_modified_since) {
            (Some(tag), _) if names(tag) => Err(not_modified(object)),
            (None, Some(time)) if modified <= *time => Err(not_modified(object)),
            _ => Ok(()),
        }
    }

    /// As `check`, for the source of a copy: there is no 304, only 412.
    pub(super) fn check_copy(&self, object: &ObjectInfo) -> S3Result<()> {
        self.check(object).map_err(|_| failed("x-amz-copy-source-If"))
    }
}

fn failed(condition: &str) -> S3Error {
    let message =
        format!("At least one of the pre-conditions you specified did not hold: {condition}");
    s3_error("PreconditionFailed", StatusCode::PRECONDITION_FAILED, message)
}

/// A cache needs to know what it may go on using.
fn not_modified(object: &ObjectInfo) -> S3Error {
    let mut error = s3_error("NotModified", StatusCode::NOT_MODIFIED, "Not Modified");
    let mut headers = HeaderMap::new();
    let texts =
        [(ETAG, format!("\"{}\"", object.etag)), (LAST_MODIFIED, http_date(object.modified))];
    for (name, text) in texts {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
    error.set_headers(headers);
    error
}

/// The conditions of a write: `If-None-Match: *` and `If-Match`.
pub(super) fn of_write(headers: &HeaderMap) -> S3Result<WriteCondition> {
    let absent = match text(headers, &IF_NONE_MATCH)? {
        None => false,
        Some("*") => true,
        Some(_) => return Err(not_implemented("If-None-Match of a write must be *")),
    };
    let etag = text(headers, &IF_MATCH)?.map(|tag| tag.trim_matches('"').to_owned());
    if absent && etag.is_some() {
        return Err(not_implemented("If-Match and If-None-Match exclude each other"));
    }
    Ok(WriteCondition { absent, etag, ..WriteCondition::default() })
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> S3Result<Option<&'a str>> {
    let value = headers.get(name).map(HeaderValue::to_str).transpose();
    value.map_err(|_| invalid_argument(format!("{name} is not valid")))
}

#[cfg(test)]
mod tests;
