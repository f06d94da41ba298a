//! Connections to tomes, and how long is rested when there is none.
//!
//! Not here: what is said on a connection.

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

/// How long is rested before a connection is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rests {
    /// After the first failure; it doubles with each.
    pub min: Duration,
    /// At most.
    pub max: Duration,
}

impl Default for Rests {
    fn default() -> Self {
        Self { min: REST_MIN, max: REST_MAX }
    }
}

/// How often a connection failed since one lasted.
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

    /// A connection is tried now.
    pub(crate) fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// It ended: how long to rest.
    pub(crate) fn ended(&mut self, was_there: bool) -> Duration {
        if was_there && self.began.elapsed() >= LASTED {
            self.next = self.rests.min;
        }
        let rest = self.next;
        self.next = (rest * 2).min(self.rests.max);
        rest
    }
}

/// Has a socket send at once, and end when nobody confirms what it sent.
pub(crate) fn ready(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    socket2::SockRef::from(socket).set_tcp_user_timeout(Some(UNCONFIRMED_MAX))
}

/// Connects to whom is meant, or to nobody.
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
