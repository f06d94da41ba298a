//! Several sites of real servers, client processes, and all kinds of faults.
//!
//! ```text
//! clients (processes) --> relays --> PostgreSQL, etcd, an S3 server (their own networks)
//!    |                      ^           ^
//!    |                 late, held, cut  killed, links down, folders of blobs away
//!    '--> histories --> both checks; then all is repaired, and nothing is left behind
//! ```
//!
//! In the end the third site is declared lost and replaced by a directory while clients continue;
//! then another server is killed. If the machine is too busy for both, clients pause after a few
//! tries: they would add objects faster than the site is rebuilt.
//!
//! Timing decides nothing. `FULGURITE_TEST_REAL_SEED` selects another course of events,
//! `FULGURITE_TEST_REAL_ROUNDS` is how often each fault occurs (default: once).

pub(crate) mod client;
mod network;
mod sites;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fulgurite_geo::objects::{GeoStore, MaintenanceReport, SiteEntry};
use fulgurite_units::{RandomStream, Seed};
use tokio::runtime::Runtime;

use crate::history::faults::Fault as Planted;
use crate::history::{self, Call, Operation, Reply, now, versions, windows};
use client::{Plan, VARIABLE, execute_call};
use sites::Sites;

const CLIENTS: usize = 3;
const KEYS: u64 = 5;

/// How often to poll for something that must happen.
const TRIES: usize = 60;
/// How often to try to replace a site: first while clients run, then while they pause.
const REPLACEMENTS: [usize; 2] = [3, 9];

// Ids of the clients that run in this process, one after the other. No two draw the same ids.
const MAINTAINER: u64 = 1 << 20;
const HEALER: u64 = MAINTAINER + 1;
const REMOVER: u64 = MAINTAINER + 2;
const SWEEPER: u64 = MAINTAINER + 3;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// A server is killed.
    Kill(usize),
    /// Two of three servers are killed.
    KillTwo(usize),
    /// The blobs of a site are missing.
    Blobs(usize),
    /// A client is killed in the middle of what it does.
    Client,
    /// Nothing reaches a server or comes back.
    Partition(usize),
    /// Everything takes longer at a server.
    Delay(usize),
    /// Replies of a server are lost, and then connections end.
    LostReplies(usize),
}

impl Fault {
    fn all() -> Vec<Self> {
        let per_site: [fn(usize) -> Self; 4] =
            [Self::Kill, Self::Partition, Self::Delay, Self::LostReplies];
        let each = per_site.iter().flat_map(|fault| (0..3).map(fault));
        each.chain([Self::KillTwo(0), Self::Blobs(0), Self::Blobs(1), Self::Client, Self::Client])
            .collect()
    }
}

/// HTTP clients need a TLS provider to be set, whether they use TLS or not.
fn use_ring() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn env_or(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().unwrap())
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn random_sleep(random: &mut RandomStream, least_ms: u64, more_ms: u64) {
    std::thread::sleep(Duration::from_millis(least_ms + random.below(more_ms)));
}

#[test]
fn histories_over_real_servers_are_linearizable() {
    use_ring();
    let seed = env_or("FULGURITE_TEST_REAL_SEED", 1);
    println!("seed {seed}");
    let mut random = Seed::new(seed).stream();
    let folder = tempfile::tempdir().unwrap();
    let network = runtime();
    let Some(mut sites) = Sites::start(folder.path(), &network) else { return };
    let mut plan = Plan {
        // Fast rounds, or promises first; small objects in stripes, or each alone.
        map: sites.map(
            ["fast = false\nbatch = '20ms'", "batch = '20ms'", "fast = false", ""]
                [usize::try_from(seed % 4).unwrap()],
        ),
        near: None,
        seed,
        client: 0,
        keys: KEYS,
        history: folder.path().join("0"),
        stop: folder.path().join("stop"),
        rest: folder.path().join("rest"),
        variables: sites::variables(),
        ahead_ms: 0,
    };
    let began = now();
    let maintainer = runtime();
    maintainer.block_on(sites.begin(&plan));
    let mut clients = Clients { plan: plan.clone(), running: Vec::new(), count: 0 };
    (0..CLIENTS).for_each(|_| clients.add());
    // It repairs objects and collects garbage while others work.
    let store = maintainer.block_on(plan.for_client(MAINTAINER, 0).open());
    let hints = fulgurite_units::Duration::from_secs(1);
    maintainer.block_on(async {
        store.spawn_maintenance(hints, fulgurite_units::Duration::from_secs(3))
    });
    let mut faults = Vec::new();
    for _ in 0..env_or("FULGURITE_TEST_REAL_ROUNDS", 1) {
        let mut round = Fault::all();
        while !round.is_empty() {
            let one = random.below(round.len() as u64);
            faults.push(round.swap_remove(usize::try_from(one).unwrap()));
        }
    }
    for fault in &faults {
        random_sleep(&mut random, 200, 300);
        inject(*fault, &mut sites, &mut clients, &mut random);
    }
    // With a fragment missing at another site, the loss of this site would be one loss too many.
    maintainer.block_on(heal_until_complete(&store));
    maintainer.block_on(replace(&store, &plan, &folder.path().join("another")));
    plan.map = store.map().text();
    inject(Fault::Kill(0), &mut sites, &mut clients, &mut random);
    random_sleep(&mut random, 500, 500);
    let mut history = clients.stop();
    drop(store);
    maintainer.shutdown_background();
    let worked_ms = (now() - began) / 1_000_000;

    let end = runtime();
    history.extend(end.block_on(heal_until_whole(&plan)));
    let (whole, searched) = check_history(&history);
    println!(
        "seed {seed}: {} operations {:?}, {} faults in {worked_ms} ms; {searched:?}, {whole}",
        history.len(),
        count_replies(&history),
        faults.len()
    );
    end.block_on(delete_everything(&plan, &sites));
    println!("{} ms in all", (now() - began) / 1_000_000);
}

/// Injects a fault, lets clients meet it, and ends it.
fn inject(fault: Fault, sites: &mut Sites, clients: &mut Clients, random: &mut RandomStream) {
    match fault {
        Fault::Kill(site) => {
            sites.crash(site);
            random_sleep(random, 200, 800);
            sites.restart(site);
        }
        Fault::KillTwo(site) => {
            sites.crash(site);
            sites.crash(site + 1);
            random_sleep(random, 200, 800);
            sites.restart(site + 1);
            sites.restart(site);
        }
        Fault::Blobs(site) => {
            sites.take_folder(site, true);
            random_sleep(random, 200, 800);
            sites.take_folder(site, false);
        }
        Fault::Client => {
            clients.kill(random);
            clients.add();
        }
        Fault::Partition(site) => {
            sites.set_link(site, false);
            random_sleep(random, 400, 800);
            sites.set_link(site, true);
        }
        Fault::Delay(site) => {
            let delay_ms = 10 + random.below(90);
            sites.set_late(site, Some(delay_ms));
            random_sleep(random, 400, 600);
            sites.set_late(site, None);
        }
        Fault::LostReplies(site) => {
            sites.relay(site, |traffic| traffic.is_mute = true);
            random_sleep(random, 20, 200);
            sites.cut(site);
            sites.relay(site, |traffic| traffic.is_mute = false);
        }
    }
}

/// Repairs everything while clients continue.
async fn heal_until_complete(store: &GeoStore) {
    let mut report = store.heal(&|_| {}).await;
    for _ in 0..TRIES {
        if report.as_ref().is_ok_and(|report| report.missing == 0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        report = store.heal(&|_| {}).await;
    }
    let report = report.unwrap();
    assert_eq!((report.missing, report.lost), (0, vec![]));
}

/// Replaces the third site by a directory.
async fn replace(store: &GeoStore, plan: &Plan, folder: &Path) {
    let place = Some(format!("dir://{}", folder.display()));
    let (name, rebuilding) = (sites::NAMES[2].to_owned(), false);
    let entry = SiteEntry { name, table: place.clone(), blobs: place, rebuilding };
    let mut report = Err("not tried".to_owned());
    let [busy, paused] = REPLACEMENTS;
    for tries in 0..busy + paused {
        if tries == busy {
            println!("clients pause: {report:?}");
            std::fs::write(&plan.rest, "").unwrap();
        }
        let replaced = store.replace_site(sites::NAMES[2], entry.clone(), &|_, _| {}).await;
        report = replaced.map_err(|error| fulgurite_units::error_chain(&error));
        if report.as_ref().is_ok_and(|report| report.problems.is_empty()) {
            break;
        }
    }
    let _ = std::fs::remove_file(&plan.rest);
    let report = report.unwrap();
    assert_eq!((report.problems, report.lost), (vec![], vec![]));
    assert!(store.map().sites.iter().all(|site| !site.rebuilding), "the site does not vote");
}

/// Clients, each a process of its own.
struct Clients {
    plan: Plan,
    running: Vec<(Child, Plan)>,
    count: u64,
}

impl Clients {
    fn add(&mut self) {
        self.count += 1;
        let folder = self.plan.stop.parent().unwrap();
        let plan = Plan {
            client: self.count,
            history: folder.join(self.count.to_string()),
            near: self.count.is_multiple_of(2).then(|| "etcd".to_owned()),
            ..self.plan.clone()
        };
        let file = folder.join(format!("{}.json", self.count));
        std::fs::write(&file, serde_json::to_vec(&plan).unwrap()).unwrap();
        let own = std::env::current_exe().unwrap();
        let mut command = Command::new(own);
        command.args(["--exact", "real::client::runs_as_client_process", "--nocapture"]);
        command.env(VARIABLE, file).stdin(Stdio::null()).stdout(Stdio::null());
        self.running.push((command.spawn().unwrap(), plan));
    }

    fn kill(&mut self, random: &mut RandomStream) {
        let one = usize::try_from(random.below(self.running.len() as u64)).unwrap();
        let (client, _) = &mut self.running[one];
        assert!(client.try_wait().unwrap().is_none(), "a client has ended by itself");
        client.kill().unwrap();
        client.wait().unwrap();
        self.running.remove(one);
    }

    /// Stops all clients, and reads their histories and those of killed ones.
    fn stop(&mut self) -> Vec<Operation> {
        std::fs::write(&self.plan.stop, "").unwrap();
        for (mut client, plan) in self.running.drain(..) {
            let end = client.wait().unwrap();
            assert!(end.success(), "client {} ended with {end}", plan.client);
        }
        let folder = self.plan.stop.parent().unwrap();
        let read = |client: u64| {
            // A client killed before it began has none.
            let lines = std::fs::read_to_string(folder.join(client.to_string()));
            history::read(client, &lines.unwrap_or_default())
        };
        (1..=self.count).flat_map(read).collect()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for (client, _) in &mut self.running {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

/// Checks that all objects are whole soon, once everything answers. Returns the reads of them all.
async fn heal_until_whole(plan: &Plan) -> Vec<Operation> {
    let store = plan.for_client(HEALER, 1).open().await;
    let is_whole = |report: &MaintenanceReport| {
        assert_eq!(report.lost, Vec::<String>::new());
        report.problems.is_empty() && report.whole == report.objects && report.objects > 0
    };
    let mut report = store.heal(&|_| {}).await;
    for _ in 0..TRIES {
        if report.as_ref().is_ok_and(is_whole) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        report = store.heal(&|_| {}).await;
    }
    assert!(report.as_ref().is_ok_and(is_whole), "{report:?}");
    let mut read = Vec::new();
    for key in 0..KEYS {
        read.extend(call_until_certain(&store, key, Call::Get).await);
    }
    read
}

/// Repeats a call until its outcome is certain, which takes few tries unless the machine is very
/// busy.
async fn call_until_certain(store: &GeoStore, key: u64, call: Call) -> Vec<Operation> {
    let mut all = Vec::new();
    for _ in 0..TRIES {
        let called = now();
        let reply = execute_call(store, key, call).await;
        let returned = if reply == Reply::Unknown { history::Moment::MAX } else { now() };
        all.push(Operation { client: HEALER, key, call, reply, called, returned });
        if !matches!(reply, Reply::Failed | Reply::Unknown) {
            return all;
        }
    }
    panic!("{all:?}");
}

/// Runs both checks, and checks that they notice planted faults.
fn check_history(history: &[Operation]) -> (&'static str, windows::SearchStats) {
    versions::check(history).unwrap();
    let searched = windows::check(history).unwrap();
    for fault in Planted::ALL {
        let planted = fault.plant(history);
        // Under high load a client may have done little; where a fault can be planted, it is
        // noticed.
        let some = planted.len().div_ceil(8).max(1);
        for planted in planted.into_iter().step_by(some) {
            let detected = [versions::check(&planted).is_err(), windows::check(&planted).is_err()];
            assert!(detected[0] && (detected[1] || fault == Planted::Swapped), "{fault:?}");
        }
    }
    let count = |reply: fn(&Reply) -> bool| history.iter().filter(|one| reply(&one.reply)).count();
    assert!(count(|reply| matches!(reply, Reply::Wrote(_))) > 0, "nothing was put");
    assert!(count(|reply| matches!(reply, Reply::Read(..))) > 0, "nothing was read");
    ("right", searched)
}

/// Counts each kind of answer.
fn count_replies(history: &[Operation]) -> BTreeMap<&'static str, usize> {
    let mut all = BTreeMap::new();
    for one in history {
        let name = match one.reply {
            Reply::Wrote(_) => "wrote",
            Reply::Refused => "refused",
            Reply::Deleted => "deleted",
            Reply::Read(..) => "read",
            Reply::Nothing => "nothing",
            Reply::Failed => "failed",
            Reply::Unknown => "unknown",
        };
        *all.entry(name).or_default() += 1;
    }
    all
}

/// Deletes, collects and sweeps everything: no site has a fragment or a hint left.
async fn delete_everything(plan: &Plan, sites: &Sites) {
    let store = plan.for_client(REMOVER, 1).open().await;
    for key in 0..KEYS {
        call_until_certain(&store, key, Call::Delete).await;
    }
    let hour = fulgurite_units::Duration::from_secs(3600);
    let mut last = (Vec::new(), 0);
    for turn in 1..=TRIES as u64 {
        // What the previous turn deleted may be collected now; stripes once they are empty.
        let later = plan.for_client(SWEEPER + turn, 1 + turn);
        let store = later.open().await;
        let report = [
            store.heal(&|_| {}).await.unwrap(),
            store.collect(&|_| {}).await.unwrap(),
            store.sweep(hour, &|_| {}).await.unwrap(),
            store.process_hints().await.unwrap(),
        ];
        assert!(report.iter().all(|report| report.lost.is_empty()), "{report:?}");
        let left = sites.fragments(&later).await;
        if left == 0 && report[3].objects == 0 && report.iter().all(|it| it.problems.is_empty()) {
            return;
        }
        last = (report.to_vec(), left);
    }
    panic!("not everything was removed: {last:?}");
}
