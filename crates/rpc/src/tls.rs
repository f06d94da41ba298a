//! Mutual TLS: both sides show a certificate of the same authority, on every connection. TLS 1.3
//! only. Keys are never shown.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use serde::Deserialize;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::limits::FILE_BYTES_MAX;
use crate::{Result, RpcError};

/// The protocol inside (ALPN).
pub(crate) const ALPN: &[u8] = b"h2";

/// Files of certificates and of a key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificates of the authority that both sides trust.
    pub ca: PathBuf,
    /// The certificate of this process, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The certificate and the key of a process, and the authority that it trusts.
#[derive(Clone)]
pub struct Identity {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    names: Vec<String>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read or has the wrong contents, or certificate and key do not match.
    pub fn read(files: &TlsFiles) -> Result<Self> {
        let chain = certificates(&files.certificate)?;
        let names = chain.first().map(dns_names).transpose()?.unwrap_or_default();
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&files.ca)? {
            roots.add(certificate).map_err(|error| RpcError::tls(&error))?;
        }
        let (roots, key) = (Arc::new(roots), key(&files.key)?);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = [&rustls::version::TLS13];
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|error| RpcError::tls(&error))?;
        let mut accepts = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| RpcError::tls(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|error| RpcError::tls(&error))?;
        let mut connects = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| RpcError::tls(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| RpcError::tls(&error))?;
        accepts.alpn_protocols = vec![ALPN.to_vec()];
        connects.alpn_protocols = vec![ALPN.to_vec()];
        // A resumed session would not check whether certificates have expired since.
        accepts.send_tls13_tickets = 0;
        accepts.session_storage = Arc::new(NoServerSessionStorage {});
        connects.resumption = Resumption::disabled();
        let acceptor = TlsAcceptor::from(Arc::new(accepts));
        Ok(Self { acceptor, connector: TlsConnector::from(Arc::new(connects)), names })
    }

    /// Returns the DNS names in its certificate.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Authenticates those that connect.
    #[must_use]
    pub const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Connects to others; the name that their certificate must have is given with each connection.
    #[must_use]
    pub const fn connector(&self) -> &TlsConnector {
        &self.connector
    }
}

/// Returns the DNS names in a certificate.
///
/// # Errors
/// If it is not a certificate.
pub fn dns_names(certificate: &CertificateDer<'_>) -> Result<Vec<String>> {
    let parsed = webpki::EndEntityCert::try_from(certificate);
    let parsed = parsed.map_err(|error| RpcError::tls(&error))?;
    Ok(parsed.valid_dns_names().map(str::to_owned).collect())
}

/// Reads a file, unless it is longer than a file of certificates or settings can be.
///
/// # Errors
/// If it cannot be read or is too long.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    let length = std::fs::metadata(path).map_err(RpcError::read(path))?.len();
    if length > FILE_BYTES_MAX {
        let what = format!("{length} bytes are too many");
        return Err(RpcError::File { path: path.to_owned(), what });
    }
    std::fs::read(path).map_err(RpcError::read(path))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = read_file(path)?;
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(io::Error::other).map_err(RpcError::read(path))?;
    if chain.is_empty() {
        return Err(RpcError::Pem { path: path.to_owned(), what: "certificate" });
    }
    Ok(chain)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let text = read_file(path)?;
    let key = PrivateKeyDer::pem_slice_iter(&text).next().transpose();
    let key = key.map_err(io::Error::other).map_err(RpcError::read(path))?;
    key.ok_or_else(|| RpcError::Pem { path: path.to_owned(), what: "private key" })
}
