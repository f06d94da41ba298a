//! The precedence table of conditional reads, row by row.

use fulgurite_archive::{ObjectInfo, ObjectMeta, Residence, StorageClass};
use fulgurite_units::{ObjectId, UnixTime};
use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::dto::{ETag, ETagCondition, Timestamp};

use super::{ReadConditions, of_write};
use crate::s3::adapter::words::timestamp;

const MODIFIED_MS: u64 = 1_700_000_000_500;

fn object() -> ObjectInfo {
    ObjectInfo {
        key: "k".to_owned(),
        object_id: ObjectId::from_random([0; 16]),
        bytes: 1,
        etag: "abc".to_owned(),
        modified: UnixTime::from_millis(MODIFIED_MS),
        class: StorageClass::Standard,
        meta: ObjectMeta::default(),
        checksum: None,
        part_count: None,
        restore: None,
        residence: Residence::Online,
    }
}

fn tag(text: &str) -> Option<ETagCondition> {
    Some(match text {
        "*" => ETagCondition::Any,
        text => ETagCondition::ETag(ETag::Strong(text.to_owned())),
    })
}

fn at(offset_s: i64) -> Option<Timestamp> {
    let ms = MODIFIED_MS.checked_add_signed(offset_s * 1000).unwrap();
    Some(timestamp(UnixTime::from_millis(ms)))
}

fn status(conditions: ReadConditions) -> u16 {
    let answer = conditions.check(&object());
    answer.err().and_then(|error| error.status_code()).map_or(200, |status| status.as_u16())
}

#[test]
fn entity_tags_outrank_dates() {
    let none = ReadConditions::default;
    let table = [
        (none(), 200),
        (ReadConditions { if_match: tag("abc"), ..none() }, 200),
        (ReadConditions { if_match: tag("*"), ..none() }, 200),
        (ReadConditions { if_match: tag("xyz"), ..none() }, 412),
        (ReadConditions { if_unmodified_since: at(0), ..none() }, 200),
        (ReadConditions { if_unmodified_since: at(-1), ..none() }, 412),
        (ReadConditions { if_match: tag("abc"), if_unmodified_since: at(-1), ..none() }, 200),
        (ReadConditions { if_none_match: tag("abc"), ..none() }, 304),
        (ReadConditions { if_none_match: tag("*"), ..none() }, 304),
        (ReadConditions { if_none_match: tag("xyz"), ..none() }, 200),
        (ReadConditions { if_modified_since: at(0), ..none() }, 304),
        (ReadConditions { if_modified_since: at(-1), ..none() }, 200),
        (ReadConditions { if_none_match: tag("abc"), if_modified_since: at(-1), ..none() }, 304),
        (ReadConditions { if_none_match: tag("xyz"), if_modified_since: at(0), ..none() }, 200),
        (ReadConditions { if_match: tag("xyz"), if_none_match: tag("abc"), ..none() }, 412),
    ];
    for (conditions, expected) in table {
        assert_eq!(status(conditions.clone()), expected, "{conditions:?}");
        let copy = conditions.check_copy(&object()).is_ok();
        assert_eq!(copy, expected == 200, "{conditions:?}");
    }
}

#[test]
fn writes_know_two_conditions() {
    let of = |name: &'static str, value: &'static str| {
        let pair = (HeaderName::from_static(name), HeaderValue::from_static(value));
        of_write(&HeaderMap::from_iter([pair]))
    };
    assert!(of("if-none-match", "*").unwrap().absent);
    assert_eq!(of("if-match", "\"abc\"").unwrap().etag.as_deref(), Some("abc"));
    assert_eq!(of("if-match", "*").unwrap().etag.as_deref(), Some("*"));
    assert!(of("if-none-match", "\"abc\"").is_err());
}
