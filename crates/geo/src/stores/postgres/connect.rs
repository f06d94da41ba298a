//! One connection to a `PostgreSQL`, with or without TLS.
//!
//! TLS is rustls with the CA certificates of a named file, and verifies the server's name. There is
//! no TLS without verification, and no fallback to plain text if the server does not support TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config, NoTls, Socket};
use tokio_rustls::TlsConnector;

use super::{PostgresOptions, errors};
use crate::stores::limits::CONNECT_TIMEOUT;
use crate::stores::{Cause, TableError};

/// Security of connections to a `PostgreSQL`.
#[derive(Clone, Default)]
pub enum PostgresTls {
    /// No TLS: on one machine, or in a private network.
    #[default]
    Off,
    /// TLS with the certificates of this CA.
    Verified {
        /// File of the CA certificates.
        ca: PathBuf,
        /// The client configuration made of them.
        config: Arc<ClientConfig>,
    },
}

impl std::fmt::Debug for PostgresTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("Off"),
            Self::Verified { ca, .. } => f.debug_struct("Verified").field("ca", ca).finish(),
        }
    }
}

/// The certificates of a file are unusable.
#[derive(Debug, thiserror::Error)]
#[error("the certificates of \"{path}\" cannot be used: {reason}")]
pub struct TlsError {
    path: String,
    reason: String,
}

impl PostgresTls {
    /// TLS with the CA certificates (PEM) of a file.
    ///
    /// # Errors
    /// If the file contains none.
    pub fn verified(ca: &Path) -> Result<Self, TlsError> {
        let refuse = |reason: String| TlsError { path: ca.display().to_string(), reason };
        let pem = std::fs::read(ca).map_err(|error| refuse(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
            roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(refuse("it contains none".to_owned()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refuse(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self::Verified { ca: ca.to_owned(), config: Arc::new(config) })
    }
}

/// Opens a connection to a primary whose commits are durable when acknowledged.
pub(super) async fn connect(options: &PostgresOptions) -> Result<Client, TableError> {
    let mut config = options.config.clone();
    config.connect_timeout(CONNECT_TIMEOUT).application_name("fulgurite");
    let client = match &options.tls {
        PostgresTls::Off => {
            config.ssl_mode(SslMode::Disable);
            connect_with(&config, NoTls).await
        }
        PostgresTls::Verified { config: tls, .. } => {
            config.ssl_mode(SslMode::Require);
            connect_with(&config, Tls(TlsConnector::from(Arc::clone(tls)))).await
        }
    };
    let client = client.map_err(|error| errors::to_definite_error(&error))?;
    let query = "select pg_is_in_recovery(), current_setting('synchronous_commit')";
    let answer =
        client.query_one(query, &[]).await.map_err(|error| errors::to_definite_error(&error))?;
    let (is_standby, commit): (bool, String) = (answer.get(0), answer.get(1));
    if is_standby {
        let reason = "it is a standby, whose rows may be older than those of its primary";
        return Err(TableError::Unavailable(Cause::new(reason)));
    }
    if commit == "off" {
        let set = client.batch_execute("set synchronous_commit = on").await;
        set.map_err(|error| errors::to_definite_error(&error))?;
    }
    // The database may default to a stricter isolation level, at which concurrent writes are
    // aborted.
    let set = "set default_transaction_isolation = 'read committed'";
    client.batch_execute(set).await.map_err(|error| errors::to_definite_error(&error))?;
    Ok(client)
}

async fn connect_with<T>(config: &Config, tls: T) -> Result<Client, tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    // The task ends with the client; its error is also returned to the caller.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

#[derive(Clone)]
struct Tls(TlsConnector);

struct NamedConnector {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = RustlsStream;
    type TlsConnect = NamedConnector;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<NamedConnector> {
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(NamedConnector { connector: self.0.clone(), name })
    }
}

impl TlsConnect<Socket> for NamedConnector {
    type Stream = RustlsStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<RustlsStream>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            Ok(RustlsStream(Box::new(self.connector.connect(self.name, stream).await?)))
        })
    }
}

/// A TLS stream.
struct RustlsStream(Box<tokio_rustls::client::TlsStream<Socket>>);

impl TlsStream for RustlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for RustlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for RustlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
