//! Identities: each process has a certificate from one authority, which names its role in its set.
//!
//! ```text
//! tome-7.<set id>    tome 7          keeper.<set id>    the process of the set
//! ```
//!
//! The names are DNS names among the certificate's subject alternative names; a certificate with
//! several names of a set is rejected as ambiguous. TLS 1.3 only. Keys are never printed. Not here:
//! permissions.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_tome_core::TomeId;
use fulgurite_units::TomeSetId;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::remote::limits::FILE_BYTES_MAX;
use crate::remote::{NetError, Result};

/// The protocol inside TLS.
const ALPN: &[u8] = b"h2";

/// Paths of certificates and a key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The authority of all certificates of the set.
    pub ca: PathBuf,
    /// The certificate of this process, with the intermediates up to the authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Role of a process in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerName {
    /// The process of the set, with the token manager.
    TokenManager,
    /// The process of one tome.
    Tome(TomeId),
}

impl PeerName {
    /// Returns its name in certificates.
    #[must_use]
    pub fn in_set(self, set: TomeSetId) -> String {
        match self {
            Self::TokenManager => format!("keeper.{set}"),
            Self::Tome(tome) => format!("tome-{tome}.{set}"),
        }
    }

    fn read(set: TomeSetId, dns: &str) -> Option<Self> {
        let first = dns.strip_suffix(&format!(".{set}"))?;
        let number = || first.strip_prefix("tome-")?.parse().ok().map(TomeId::new);
        let name = if first == "keeper" { Self::TokenManager } else { Self::Tome(number()?) };
        // Only the canonical form: no leading zeros.
        (name.in_set(set) == dns).then_some(name)
    }
}

/// The certificates and the key of one process.
#[derive(Clone)]
pub struct Tls {
    set: TomeSetId,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("set", &self.set).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads certificates and key.
    ///
    /// # Errors
    /// When a file cannot be read or lacks its content, the certificate is not for `name`, or it
    /// and the key do not match.
    pub fn read(files: &TlsFiles, set: TomeSetId, name: PeerName) -> Result<Self> {
        let chain = certificates(&files.certificate)?;
        let own = chain.first().map(|own| name_of(set, own)).transpose()?;
        if own != Some(name) {
            let what = format!(
                "{}, and not {}",
                own.map_or_else(String::new, |own| own.in_set(set)),
                name.in_set(set)
            );
            return Err(NetError::PeerName { what });
        }
        Self::from_parts(set, certificates(&files.ca)?, chain, key(&files.key)?)
    }

    /// Reads them without checking the name, as a dishonest peer would.
    #[cfg(test)]
    pub(crate) fn unchecked(files: &TlsFiles, set: TomeSetId) -> Result<Self> {
        let chain = certificates(&files.certificate)?;
        Self::from_parts(set, certificates(&files.ca)?, chain, key(&files.key)?)
    }

    fn from_parts(
        set: TomeSetId,
        authority: Vec<CertificateDer<'static>>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self> {
        let wrong = |error: &dyn std::fmt::Display| NetError::Tls { what: error.to_string() };
        let mut roots = RootCertStore::empty();
        for certificate in authority {
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = [&rustls::version::TLS13];
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|error| wrong(&error))?;
        let mut server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| wrong(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|error| wrong(&error))?;
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| wrong(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| wrong(&error))?;
        server.alpn_protocols = vec![ALPN.to_vec()];
        client.alpn_protocols = vec![ALPN.to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(server));
        Ok(Self { set, acceptor, connector: TlsConnector::from(Arc::new(client)) })
    }

    /// The set of these certificates.
    #[must_use]
    pub const fn set(&self) -> TomeSetId {
        self.set
    }

    /// Authenticates a client.
    pub(crate) async fn accept<S>(&self, socket: S) -> Result<(server::TlsStream<S>, PeerName)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let accepted = self.acceptor.accept(socket).await;
        let stream = accepted.map_err(|error| NetError::Tls { what: error.to_string() })?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let none = || NetError::PeerName { what: "no peer".to_owned() };
        let name = name_of(self.set, certificate.ok_or_else(none)?)?;
        Ok((stream, name))
    }

    /// Connects only to the server with this name.
    pub(crate) async fn connect<S>(&self, socket: S, to: PeerName) -> Result<client::TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let wrong = |error: &dyn std::fmt::Display| NetError::Tls { what: error.to_string() };
        let name = ServerName::try_from(to.in_set(self.set)).map_err(|error| wrong(&error))?;
        self.connector.connect(name, socket).await.map_err(|error| wrong(&error))
    }
}

/// Returns the role that a certificate grants in a set.
fn name_of(set: TomeSetId, certificate: &CertificateDer<'_>) -> Result<PeerName> {
    let parsed = webpki::EndEntityCert::try_from(certificate);
    let parsed = parsed.map_err(|error| NetError::Tls { what: error.to_string() })?;
    let mut names = parsed.valid_dns_names().filter_map(|dns| PeerName::read(set, dns));
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        (None, _) => Err(NetError::PeerName { what: format!("no member of set {set}") }),
        (Some(_), Some(_)) => Err(NetError::PeerName { what: format!("two members of set {set}") }),
    }
}

/// Reads a file, unless it is too long.
pub(crate) fn text(path: &Path) -> Result<Vec<u8>> {
    let length = std::fs::metadata(path).map_err(NetError::read(path))?.len();
    if length > FILE_BYTES_MAX {
        let what = format!("its size of {length} bytes is over the limit");
        return Err(NetError::File { path: path.to_owned(), what });
    }
    std::fs::read(path).map_err(NetError::read(path))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = text(path)?;
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(io::Error::other).map_err(NetError::read(path))?;
    if chain.is_empty() {
        return Err(NetError::Pem { path: path.to_owned(), what: "certificate" });
    }
    Ok(chain)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let text = text(path)?;
    let key = PrivateKeyDer::pem_slice_iter(&text).next().transpose();
    let key = key.map_err(io::Error::other).map_err(NetError::read(path))?;
    key.ok_or_else(|| NetError::Pem { path: path.to_owned(), what: "private key" })
}
