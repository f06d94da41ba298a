//! An authenticated connection to a node.
//!
//! TCP and TLS are set up here, so that errors state which of them failed and why. A connection is
//! used until it ends, and is never reopened implicitly. A client learns only from its first read
//! that a node rejects its certificate: TLS 1.3 lets a client start before the server has checked
//! it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use fulgurite_rpc::{Identity, TlsFiles};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, Error as RustlsError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::remote::limits::CONNECTION;

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DialError {
    /// A failure that may be transient.
    Unreachable(String),
    /// A permanent failure: an operator must fix it.
    Refused(String),
}

/// The TLS alert that ended a connection, if any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alert(Arc<Mutex<Option<String>>>);

impl Alert {
    pub(crate) fn received(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Connects to `authority`, whose certificate must have `name`.
pub(crate) async fn dial(
    authority: &str,
    name: &str,
    files: &TlsFiles,
) -> Result<(Channel, Alert), DialError> {
    let refused = |what: String| DialError::Refused(what);
    // Read the files each time: certificates are replaced before they expire.
    let identity = Identity::read(files).map_err(|error| {
        refused(format!("cannot use our certificates: {}", fulgurite_units::error_chain(&error)))
    })?;
    let server = ServerName::try_from(name.to_owned()).map_err(|_| {
        refused(format!("{name:?} is not a valid name of a certificate: use a host name"))
    })?;
    let unreachable =
        |error: io::Error| DialError::Unreachable(format!("no connection to {authority}: {error}"));
    let socket = TcpStream::connect(authority).await.map_err(unreachable)?;
    CONNECTION.configure_socket(&socket).map_err(unreachable)?;
    let stream = identity
        .connector()
        .connect(server, socket)
        .await
        .map_err(|error| handshake_error(authority, name, &error))?;
    let alert = Alert::default();
    let stream_with_alert = AlertStream { stream, alert: alert.clone() };
    let once = Arc::new(Mutex::new(Some(TokioIo::new(stream_with_alert))));
    let connector = tower::service_fn(move |_: Uri| {
        let stream = once.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move { stream.ok_or_else(|| io::Error::other("the connection was used already")) }
    });
    let endpoint = Endpoint::from_static("http://node");
    match CONNECTION.configure_endpoint(endpoint).connect_with_connector(connector).await {
        Ok(channel) => Ok((channel, alert)),
        Err(error) => {
            Err(connection_error(authority, &alert, &fulgurite_units::error_chain(&error)))
        }
    }
}

/// Interprets the end of a connection before anything was answered.
pub(crate) fn connection_error(authority: &str, alert: &Alert, why: &str) -> DialError {
    match alert.received() {
        Some(alert) => DialError::Refused(format!(
            "the node at {authority} rejects our certificate ({alert}): name one with cert=FILE \
             that its CA issued for client authentication and that has not expired"
        )),
        None => DialError::Unreachable(format!("the node at {authority} does not answer: {why}")),
    }
}

/// Interprets a failed handshake.
fn handshake_error(authority: &str, name: &str, error: &io::Error) -> DialError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<RustlsError>());
    match inner {
        Some(RustlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => DialError::Refused(format!("the node at {authority} is not {name:?}: {error}")),
        Some(RustlsError::InvalidCertificate(_)) => DialError::Refused(format!(
            "the certificate of the node at {authority} is not trusted: {error}; was it issued by \
             the CA that ca=FILE names?"
        )),
        Some(RustlsError::AlertReceived(_)) => {
            DialError::Refused(format!("the node at {authority} rejects our certificate: {error}"))
        }
        _ => DialError::Unreachable(format!("no connection to {authority}: {error}")),
    }
}

/// A stream that records the alert that ended it.
struct AlertStream {
    stream: TlsStream<TcpStream>,
    alert: Alert,
}

impl AlertStream {
    fn record_alert<T>(&self, done: &Poll<io::Result<T>>) {
        let Poll::Ready(Err(error)) = done else { return };
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<RustlsError>());
        if let Some(RustlsError::AlertReceived(alert)) = inner {
            let mut received = self.alert.0.lock().unwrap_or_else(PoisonError::into_inner);
            received.get_or_insert_with(|| format!("{alert:?}"));
        }
    }
}

impl AsyncRead for AlertStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.record_alert(&done);
        done
    }
}

impl AsyncWrite for AlertStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record_alert(&done);
        done
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.record_alert(&done);
        done
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
