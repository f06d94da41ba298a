//! Connections to tomes, and the backoff between attempts.
//!
//! Not here: what is sent on a connection.

use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::limits::{
    ANSWER_OF_LIFE, ANSWER_WITHIN, KEEP_ALIVE, LASTED, REST_MAX, REST_MIN, UNCONFIRMED_MAX,
    WINDOW_BYTES,
};
use crate::tls::{Name, Tls};
use crate::{NetError, Result};

/// Backoff limits for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rests {
    /// Backoff after the first failure; it doubles with each.
    pub min: Duration,
    /// Longest backoff.
    pub max: Duration,
}

impl Default for Rests {
    fn default() -> Self {
        Self { min: REST_MIN, max: REST_MAX }
    }
}

/// Backoff state of a connection.
#[derive(Debug)]
pub(crate) struct Rest {
    rests: Rests,
    next: Duration,
    began: Instant,
}

impl Rest {
    pub(crate) fn new(rests: Rests) -> Self {
        Self { rests, next: rests.min, began: Instant::now() }
    }

    /// Records the start of an attempt.
    pub(crate) fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// Records the end of a connection; returns the backoff.
    pub(crate) fn ended(&mut self, was_there: bool) -> Duration {
        if was_there && self.began.elapsed() >= LASTED {
            self.next = self.rests.min;
        }
        let rest = self.next;
        self.next = (rest * 2).min(self.rests.max);
        rest
    }
}

/// Makes a socket send without delay, and close when sent data is not acknowledged.
pub(crate) fn ready(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    socket2::SockRef::from(socket).set_tcp_user_timeout(Some(UNCONFIRMED_MAX))
}

/// Connects to the peer with this name, or fails.
pub(crate) async fn dial(address: &str, name: Name, tls: &Tls) -> Result<Channel> {
    let failed = |what: String| NetError::Connect { address: address.to_owned(), what };
    let endpoint = Endpoint::from_shared(format!("http://{}", name.in_set(tls.set())));
    let endpoint = endpoint
        .map_err(|error| failed(error.to_string()))?
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES * 4)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(ANSWER_OF_LIFE)
        .keep_alive_while_idle(true);
    let (tls, to) = (tls.clone(), address.to_owned());
    let connector = tower::service_fn(move |_: Uri| {
        let (tls, to) = (tls.clone(), to.clone());
        async move {
            let socket = TcpStream::connect(to).await.map_err(std::io::Error::other)?;
            ready(&socket)?;
            let stream = tls.connect(socket, name).await.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    });
    let connecting = endpoint.connect_with_connector(connector);
    match tokio::time::timeout(ANSWER_WITHIN, connecting).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(error)) => Err(failed(fulgurite_units::error_chain(&error))),
        Err(_) => Err(failed("it took too long".to_owned())),
    }
}
