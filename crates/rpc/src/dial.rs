//! An authenticated connection to a server.
//!
//! TCP and TLS are set up here, so that errors state which of them failed and why. A connection is
//! used until it ends, and is never opened again behind a call. A client learns only from its first
//! read that a server rejects its certificate: TLS 1.3 lets a client start before the server has
//! checked it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_units::error_chain;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::stream::ContextStream;
use crate::{ConnectionLimits, Identity};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// TCP failed.
    #[error("{0}")]
    Tcp(io::Error),
    /// The handshake failed; its error is inside.
    #[error("the TLS handshake failed: {0}")]
    Tls(io::Error),
    /// HTTP/2 did not begin.
    #[error("{what}")]
    Http {
        /// What failed.
        what: String,
        /// Why the server ended the connection, if it said so.
        alert: Alert,
    },
}

/// The TLS alert that ended a connection, if any.
#[derive(Clone, Debug, Default)]
pub struct Alert(Arc<Mutex<Option<String>>>);

impl Alert {
    /// Returns the alert, if one was received.
    #[must_use]
    pub fn received(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record(&self, error: &io::Error) {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::AlertReceived(alert)) = inner {
            let mut received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            received.get_or_insert_with(|| format!("{alert:?}"));
        }
    }
}

/// Connects to `address`, whose certificate must have `name`.
///
/// # Errors
/// If one of the steps fails.
pub async fn dial(
    address: &str,
    name: ServerName<'static>,
    identity: &Identity,
    limits: ConnectionLimits,
) -> Result<(Channel, Alert), DialError> {
    let socket = TcpStream::connect(address).await.map_err(DialError::Tcp)?;
    limits.configure_socket(&socket).map_err(DialError::Tcp)?;
    let stream = identity.connector().connect(name, socket).await.map_err(DialError::Tls)?;
    let alert = Alert::default();
    let stream = ContextStream { stream, context: alert.clone(), on_error: Alert::record };
    let once = Arc::new(Mutex::new(Some(TokioIo::new(stream))));
    let connector = tower::service_fn(move |_: Uri| {
        let stream = once.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move { stream.ok_or_else(|| io::Error::other("the connection was used already")) }
    });
    let endpoint = limits.configure_endpoint(Endpoint::from_static("http://peer"));
    match endpoint.connect_with_connector(connector).await {
        Ok(channel) => Ok((channel, alert)),
        Err(error) => Err(DialError::Http { what: error_chain(&error), alert }),
    }
}
