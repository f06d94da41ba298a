//! Handshakes next to a thousand unauthenticated connections, on real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod strangers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_accept::{Handshake, HandshakeLimits, Peer, admit_peers};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

const LIMITS: HandshakeLimits = HandshakeLimits {
    unauthenticated: 64,
    min_idle: Duration::from_millis(100),
    timeout: Duration::from_secs(10),
    peers: 3,
};
/// The bytes by which a peer authenticates.
const SECRET: &[u8; 4] = b"peer";

/// A listener, the peers that it accepts, and its stop switch.
struct TestServer {
    address: SocketAddr,
    peers: mpsc::Receiver<Peer<TcpStream>>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl TestServer {
    async fn open(limits: HandshakeLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handshake: Handshake<TcpStream> = Arc::new(|mut socket: TcpStream| {
            Box::pin(async move {
                let mut secret = [0; 4];
                let read = socket.read_exact(&mut secret).await;
                read.map_err(|error| error.to_string())?;
                if &secret == SECRET { Ok(socket) } else { Err("wrong secret".to_owned()) }
            })
        });
        let (stop, stopping) = watch::channel(false);
        let (peers, accepting) = admit_peers(listener, limits, handshake, stopping);
        Self { address, peers, stop, accepting }
    }

    /// Connects and authenticates a peer; returns its socket and the listener's side of it.
    async fn join(&mut self) -> (TcpStream, Peer<TcpStream>) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(SECRET).await.unwrap();
        (socket, self.peers.recv().await.unwrap())
    }
}

async fn exchange_byte(near: &mut TcpStream, far: &mut Peer<TcpStream>) {
    near.write_all(b"x").await.unwrap();
    assert_eq!(far.session.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn peers_connect_despite_1000_unauthenticated_clients() {
    let mut server = TestServer::open(LIMITS).await;
    let (mut near, mut far) = server.join().await;
    let _stalled = strangers::flood(server.address, strangers::HELLO).await;
    for _ in 0..5 {
        exchange_byte(&mut near, &mut far).await;
        // The peer is behind as many connections as the backlog holds; on a busy machine they take
        // a while.
        let joined = tokio::time::timeout(Duration::from_secs(60), server.join()).await;
        let (mut near, mut far) = joined.expect("the peer is admitted");
        exchange_byte(&mut near, &mut far).await;
    }
}

#[tokio::test]
async fn handshake_timeout_and_peer_limit_are_enforced() {
    let timeout = Duration::from_millis(50);
    let mut server = TestServer::open(HandshakeLimits { timeout, ..LIMITS }).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(silent.read(&mut [0]).await.unwrap(), 0, "closed although a slot is free");
    let mut wrong = TcpStream::connect(server.address).await.unwrap();
    wrong.write_all(b"pear").await.unwrap();
    assert_eq!(wrong.read(&mut [0]).await.unwrap(), 0);

    let mut joined = Vec::new();
    for _ in 0..LIMITS.peers {
        joined.push(server.join().await);
    }
    let mut surplus = TcpStream::connect(server.address).await.unwrap();
    surplus.write_all(SECRET).await.unwrap();
    assert_eq!(surplus.read(&mut [0]).await.unwrap(), 0);
    joined.pop();
    joined.push(server.join().await);

    server.stop.send(true).unwrap();
    server.accepting.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody listens");
    for (near, far) in &mut joined {
        exchange_byte(near, far).await;
    }
}
