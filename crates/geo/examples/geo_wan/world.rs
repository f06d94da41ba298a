//! Three distant sites: a node over directories at each, two namespaces over them, and a program of
//! each namespace at each site.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use fulgurite_geo::objects::{FragmentCache, GeoOptions, GeoStore, OpenSites, SiteEntry, SiteMap};
use fulgurite_geo::remote::{NetNodes, TlsFiles};
use fulgurite_geo::stores::{Address, Blob, Entropy, OpenError, Opener, Table};
use fulgurite_rpc::testing::Authority;
use fulgurite_units::{ByteCount, Clock, Seed, UnixTime};
use rcgen::ExtendedKeyUsagePurpose;
use tokio::runtime::Runtime;

use crate::switch::{DelayMatrix, Lines, Switch, address, in_namespace};

/// Number of sites.
pub(crate) const SITES: usize = 3;

fn entropy() -> Entropy {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let seed = Seed::new(u64::try_from(since & u128::from(u64::MAX)).unwrap());
    Entropy::new(move || {
        let mut bytes = [0; 16];
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        seed.child(&count.to_le_bytes()).stream().fill(&mut bytes);
        bytes
    })
}

/// The certificate files of nodes and of clients.
struct Certificates {
    node: TlsFiles,
    archive: TlsFiles,
}

impl Certificates {
    fn new(folder: &Path) -> Self {
        let authority = Authority::new(folder);
        let issue = |name: &str, usage| authority.issue(vec![name.to_owned()], vec![usage]);
        Self {
            node: issue("node", ExtendedKeyUsagePurpose::ServerAuth),
            archive: issue("archive", ExtendedKeyUsagePurpose::ClientAuth),
        }
    }
}

/// A node that runs until this is dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program at a site, and its blob stores, bypassing the protocol.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) site: usize,
    pub(crate) store: GeoStore,
    pub(crate) blobs: Vec<Arc<dyn Blob>>,
}

/// Opens nodes and keeps the opened stores, so that all measurements use the same connections.
struct SharedStores {
    opener: Opener,
    blobs: Mutex<BTreeMap<usize, Arc<dyn Blob>>>,
}

#[async_trait]
impl OpenSites for SharedStores {
    async fn table(
        &self,
        _: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError> {
        self.opener.table(address, may_create).await
    }

    async fn blobs(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError> {
        let blobs = self.opener.blobs(address, may_create).await?;
        let number: usize = site.name.parse().unwrap();
        self.blobs.lock().unwrap().insert(number, Arc::clone(&blobs));
        Ok(blobs)
    }
}

/// Sites, nodes and programs.
pub(crate) struct World {
    /// Programs whose writes begin with the fast round, and those that begin with promises.
    pub(crate) fast: Vec<Program>,
    pub(crate) classic: Vec<Program>,
    /// Programs of the first kind with a cache of other sites' fragments.
    pub(crate) cached: Vec<Program>,
    /// Runtimes of the programs of each site.
    runtimes: Vec<Runtime>,
    _nodes: Vec<Node>,
    /// Last: programs and nodes end before their network.
    pub(crate) switch: Switch,
}

impl World {
    /// Starts nodes of `binary`, with their directories in `folder`.
    pub(crate) fn new(
        binary: &Path,
        folder: &Path,
        (delays, lines): (DelayMatrix, Lines),
    ) -> Result<Self, String> {
        let switch = Switch::new(delays, lines)?;
        let certificates = Certificates::new(&folder.join("certificates"));
        let mut nodes = Vec::new();
        let mut runtimes = Vec::new();
        for site in 0..SITES {
            for (port, kind) in KINDS {
                let place = folder.join(format!("{kind}-{site}"));
                nodes.push(node(binary, switch.name(site), (site, port), &place, &certificates));
            }
            let runtime = in_namespace(switch.name(site), || {
                let mut builder = tokio::runtime::Builder::new_multi_thread();
                builder.worker_threads(2).enable_all().build().unwrap()
            })?;
            runtimes.push(runtime);
        }
        let (fast, classic, cached) = Default::default();
        let mut world = Self { fast, classic, cached, runtimes, _nodes: nodes, switch };
        for site in 0..SITES {
            for (port, kind) in KINDS {
                let map = map(kind, port, &certificates);
                let program = world.run_at(site, program(site, map, None));
                let is_fast = kind == "fast";
                if is_fast { &mut world.fast } else { &mut world.classic }.push(program);
            }
        }
        for site in 0..SITES {
            let place = folder.join(format!("cache-{site}"));
            let cache = FragmentCache::open(&place, ByteCount::new(1 << 30), clock()).unwrap();
            let (port, kind) = KINDS[0];
            let map = map(kind, port, &certificates);
            world.cached.push(world.run_at(site, program(site, map, Some(cache))));
        }
        Ok(world)
    }

    /// Runs something at a site.
    pub(crate) fn run_at<T: Send + 'static>(
        &self,
        site: usize,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let runtime = &self.runtimes[site];
        // Not on this thread: it is not in any site's network.
        runtime.block_on(runtime.spawn(work)).unwrap()
    }

    /// Starts a task at a site, which ends with the runtime.
    pub(crate) fn spawn_at(&self, site: usize, work: impl Future<Output = ()> + Send + 'static) {
        self.runtimes[site].spawn(work);
    }
}

const KINDS: [(u16, &str); 2] = [(7443, "fast"), (7444, "classic")];

fn node(
    binary: &Path,
    namespace: &str,
    (site, port): (usize, u16),
    place: &Path,
    certificates: &Certificates,
) -> Node {
    let url = format!("dir://{}", place.display());
    let listen = format!("{}:{port}", address(site));
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(binary).args(["geo", "node", "--json"]);
    command.args(["--listen", &listen, "--table", &url, "--blobs", &url]);
    command.arg("--ca").arg(&certificates.node.ca);
    command.arg("--cert").arg(&certificates.node.certificate);
    command.arg("--key").arg(&certificates.node.key);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut node = Node(child);
    let mut line = String::new();
    let stdout = node.0.stdout.take().unwrap();
    std::io::BufReader::new(stdout).read_line(&mut line).unwrap();
    assert!(line.contains("listening"), "a node did not start: {line:?}");
    node
}

fn map(kind: &str, port: u16, certificates: &Certificates) -> SiteMap {
    let site = |site: usize| {
        let url = format!(
            "node://{}:{port}/node?ca={}&cert={}&key={}",
            address(site),
            certificates.archive.ca.display(),
            certificates.archive.certificate.display(),
            certificates.archive.key.display()
        );
        format!("[[sites]]\nname = '{site}'\ntable = '{url}'\nblobs = '{url}'\n")
    };
    let sites: String = (0..SITES).map(site).collect();
    let fast = kind == "fast";
    let text = format!("name = '{kind}'\ndata = 2\nparity = 1\nfast = {fast}\n{sites}");
    SiteMap::parse(&text).unwrap()
}

fn clock() -> Clock {
    let wall = || {
        let passed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        UnixTime::from_millis(u64::try_from(passed).unwrap())
    };
    Clock::new(wall, || fulgurite_units::Instant::from_nanos(0))
}

async fn program(site: usize, map: SiteMap, cache: Option<FragmentCache>) -> Program {
    let nodes = Arc::new(NetNodes::new(entropy()));
    let opener = Opener::new(entropy(), []).with_nodes(nodes);
    let stores = Arc::new(SharedStores { opener, blobs: Mutex::default() });
    let is_first = site == 0 && cache.is_none();
    let options = GeoOptions {
        map,
        file: None,
        near: Some(site.to_string()),
        clock: clock(),
        entropy: entropy(),
        opener: Arc::clone(&stores) as Arc<dyn OpenSites>,
        cache,
        orphan_age: fulgurite_units::Duration::from_secs(86_400),
    };
    let store = match is_first {
        true => GeoStore::init(options).await,
        false => GeoStore::open(options).await,
    };
    let store = store.unwrap();
    let blobs = stores.blobs.lock().unwrap().values().cloned().collect();
    Program { site, store, blobs }
}

/// Returns how long something takes, in milliseconds.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (f64, T) {
    let began = Instant::now();
    let done = work.await;
    (began.elapsed().as_secs_f64() * 1e3, done)
}

pub(crate) async fn sleep_ms(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}
