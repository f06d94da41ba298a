//! A node at an address. Clients must show a certificate before anything else of them is read.
//!
//! Connections and handshakes are limited in number, and handshakes in time: a client without a
//! certificate takes no slot from those with one (`fulgurite_accept`). A node that is stopped
//! accepts no more calls, and gives running ones some time to end. Not here: the answers
//! ([`crate::remote::node_state`]).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use fulgurite_accept::{Handshake, admit_peers};
use fulgurite_rpc::{Identity, serve};
use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;

use crate::remote::limits::{CONNECTION, HANDSHAKE_LIMITS, STOP_TIMEOUT};
use crate::remote::node_state::NodeState;
use crate::remote::service::Calls;
use crate::remote::stores::Stores;
use crate::remote::{NodeError, Result};
use crate::stores::{Entropy, RuntimeBackoff};

/// Options to start a node.
pub struct NodeOptions {
    /// Its listening socket.
    pub listener: TcpListener,
    /// Its certificate, and the CA that it trusts.
    pub tls: Identity,
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
        let serve = tokio::spawn(serve(Calls(Arc::clone(&state)), incoming, CONNECTION, stopping));
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
fn handshake(tls: Identity) -> Handshake<(TlsStream<TcpStream>, ())> {
    Arc::new(move |socket| {
        let tls = tls.clone();
        Box::pin(async move {
            // Otherwise answers are delayed to be sent with others, and a lost peer is noticed
            // later.
            let _ = CONNECTION.configure_socket(&socket);
            let stream = tls.acceptor().accept(socket).await;
            stream.map(|stream| (stream, ())).map_err(|error| error.to_string())
        })
    })
}
