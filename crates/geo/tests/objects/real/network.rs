//! Network paths from clients to a server, which fail on demand.
//!
//! ```text
//! client -- relay: late, held, ended in the middle -- link: down, or late -- server
//!           on each machine                           of a network namespace, if allowed
//! ```

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::servers::Place;

/// State of a relay's traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Delay of each piece, in each direction.
    pub(crate) delay_ms: u64,
    /// Nothing passes.
    pub(crate) is_held: bool,
    /// Replies of the server are dropped: it executes calls, but nobody learns of it.
    pub(crate) is_mute: bool,
    /// How often all connections were cut.
    cuts: u64,
}

/// A relay to a server. It ends with the runtime that it was started on.
#[derive(Clone, Debug)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    traffic: Arc<watch::Sender<Traffic>>,
}

impl Relay {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let (traffic, _) = watch::channel(Traffic::default());
        let traffic = Arc::new(traffic);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sender = Arc::clone(&traffic);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server, sender.subscribe()));
            }
        });
        Self { port, traffic }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Traffic)) {
        self.traffic.send_modify(change);
    }

    /// Cuts all connections: data in flight is lost.
    pub(crate) fn cut(&self) {
        self.change(|traffic| traffic.cuts += 1);
    }
}

/// Forwards the bytes of a connection until one side ends it, or it is cut.
async fn pass(client: TcpStream, server: SocketAddr, mut traffic: watch::Receiver<Traffic>) {
    let cuts = traffic.borrow().cuts;
    let (request_traffic, reply_traffic) = (traffic.clone(), traffic.clone());
    let forward = async {
        let Ok(server) = TcpStream::connect(server).await else { return };
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
        }
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            () = pump(from_client, to_server, request_traffic, |traffic| traffic.is_held) => {}
            () = pump(from_server, to_client, reply_traffic, |it| it.is_held || it.is_mute) => {}
        }
    };
    tokio::select! {
        () = forward => {}
        _ = traffic.wait_for(|traffic| traffic.cuts != cuts) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut traffic: watch::Receiver<Traffic>,
    is_held: fn(&Traffic) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let delay_ms = traffic.borrow().delay_ms;
        if delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        }
        if traffic.wait_for(|traffic| !is_held(traffic)).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

/// Network namespace of one server, with a link that can be taken down.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    /// Our end of the link.
    link: String,
    inside: String,
}

impl Namespace {
    /// Creates a namespace; `number` must be unique in a process.
    pub(crate) fn new(number: u32) -> Result<Self, String> {
        let process = std::process::id();
        let (name, link) = (format!("fg{process}-{number}"), format!("fg{process}o{number}"));
        let network = format!("10.{}.{}", 64 + process / 250 % 64, process % 250);
        let (here, inside) =
            (format!("{network}.{}", 4 * number + 1), format!("{network}.{}", 4 * number + 2));
        let peer = format!("fg{process}i{number}");
        ip(&["netns", "add", &name])?;
        let namespace = Self { name, link, inside };
        let Self { name, link, inside } = &namespace;
        ip(&["link", "add", link, "type", "veth", "peer", "name", &peer, "netns", name])?;
        ip(&["address", "add", &format!("{here}/30"), "dev", link])?;
        ip(&["link", "set", "dev", link, "up"])?;
        let inner: [&[&str]; 3] = [
            &["address", "add", &format!("{inside}/30"), "dev", &peer],
            &["link", "set", "dev", &peer, "up"],
            &["link", "set", "dev", "lo", "up"],
        ];
        for arguments in inner {
            ip(&[&["-netns", name], arguments].concat())?;
        }
        Ok(namespace)
    }

    pub(crate) fn place(&self) -> Place {
        Place { namespace: Some(self.name.clone()), address: self.inside.clone() }
    }

    pub(crate) fn set_link(&self, is_up: bool) {
        ip(&["link", "set", "dev", &self.link, if is_up { "up" } else { "down" }]).unwrap();
    }

    /// Delays everything sent to the server; not every kernel can.
    pub(crate) fn delay(&self, delay_ms: Option<u64>) -> Result<(), String> {
        let Some(delay_ms) = delay_ms else {
            return run_command("tc", &["qdisc", "delete", "dev", &self.link, "root"]);
        };
        let delay = format!("{delay_ms}ms");
        run_command("tc", &["qdisc", "add", "dev", &self.link, "root", "netem", "delay", &delay])
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // This removes the link as well.
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    run_command("ip", arguments)
}

/// Runs a program. The error is what it printed when it failed.
fn run_command(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    let done = command.args(arguments).stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
}
