//! A node at an address. Clients must show a certificate before anything else of them is read.
//!
//! Connections and handshakes are limited in number, and handshakes in time: a client without a
//! certificate takes no slot from those with one (`fulgurite_accept`). A node that is stopped
//! accepts no more calls, and gives running ones some time to end. Not here: the answers
//! ([`crate::remote::node_state`]).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fulgurite_accept::{Handshake, Peer, PeerPermit, admit_peers};
use fulgurite_units::error_chain;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use crate::remote::dial::configure_socket;
use crate::remote::limits::{
    CONNECTION_WINDOW_BYTES, HANDSHAKE_LIMITS, KEEP_ALIVE, KEEP_ALIVE_TIMEOUT, STOP_TIMEOUT,
    STREAMS_MAX, WINDOW_BYTES,
};
use crate::remote::node_state::NodeState;
use crate::remote::service::Calls;
use crate::remote::stores::Stores;
use crate::remote::tls::NodeTls;
use crate::remote::{NodeError, Result};
use crate::stores::{Entropy, RuntimeBackoff};

/// Options to start a node.
pub struct NodeOptions {
    /// Its listening socket.
    pub listener: TcpListener,
    /// Its certificate, and the CA that it trusts.
    pub tls: NodeTls,
    /// The stores that it serves.
    pub stores: Arc<dyn Stores>,
    /// Source of row nonces and of backoffs.
    pub entropy: Entropy,
}

impl std::fmt::Debug for NodeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeOptions").field("tls", &self.tls).finish_non_exhaustive()
    }
}

/// A running node.
pub struct Node {
    address: SocketAddr,
    state: Arc<NodeState>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Node {
    /// Starts a node. Its stores are opened on first use.
    ///
    /// # Errors
    /// If its address cannot be determined.
    pub fn start(options: NodeOptions) -> Result<Self> {
        let NodeOptions { listener, tls, stores, entropy } = options;
        let address = listener.local_addr();
        let address = address.map_err(|source| {
            let address = "the socket of the node".to_owned();
            NodeError::Listen { address, source }
        })?;
        let backoff = Arc::new(RuntimeBackoff::new(entropy.clone()));
        let state = Arc::new(NodeState::new(stores, backoff, entropy));
        let (stop, stopping) = watch::channel(false);
        let (incoming, accept) =
            admit_peers(listener, HANDSHAKE_LIMITS, handshake(tls), stopping.clone());
        let serve = tokio::spawn(serve(Calls(Arc::clone(&state)), incoming, stopping));
        Ok(Self { address, state, stop, tasks: vec![accept, serve] })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of calls received, by their names in proto/node.proto.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        let name = |call: &'static str| call.rsplit('/').next().unwrap_or(call);
        self.state.counts().into_iter().map(|(call, count)| (name(call), count)).collect()
    }

    /// Stops accepting calls, lets running ones end, and closes all connections.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // The receivers may be gone already.
            let _ = self.stop.send(true);
            for task in self.tasks {
                let abort = task.abort_handle();
                if tokio::time::timeout(STOP_TIMEOUT, task).await.is_err() {
                    abort.abort();
                }
            }
        })
    }
}

/// Returns the handshake that precedes any read from a peer.
fn handshake(tls: NodeTls) -> Handshake<TlsStream<TcpStream>> {
    Arc::new(move |socket| {
        let tls = tls.clone();
        Box::pin(async move {
            // Otherwise answers are delayed to be sent with others, and a lost peer is noticed
            // later.
            let _ = configure_socket(&socket);
            tls.acceptor.accept(socket).await.map_err(|error| error.to_string())
        })
    })
}

async fn serve(
    calls: Calls,
    incoming: mpsc::Receiver<Peer<TlsStream<TcpStream>>>,
    mut stopping: watch::Receiver<bool>,
) {
    let stopped = async move {
        // The sender is dropped only to stop the node.
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
    };
    let incoming = ReceiverStream::new(incoming).map(|Peer { session, permit }| {
        Ok::<_, io::Error>(PeerStream { stream: session, _permit: permit })
    });
    let serving = Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .serve_with_incoming_shutdown(calls, incoming, stopped);
    if let Err(error) = serving.await {
        tracing::error!("a node has stopped serving: {}", error_chain(&error));
    }
}

/// A connection to an authenticated peer.
struct PeerStream {
    stream: TlsStream<TcpStream>,
    _permit: PeerPermit,
}

impl Connected for PeerStream {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for PeerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
