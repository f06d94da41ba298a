//! Authenticates peers before any other byte of theirs is read, and limits unauthenticated
//! connections.
//!
//! A connection is unauthenticated until its handshake is done. Unauthenticated connections and
//! peers have separate limits, so no number of the former takes up slots of peers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use crate::connections::{Connections, Slot};

/// Limits of a listener whose peers authenticate.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeLimits {
    /// Maximum number of unauthenticated connections; at the limit the oldest is closed for a new
    /// one.
    pub unauthenticated: usize,
    /// Minimum age at which such a connection may be closed, so that a burst of new ones does not
    /// end handshakes that make progress.
    pub min_idle: Duration,
    /// Timeout of a handshake.
    pub timeout: Duration,
    /// Maximum number of authenticated connections; further ones are closed.
    pub peers: usize,
}

/// Authenticates a peer. The error says why authentication failed.
pub type Handshake<T> =
    Arc<dyn Fn(TcpStream) -> BoxFuture<'static, Result<T, String>> + Send + Sync>;

/// A connection whose peer is authenticated.
#[derive(Debug)]
pub struct Peer<T> {
    /// Result of the handshake.
    pub session: T,
    /// Drop this together with the connection.
    pub permit: PeerPermit,
}

/// The slot of one peer, freed on drop.
pub struct PeerPermit {
    _permit: OwnedSemaphorePermit,
}

impl fmt::Debug for PeerPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerPermit")
    }
}

/// Accepts connections until `stopping` is true, and sends those whose peer is authenticated to the
/// receiver.
pub fn admit_peers<T: Send + 'static>(
    listener: TcpListener,
    limits: HandshakeLimits,
    handshake: Handshake<T>,
    mut stopping: watch::Receiver<bool>,
) -> (mpsc::Receiver<Peer<T>>, JoinHandle<()>) {
    let (send, peers) = mpsc::channel(1);
    let accepting = tokio::spawn(async move {
        let unauthenticated = Connections::new(limits.unauthenticated, limits.min_idle);
        let permit = Arc::new(Semaphore::new(limits.peers));
        loop {
            let (socket, from, slot) = tokio::select! {
                next = unauthenticated.accept(&listener) => next,
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
            };
            let admission = Admission { slot, permit: Arc::clone(&permit), send: send.clone() };
            let handshake = handshake(socket);
            tokio::spawn(async move {
                if let Err(reason) = admission.run(handshake, limits.timeout).await {
                    tracing::info!(%from, "connection refused: {reason}");
                }
            });
        }
    });
    (peers, accepting)
}

/// A connection that is being authenticated.
struct Admission<T> {
    slot: Arc<Slot>,
    permit: Arc<Semaphore>,
    send: mpsc::Sender<Peer<T>>,
}

impl<T> Admission<T> {
    async fn run(
        self,
        handshake: BoxFuture<'static, Result<T, String>>,
        timeout: Duration,
    ) -> Result<(), String> {
        let Self { slot, permit, send } = self;
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(timeout, handshake) => outcome,
            () = slot.evicted() => {
                return Err("it did not authenticate before its slot was needed".to_owned());
            }
        };
        let session = outcome.map_err(|_| "the handshake timed out".to_owned())??;
        let permit = permit.try_acquire_owned();
        let permit = permit.map_err(|_| "the maximum number of peers is connected".to_owned())?;
        drop(slot);
        // The receiver may be gone.
        let _ = send.send(Peer { session, permit: PeerPermit { _permit: permit } }).await;
        Ok(())
    }
}
