//! Small decisions of `serve`.

use super::{endpoint_of, fail_point};

#[test]
fn endpoints_can_be_reached_from_here() {
    let endpoint = |address: &str, tls| endpoint_of(address.parse().unwrap(), tls);
    assert_eq!(endpoint("127.0.0.1:9000", false), "http://127.0.0.1:9000");
    assert_eq!(endpoint("0.0.0.0:80", true), "https://127.0.0.1:80");
    assert_eq!(endpoint("[::]:9000", false), "http://[::1]:9000");
}

#[test]
fn fail_points_are_a_name_and_a_count() {
    assert_eq!(fail_point(None).unwrap(), None);
    assert_eq!(fail_point(Some("")).unwrap(), None);
    assert_eq!(fail_point(Some("put-staged:3")).unwrap(), Some(("put-staged".to_owned(), 3)));
    for wrong in ["put-staged", "put-staged:", "put-staged:x", "put-staged:-1"] {
        assert!(fail_point(Some(wrong)).is_err(), "{wrong}");
    }
}
