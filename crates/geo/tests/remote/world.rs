//! A CA, nodes with its certificates, and a proxy in front of a node that can cut connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fulgurite_geo::remote::{
    AddressedStores, Identity, NetNodes, Node, NodeOptions, Stores, TlsFiles,
};
use fulgurite_geo::stores::{Address, Blob, Entropy, OpenError, Opener, Table};
use fulgurite_rpc::testing::Authority;
use fulgurite_units::Seed;
use rcgen::ExtendedKeyUsagePurpose;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// Returns entropy that does not repeat within a process.
pub(crate) fn entropy() -> Entropy {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    Entropy::new(|| {
        let mut bytes = [0; 16];
        Seed::new(DRAWN.fetch_add(1, Ordering::Relaxed)).stream().fill(&mut bytes);
        bytes
    })
}

/// Issues a certificate with this name, for this use.
pub(crate) fn issue(authority: &Authority, name: &str, usage: ExtendedKeyUsagePurpose) -> TlsFiles {
    authority.issue(vec![name.to_owned()], vec![usage])
}

/// A proxy in front of a node that can cut connections.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    target: Arc<Mutex<Option<SocketAddr>>>,
    cuts: Arc<watch::Sender<u64>>,
}

impl Proxy {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = Arc::<Mutex<Option<SocketAddr>>>::default();
        let (cuts, cut) = watch::channel(0_u64);
        let shared_target = Arc::clone(&target);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (target, mut cut) = (*shared_target.lock().unwrap(), cut.clone());
                cut.borrow_and_update();
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(target?).await else { return None };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.changed() => {}
                    }
                    Some(())
                });
            }
        });
        Self { address, target, cuts: Arc::new(cuts) }
    }

    /// Starts a proxy of `target` that forwards this many bytes per second, with a small buffer.
    pub(crate) async fn slow(target: SocketAddr, bytes_a_second: usize) -> Self {
        const PIECES_A_SECOND: usize = 20;
        let socket = TcpSocket::new_v4().unwrap();
        // Connections inherit it: data waits at its sender.
        socket.set_recv_buffer_size(4096).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(8).unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(target).await.unwrap();
                let ((mut near, mut to_near), (mut from_far, mut far)) =
                    (near.into_split(), far.into_split());
                tokio::spawn(async move { tokio::io::copy(&mut from_far, &mut to_near).await });
                tokio::spawn(async move {
                    let mut piece = vec![0; bytes_a_second / PIECES_A_SECOND];
                    while let Ok(count @ 1..) = near.read(&mut piece).await {
                        far.write_all(&piece[..count]).await.unwrap();
                        let nanoseconds = 1_000_000_000 * count / bytes_a_second;
                        tokio::time::sleep(Duration::from_nanos(nanoseconds as u64)).await;
                    }
                });
            }
        });
        let (cuts, _) = watch::channel(0_u64);
        Self { address, target: Arc::default(), cuts: Arc::new(cuts) }
    }

    /// Sets where new connections are forwarded to; none: nowhere.
    pub(crate) fn aim(&self, target: Option<SocketAddr>) {
        *self.target.lock().unwrap() = target;
    }

    /// Cuts all current connections.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub(crate) fn cut_sender(&self) -> Arc<watch::Sender<u64>> {
        Arc::clone(&self.cuts)
    }
}

/// Nodes and their clients, all with certificates of one CA.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) authority: Authority,
    client: TlsFiles,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(&folder.path().join("authority"));
        let client = issue(&authority, "archive", ExtendedKeyUsagePurpose::ClientAuth);
        Self { folder, authority, client }
    }

    /// Serves stores as `name`, at a free port.
    pub(crate) async fn serve(&self, name: &str, stores: Arc<dyn Stores>) -> Node {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let files = issue(&self.authority, name, ExtendedKeyUsagePurpose::ServerAuth);
        let tls = Identity::read(&files).unwrap();
        assert_eq!(tls.names(), [name]);
        Node::start(NodeOptions { listener, tls, stores, entropy: entropy() }).unwrap()
    }

    /// Returns stores in a directory of this world.
    pub(crate) fn directory(&self, name: &str) -> Arc<dyn Stores> {
        let place = Address::from_directory(&self.folder.path().join(name)).unwrap();
        let stores =
            AddressedStores::new(Opener::new(entropy(), []), Some(place.clone()), Some(place));
        Arc::new(stores.unwrap())
    }

    /// Returns the address of a node, with these client files.
    pub(crate) fn address_with(&self, node: SocketAddr, name: &str, files: &TlsFiles) -> String {
        let TlsFiles { ca, certificate, key } = files;
        let (ca, cert, key) = (ca.display(), certificate.display(), key.display());
        format!("node://{node}/{name}?ca={ca}&cert={cert}&key={key}")
    }

    pub(crate) fn address(&self, node: SocketAddr, name: &str) -> String {
        self.address_with(node, name, &self.client)
    }
}

/// Returns an opener of nodes, as in another program.
pub(crate) fn opener() -> Opener {
    Opener::new(entropy(), []).with_nodes(Arc::new(NetNodes::new(entropy())))
}

pub(crate) async fn table(address: &str, may_create: bool) -> Result<Arc<dyn Table>, OpenError> {
    opener().table(&address.parse().unwrap(), may_create).await
}

pub(crate) async fn blobs(address: &str, may_create: bool) -> Result<Arc<dyn Blob>, OpenError> {
    opener().blobs(&address.parse().unwrap(), may_create).await
}
