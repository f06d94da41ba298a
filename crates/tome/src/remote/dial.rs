//! Connections to tomes, and the backoff between attempts.
//!
//! Not here: what is sent on a connection.

use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::remote::limits::{
    BACKOFF_MAX, BACKOFF_MIN, BACKOFF_RESET_AFTER, CONNECT_TIMEOUT, CONNECTION,
};
use crate::remote::tls::{PeerName, Tls};
use crate::remote::{NetError, Result};

/// Backoff limits for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// Backoff after the first failure; it doubles with each.
    pub min: Duration,
    /// Longest backoff.
    pub max: Duration,
}

impl Default for BackoffLimits {
    fn default() -> Self {
        Self { min: BACKOFF_MIN, max: BACKOFF_MAX }
    }
}

/// Backoff state of a connection.
#[derive(Debug)]
pub(crate) struct Backoff {
    backoff_limits: BackoffLimits,
    next: Duration,
    began: Instant,
}

impl Backoff {
    pub(crate) fn new(backoff_limits: BackoffLimits) -> Self {
        Self { backoff_limits, next: backoff_limits.min, began: Instant::now() }
    }

    /// Records the start of an attempt.
    pub(crate) fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// Records the end of a connection; returns the backoff.
    pub(crate) fn end(&mut self, was_there: bool) -> Duration {
        if was_there && self.began.elapsed() >= BACKOFF_RESET_AFTER {
            self.next = self.backoff_limits.min;
        }
        let backoff = self.next;
        self.next = (backoff * 2).min(self.backoff_limits.max);
        backoff
    }
}

/// Connects to the peer with this name, or fails.
pub(crate) async fn dial(address: &str, name: PeerName, tls: &Tls) -> Result<Channel> {
    let failed = |what: String| NetError::Connect { address: address.to_owned(), what };
    let endpoint = Endpoint::from_shared(format!("http://{}", name.in_set(tls.set())));
    let endpoint = endpoint.map_err(|error| failed(error.to_string()))?;
    let endpoint = CONNECTION.configure_endpoint(endpoint);
    let (tls, address) = (tls.clone(), address.to_owned());
    let connector = tower::service_fn(move |_: Uri| {
        let (tls, address) = (tls.clone(), address.clone());
        async move {
            let socket = TcpStream::connect(address).await.map_err(std::io::Error::other)?;
            CONNECTION.configure_socket(&socket)?;
            let stream = tls.connect(socket, name).await.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    });
    let connecting = endpoint.connect_with_connector(connector);
    match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(error)) => Err(failed(fulgurite_units::error_chain(&error))),
        Err(_) => Err(failed("timed out".to_owned())),
    }
}
