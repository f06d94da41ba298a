//! The server's self-signed certificate. It is valid for a year, and renewed before it expires, at
//! a start or while the server runs, with the same key.
//!
//! ```text
//!   issued        due, 30 days before       expires
//!    |------------------|--------------------|
//! ```

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, Error as RustlsError, RootCertStore};

use super::file_error;
use crate::limits::{CERTIFICATE_DAYS, CERTIFICATE_RENEWAL_DAYS};
use crate::{GatewayError, Result};

const CERT_FILE: &str = "cert.pem";
const KEY_FILE: &str = "key.pem";
/// A name that every such certificate has.
const LOCALHOST: &str = "localhost";

/// Where a self-signed certificate is stored, and the names that it is valid for.
#[derive(Clone, Debug)]
pub(super) struct SelfSignedCertificate {
    directory: PathBuf,
    subjects: Vec<String>,
}

impl SelfSignedCertificate {
    pub(super) fn new(directory: &Path, names: &[String], listen: SocketAddr) -> Self {
        let mut subjects = vec![LOCALHOST.to_owned()];
        subjects.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
        if !listen.ip().is_unspecified() {
            subjects.push(listen.ip().to_string());
        }
        subjects.extend(host_name());
        subjects.extend(names.iter().cloned());
        subjects.sort();
        subjects.dedup();
        Self { directory: directory.to_owned(), subjects }
    }

    pub(super) fn certificate(&self) -> PathBuf {
        self.directory.join(CERT_FILE)
    }

    pub(super) fn key(&self) -> PathBuf {
        self.directory.join(KEY_FILE)
    }

    pub(super) fn exists(&self) -> bool {
        self.certificate().exists() && self.key().exists()
    }

    /// Generates certificate and key, or a new certificate for the existing key. Each file is
    /// written atomically, and the key comes first, so an interrupted run can be resumed.
    pub(super) fn generate(&self, now: Timestamp) -> Result<()> {
        let failed = |source| GatewayError::TlsGenerate { source };
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700);
        folder.create(&self.directory).map_err(file_error("create", &self.directory))?;
        let found = match fs::read_to_string(self.key()) {
            Ok(text) => KeyPair::from_pem(&text).ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(file_error("read", &self.key())(error)),
        };
        let key = match found {
            Some(key) => key,
            None => {
                let key = KeyPair::generate().map_err(failed)?;
                write_new(&self.key(), &key.serialize_pem())?;
                key
            }
        };
        let mut params = CertificateParams::new(self.subjects.clone()).map_err(failed)?;
        let today = now.to_zoned(TimeZone::UTC).date();
        let part = |part: i8| u8::try_from(part).unwrap_or(1);
        let midnight = |date: Date| {
            date_time_ymd(i32::from(date.year()), part(date.month()), part(date.day()))
        };
        // A client's clock may be behind ours.
        params.not_before = midnight(today.saturating_sub(1.days()));
        params.not_after = midnight(today.saturating_add(CERTIFICATE_DAYS.days()));
        let certificate = params.self_signed(&key).map_err(failed)?;
        write_new(&self.certificate(), &certificate.pem())
    }
}

/// Returns whether a certificate expires soon, or is still valid later than we ever issue one for.
pub(super) fn is_due(
    certificate: &CertificateDer<'static>,
    provider: &Arc<CryptoProvider>,
    now: Timestamp,
) -> bool {
    let verify_in = |days: i64| verify_at(certificate, provider, now, days);
    let is_expired = |verdict: Result<(), RustlsError>| {
        let Err(RustlsError::InvalidCertificate(error)) = verdict else { return false };
        matches!(error, CertificateError::Expired | CertificateError::ExpiredContext { .. })
    };
    is_expired(verify_in(CERTIFICATE_RENEWAL_DAYS)) || verify_in(2 * CERTIFICATE_DAYS).is_ok()
}

/// Verifies the certificate as a client that trusts it would in `days` days.
fn verify_at(
    certificate: &CertificateDer<'static>,
    provider: &Arc<CryptoProvider>,
    now: Timestamp,
    days: i64,
) -> Result<(), RustlsError> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let roots = Arc::new(roots);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
    let verifier = verifier.build().map_err(|error| RustlsError::General(error.to_string()))?;
    let name =
        ServerName::try_from(LOCALHOST).map_err(|error| RustlsError::General(error.to_string()))?;
    let seconds = now.as_second().saturating_add(days * 24 * 3600);
    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let time = UnixTime::since_unix_epoch(seconds);
    verifier.verify_server_cert(certificate, &[], &name, &[], time).map(|_| ())
}

/// Returns the machine's host name, if it has one that a certificate can carry.
fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    (!name.is_empty() && name.bytes().all(plain)).then(|| name.to_owned())
}

/// Writes a file atomically, readable by its owner only from the first byte on.
fn write_new(path: &Path, text: &str) -> Result<()> {
    let part = path.with_extension("part");
    let write = || -> io::Result<()> {
        // The leftover of a killed process would keep its own mode, so it is removed first.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(file_error("write", path))
}
