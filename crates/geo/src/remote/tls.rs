//! Mutual TLS: both sides show a certificate of the same CA. The certificate of a node must contain
//! the name in its address as a subject alternative name. The certificate of a client must be
//! allowed for client authentication; its name is ignored.
//!
//! TLS 1.3 only. Keys are never shown. Not here: the protocol inside.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::remote::limits::FILE_BYTES_MAX;
use crate::remote::{NodeError, Result};

/// The protocol inside (ALPN).
const ALPN: &[u8] = b"h2";

/// Files of certificates and of a key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// CA certificates of nodes and their clients.
    pub ca: PathBuf,
    /// The certificate of this process, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The certificate and the key of a node, and the clients that it trusts.
#[derive(Clone)]
pub struct NodeTls {
    pub(crate) acceptor: TlsAcceptor,
    names: Vec<String>,
}

impl std::fmt::Debug for NodeTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeTls").field("names", &self.names).finish_non_exhaustive()
    }
}

impl NodeTls {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read or has the wrong contents, or certificate and key do not match.
    pub fn read(files: &TlsFiles) -> Result<Self> {
        let chain = certificates(&files.certificate)?;
        let names = chain.first().map(names_of).transpose()?.unwrap_or_default();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(roots(&files.ca)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let verifier = verifier.build().map_err(|error| NodeError::tls(&error))?;
        let mut accepts = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| NodeError::tls(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key(&files.key)?)
            .map_err(|error| NodeError::tls(&error))?;
        accepts.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(accepts)), names })
    }

    /// Returns the DNS names in the certificate.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Returns a TLS connector for nodes, from the current contents of these files.
pub(crate) fn connector(files: &TlsFiles) -> Result<TlsConnector> {
    let mut connects = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_protocol_versions(&[&rustls::version::TLS13])
    .map_err(|error| NodeError::tls(&error))?
    .with_root_certificates(roots(&files.ca)?)
    .with_client_auth_cert(certificates(&files.certificate)?, key(&files.key)?)
    .map_err(|error| NodeError::tls(&error))?;
    connects.alpn_protocols = vec![ALPN.to_vec()];
    Ok(TlsConnector::from(Arc::new(connects)))
}

fn names_of(certificate: &CertificateDer<'_>) -> Result<Vec<String>> {
    let parsed = webpki::EndEntityCert::try_from(certificate);
    let parsed = parsed.map_err(|error| NodeError::tls(&error))?;
    Ok(parsed.valid_dns_names().map(str::to_owned).collect())
}

fn roots(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| NodeError::tls(&error))?;
    }
    Ok(roots)
}

/// Reads a file, unless it is longer than a file of its kind can be.
fn text(path: &Path) -> Result<Vec<u8>> {
    let length = std::fs::metadata(path).map_err(NodeError::read(path))?.len();
    if length > FILE_BYTES_MAX {
        let what = format!("it has {length} bytes, which is too long");
        return Err(NodeError::File { path: path.to_owned(), what });
    }
    std::fs::read(path).map_err(NodeError::read(path))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = text(path)?;
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(io::Error::other).map_err(NodeError::read(path))?;
    if chain.is_empty() {
        return Err(NodeError::Pem { path: path.to_owned(), what: "certificate" });
    }
    Ok(chain)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let text = text(path)?;
    let key = PrivateKeyDer::pem_slice_iter(&text).next().transpose();
    let key = key.map_err(io::Error::other).map_err(NodeError::read(path))?;
    key.ok_or_else(|| NodeError::Pem { path: path.to_owned(), what: "private key" })
}
