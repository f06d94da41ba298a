//! Certificates for tests.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio_rustls::TlsConnector;

use crate::TlsFiles;
use crate::tls::ALPN;

/// A certificate authority with its files in a folder.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    issued: AtomicU64,
}

impl Authority {
    /// Creates an authority, and the folder.
    ///
    /// # Panics
    /// If a file cannot be written.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("ca.pem"), own.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { folder: folder.to_owned(), issuer, issued: AtomicU64::new(0) }
    }

    /// Returns its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Issues a certificate with these names, for these uses; without any, for all.
    ///
    /// # Panics
    /// If a file cannot be written.
    #[must_use]
    pub fn issue(&self, names: Vec<String>, usages: Vec<ExtendedKeyUsagePurpose>) -> TlsFiles {
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = usages;
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let path = |kind| self.folder.join(format!("{number}.{kind}"));
        std::fs::write(path("pem"), signed.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        TlsFiles { ca: self.folder.join("ca.pem"), certificate: path("pem"), key: path("key") }
    }
}

/// Returns a client that trusts an authority and shows no certificate.
///
/// # Panics
/// If the file of the authority cannot be read.
#[must_use]
pub fn anonymous_client(ca: &Path) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    TlsConnector::from(Arc::new(config))
}
