//! A set whose tomes are served on local sockets, each behind a proxy that can cut connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_rpc::testing::Authority;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::token::{FromTokenManager, ToTokenManager};
use fulgurite_tome_core::{Layout, Parts, TomeId};
use fulgurite_units::{ByteCount, Duration, ManualClock, Ratio, Seed, TomeSetId, UnixTime};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::remote::{
    BackoffLimits, PeerName, RemoteOptions, RemoteTome, ServerOptions, Tls, TomeServer,
};
use crate::{
    Entropy, FaultInjector, Network, RemoteHandle, SetOptions, StandaloneOptions, StandaloneTome,
    TomeSet,
};
use crate::{FAIL_POINTS, FailPoints};

/// Bytes of a block.
pub(super) const BLOCK: usize = 512;
/// Clock step, about every millisecond. With a larger one a lease would expire before a slow
/// machine has used it.
const STEP: Duration = Duration::from_millis(500);
/// Most clock steps that an operation may take.
const STEPS_MAX: u32 = 100_000;

pub(super) const BACKOFF_LIMITS: BackoffLimits = BackoffLimits {
    min: std::time::Duration::from_millis(1),
    max: std::time::Duration::from_millis(50),
};

/// A proxy before a tome that can cut connections.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    target: Arc<Mutex<Option<SocketAddr>>>,
    is_cut: watch::Sender<bool>,
}

impl Proxy {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = Arc::<Mutex<Option<SocketAddr>>>::default();
        let (is_cut, cut) = watch::channel(false);
        let to = Arc::clone(&target);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (to, mut cut) = (*to.lock().unwrap(), cut.clone());
                if *cut.borrow_and_update() {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(to?).await else { return None };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.wait_for(|is_cut| *is_cut) => {}
                    }
                    Some(())
                });
            }
        });
        Self { address, target, is_cut }
    }

    /// Forwards connections to this address from now on.
    pub(super) fn aim(&self, target: SocketAddr) {
        *self.target.lock().unwrap() = Some(target);
    }

    pub(super) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub(super) fn heal(&self) {
        self.is_cut.send_replace(false);
    }
}

/// Sends every message twice.
#[derive(Debug)]
struct DuplicatingNetwork(Arc<dyn Network>);

impl Network for DuplicatingNetwork {
    fn send(&self, from: TomeId, to: TomeId, message: Message) {
        self.0.send(from, to, message.clone());
        self.0.send(from, to, message);
    }

    fn send_to_token_manager(&self, from: TomeId, message: ToTokenManager) {
        self.0.send_to_token_manager(from, message);
        self.0.send_to_token_manager(from, message);
    }

    fn send_to_holder(&self, to: TomeId, message: FromTokenManager) {
        self.0.send_to_holder(to, message);
    }
}

/// A set, and its tomes' addresses.
pub(super) struct World {
    pub(super) folder: TempDir,
    pub(super) set: TomeSetId,
    pub(super) authority: Authority,
    pub(super) disks: Arc<Simulated>,
    pub(super) clock: ManualClock,
    /// Faults of served tomes.
    pub(super) faults: FaultInjector,
    tomes: u32,
    /// Tomes below this number are in the process of the set.
    here: u32,
    pub(super) is_duplicating: bool,
    pub(super) proxies: BTreeMap<TomeId, Proxy>,
    pub(super) servers: BTreeMap<TomeId, TomeServer>,
}

pub(super) fn layout() -> Layout {
    let (block, segment) = (ByteCount::new(BLOCK as u64), "4+2".parse().unwrap());
    Layout::new(Parts { block, segment, segments: 3, regions: 4, spares: 60 }).unwrap()
}

impl World {
    pub(super) async fn new(tomes: u32, here: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let places = (0..tomes).map(PlaceId::new);
        let disks = Simulated::new(places, Times::PELICAN, Ratio::ZERO, Seed::new(1));
        let mut proxies = BTreeMap::new();
        for tome in here..tomes {
            proxies.insert(TomeId::new(tome), Proxy::new().await);
        }
        Self {
            set: TomeSetId::from_random(draw()),
            authority: Authority::new(&folder.path().join("authority")),
            folder,
            disks: Arc::new(disks),
            clock: ManualClock::at(UnixTime::from_millis(1_700_000_000_000)),
            faults: FaultInjector::default(),
            tomes,
            here,
            is_duplicating: false,
            proxies,
            servers: BTreeMap::new(),
        }
    }

    /// Writes the set's file for one of its processes, with all tomes at these addresses.
    pub(super) fn file(&self, name: PeerName, addresses: &BTreeMap<TomeId, SocketAddr>) -> PathBuf {
        let files = self.authority.issue(vec![name.in_set(self.set)], Vec::new());
        let (certificate, key) = (files.certificate.display(), files.key.display());
        let tome = |(tome, address)| format!("{tome} = {{ address = \"{address}\" }}\n");
        let tomes: String = addresses.iter().map(tome).collect();
        let text = format!(
            "set = \"{}\"\n[tls]\nca = \"ca.pem\"\ncertificate = \"{certificate}\"\n\
             key = \"{key}\"\n[tomes]\n{tomes}",
            self.set
        );
        let path = self.authority.folder().join(format!("{}.toml", name.in_set(self.set)));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns a world of six tomes, each served in a process of its own.
    pub(super) async fn served() -> Self {
        let mut world = Self::new(6, 0).await;
        world.serve_all().await;
        world
    }

    pub(super) async fn serve_all(&mut self) {
        let all: Vec<_> = self.proxies.keys().copied().collect();
        for tome in all {
            self.serve(tome).await;
        }
    }

    pub(super) fn tls(&self, name: PeerName) -> Tls {
        let files = self.authority.issue(vec![name.in_set(self.set)], Vec::new());
        Tls::read(&files, self.set, name).unwrap()
    }

    pub(super) fn root(&self, tome: TomeId) -> PathBuf {
        self.folder.path().join(format!("disk-{tome}"))
    }

    pub(super) fn directory(&self, tome: TomeId) -> PathBuf {
        self.folder.path().join(format!("awake-{tome}"))
    }

    fn address(&self, tome: TomeId) -> String {
        self.proxies[&tome].address.to_string()
    }

    pub(super) async fn serve(&mut self, tome: TomeId) {
        let set = self.set;
        let (directory, root) = (self.directory(tome), self.root(tome));
        let (disks, clock) = (Arc::clone(&self.disks), self.clock.clock());
        let (is_duplicating, faults) = (self.is_duplicating, self.faults.clone());
        let options = ServerOptions {
            tome,
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            tls: self.tls(PeerName::Tome(tome)),
            others: self.proxies.keys().map(|tome| (*tome, self.address(*tome))).collect(),
            tomes_at_set: (0..self.here).map(TomeId::new).collect(),
            backoff_limits: BACKOFF_LIMITS,
            open: Box::new(move |network, handshake| {
                let network = if is_duplicating {
                    Arc::new(DuplicatingNetwork(network)) as _
                } else {
                    network
                };
                let options = StandaloneOptions {
                    set,
                    tome,
                    directory: directory.clone(),
                    root: root.clone(),
                    backend: Arc::clone(&disks) as _,
                    spin_ups_a_day: None,
                    idle: fulgurite_tome_core::limits::IDLE,
                    network,
                    clock: clock.clone(),
                    entropy: Entropy::new(draw),
                    fail: FailPoints::unarmed(&FAIL_POINTS),
                    faults: faults.clone(),
                };
                StandaloneTome::open(options, handshake)
            }),
        };
        let server = TomeServer::start(options).await.unwrap();
        self.proxies[&tome].aim(server.address());
        self.servers.insert(tome, server);
    }

    pub(super) async fn stop(&mut self, tome: TomeId) {
        self.servers.remove(&tome).unwrap().stop().await;
    }

    pub(super) fn options(&self) -> SetOptions {
        let remote = |tome: &TomeId| {
            let remote = RemoteTome::new(RemoteOptions {
                tome: *tome,
                address: self.address(*tome),
                tls: self.tls(PeerName::TokenManager),
                backoff_limits: BACKOFF_LIMITS,
                clock: self.clock.clock(),
                runtime: Handle::current(),
            });
            (*tome, Arc::new(remote) as Arc<dyn RemoteHandle>)
        };
        SetOptions {
            set: Some(self.set),
            directory: self.folder.path().join("set"),
            roots: (0..self.here).map(TomeId::new).map(|tome| (tome, self.root(tome))).collect(),
            remotes: self.proxies.keys().map(remote).collect(),
            layout: layout(),
            split: "3+2".parse().unwrap(),
            backend: Arc::clone(&self.disks) as _,
            spin_ups_a_day: None,
            idle: fulgurite_tome_core::limits::IDLE,
            clock: self.clock.clock(),
            entropy: Entropy::new(draw),
            fail: FailPoints::unarmed(&FAIL_POINTS),
            faults: FaultInjector::default(),
        }
    }

    /// Creates the set, and returns it once all of its tomes answer.
    pub(super) async fn init(&self) -> TomeSet {
        let set = TomeSet::init(self.options()).unwrap();
        self.wait(self.answer(&set)).await;
        set
    }

    pub(super) async fn answer(&self, set: &TomeSet) {
        while set.status().await.tomes.iter().any(|tome| tome.away.is_some()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(set.status().await.tomes.len(), self.tomes as usize);
    }

    /// Runs a future while time passes.
    pub(super) async fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        for _ in 0..STEPS_MAX {
            let step = std::time::Duration::from_millis(1);
            if let Ok(done) = tokio::time::timeout(step, &mut future).await {
                return done;
            }
            self.clock.advance(STEP);
        }
        panic!("it does not end in time");
    }

    /// Puts an object and waits until it is protected.
    pub(super) async fn keep(&self, set: &TomeSet, name: &str, bytes: Vec<u8>) -> TomeId {
        let tome = self.wait(set.put(name, bytes)).await.unwrap();
        self.wait(set.protected(name)).await.unwrap();
        tome
    }
}

/// Returns bytes that no other call draws.
pub(super) fn draw() -> [u8; 16] {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    let number = u64::from(std::process::id()) << 32 | DRAWN.fetch_add(1, Ordering::Relaxed);
    let mut bytes = [0; 16];
    Seed::new(number).stream().fill(&mut bytes);
    bytes
}

/// Returns bytes that look random and are the same for a name.
pub(super) fn noise(name: &str, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seed::new(name.bytes().map(u64::from).sum()).stream().fill(&mut bytes);
    bytes
}
