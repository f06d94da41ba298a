//! Six tomes in processes of their own, one of which is killed before its objects are protected:
//! nothing that was acknowledged is lost, and everything is protected once it is started again.
//!
//! This program is the set's process, and with an environment variable that of a tome. The set's
//! process advances the manual clocks: each byte that it writes to the others is a clock step.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

#[path = "../src/remote/tests/world.rs"]
#[expect(dead_code, reason = "what other tests of the crate need is there as well")]
mod world;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_tome::remote::{PeerName, ServeOptions, TomesFile, remotes, serve};
use fulgurite_tome::{
    Entropy, FAIL_POINTS, FailPoints, FaultInjector, Network, RemoteHandle, SetOptions,
    StandaloneOptions, StandaloneTome, TomeSet, remote,
};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{Duration, ErrorKind, ManualClock, Ratio, Seed, UnixTime};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use crate::world::{BLOCK, World, draw, noise};

/// The file for a tome's process; its presence makes this one.
const FILE: &str = "FULGURITE_TEST_TOMES_FILE";
const TOME: &str = "FULGURITE_TEST_TOME";
/// Time at which the process of a tome starts, in milliseconds since 1970.
const NOW: &str = "FULGURITE_TEST_NOW";
/// Clock step.
const STEP: Duration = Duration::from_millis(500);
/// Time limit of the test, in real time.
const TEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(240);

fn main() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let work = async {
        match std::env::var_os(FILE) {
            Some(file) => tome(file.into()).await,
            None => set().await,
        }
    };
    runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, work).await.unwrap() });
}

/// Serves a tome until the other end of its input is closed.
#[expect(clippy::disallowed_methods, reason = "its parent passes its tome")]
async fn tome(file: PathBuf) {
    let tome = TomeId::new(std::env::var(TOME).unwrap().parse().unwrap());
    let now = std::env::var(NOW).unwrap().parse().unwrap();
    let clock = ManualClock::at(UnixTime::from_millis(now));
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
        clock: clock.clock(),
        entropy: Entropy::new(draw),
    };
    send(&address.to_string());
    let file = TomesFile::read(&file).unwrap();
    let gone = async {
        let (mut input, mut steps) = (tokio::io::stdin(), [0; 64]);
        loop {
            let count = input.read(&mut steps).await.unwrap();
            if count == 0 {
                return;
            }
            (0..count).for_each(|_| clock.advance(STEP));
        }
    };
    serve(&file, options, Box::pin(gone)).await.unwrap();
}

#[expect(clippy::print_stdout, reason = "what the process of the set reads")]
fn send(address: &str) {
    println!("{address}");
}

/// Starts the process of a tome.
async fn start(world: &World, files: &BTreeMap<TomeId, PathBuf>, tome: TomeId) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(FILE, &files[&tome])
        .env(TOME, tome.to_string())
        .env(NOW, world.clock.clock().now().as_millis().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).await.unwrap();
    world.proxies[&tome].aim(address.trim().parse().unwrap());
    child
}

/// Runs a future while time passes for all processes.
async fn wait<T>(
    world: &World,
    children: &mut BTreeMap<TomeId, Child>,
    future: impl Future<Output = T>,
) -> T {
    let mut future = pin!(future);
    loop {
        let step = std::time::Duration::from_millis(2);
        if let Ok(done) = tokio::time::timeout(step, &mut future).await {
            return done;
        }
        world.clock.advance(STEP);
        for input in children.values_mut().filter_map(|child| child.stdin.as_mut()) {
            // It may have been killed.
            let _ = input.write_all(b".").await;
        }
    }
}

/// Retries a request until it succeeds.
async fn again<T, F>(mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, fulgurite_tome::TomesError>>,
{
    loop {
        match ask().await {
            Ok(done) => return done,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        tokio::task::yield_now().await;
    }
}

async fn set() {
    let world = World::new(6, 0).await;
    let addresses: BTreeMap<_, _> =
        world.proxies.iter().map(|(tome, proxy)| (*tome, proxy.address)).collect();
    let file = |tome: &TomeId| (*tome, world.file(PeerName::Tome(*tome), &addresses));
    let files: BTreeMap<_, _> = world.proxies.keys().map(file).collect();
    let mut children = BTreeMap::new();
    for tome in world.proxies.keys() {
        children.insert(*tome, start(&world, &files, *tome).await);
    }
    let all = &mut children;
    let file = TomesFile::read(&world.file(PeerName::TokenManager, &addresses)).unwrap();
    let remotes = remotes(&file, &world.clock.clock(), &Handle::current()).unwrap();
    let set = TomeSet::init(SetOptions { remotes, ..world.options() }).unwrap();
    wait(&world, all, world.answer(&set)).await;
    let mut tomes = Vec::new();
    for number in 0..3 {
        let name = format!("object {number}");
        let put = set.put(&name, noise(&name, 3 * BLOCK));
        tomes.push(wait(&world, all, put).await.unwrap());
    }
    wait(&world, all, set.protected("object 0")).await.unwrap();
    // Killed, whatever it is doing.
    let killed = tomes[2];
    all.get_mut(&killed).unwrap().kill().await.unwrap();
    let meanwhile = || async {
        match set.put("meanwhile", noise("meanwhile", 2 * BLOCK)).await {
            // The request had been sent to the killed tome before that was known.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            put => put.map(drop),
        }
    };
    let meanwhile = again(meanwhile);
    wait(&world, all, meanwhile).await;
    all.insert(killed, start(&world, &files, killed).await);
    wait(&world, all, world.answer(&set)).await;
    for name in ["object 0", "object 1", "object 2"] {
        wait(&world, all, again(|| set.protected(name))).await;
        let read = wait(&world, all, again(|| set.get(name))).await;
        assert_eq!(read, noise(name, 3 * BLOCK));
    }
    let status = wait(&world, all, set.status()).await;
    assert!(status.is_well(), "{:?}", status.reasons);
    set.stop();
    for (_, mut child) in children {
        drop(child.stdin.take());
        assert!(child.wait().await.unwrap().success());
    }
}
