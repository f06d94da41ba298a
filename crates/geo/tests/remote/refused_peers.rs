//! Clients that a node refuses, and nodes that a client refuses.

use std::time::Duration;

use fulgurite_geo::stores::{Key, OpenError, TableError};
use fulgurite_rpc::testing::{Authority, anonymous_client};
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{World, blobs, issue, table};

fn new_key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// Returns why a table cannot be opened, permanently.
async fn refusal(address: &str) -> String {
    let error = table(address, false).await.err().expect("it is refused");
    let OpenError::Foreign { what, .. } = &error else { panic!("{error}") };
    what.clone()
}

#[tokio::test]
async fn peers_without_a_trusted_certificate_are_rejected() {
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let address = world.address(node.address(), "oslo.records");
    table(&address, true).await.unwrap();
    // A client of another CA, which it trusts itself.
    let other = Authority::new(&world.folder.path().join("other"));
    let mut files = issue(&other, "archive", ClientAuth);
    let message = refusal(&world.address_with(node.address(), "oslo.records", &files)).await;
    assert!(message.contains("is not trusted") && message.contains("ca=FILE"), "{message}");
    // It trusts our CA, but the node does not trust its certificate.
    files.ca = world.folder.path().join("authority/ca.pem");
    let message = refusal(&world.address_with(node.address(), "oslo.records", &files)).await;
    assert!(
        message.contains("rejects our certificate") && message.contains("cert=FILE"),
        "{message}"
    );
    // A certificate of a node is not valid for a client.
    let files = issue(&world.authority, "turin.records", ServerAuth);
    let message = refusal(&world.address_with(node.address(), "oslo.records", &files)).await;
    assert!(message.contains("rejects our certificate"), "{message}");
    node.stop().await;
}

#[tokio::test]
async fn client_without_certificate_or_tls_gets_no_answer() {
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let connector = anonymous_client(&world.folder.path().join("authority/ca.pem"));
    let socket = TcpStream::connect(node.address()).await.unwrap();
    let name = ServerName::try_from("oslo.records").unwrap();
    let mut stream = connector.connect(name, socket).await.unwrap();
    let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    let mut received = Vec::new();
    let error = stream.read_to_end(&mut received).await.unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    assert_eq!(received, b"");
    // Plain text is not answered either.
    let mut plain = TcpStream::connect(node.address()).await.unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut received = Vec::new();
    let _ = plain.read_to_end(&mut received).await;
    assert!(!received.windows(4).any(|bytes| bytes == b"HTTP"), "{received:?}");
    assert!(node.calls().is_empty(), "{:?}", node.calls());
    node.stop().await;
}

#[tokio::test]
async fn node_with_another_name_is_rejected() {
    let world = World::new();
    let node = world.serve("lisbon.records", world.directory("lisbon")).await;
    let message = refusal(&world.address(node.address(), "oslo.records")).await;
    assert!(message.contains("is not \"oslo.records\""), "{message}");
    assert!(message.contains("lisbon.records"), "it names the node: {message}");
    let error = blobs(&world.address(node.address(), "oslo.records"), true).await.err().unwrap();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert!(node.calls().is_empty(), "{:?}", node.calls());
    // Without a name, the certificate must have the address.
    let message = refusal(&world.address(node.address(), "")).await;
    assert!(message.contains("127.0.0.1"), "{message}");
    node.stop().await;
}

#[tokio::test]
async fn unreachable_node_is_retried_on_each_call() {
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let socket = node.address();
    table(&world.address(socket, "oslo.records"), true).await.unwrap();
    node.stop().await;
    let address = world.address(socket, "oslo.records");
    // It cannot create anything now.
    let error = table(&address, true).await.err().unwrap();
    assert!(
        matches!(&error, OpenError::Table { source: TableError::Unavailable(_), .. }),
        "{error}"
    );
    let early = table(&address, false).await.unwrap();
    let error = early.read(&new_key("a")).await.unwrap_err();
    assert!(matches!(&error, TableError::Unavailable(_)), "{error}");
    assert!(error.to_string().contains(&socket.to_string()), "{error}");
    // A server that accepts connections and never answers counts as unreachable as well, and
    // concurrent callers do not wait for it one after the other.
    let _silent = tokio::net::TcpListener::bind(socket).await.unwrap();
    let started = tokio::time::Instant::now();
    let key = new_key("a");
    let all = (0..8).map(|_| early.read(&key));
    for read in futures::future::join_all(all).await {
        assert!(matches!(read, Err(TableError::Unavailable(_))));
    }
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
}
