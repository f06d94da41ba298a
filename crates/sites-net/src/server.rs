//! A node at an address: who connects shows a certificate before anything is read of it.
//!
//! Connections and handshakes have bounds, and a handshake has a time. When it is stopped, no more
//! calls are taken, and those under way have a while to end. Not here: what is answered
//! ([`crate::served`]).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fulgurite_sites::limits::CONNECT_WITHIN;
use fulgurite_sites::{Entropy, RuntimeRests};
use fulgurite_units::error_chain;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use crate::dial::ready;
use crate::limits::{
    ACCEPT_REST, ANSWER_OF_LIFE, CONNECTION_WINDOW_BYTES, CONNECTIONS_MAX, HANDSHAKES_MAX,
    KEEP_ALIVE, STOP_WITHIN, STREAMS_MAX, WINDOW_BYTES,
};
use crate::served::Served;
use crate::service::Calls;
use crate::stores::Stores;
use crate::tls::NodeTls;
use crate::{NodeError, Result};

/// What a node is begun with.
pub struct NodeOptions {
    /// Where it answers.
    pub listener: TcpListener,
    /// Its certificate, and whose it believes.
    pub tls: NodeTls,
    /// What it serves.
    pub stores: Arc<dyn Stores>,
    /// What nonces of rows and lengths of rests are drawn from.
    pub entropy: Entropy,
}

impl std::fmt::Debug for NodeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeOptions").field("tls", &self.tls).finish_non_exhaustive()
    }
}

/// A node that answers.
pub struct Node {
    address: SocketAddr,
    served: Arc<Served>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Node {
    /// Begins. Its stores are opened when they are first asked for.
    ///
    /// # Errors
    /// When it cannot be known where it answers.
    pub fn start(options: NodeOptions) -> Result<Self> {
        let NodeOptions { listener, tls, stores, entropy } = options;
        let address = listener.local_addr();
        let address = address.map_err(|source| {
            let address = "the socket of the node".to_owned();
            NodeError::Listen { address, source }
        })?;
        let rests = Arc::new(RuntimeRests::new(entropy.clone()));
        let served = Arc::new(Served::new(stores, rests, entropy));
        let (stop, stopping) = watch::channel(false);
        let (accepted, incoming) = mpsc::channel(1);
        let accept = tokio::spawn(accept(listener, tls, accepted, stopping.clone()));
        let answer = tokio::spawn(answer(Calls(Arc::clone(&served)), incoming, stopping));
        Ok(Self { address, served, stop, tasks: vec![accept, answer] })
    }

    /// Where it answers.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls that came, by their names in proto/node.proto.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        let name = |call: &'static str| call.rsplit('/').next().unwrap_or(call);
        self.served.counts().into_iter().map(|(call, count)| (name(call), count)).collect()
    }

    /// Takes no more calls, has those under way end, and closes all connections.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // Nobody else has the other end.
            let _ = self.stop.send(true);
            for task in self.tasks {
                let abort = task.abort_handle();
                if tokio::time::timeout(STOP_WITHIN, task).await.is_err() {
                    abort.abort();
                }
            }
        })
    }
}

/// Takes connections, and hands on those whose peer has shown a certificate.
async fn accept(
    listener: TcpListener,
    tls: NodeTls,
    accepted: mpsc::Sender<io::Result<Shown>>,
    mut stopping: watch::Receiver<bool>,
) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let next = async {
            let held = Arc::clone(&connections).acquire_owned().await.ok()?;
            let shaking = Arc::clone(&handshakes).acquire_owned().await.ok()?;
            Some((listener.accept().await, held, shaking))
        };
        let next = tokio::select! {
            next = next => next,
            _ = stopping.wait_for(|is_stopping| *is_stopping) => None,
        };
        let Some((socket, held, shaking)) = next else { return };
        let (socket, from) = match socket {
            Ok(socket) => socket,
            Err(error) => {
                // As when there are too many open files: others close theirs meanwhile.
                tracing::warn!("no connection was taken: {error}");
                tokio::time::sleep(ACCEPT_REST).await;
                continue;
            }
        };
        let (tls, accepted) = (tls.clone(), accepted.clone());
        tokio::spawn(async move {
            let _shaking = shaking;
            let shown = tokio::time::timeout(CONNECT_WITHIN, shake(socket, &tls)).await;
            match shown {
                Ok(Ok(stream)) => {
                    // The server may be gone.
                    let _ = accepted.send(Ok(Shown { stream, _held: held })).await;
                }
                Ok(Err(error)) => tracing::info!(%from, "not answered: {error}"),
                Err(_) => tracing::info!(%from, "not answered: it does not say who it is"),
            }
        });
    }
}

async fn shake(socket: TcpStream, tls: &NodeTls) -> io::Result<TlsStream<TcpStream>> {
    // Without it answers wait for more to be sent with them, and who is gone is noticed later.
    let _ = ready(&socket);
    tls.acceptor.accept(socket).await
}

async fn answer(
    calls: Calls,
    incoming: mpsc::Receiver<io::Result<Shown>>,
    mut stopping: watch::Receiver<bool>,
) {
    let stopped = async move {
        // Its sender is gone only when it is to stop.
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
    };
    let serving = Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(ANSWER_OF_LIFE))
        .serve_with_incoming_shutdown(calls, ReceiverStream::new(incoming), stopped);
    if let Err(error) = serving.await {
        tracing::error!("a node answers no more: {}", error_chain(&error));
    }
}

/// A connection whose peer has shown a certificate.
struct Shown {
    stream: TlsStream<TcpStream>,
    _held: OwnedSemaphorePermit,
}

impl Connected for Shown {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Shown {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Shown {
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
