//! Peers that show who they are before anything is read of them, and strangers that do not.
//!
//! A connection is a stranger's until its handshake is done. Strangers and peers have room apart
//! from each other: any number of strangers leaves the room of peers as it is.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use crate::connections::{Connections, Slot};

/// Bounds of a listener whose peers show who they are.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeLimits {
    /// Connections that have not shown who they are; the oldest gives way to one more.
    pub strangers: usize,
    /// One of them does not give way before it is so old, so that a burst of others does not end
    /// handshakes that make progress.
    pub protected: Duration,
    /// A handshake has so long.
    pub within: Duration,
    /// Connections that have shown who they are; one more is closed.
    pub peers: usize,
}

/// What a peer does to show who it is. Its error says why it is not believed.
pub type Handshake<T> =
    Arc<dyn Fn(TcpStream) -> BoxFuture<'static, Result<T, String>> + Send + Sync>;

/// A connection whose peer has shown who it is.
#[derive(Debug)]
pub struct Peer<T> {
    /// What the handshake gave.
    pub session: T,
    /// To be dropped with the connection.
    pub room: PeerRoom,
}

/// The room of one peer, free again when this is dropped.
pub struct PeerRoom {
    _permit: OwnedSemaphorePermit,
}

impl fmt::Debug for PeerRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerRoom")
    }
}

/// Takes connections until `stopping` says so, and hands on those whose peer has shown who it is.
pub fn admit_peers<T: Send + 'static>(
    listener: TcpListener,
    limits: HandshakeLimits,
    handshake: Handshake<T>,
    mut stopping: watch::Receiver<bool>,
) -> (mpsc::Receiver<Peer<T>>, JoinHandle<()>) {
    let (send, peers) = mpsc::channel(1);
    let accepting = tokio::spawn(async move {
        let strangers = Connections::new(limits.strangers, limits.protected);
        let room = Arc::new(Semaphore::new(limits.peers));
        loop {
            let (socket, from, slot) = tokio::select! {
                next = strangers.accept(&listener) => next,
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
            };
            let admission = Admission { slot, room: Arc::clone(&room), send: send.clone() };
            let handshake = handshake(socket);
            tokio::spawn(async move {
                if let Err(why) = admission.run(handshake, limits.within).await {
                    tracing::info!(%from, "not answered: {why}");
                }
            });
        }
    });
    (peers, accepting)
}

/// One connection on its way in.
struct Admission<T> {
    slot: Arc<Slot>,
    room: Arc<Semaphore>,
    send: mpsc::Sender<Peer<T>>,
}

impl<T> Admission<T> {
    async fn run(
        self,
        handshake: BoxFuture<'static, Result<T, String>>,
        within: Duration,
    ) -> Result<(), String> {
        let Self { slot, room, send } = self;
        let shown = tokio::select! {
            shown = tokio::time::timeout(within, handshake) => shown,
            () = slot.told_to_end() => {
                return Err("it did not say who it is while others waited".to_owned());
            }
        };
        let session = shown.map_err(|_| "it does not say who it is".to_owned())??;
        let room = room.try_acquire_owned();
        let room = room.map_err(|_| "there are as many peers as there may be".to_owned())?;
        drop(slot);
        // Who listens may be gone.
        let _ = send.send(Peer { session, room: PeerRoom { _permit: room } }).await;
        Ok(())
    }
}
