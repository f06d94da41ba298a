//! What can be opened, what is refused, and that no error shows a secret.

use fulgurite_units::error_chain;

use super::*;
use crate::stores::tests::entropy;

const SECRET: &str = "open-sesame";

fn opener() -> Opener {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let environment = ["AWS_SECRET_ACCESS_KEY", "A_SECRET", "PGPASSWORD", "ETCD_PASSWORD"];
    let environment = environment.map(|name| (name.to_owned(), SECRET.to_owned()));
    let id = ("AWS_ACCESS_KEY_ID".to_owned(), "an-id".to_owned());
    let environment = environment.into_iter().chain([id]);
    Opener::new(entropy(1), environment)
}

/// Returns the error of an address that cannot be opened.
async fn refusal(address: &str) -> String {
    let address: Address = address.parse().unwrap();
    let error = opener().table(&address, true).await.err().expect("it is refused");
    assert_eq!(error.kind(), fulgurite_units::ErrorKind::Invalid, "{error}");
    format!("{error:?} {}", error_chain(&error))
}

#[tokio::test]
async fn incomplete_addresses_are_rejected_before_connecting() {
    for (address, expected) in [
        ("postgres://host/db", "ca=FILE"),
        ("postgres://host/db?sslmode=require", "ca=FILE"),
        ("postgres://host/db?sslmode=prefer&ca=/nowhere", "ca=FILE"),
        ("postgres://host/db?ca=/nowhere/at/all", "/nowhere/at/all"),
        ("postgres://localhost:x/db", "host:port"),
        ("postgres://localhost/db?connections=0", "from 1 to 256"),
        ("postgres://localhost/db?password_env=NOT_THERE", "NOT_THERE"),
        ("etcd://host", "tls=on"),
        ("etcd://host?tls=off&ca=/nowhere", "tls=on"),
        ("etcd://localhost,?tls=off", "host:port"),
        ("etcd://localhost?user=me&password_env=NOT_THERE", "NOT_THERE"),
        ("s3://bucket?secret_access_key_env=NOT_THERE", "NOT_THERE"),
        ("s3://bucket?ca=/nowhere/at/all", "/nowhere/at/all"),
        ("az://container", "the store"),
        ("node://oslo:7443/oslo.records?ca=a&cert=b&key=c", "does not support nodes"),
    ] {
        let text = refusal(address).await;
        assert!(text.contains(expected), "{address}: {text}");
        assert!(!text.contains(SECRET), "{text}");
    }
    for address in ["postgres://localhost/db", "etcd://localhost"] {
        let address: Address = address.parse().unwrap();
        let error = opener().blobs(&address, true).await.err().unwrap();
        assert!(error.to_string().contains("no blobs"), "{error}");
    }
}

#[test]
fn node_address_has_endpoint_name_and_files() {
    let place = |text: &str| node(&text.parse().unwrap());
    let named = place("node://[::1]:7443/oslo.records?ca=/a&cert=/b&key=/c").unwrap();
    assert_eq!((&*named.authority, &*named.name), ("[::1]:7443", "oslo.records"));
    assert_eq!(named.ca, FilePath::new("/a"));
    assert_eq!(named.certificate, FilePath::new("/b"));
    assert_eq!(named.key, FilePath::new("/c"));
    // Without a name, the certificate must have the host name.
    assert_eq!(place("node://[::1]:7443?ca=/a&cert=/b&key=/c").unwrap().name, "::1");
    let refused = |text: &str| place(text).unwrap_err().to_string();
    assert!(refused("node://oslo/oslo?ca=/a&cert=/b&key=/c").contains("it has no port"));
    assert!(refused("node://oslo:7443?ca=/a&cert=/b").contains("the option key"));
}

#[tokio::test]
async fn no_output_contains_a_secret() {
    let opener = opener();
    assert!(!format!("{opener:?}").contains(SECRET));
    let etcd = "etcd://localhost:1?user=me".parse().unwrap();
    let etcd = opener.etcd(&etcd).unwrap();
    let table = EtcdTable::open(etcd.clone()).unwrap();
    let postgres = "postgres://me@localhost:1/db?password_env=A_SECRET".parse().unwrap();
    let postgres = opener.postgres(&postgres, true).unwrap();
    for shown in [format!("{etcd:?} {table:?}"), format!("{postgres:?}")] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
    // Nothing listens there.
    let address: Address = "postgres://me@127.0.0.1:1/db".parse().unwrap();
    let error = opener.table(&address, true).await.err().unwrap();
    let shown = format!("{error:?} {}", error_chain(&error));
    assert!(!shown.contains(SECRET), "{shown}");
    let s3 = "s3://bucket/prefix?endpoint=http://127.0.0.1:1".parse().unwrap();
    let bucket = opener.bucket(&s3, true).unwrap();
    assert!(!format!("{bucket:?}").contains(SECRET), "a store shows a secret");
}

#[test]
fn hosts_without_a_port_use_the_default() {
    assert_eq!(host_and_port("host", 7), Ok(("host", 7)));
    assert_eq!(host_and_port("host:1", 7), Ok(("host", 1)));
    assert_eq!(host_and_port("[::1]:1", 7), Ok(("[::1]", 1)));
    assert_eq!(host_and_port("[::1]", 7), Ok(("[::1]", 7)));
    for wrong in ["", ":1", "host:", "host:70000", "a:b:1", "a,b"] {
        assert!(host_and_port(wrong, 7).is_err(), "{wrong}");
    }
    assert!(is_loopback("localhost") && is_loopback("127.0.0.1") && is_loopback("[::1]"));
    assert!(!is_loopback("example.org") && !is_loopback("10.0.0.1"));
}
