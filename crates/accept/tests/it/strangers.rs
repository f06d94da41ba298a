//! Many clients that connect, never authenticate, and reconnect when they are closed: silent, slow,
//! or half-closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CLIENTS: usize = 1000;
/// Descriptors that the test needs for everything else: both ends are in one process.
const RESERVE: u64 = 1000;
/// The beginning of a TLS ClientHello; half a kilobyte would follow.
pub(crate) const HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

/// Keeps as many clients connecting as descriptors allow until the returned set is dropped.
/// Returns once each has connected. Those that send anything begin with `opening`.
pub(crate) async fn flood(address: SocketAddr, opening: &'static [u8]) -> JoinSet<()> {
    let count = count();
    let connected = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for number in 0..count {
        let connected = Arc::clone(&connected);
        clients.spawn(async move {
            let mut is_counted = false;
            loop {
                let Ok(socket) = TcpStream::connect(address).await else {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                if !std::mem::replace(&mut is_counted, true) {
                    connected.fetch_add(1, Ordering::Relaxed);
                }
                misbehave(socket, number, opening).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    while connected.load(Ordering::Relaxed) < count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    clients
}

/// Holds one connection until the other side ends it.
async fn misbehave(mut socket: TcpStream, number: usize, opening: &[u8]) {
    let mut buffer = [0; 64];
    match number % 3 {
        0 => {}
        1 => {
            let drip = opening.iter().chain(std::iter::repeat(&b'x'));
            for byte in drip {
                if socket.write_all(&[*byte]).await.is_err() {
                    return;
                }
                let read = socket.read(&mut buffer);
                if tokio::time::timeout(Duration::from_millis(50), read).await.is_ok() {
                    return;
                }
            }
        }
        _ => {
            let _ = socket.write_all(opening).await;
            let _ = socket.shutdown().await;
            // Delays the reconnect after a half-close.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    while let Ok(1..) = socket.read(&mut buffer).await {}
}

/// Returns a thousand, or fewer if this process may not open that many sockets.
#[allow(clippy::print_stderr, reason = "a test reports what it could not do")]
fn count() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = setrlimit(Resource::Nofile, raised);
    let room = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(RESERVE);
    let count = usize::try_from(room).map_or(CLIENTS, |room| room.clamp(200, CLIENTS));
    if count < CLIENTS {
        eprintln!("{count} clients instead of {CLIENTS}: raise the limit (ulimit -Hn)");
    }
    count
}
