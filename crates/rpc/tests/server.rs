//! Connections and calls over sockets.

use std::sync::Arc;
use std::time::Duration;

use fulgurite_accept::HandshakeLimits;
use fulgurite_rpc::testing::Authority;
use fulgurite_rpc::tonic::{Code, Request, Status, Streaming};
use fulgurite_rpc::{Client, ConnectionLimits, Identity, Server, ServerOptions, bind, dial};
use rustls::HandshakeKind;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;

use crate::wire::{Adder, Number, answer, calls};

mod wire {
    fulgurite_rpc::protobuf! {
    package fulgurite.test.v1;

    service Adder {
      rpc Add(stream Number) returns (Number) => add;
    }

    message Number {
      uint64 value = 1;
    }
    }
}

struct Service;

impl Adder for Service {
    async fn add(self: &Arc<Self>, request: Request<Streaming<Number>>) -> Result<Number, Status> {
        let (mut numbers, mut value) = (request.into_inner(), 0);
        while let Some(number) = numbers.message().await? {
            value += number.value;
        }
        Ok(Number { value })
    }
}

const NAME: &str = "oslo.records";
const TIMEOUT: Duration = Duration::from_secs(10);
const LIMITS: ConnectionLimits = ConnectionLimits {
    streams: 8,
    window_bytes: 1 << 16,
    connection_window_bytes: 1 << 16,
    keep_alive: TIMEOUT,
    keep_alive_timeout: TIMEOUT,
    tcp_user_timeout: TIMEOUT,
};

fn identity() -> (tempfile::TempDir, Identity) {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(&folder.path().join("authority"));
    let files = authority.issue(vec![NAME.to_owned()], Vec::new());
    (folder, Identity::read(&files).expect("an identity"))
}

fn name() -> ServerName<'static> {
    ServerName::try_from(NAME).expect("a name")
}

/// A resumed session would skip the check of certificates, which may have expired since.
#[tokio::test]
async fn every_connection_checks_certificates() {
    let (_folder, identity) = identity();
    for _ in 0..3 {
        let (near, far) = tokio::io::duplex(1 << 16);
        let accept = async {
            let mut stream = identity.acceptor().accept(far).await.expect("a peer");
            stream.write_all(b"hello").await.expect("a write");
            stream.get_ref().1.handshake_kind()
        };
        let connect = async {
            let mut stream = identity.connector().connect(name(), near).await.expect("a server");
            // What comes after the handshake is read with the first bytes.
            stream.read_exact(&mut [0; 5]).await.expect("a read");
            stream.get_ref().1.handshake_kind()
        };
        let kinds = tokio::join!(accept, connect);
        assert_eq!(kinds, (Some(HandshakeKind::Full), Some(HandshakeKind::Full)));
    }
}

#[tokio::test]
async fn call_without_content_ends_in_time() {
    let (_folder, identity) = identity();
    let handshakes = HandshakeLimits {
        unauthenticated: 8,
        min_idle: Duration::from_millis(250),
        timeout: TIMEOUT,
        peers: 8,
    };
    let options = ServerOptions {
        listener: bind("127.0.0.1:0").await.expect("a socket"),
        identity: identity.clone(),
        handshakes,
        connection: LIMITS,
        call_timeout: Some(Duration::from_millis(100)),
        peer: |_: &_| Ok(()),
        stop: watch::Sender::new(false),
    };
    let answer = |request| answer(Arc::new(Service), 1000, request);
    let server = Server::start("a test", options, answer).expect("a server");
    let address = server.address().to_string();
    let (channel, _) = dial(&address, name(), &identity, LIMITS).await.expect("a connection");
    let mut client = Client::new(channel, 1000);
    let number = |value| Number { value };
    let silent = futures::stream::pending();
    let ended = client.client_streaming::<calls::Add>(silent).await.expect_err("it ends");
    assert_eq!((ended.code(), ended.message()), (Code::Cancelled, "Timeout expired"));
    let sum = client.client_streaming::<calls::Add>(futures::stream::iter([number(2), number(3)]));
    assert_eq!(sum.await.expect("a sum"), number(5), "the connection is still used");
    server.stop(TIMEOUT).await;
}
