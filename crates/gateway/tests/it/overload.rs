//! A thousand stalled connections to the endpoint, with TLS and without: busy clients go on, and
//! new ones are served.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fulgurite_gateway::{ServerConfig, TlsConfig};
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{TestServer, credentials, open_archive, read_response};
use crate::strangers::{HELLO, flood};
use crate::tls::connector;

/// Fewer than there are stalled connections.
const CONNECTIONS: usize = 512;
const ALIVE: &[u8] = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Sends a request on a persistent connection.
async fn request(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    stream.write_all(ALIVE).await.unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"live\n") {
        assert_ne!(stream.read_buf(&mut response).await.unwrap(), 0, "the connection was closed");
    }
}

/// Checks that one client with a slow request rate, and new clients, are served while stalled
/// connections flood the endpoint.
async fn check_under_load<S>(
    address: SocketAddr,
    opening: &'static [u8],
    connect: impl AsyncFn() -> S,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut persistent = connect().await;
    request(&mut persistent).await;
    let requests = tokio::spawn(async move {
        loop {
            request(&mut persistent).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let _stalled = flood(address, opening).await;
    for _ in 0..6 {
        let began = Instant::now();
        let mut new = connect().await;
        request(&mut new).await;
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
    assert!(!requests.is_finished(), "the persistent connection was closed");
    requests.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_connections_do_not_block_clients() {
    let server = TestServer::start_with(|config| config.limits.connections = CONNECTIONS).await;
    let address = server.address;
    let mut slow = TcpStream::connect(address).await.unwrap();
    let (head, _) = server.request("PUT", "/vault/slow").body(b"xy").signed_head(2);
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(b"x").await.unwrap();
    let opening = b"GET /livez HTTP/1.1\r\nx-more: ";
    check_under_load(address, opening, async || TcpStream::connect(address).await.unwrap()).await;
    slow.write_all(b"y").await.unwrap();
    assert_eq!(read_response(&mut slow).await.status, 200, "a busy connection is not closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_tls_connections_do_not_block_clients() {
    let data = TempDir::new().unwrap();
    let archive = open_archive(&data).await;
    let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into(), credentials());
    config.limits.connections = CONNECTIONS;
    config.tls = Some(TlsConfig::Auto { directory: data.path().join("tls"), names: Vec::new() });
    let server = fulgurite_gateway::bind(config, archive).await.unwrap();
    let (address, path) = (server.local_addr(), server.certificate().unwrap().to_owned());
    let serving = tokio::spawn(server.serve(Box::pin(std::future::pending())));
    let connect = async || {
        let socket = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        connector(&path).connect(name, socket).await.unwrap()
    };
    check_under_load(address, HELLO, connect).await;
    serving.abort();
}
