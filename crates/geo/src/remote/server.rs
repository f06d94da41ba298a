//! A node at an address. Clients must show a certificate before anything else of them is read.
//!
//! Connections and handshakes are limited in number, and handshakes in time: a client without a
//! certificate takes no slot from those with one (`fulgurite_accept`). A node that is stopped
//! accepts no more calls, and gives running ones some time to end. Not here: the answers
//! ([`crate::remote::node_state`]).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use fulgurite_rpc::{Identity, Server, ServerOptions};
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::remote::limits::{CONNECTION, HANDSHAKE_LIMITS, STOP_TIMEOUT, WIRE_BYTES_MAX};
use crate::remote::node_state::NodeState;
use crate::remote::stores::Stores;
use crate::remote::{Result, wire};
use crate::stores::limits::BLOB_TIMEOUT;
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
    server: Server,
    state: Arc<NodeState>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Node {
    /// Starts a node. Its stores are opened on first use.
    ///
    /// # Errors
    /// If its address cannot be determined.
    pub fn start(options: NodeOptions) -> Result<Self> {
        let NodeOptions { listener, tls, stores, entropy } = options;
        let backoff = Arc::new(RuntimeBackoff::new(entropy.clone()));
        let state = Arc::new(NodeState::new(stores, backoff, entropy));
        let options = ServerOptions {
            listener,
            identity: tls,
            handshakes: HANDSHAKE_LIMITS,
            connection: CONNECTION,
            // Otherwise a client that opens calls and sends nothing would take all permits.
            call_timeout: Some(BLOB_TIMEOUT),
            peer: |_: &_| Ok(()),
            stop: watch::Sender::new(false),
        };
        let service = Arc::clone(&state);
        let answer = move |request| wire::answer(Arc::clone(&service), WIRE_BYTES_MAX, request);
        let server = Server::start("the socket of the node", options, answer)?;
        Ok(Self { server, state })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the number of calls received, by their names.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.state.counts()
    }

    /// Stops accepting calls, lets running ones end, and closes all connections.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(self.server.stop(STOP_TIMEOUT))
    }
}
