//! The transfer framing is not stored with the object.

use super::without_framing;

#[test]
fn aws_chunked_is_not_stored() {
    for (sent, kept) in [
        ("aws-chunked", None),
        ("gzip", Some("gzip")),
        ("gzip,aws-chunked", Some("gzip")),
        ("gzip, aws-chunked", Some("gzip")),
        ("aws-chunked, gzip, br", Some("gzip, br")),
        ("gzip ,  br,AWS-Chunked", Some("gzip ,  br")),
        ("gzip, br", Some("gzip, br")),
        ("my-own;q=1,,x", Some("my-own;q=1,,x")),
    ] {
        assert_eq!(without_framing(sent).as_deref(), kept, "{sent}");
    }
}
