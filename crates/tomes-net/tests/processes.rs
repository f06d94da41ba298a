//! Six tomes in processes of their own, one of which is killed while it takes an object: nothing
//! that was acknowledged is lost, and everything is protected once it is started again.
//!
//! This program is the set's process, and with a variable set the process of a tome. Their clocks
//! go by themselves, all so many times as fast as time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

#[path = "../src/tests/world.rs"]
#[expect(dead_code, reason = "what other tests of the crate need is there as well")]
mod world;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_tome::TomeId;
use fulgurite_tomes::{Entropy, SetOptions, TomeSet};
use fulgurite_tomes_net::{
    Name, RemoteOptions, RemoteTome, Rests, ServeOptions, ServerOptions, Tls, TlsFiles, TomeServer,
    TomesFile, remotes, serve,
};
use fulgurite_units::{Clock, ErrorKind, Instant, Ratio, Seed, UnixTime};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use crate::world::{BLOCK, World, draw, noise};

/// The file of a tome's process; it is one if there is one.
const FILE: &str = "FULGURITE_TEST_TOMES_FILE";
const TOME: &str = "FULGURITE_TEST_TOME";
/// How many times as fast clocks go: a lease of five minutes is a second.
const FASTER: u64 = 300;
/// What anything may take of real time.
const PATIENCE: Duration = Duration::from_secs(240);

fn main() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let work = async {
        match std::env::var_os(FILE) {
            Some(file) => tome(file.into()).await,
            None => set().await,
        }
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.unwrap() });
}

fn clock() -> Clock {
    let began = std::time::Instant::now();
    let passed = move || began.elapsed().as_nanos() * u128::from(FASTER);
    let passed = move || Instant::from_nanos(u64::try_from(passed()).unwrap());
    // Of all processes the same, and as fast.
    let wall = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        UnixTime::from_millis(u64::try_from(now.as_millis()).unwrap() * FASTER / 1000)
    };
    Clock::new(wall, passed)
}

/// Serves a tome until nobody holds the other end of its input.
async fn tome(file: PathBuf) {
    let tome = TomeId::new(std::env::var(TOME).unwrap().parse().unwrap());
    let folder = file.parent().unwrap().parent().unwrap();
    let place = PlaceId::new(tome.get());
    let disk = Simulated::new([place], Times::PELICAN, Ratio::ZERO, Seed::new(1));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ServeOptions {
        tome,
        listener: Some(listener),
        directory: folder.join(format!("awake-{tome}")),
        root: folder.join(format!("disk-{tome}")),
        backend: Arc::new(disk),
        clock: clock(),
        entropy: Entropy::new(draw),
    };
    tell(&address.to_string());
    let file = TomesFile::read(&file).unwrap();
    let gone = async {
        tokio::io::stdin().read_to_end(&mut Vec::new()).await.unwrap();
    };
    serve(&file, options, gone).await.unwrap();
}

#[expect(clippy::print_stdout, reason = "what the process of the set reads")]
fn tell(address: &str) {
    println!("{address}");
}

/// Starts the process of a tome.
async fn start(world: &World, files: &BTreeMap<TomeId, PathBuf>, tome: TomeId) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(FILE, &files[&tome])
        .env(TOME, tome.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut told).await.unwrap();
    world.proxies[&tome].aim(told.trim().parse().unwrap());
    child
}

/// What comes of something that may be asked again.
async fn again<T, F>(mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, fulgurite_tomes::TomesError>>,
{
    loop {
        match ask().await {
            Ok(done) => return done,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn set() {
    let world = World::new(6, 0).await;
    let addresses: BTreeMap<_, _> =
        world.proxies.iter().map(|(tome, proxy)| (*tome, proxy.address)).collect();
    let file = |tome: &TomeId| (*tome, world.file(Name::Tome(*tome), &addresses));
    let files: BTreeMap<_, _> = world.proxies.keys().map(file).collect();
    let mut children = BTreeMap::new();
    for tome in world.proxies.keys() {
        children.insert(*tome, start(&world, &files, *tome).await);
    }
    let clock = clock();
    let file = TomesFile::read(&world.file(Name::Keeper, &addresses)).unwrap();
    let remotes = remotes(&file, &clock, &Handle::current()).unwrap();
    let set = TomeSet::init(SetOptions { remotes, clock, ..world.options() }).unwrap();
    world.answer(&set).await;
    let mut tomes = Vec::new();
    for number in 0..3 {
        let name = format!("object {number}");
        tomes.push(set.put(&name, noise(&name, 3 * BLOCK)).await.unwrap());
    }
    set.protected("object 0").await.unwrap();
    // Killed, whatever it does.
    let killed = tomes[2];
    children.get_mut(&killed).unwrap().kill().await.unwrap();
    let meanwhile = again(|| set.put("meanwhile", noise("meanwhile", 2 * BLOCK)));
    let other = meanwhile.await;
    assert_ne!(other, killed);
    children.insert(killed, start(&world, &files, killed).await);
    for name in ["object 0", "object 1", "object 2", "meanwhile"] {
        again(|| set.protected(name)).await;
        let length = if name == "meanwhile" { 2 } else { 3 };
        assert_eq!(again(|| set.get(name)).await, noise(name, length * BLOCK));
    }
    world.answer(&set).await;
    let status = set.status().await;
    assert!(status.is_well(), "{:?}", status.reasons);
    set.stop();
    for (_, mut child) in children {
        drop(child.stdin.take());
        assert!(child.wait().await.unwrap().success());
    }
}
