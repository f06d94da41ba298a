//! Limits of a connection.

use std::io;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tonic::transport::Endpoint;

/// Longest file of certificates or of a key.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;

/// Limits of a connection; both sides should have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Most calls at once.
    pub streams: u32,
    /// Bytes of a call on their way.
    pub window_bytes: u32,
    /// Bytes of all calls on their way.
    pub connection_window_bytes: u32,
    /// Time between two heartbeats.
    pub keep_alive: Duration,
    /// How long a heartbeat may stay without an answer.
    pub keep_alive_timeout: Duration,
    /// How long sent data may stay without an acknowledgement.
    pub tcp_user_timeout: Duration,
}

impl ConnectionLimits {
    /// Makes a socket send without delay, and close if sent data is not acknowledged in time.
    /// Otherwise answers are delayed to be sent together, and a lost peer is noticed later.
    ///
    /// # Errors
    /// When the socket is closed.
    pub fn configure_socket(&self, socket: &TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        SockRef::from(socket).set_tcp_user_timeout(Some(self.tcp_user_timeout))
    }

    /// Applies the limits to the client side of a connection.
    #[must_use]
    pub fn configure_endpoint(&self, endpoint: Endpoint) -> Endpoint {
        endpoint
            .initial_stream_window_size(self.window_bytes)
            .initial_connection_window_size(self.connection_window_bytes)
            .http2_keep_alive_interval(self.keep_alive)
            .keep_alive_timeout(self.keep_alive_timeout)
            .keep_alive_while_idle(true)
    }
}
