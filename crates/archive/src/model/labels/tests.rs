//! Tags within S3's limits are accepted, others refused, even when they come from a row.

use super::*;
use crate::limits::TAGS_BYTES_MAX;

fn tags(count: usize, name: &str, value: &str) -> BTreeMap<String, String> {
    let named = |number| (format!("{number:02}{}", &name[..name.len() - 2]), value.to_owned());
    (0..count).map(named).collect()
}

#[test]
fn tag_limits_match_s3() {
    let (name, value) = ("n".repeat(128), "\u{10ffff}".repeat(256));
    let most = Tags::try_from(tags(10, &name, &value)).unwrap();
    let bytes = postcard::to_extend(&most, Vec::new()).unwrap();
    assert!(bytes.len() <= TAGS_BYTES_MAX, "{} bytes", bytes.len());
    assert_eq!(postcard::from_bytes::<Tags>(&bytes).unwrap(), most);
    let broken = [
        tags(11, &name, ""),
        tags(1, &"n".repeat(129), ""),
        tags(1, &name, &"v".repeat(257)),
        [(String::new(), "v".to_owned())].into(),
    ];
    for tags in broken {
        let bytes = postcard::to_extend(&tags, Vec::new()).unwrap();
        assert!(postcard::from_bytes::<Tags>(&bytes).is_err(), "{tags:?}");
        let refused = Tags::try_from(tags).unwrap_err();
        assert!(matches!(refused, ArchiveError::InvalidArgument { .. }), "{refused}");
    }
}
