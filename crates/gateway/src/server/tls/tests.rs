//! A self-signed certificate is valid for a year, and renewed in time with the same key.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use jiff::{Timestamp, ToSpan as _};
use rcgen::{CertificateParams, KeyPair};

use super::self_signed::is_due;
use super::{Renewal, Tls, read_chain};
use crate::TlsConfig;

fn read(directory: &Path, now: Timestamp) -> Tls {
    let tls = TlsConfig::Auto { directory: directory.to_owned(), names: Vec::new() };
    Tls::read(&tls, ([127, 0, 0, 1], 0).into(), now).unwrap()
}

fn now() -> Timestamp {
    "2026-11-27T12:00:00Z".parse().unwrap()
}

fn after(days: i64) -> Timestamp {
    now().checked_add((24 * days).hours()).unwrap()
}

fn renewal(tls: &Tls) -> Renewal {
    tls.renewal.clone().unwrap()
}

#[test]
fn certificate_is_renewed_while_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("tls");
    let tls = read(&directory, now());
    let text = |name: &str| fs::read(directory.join(name)).unwrap();
    let (first, key) = (text("cert.pem"), text("key.pem"));
    let shown = || renewal(&tls).current.0.read().unwrap().cert.clone();
    assert!(!renewal(&tls).renew(after(330)).unwrap());
    assert_eq!(text("cert.pem"), first);
    assert!(renewal(&tls).renew(after(340)).unwrap(), "it expires in 25 days");
    assert_ne!(text("cert.pem"), first);
    assert_eq!(text("key.pem"), key);
    assert_eq!(shown(), read_chain(&directory.join("cert.pem")).unwrap());
    assert!(!renewal(&tls).renew(after(340 + 330)).unwrap(), "it is valid for another year");
    for name in ["cert.pem", "key.pem"] {
        let mode = fs::metadata(directory.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn certificate_is_renewed_at_start() {
    let folder = tempfile::tempdir().unwrap();
    drop(read(folder.path(), now()));
    let first = fs::read(folder.path().join("cert.pem")).unwrap();
    drop(read(folder.path(), after(300)));
    assert_eq!(fs::read(folder.path().join("cert.pem")).unwrap(), first);
    // Also when the server was not started in the meantime.
    let tls = read(folder.path(), after(1000));
    assert_ne!(fs::read(folder.path().join("cert.pem")).unwrap(), first);
    assert!(!renewal(&tls).renew(after(1300)).unwrap());
}

#[test]
fn certificate_without_expiry_is_due() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let endless = params.self_signed(&key).unwrap();
    assert!(is_due(endless.der(), &provider, now()));
}

/// A process that was killed in between leaves a key without a certificate.
#[test]
fn interrupted_generation_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    drop(read(folder.path(), now()));
    let key = fs::read(folder.path().join("key.pem")).unwrap();
    fs::remove_file(folder.path().join("cert.pem")).unwrap();
    fs::write(folder.path().join("cert.part"), "half").unwrap();
    drop(read(folder.path(), now()));
    assert_eq!(fs::read(folder.path().join("key.pem")).unwrap(), key);
}
