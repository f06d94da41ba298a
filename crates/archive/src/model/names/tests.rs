//! The rules of bucket and object names, each with a violation.

use super::*;

#[test]
fn bucket_names_follow_every_s3_rule() {
    let long = "a".repeat(63);
    for name in ["abc", "a-b", "a.b-c.d1", "0ab", "1.2.3.4a", "1.2.3", &long] {
        assert!(BucketName::new(name).is_ok(), "{name}");
    }
    let too_long = "a".repeat(64);
    let broken = [
        ("", "3 to 63"),
        ("ab", "3 to 63"),
        (&too_long, "3 to 63"),
        ("Abc", "lower-case"),
        ("a_b", "lower-case"),
        ("a/b", "lower-case"),
        ("a\u{e9}b", "lower-case"),
        ("-ab", "begins and ends"),
        ("ab-", "begins and ends"),
        (".ab", "begins and ends"),
        ("ab.", "begins and ends"),
        ("a..b", "two dots"),
        ("192.168.0.1", "IP address"),
        ("xn--abc", "reserved"),
        ("abc-s3alias", "reserved"),
        ("abc--ol-s3", "reserved"),
    ];
    for (name, part) in broken {
        match BucketName::new(name) {
            Err(ArchiveError::InvalidBucketName { rule, .. }) => {
                assert!(rule.contains(part), "{name}: {rule}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn object_key_length_counts_bytes() {
    assert!(matches!(ObjectKey::new(""), Err(ArchiveError::InvalidArgument { .. })));
    assert!(ObjectKey::new(&"\u{e9}".repeat(512)).is_ok());
    let over = ObjectKey::new(&"\u{e9}".repeat(513));
    assert!(matches!(over, Err(ArchiveError::KeyTooLong { bytes: 1026, max: 1024 })));
}
