//! Names: their order, their length, and invalid ones.

use proptest::prelude::*;

use super::*;

fn films() -> BucketName {
    BucketName::new("films").unwrap()
}

#[test]
fn encoded_names_are_stable() {
    let bucket_name = films();
    assert_eq!(bucket(&bucket_name), "shared/films");
    assert_eq!(object(&bucket_name, "a"), "shared/films/NF");
    assert_eq!(object(&bucket_name, "2026/reel 1.mov"), "shared/films/BY-mCXxmOLKg723iQLxq");
    assert_eq!(key(&bucket_name, "shared/films/NF").as_deref(), Some("a"));
}

#[test]
fn invalid_names_do_not_parse() {
    let bucket_name = films();
    // Leftover bits, an invalid character, another bucket, the bucket itself.
    for name in ["shared/films/NG", "shared/films/N.", "shared/film/NF", "shared/films", "films/NF"]
    {
        assert_eq!(key(&bucket_name, name), None, "{name}");
    }
}

#[test]
fn name_and_segment_lengths_stay_within_limits() {
    let bucket = BucketName::new(&"b".repeat(BUCKET_NAME_BYTES_MAX)).unwrap();
    let longest = "\u{fc}".repeat(SHARED_KEY_BYTES_MAX / 2);
    let name = object(&bucket, &longest);
    assert!(name.len() <= NAME_BYTES_MAX, "{} bytes", name.len());
    assert!(name.split('/').all(|segment| segment.len() <= 200));
    assert_eq!(key(&bucket, &name), Some(longest));
    for start in [SHARED_KEY_BYTES_MAX, SHARED_KEY_BYTES_MAX + 1, 2000] {
        let before = before(&bucket, &vec![b'k'; start]).unwrap();
        assert!(before.len() <= NAME_BYTES_MAX, "{} bytes", before.len());
    }
}

fn a_key() -> impl Strategy<Value = String> {
    let long = proptest::string::string_regex("[ab/\u{0}\u{7f}\u{fc}]{120,195}").unwrap();
    prop_oneof![any::<String>(), "[ab/]{0,6}", long]
        .prop_filter("keys are not empty, nor too long", |key| {
            !key.is_empty() && key.len() <= SHARED_KEY_BYTES_MAX
        })
}

proptest! {
    #[test]
    fn names_sort_like_keys_and_round_trip(one in a_key(), other in a_key()) {
        let bucket_name = films();
        let (first, second) = (object(&bucket_name, &one), object(&bucket_name, &other));
        prop_assert_eq!(first.cmp(&second), one.cmp(&other));
        prop_assert_eq!(key(&bucket_name, &first), Some(one));
    }

    #[test]
    fn start_name_sorts_between_keys(start in a_key(), one in a_key()) {
        let bucket_name = films();
        let before = before(&bucket_name, start.as_bytes());
        let is_behind = before.is_none_or(|before| object(&bucket_name, &one) > before);
        prop_assert_eq!(is_behind, one >= start);
    }
}
