//! Conditional requests: the `If-*` headers. Conditions of reads are evaluated here, with the
//! precedence and the comparisons of RFC 9110 that S3 follows; conditions of writes are evaluated
//! by the archive within the transaction that commits them.

use fulgurite_archive::{ObjectInfo, WriteCondition};
use http::header::{
    ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use s3s::{S3Error, S3Result};

use super::conversions::{http_date, invalid_argument, not_implemented};
use super::errors::{s3_error, with_details};
use crate::s3::raw_headers::{
    COPY_IF_MATCH, COPY_IF_MODIFIED_SINCE, COPY_IF_NONE_MATCH, COPY_IF_UNMODIFIED_SINCE,
};

/// The three forms of a date in HTTP (RFC 9110, 5.6.7); the last two are obsolete.
const DATE_FORMS: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// The conditions of a read, or of the source of a copy.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadConditions {
    if_match: Option<EntityTags>,
    if_none_match: Option<EntityTags>,
    /// Seconds since 1970.
    if_modified_since: Option<i64>,
    /// Seconds since 1970.
    if_unmodified_since: Option<i64>,
}

impl ReadConditions {
    /// Reads the conditions of a read. An invalid date is no condition.
    pub(super) fn for_read(headers: &HeaderMap) -> Self {
        let date = |name: &HeaderName| text(headers, name).as_deref().and_then(http_seconds);
        Self {
            if_match: text(headers, &IF_MATCH).map(|text| EntityTags::parse(&text)),
            if_none_match: text(headers, &IF_NONE_MATCH).map(|text| EntityTags::parse(&text)),
            if_modified_since: date(&IF_MODIFIED_SINCE),
            if_unmodified_since: date(&IF_UNMODIFIED_SINCE),
        }
    }

    /// Reads the conditions on the source of a copy. Here an invalid date is refused: otherwise the
    /// copy would be made without the condition.
    pub(super) fn for_copy(headers: &HeaderMap) -> S3Result<Self> {
        let date = |name: &HeaderName| {
            let Some(text) = text(headers, name) else { return Ok(None) };
            let invalid = || invalid_argument(format!("{name} is not a date"));
            http_seconds(&text).map(Some).ok_or_else(invalid)
        };
        Ok(Self {
            if_match: text(headers, &COPY_IF_MATCH).map(|text| EntityTags::parse(&text)),
            if_none_match: text(headers, &COPY_IF_NONE_MATCH).map(|text| EntityTags::parse(&text)),
            if_modified_since: date(&COPY_IF_MODIFIED_SINCE)?,
            if_unmodified_since: date(&COPY_IF_UNMODIFIED_SINCE)?,
        })
    }

    /// Checks whether a read of `object` may proceed; the error is a 304 or a 412.
    pub(super) fn check(&self, object: &ObjectInfo) -> S3Result<()> {
        let modified = modified_seconds(object);
        // When both an entity tag and a date are given, the tag decides alone.
        match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) if !tags.match_strongly(&object.etag) => {
                return Err(failed("If-Match"));
            }
            (None, Some(time)) if modified > time => return Err(failed("If-Unmodified-Since")),
            _ => {}
        }
        match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) if tags.match_weakly(&object.etag) => Err(not_modified(object)),
            (None, Some(time)) if modified <= time => Err(not_modified(object)),
            _ => Ok(()),
        }
    }

    /// Like `check`, for the source of a copy: there is no 304, only 412.
    pub(super) fn check_copy(&self, object: &ObjectInfo) -> S3Result<()> {
        self.check(object).map_err(|_| failed("x-amz-copy-source-If"))
    }
}

/// Returns whether `If-Range` matches this object. If not, the client would mix a range of it with
/// bytes of another object, so the whole object is sent.
pub(super) fn range_holds(headers: &HeaderMap, object: &ObjectInfo) -> bool {
    let Some(text) = text(headers, &IF_RANGE) else { return true };
    if let Some(time) = http_seconds(&text) {
        return modified_seconds(object) == time;
    }
    let tags = entity_tags(&text);
    let [tag] = tags.as_slice() else { return false };
    !tag.is_weak && tag.value == object.etag
}

/// The tags of `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EntityTags {
    /// `*`: any object.
    Any,
    Listed(Vec<EntityTag>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct EntityTag {
    is_weak: bool,
    /// Without quotes.
    value: String,
}

impl EntityTags {
    fn parse(text: &str) -> Self {
        if text.trim() == "*" { Self::Any } else { Self::Listed(entity_tags(text)) }
    }

    /// Strong comparison: a weak tag says that bodies are equivalent, not that they are equal.
    fn match_strongly(&self, etag: &str) -> bool {
        self.any(|tag| !tag.is_weak && tag.value == etag)
    }

    fn match_weakly(&self, etag: &str) -> bool {
        self.any(|tag| tag.value == etag)
    }

    fn any(&self, matches: impl Fn(&EntityTag) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(tags) => tags.iter().any(matches),
        }
    }
}

/// Parses a list of tags. Quoted tags may contain commas; some clients send tags without quotes,
/// which end at a comma.
fn entity_tags(text: &str) -> Vec<EntityTag> {
    let mut tags = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return tags;
        }
        let strong = rest.strip_prefix("W/");
        let is_weak = strong.is_some();
        let opaque = strong.unwrap_or(rest);
        let quoted = opaque.strip_prefix('"').and_then(|opaque| opaque.split_once('"'));
        let (value, after) = quoted.unwrap_or_else(|| {
            let (value, after) = opaque.split_once(',').unwrap_or((opaque, ""));
            (value.trim_end(), after)
        });
        tags.push(EntityTag { is_weak, value: value.to_owned() });
        rest = after;
    }
}

/// Parses an HTTP date to seconds since 1970; `None` when it has none of the three forms.
fn http_seconds(text: &str) -> Option<i64> {
    DATE_FORMS.iter().find_map(|form| {
        let time = DateTime::strptime(form, text.trim()).ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(time.timestamp().as_second())
    })
}

fn modified_seconds(object: &ObjectInfo) -> i64 {
    i64::try_from(object.modified.as_secs()).unwrap_or(i64::MAX)
}

fn failed(condition: &'static str) -> S3Error {
    let message = "At least one of the pre-conditions you specified did not hold";
    let error = s3_error("PreconditionFailed", StatusCode::PRECONDITION_FAILED, message);
    with_details(error, [("Condition", condition)])
}

/// Returns a 304 with the headers that a cache needs for validating its copy.
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

/// Reads the conditions of a write: `If-None-Match: *` and `If-Match`.
pub(super) fn for_write(headers: &HeaderMap) -> S3Result<WriteCondition> {
    let absent = match ascii(headers, &IF_NONE_MATCH)? {
        None => false,
        Some("*") => true,
        Some(_) => return Err(not_implemented("If-None-Match of a write must be *")),
    };
    let etag = ascii(headers, &IF_MATCH)?.map(|tag| tag.trim_matches('"').to_owned());
    if absent && etag.is_some() {
        return Err(not_implemented("If-Match and If-None-Match exclude each other"));
    }
    Ok(WriteCondition { absent, etag, ..WriteCondition::default() })
}

fn ascii<'a>(headers: &'a HeaderMap, name: &HeaderName) -> S3Result<Option<&'a str>> {
    let value = headers.get(name).map(HeaderValue::to_str).transpose();
    value.map_err(|_| invalid_argument(format!("{name} is not valid")))
}

/// Joins all lines of a header to one list; `None` when it is empty.
fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines = headers.get_all(name).iter();
    let lines: Vec<_> = lines.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let text = lines.join(", ");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
