//! Signatures that botocore made (`signature_version="s3"`) verify, and small changes to them do
//! not.

use http::Request;
use http::request::Parts;
use jiff::Timestamp;

use super::verify;
use crate::Credentials;

const EXPIRES: i64 = 4_102_444_800;
const PLAIN: &str = "/vault/a/b%20c%2Bd.txt?AWSAccessKeyId=TESTACCESSKEY\
                     &Signature=QZrRyLodCHeWgH0%2F2CjEwwxJFUA%3D&Expires=4102444800";
const HEAD: &str = "/vault/a/b%20c%2Bd.txt?AWSAccessKeyId=TESTACCESSKEY\
                    &Signature=OAgNNs3udKMJnzyIOp4Ia4ZSf8o%3D&Expires=4102444800";
const RENAMED: &str = "/vault/a/b%20c%2Bd.txt\
                       ?response-content-disposition=attachment%3B%20filename%3D%22x%20y%2Bz%22\
                       &response-content-type=text%2Fplain&AWSAccessKeyId=TESTACCESSKEY\
                       &Signature=olLZ5TgEHk6LaPyztFqdPj531jc%3D&Expires=4102444800";
/// Signs the header `x-amz-checksum-mode: ENABLED`, too.
const WITH_HEADER: &str = "/vault/a/b%20c%2Bd.txt?AWSAccessKeyId=TESTACCESSKEY\
                           &Signature=n2EQSuyWNoeZMibyZFyoPne0CxI%3D&Expires=4102444800";

fn parts(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn outcome(parts: &Parts, bucket: Option<&str>, now: i64) -> &'static str {
    let keys = Credentials::new("TESTACCESSKEY", "test/secret+key").unwrap();
    match verify(parts, bucket, &keys, Timestamp::from_second(now).unwrap()) {
        Ok(Some(_)) => "signed",
        Ok(None) => "unsigned",
        Err(refusal) => refusal.code,
    }
}

fn outcome_of(method: &str, target: &str) -> &'static str {
    outcome(&parts(method, target, &[]), None, EXPIRES)
}

#[test]
fn botocore_urls_verify_until_expiry() {
    assert_eq!(outcome_of("GET", PLAIN), "signed");
    assert_eq!(outcome_of("HEAD", HEAD), "signed");
    assert_eq!(outcome_of("GET", RENAMED), "signed");
    let headers = [("x-amz-checksum-mode", "ENABLED")];
    assert_eq!(outcome(&parts("GET", WITH_HEADER, &headers), None, EXPIRES), "signed");
    // With the bucket in the host, the path is only the key.
    let hosted = PLAIN.replacen("/vault", "", 1);
    assert_eq!(outcome(&parts("GET", &hosted, &[]), Some("vault"), EXPIRES), "signed");
    assert_eq!(outcome(&parts("GET", PLAIN, &[]), None, EXPIRES + 1), "AccessDenied");
    assert_eq!(outcome_of("GET", "/vault/a?acl"), "unsigned");
}

#[test]
fn modified_urls_do_not_verify() {
    let mismatch = "SignatureDoesNotMatch";
    let changed = |from: &str, to: &str| {
        assert!(PLAIN.contains(from), "{from}");
        outcome_of("GET", &PLAIN.replace(from, to))
    };
    for method in ["HEAD", "PUT", "DELETE"] {
        assert_eq!(outcome_of(method, PLAIN), mismatch, "{method}");
    }
    assert_eq!(changed("c%2Bd", "c%2Be"), mismatch);
    assert_eq!(changed("/vault", "/other"), mismatch);
    assert_eq!(changed("4102444800", "4102444801"), mismatch);
    assert_eq!(changed("QZr", "QZs"), mismatch);
    assert_eq!(changed("QZr", "QZrQZr"), mismatch);
    assert_eq!(changed("QZr", "%21"), mismatch);
    assert_eq!(changed("QZrRyLodCHeWgH0%2F2CjEwwxJFUA%3D", ""), mismatch);
    assert_eq!(changed("TESTACCESSKEY", "TESTACCESSKEX"), "InvalidAccessKeyId");
    assert_eq!(outcome_of("GET", &RENAMED.replace("text%2Fplain", "text%2Fhtml")), mismatch);
    for added in ["&acl", "&versionId=null", "&response-content-type=text%2Fhtml"] {
        assert_eq!(outcome_of("GET", &format!("{PLAIN}{added}")), mismatch, "{added}");
    }
    for added in ["&list-type=2", "&prefix=a", "&x-amz-checksum-mode=ENABLED", "&attributes"] {
        assert_eq!(outcome_of("GET", &format!("{PLAIN}{added}")), "AccessDenied", "{added}");
    }
    for headers in [
        [("x-amz-checksum-mode", "ENABLED")],
        [("content-type", "text/plain")],
        [("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")],
    ] {
        assert_eq!(outcome(&parts("GET", PLAIN, &headers), None, EXPIRES), mismatch, "{headers:?}");
    }
    assert_eq!(outcome(&parts("GET", PLAIN, &[]), Some("vault"), EXPIRES), mismatch);
}

#[test]
fn malformed_and_repeated_parameters_are_rejected() {
    for time in ["1.5", "4102444800x", "0x1", "%2B4102444800", "04102444800", "", "-1", "9e18"] {
        let target = PLAIN.replace("4102444800", time);
        assert_eq!(outcome_of("GET", &target), "AccessDenied", "{time}");
    }
    for twice in ["&Expires=4102444800", "&AWSAccessKeyId=TESTACCESSKEY", "&Signature=a"] {
        assert_eq!(outcome_of("GET", &format!("{PLAIN}{twice}")), "AccessDenied", "{twice}");
    }
    for missing in ["&Expires=4102444800", "AWSAccessKeyId=TESTACCESSKEY&"] {
        assert_eq!(outcome_of("GET", &PLAIN.replace(missing, "")), "AccessDenied", "{missing}");
    }
}
