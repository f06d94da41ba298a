//! Answers the calls of peers that were authenticated, until it is stopped.

use std::convert::Infallible;
use std::fmt::{self, Display};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_accept::{Handshake, HandshakeLimits, Peer, PeerPermit, admit_peers};
use fulgurite_units::error_chain;
use futures::stream::{BoxStream, StreamExt as _};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::transport::server::Connected;
use tonic_prost::ProstCodec;

use crate::stream::ContextStream;
use crate::{Call, ConnectionLimits, Identity, Result, RpcError};

/// A stream of replies.
pub type Replies<T> = BoxStream<'static, Result<T, tonic::Status>>;

/// Listens at an address.
///
/// # Errors
/// If it cannot be bound.
pub async fn bind(address: impl ToSocketAddrs + Display) -> Result<TcpListener> {
    let text = address.to_string();
    TcpListener::bind(address).await.map_err(|source| RpcError::Listen { address: text, source })
}

/// What a server needs before it can answer.
pub struct ServerOptions<P> {
    /// Its listening socket.
    pub listener: TcpListener,
    /// Its certificate, and the authority that it trusts.
    pub identity: Identity,
    /// Limits of clients that have shown no certificate yet.
    pub handshakes: HandshakeLimits,
    /// Limits of each connection.
    pub connection: ConnectionLimits,
    /// How long a call may take until its reply begins, with all that its client sends.
    pub call_timeout: Option<Duration>,
    /// Returns what is known of the peer with this certificate, or why it is refused.
    pub peer: P,
    /// Stops the server once it is true.
    pub stop: watch::Sender<bool>,
}

impl<P> fmt::Debug for ServerOptions<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    tasks: [JoinHandle<()>; 2],
}

impl Server {
    /// Starts a server. A call finds what is known of its peer among the extensions of its
    /// request, as `I`.
    ///
    /// # Errors
    /// If the address of its socket is unknown; `what` describes the socket.
    pub fn start<I, P, A, F>(what: &str, options: ServerOptions<P>, answer: A) -> Result<Self>
    where
        I: Clone + Send + Sync + Unpin + 'static,
        P: Fn(&TlsStream<TcpStream>) -> Result<I, String> + Send + Sync + 'static,
        A: Fn(http::Request<Body>) -> F + Clone + Send + 'static,
        F: Future<Output = http::Response<Body>> + Send + 'static,
    {
        let ServerOptions { listener, identity, handshakes, connection, call_timeout, peer, stop } =
            options;
        let address = listener.local_addr();
        let address =
            address.map_err(|source| RpcError::Listen { address: what.to_owned(), source })?;
        let handshake = handshake(identity, connection, peer);
        let (incoming, accept) = admit_peers(listener, handshakes, handshake, stop.subscribe());
        let limits = (connection, call_timeout);
        let serve = tokio::spawn(serve(answer, incoming, limits, stop.subscribe()));
        Ok(Self { address, stop, tasks: [accept, serve] })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes it accept no more calls.
    pub fn begin_stop(&self) {
        // The receivers may be gone already.
        let _ = self.stop.send(true);
    }

    /// Accepts no more calls, gives running ones this time to end, and closes all connections.
    pub async fn stop(self, time_limit: Duration) {
        self.begin_stop();
        for task in self.tasks {
            let abort = task.abort_handle();
            if tokio::time::timeout(time_limit, task).await.is_err() {
                abort.abort();
            }
        }
    }
}

/// Returns the handshake that precedes any read from a peer.
fn handshake<I, P>(
    identity: Identity,
    limits: ConnectionLimits,
    peer: P,
) -> Handshake<(TlsStream<TcpStream>, I)>
where
    I: Send + 'static,
    P: Fn(&TlsStream<TcpStream>) -> Result<I, String> + Send + Sync + 'static,
{
    let context = Arc::new((identity, peer));
    Arc::new(move |socket| {
        let context = Arc::clone(&context);
        Box::pin(async move {
            let (identity, peer) = &*context;
            // Otherwise answers are delayed to be sent with others, and a lost peer is noticed
            // later.
            let _ = limits.configure_socket(&socket);
            let stream = identity.acceptor().accept(socket).await;
            let stream = stream.map_err(|error| error.to_string())?;
            let peer = peer(&stream)?;
            Ok((stream, peer))
        })
    })
}

async fn serve<I, A, F>(
    answer: A,
    incoming: mpsc::Receiver<Peer<(TlsStream<TcpStream>, I)>>,
    (limits, call_timeout): (ConnectionLimits, Option<Duration>),
    mut stopping: watch::Receiver<bool>,
) where
    I: Clone + Send + Sync + Unpin + 'static,
    A: Fn(http::Request<Body>) -> F + Clone + Send + 'static,
    F: Future<Output = http::Response<Body>> + Send + 'static,
{
    let calls = tower::service_fn(move |request| {
        let answering = answer(request);
        async move { Ok::<_, Infallible>(answering.await) }
    });
    let stopped = async move {
        // The sender is dropped only on stop.
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
    };
    let incoming = ReceiverStream::new(incoming).map(|Peer { session: (stream, peer), permit }| {
        let context = ConnectedPeer { peer, _permit: permit };
        Ok::<_, io::Error>(ContextStream { stream, context, on_error: |_, _| {} })
    });
    let mut server = tonic::transport::Server::builder();
    if let Some(call_timeout) = call_timeout {
        server = server.timeout(call_timeout);
    }
    let serving = server
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(limits.window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes)
        .http2_keepalive_interval(Some(limits.keep_alive))
        .http2_keepalive_timeout(Some(limits.keep_alive_timeout))
        .serve_with_incoming_shutdown(calls, incoming, stopped);
    if let Err(error) = serving.await {
        tracing::error!("the RPC server stopped: {}", error_chain(&error));
    }
}

/// An authenticated peer, while it is connected.
struct ConnectedPeer<I> {
    peer: I,
    _permit: PeerPermit,
}

impl<S, I: Clone + Send + Sync + 'static> Connected for ContextStream<S, ConnectedPeer<I>> {
    type ConnectInfo = I;

    fn connect_info(&self) -> I {
        self.context.peer.clone()
    }
}

/// Returns a stream of replies that holds a permit.
#[doc(hidden)]
pub fn with_permit<T: 'static>(
    replies: Replies<T>,
    permit: Arc<Option<OwnedSemaphorePermit>>,
) -> Replies<T> {
    replies.inspect(move |_| _ = &permit).boxed()
}

/// Returns the server's side of a call whose messages are at most this long.
#[doc(hidden)]
pub fn server_side<C: Call>(
    message_bytes_max: usize,
) -> tonic::server::Grpc<ProstCodec<C::Reply, C::Request>> {
    tonic::server::Grpc::new(ProstCodec::default())
        .max_decoding_message_size(message_bytes_max)
        .max_encoding_message_size(message_bytes_max)
}
