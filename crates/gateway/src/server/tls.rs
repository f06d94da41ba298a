//! TLS keys: the operator's PEM files, or the server's self-signed pair.

mod self_signed;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsAcceptor;

use self::self_signed::SelfSignedCertificate;
use super::TlsConfig;
use crate::limits::CERTIFICATE_CHECK_PERIOD;
use crate::{GatewayError, Result};

/// The TLS setup of a listener.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// The certificate file in use.
    pub(super) certificate: PathBuf,
    /// Present for a self-signed certificate.
    pub(super) renewal: Option<Renewal>,
}

/// The certificate in use at present.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Renews a self-signed certificate before it expires.
#[derive(Clone, Debug)]
pub(super) struct Renewal {
    own: SelfSignedCertificate,
    provider: Arc<CryptoProvider>,
    current: Arc<CurrentCertificate>,
}

impl Tls {
    /// Reads certificate and key; a self-signed pair is generated or renewed first.
    pub(super) fn read(tls: &TlsConfig, listen: SocketAddr, now: Timestamp) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (certificate, key, own) = match tls {
            TlsConfig::Files { cert, key } => (cert.clone(), key.clone(), None),
            TlsConfig::Auto { directory, names } => {
                let own = SelfSignedCertificate::new(directory, names, listen);
                if !own.exists() {
                    own.generate(now)?;
                }
                (own.certificate(), own.key(), Some(own))
            }
        };
        let pair = read_pair(&certificate, &key, &provider)?;
        let current = Arc::new(CurrentCertificate(RwLock::new(Arc::new(pair))));
        let renewal = own.map(|own| Renewal {
            own,
            provider: Arc::clone(&provider),
            current: Arc::clone(&current),
        });
        if let Some(renewal) = &renewal {
            renewal.renew(now)?;
        }
        let failed = |source| GatewayError::TlsPair { path: certificate.clone(), source };
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_cert_resolver(current);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate, renewal })
    }
}

/// Refuses certificate and key that exist and cannot be used.
pub(super) fn check(tls: &TlsConfig) -> Result<()> {
    let TlsConfig::Files { cert, key } = tls else { return Ok(()) };
    let provider = rustls::crypto::ring::default_provider();
    read_pair(cert, key, &provider).map(drop)
}

impl Renewal {
    /// Checks every day whether the certificate is due, until the task is dropped.
    pub(super) async fn run(self) {
        loop {
            tokio::time::sleep(CERTIFICATE_CHECK_PERIOD).await;
            let this = self.clone();
            match spawn_blocking(move || this.renew(Timestamp::now())).await {
                Ok(Err(error)) => {
                    let error = fulgurite_units::error_chain(&error);
                    tracing::error!(%error, "cannot renew the certificate");
                }
                Ok(Ok(_)) => {}
                Err(error) => tracing::error!(%error, "cannot renew the certificate"),
            }
        }
    }

    /// Renews the certificate if it is due, and uses it for new connections; returns whether it was
    /// due.
    fn renew(&self, now: Timestamp) -> Result<bool> {
        let current = Arc::clone(&self.current.0.read().unwrap_or_else(PoisonError::into_inner));
        let is_due = |certificate| self_signed::is_due(certificate, &self.provider, now);
        if !current.cert.first().is_some_and(is_due) {
            return Ok(false);
        }
        self.own.generate(now)?;
        let path = self.own.certificate();
        let pair = read_pair(&path, &self.own.key(), &self.provider)?;
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
        let path = path.display();
        tracing::warn!(%path, "the certificate was renewed: clients must trust the new one");
        Ok(true)
    }
}

fn read_pair(cert: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey> {
    let (chain, key) = (read_chain(cert)?, read_key(key)?);
    let failed = |source| GatewayError::TlsPair { path: cert.to_owned(), source };
    CertifiedKey::from_der(chain, key, provider).map_err(failed)
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = fs::read(path).map_err(file_error("read", path))?;
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(io::Error::other).map_err(file_error("read", path))?;
    if chain.is_empty() {
        return Err(GatewayError::TlsContent { path: path.to_owned(), what: "certificate" });
    }
    Ok(chain)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let text = fs::read(path).map_err(file_error("read", path))?;
    let key = PrivateKeyDer::pem_slice_iter(&text).next().transpose();
    key.map_err(io::Error::other)
        .map_err(file_error("read", path))?
        .ok_or_else(|| GatewayError::TlsContent { path: path.to_owned(), what: "private key" })
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GatewayError {
    let path = path.to_owned();
    move |source| GatewayError::TlsFile { action, path, source }
}

#[cfg(test)]
mod tests;
