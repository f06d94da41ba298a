//! A set of 200 tomes in one process under load and faults, for as long as desired.
//!
//! ```text
//! round    work      clients put, get and delete; blocks go bad, messages get lost, disks do not
//!                    spin up, tomes cannot write and fail
//!          start     the set is stopped, most often during requests; in some rounds one or two
//!                    tomes are lost then, and rebuilt by others
//!          work      while member slots move, with or without another start in between
//!          settle    no more faults: all becomes protected, and all is read
//! ```
//!
//! Invariants: what was acknowledged as protected is read byte for byte, and so is what was local
//! except on a lost tome; what was deleted stays so; an unknown outcome is one of the two. Nothing
//! stays unprotected. The memory of the process is bounded.
//!
//! One round is run unless `FULGURITE_SOAK_SECONDS` gives a duration, in memory where there is room
//! for it, since creating 200 tomes takes 20 s of syncs. `FULGURITE_SOAK_SEED` determines all
//! choices but those of the scheduler. It is a process of its own because its memory is measured.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite_tome::{SetStatus, TomeSet, TomeStatus};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{ByteCount, ErrorKind, RandomStream, Seed};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::watch;
use tokio::task::JoinSet;

use client::{Client, State};
use world::{FaultKind, TOMES, World};

/// Clients, each with one operation at a time.
const CLIENTS: u32 = 16;
/// Clock steps for which clients work.
const WORK_STEPS: u64 = 120;
/// A fault is injected in one of this many steps.
const FAULT_EVERY: u64 = 3;
/// Tomes that cannot write, per period of work.
const BROKEN: u64 = 3;
/// Tries to read an object while the group recovers it.
const READ_TRIES: u32 = 5;
/// Clock steps in between: ten minutes.
const READ_BACKOFF_STEPS: u32 = 320;
/// Open files, with some to spare.
const OPEN_FILES: u64 = 8192;
/// Most growth of memory over the process with 200 created tomes. The last 4,096 spin-ups of each
/// tome, some 100 bytes each, take 82 MiB of it; the rest is for cached tables and rows of the
/// stores that are not in a table yet, and for the allocator.
const GROWTH_MAX: ByteCount = ByteCount::mib(192);

/// Counters of operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) puts: u64,
    pub(crate) protected: u64,
    pub(crate) gets: u64,
    pub(crate) deletes: u64,
    pub(crate) overwrites: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    /// Puts that failed since a segment had more bad blocks than parity.
    pub(crate) beyond: u64,
    pub(crate) bytes: u64,
    pub(crate) verified: u64,
    pub(crate) starts: u64,
    pub(crate) given_up: u64,
    pub(crate) lost: u64,
    pub(crate) healed: u64,
    pub(crate) faults: BTreeMap<String, u64>,
}

/// State of a run.
struct Soak {
    world: World,
    clients: Vec<Client>,
    random: RandomStream,
    tally: Tally,
}

/// How a period of work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Clients finish their operations.
    Awaited,
    /// The set is stopped during their operations.
    Cut,
}

#[tokio::test]
async fn set_of_200_tomes_loses_nothing_within_memory_limit() {
    let number = |name, default| variable(name).map_or(default, |text| text.parse().unwrap());
    let seed = number("FULGURITE_SOAK_SEED", u64::from(std::process::id()));
    let seconds = std::time::Duration::from_secs(number("FULGURITE_SOAK_SECONDS", 0));
    log(&format!("seed {seed}"));
    if !raise_open_files() {
        // Where everything must be available, nothing is skipped.
        assert_ne!(variable("FULGURITE_TEST_SERVERS").as_deref(), Some("required"));
        return log(&format!("skipped: it takes {OPEN_FILES} open files (ulimit -Hn)"));
    }
    let began = tokio::time::Instant::now();
    let mut soak = Soak::new(Seed::new(seed), seconds.is_zero());
    let mut set = soak.open();
    let mut resident = vec![resident_bytes()];
    for round in 0u32.. {
        set = soak.round(set, round).await;
        resident.push(resident_bytes());
        let (now, tally) = (resident[resident.len() - 1], soak.tally());
        log(&format!("round {round}, {:?}, {now} resident: {tally:?}", began.elapsed()));
        if began.elapsed() >= seconds {
            break;
        }
    }
    soak.stop(set);
    let set = soak.open();
    soak.settle(&set).await;
    resident.push(resident_bytes());
    soak.stop(set);
    let (first, last) = (resident[0], *resident.last().unwrap());
    let most = resident.iter().max().unwrap();
    log(&format!("seed {seed}, {:?}: {first}, {most} and {last} resident", began.elapsed()));
    assert!(last <= first + GROWTH_MAX, "{first} of memory became {last}");
}

impl Soak {
    fn new(seed: Seed, is_short: bool) -> Self {
        Self {
            world: World::new(seed, is_short),
            clients: (0..CLIENTS).map(|number| Client::new(seed, number)).collect(),
            random: seed.child(b"rounds").stream(),
            tally: Tally::default(),
        }
    }

    fn open(&mut self) -> Arc<TomeSet> {
        self.tally.starts += 1;
        self.world.open()
    }

    async fn round(&mut self, mut set: Arc<TomeSet>, round: u32) -> Arc<TomeSet> {
        let end = if self.coin_flip() { End::Awaited } else { End::Cut };
        self.work(&set, BROKEN, end).await;
        let names = self.stop(set);
        let mut lost = BTreeSet::new();
        if round.is_multiple_of(2) {
            lost.insert(self.lose(&names));
            if self.coin_flip() {
                lost.insert(self.lose(&names));
            }
        }
        set = self.open();
        self.rebuild(&set, &lost).await;
        if self.coin_flip() {
            // The rebuild continues across a start, perhaps with one tome less.
            self.work(&set, BROKEN, End::Cut).await;
            let names = self.stop(set);
            if lost.len() == 1 && self.coin_flip() {
                lost.insert(self.lose(&names));
            }
            set = self.open();
            self.rebuild(&set, &lost).await;
        } else {
            self.work(&set, 0, End::Awaited).await;
        }
        self.settle(&set).await;
        set
    }

    /// Rebuilds lost tomes. Idempotent.
    async fn rebuild(&self, set: &TomeSet, lost: &BTreeSet<TomeId>) {
        for tome in lost {
            set.rebuild(*tome).await.unwrap();
        }
    }

    /// Returns true half of the time.
    fn coin_flip(&mut self) -> bool {
        self.random.below(2) == 0
    }

    /// Lets all clients work for a while, with this many tomes that cannot write.
    async fn work(&mut self, set: &Arc<TomeSet>, broken: u64, end: End) {
        let (send, over) = watch::channel(false);
        let mut work = JoinSet::new();
        for client in self.clients.drain(..) {
            work.spawn(client.work(Arc::clone(set), over.clone()));
        }
        let mut broken = broken;
        for _ in 0..WORK_STEPS {
            self.world.advance(set).await;
            if self.random.below(FAULT_EVERY) == 0 {
                let every = [
                    FaultKind::BadBlock,
                    FaultKind::MessagesLost,
                    FaultKind::MessagesResume,
                    FaultKind::Slow,
                ];
                let which = usize::try_from(self.random.below(every.len() as u64)).unwrap();
                self.world.inject(every[which], &mut self.tally);
            }
            if broken > 0 && self.random.below(WORK_STEPS / BROKEN / 2) == 0 {
                broken -= 1;
                self.world.inject(FaultKind::Broken, &mut self.tally);
            }
        }
        self.count(set).await;
        send.send(true).unwrap();
        if end == End::Cut {
            set.stop();
        }
        let joined = async {
            let mut clients = Vec::new();
            while let Some(client) = work.join_next().await {
                clients.push(client.unwrap());
            }
            clients
        };
        self.clients = match end {
            End::Cut => joined.await,
            End::Awaited => self.world.wait(set, "done with pending requests", joined).await,
        };
    }

    /// Stops the set; returns the tome of each object.
    fn stop(&mut self, set: Arc<TomeSet>) -> Vec<(String, TomeId)> {
        let place = |name: String| Some((name.clone(), set.tome_of(&name).ok()?));
        let names = set.list().into_iter().filter_map(place).collect();
        set.stop();
        assert_eq!(Arc::strong_count(&set), 1, "no clone is left");
        names
    }

    /// Counts events since the set was opened.
    async fn count(&mut self, set: &TomeSet) {
        let status = set.status().await;
        for tome in status.tomes.iter().filter(|tome| !tome.alarms.is_empty()) {
            let own = self.world.flipped.iter().filter(|(flipped, _)| *flipped == tome.tome);
            let own: Vec<&String> = own.map(|(_, what)| what).collect();
            log(&format!("tome {}: {:?}, with {own:?}", tome.tome, tome.alarms));
        }
        let is_lost = |tome: &TomeStatus| self.world.lost.contains(&tome.tome);
        let given_up = status.tomes.iter().filter(|t| t.failure.is_some() && !is_lost(t));
        self.tally.given_up += given_up.count() as u64;
        self.tally.healed += status.tomes.iter().map(|tome| tome.healed).sum::<u64>();
    }

    fn lose(&mut self, names: &[(String, TomeId)]) -> TomeId {
        let tome = self.world.any_tome();
        self.world.lose(tome);
        self.clients.iter_mut().for_each(|client| client.lost(names, tome));
        self.tally.lost += 1;
        tome
    }

    /// Ends all faults: member slots have moved, all is protected, and all is read.
    async fn settle(&mut self, set: &Arc<TomeSet>) {
        self.world.mend();
        let world = &self.world;
        let is_moved = |status: &SetStatus| {
            status.moves.under_way.is_empty() && status.moves.leaving.is_empty()
        };
        world.until(set, "moved", is_moved).await;
        self.read_all(set).await;
        let mut waits = JoinSet::new();
        for (index, client) in self.clients.iter().enumerate() {
            for name in client.names(State::Local) {
                let set = Arc::clone(set);
                waits.spawn(async move { (index, set.protected(&name).await, name) });
            }
        }
        for (index, protected, name) in self.world.wait(set, "protected", waits.join_all()).await {
            protected.unwrap_or_else(|error| panic!("{name}: {error}"));
            self.clients[index].protected(&name);
        }
        let is_protected = |status: &SetStatus| {
            status.tomes.iter().all(|tome| tome.unprotected.bytes == ByteCount::ZERO)
        };
        self.world.until(set, "all protected", is_protected).await;
        self.count(set).await;
        let status = set.status().await;
        let lost: BTreeSet<TomeId> = status.moves.out.clone();
        assert_eq!(lost, self.world.lost);
        assert!(status.tomes.iter().all(|t| t.failure.is_none() || lost.contains(&t.tome)));
        let protected = self.clients.iter().flat_map(|client| client.names(State::Protected));
        assert!(
            set.list().into_iter().eq(protected.collect::<BTreeSet<_>>()),
            "exactly these names"
        );
        self.world.mark_repaired();
    }

    /// Reads every object, whether it should be there or not.
    async fn read_all(&mut self, set: &Arc<TomeSet>) {
        let names = |(index, client): (usize, &Client)| {
            client.objects.keys().map(move |name| (index, name.clone())).collect::<Vec<_>>()
        };
        let mut left: Vec<(usize, String)> =
            self.clients.iter().enumerate().flat_map(names).collect();
        for again in 0.. {
            let mut reads = JoinSet::new();
            for (index, name) in left.drain(..) {
                let set = Arc::clone(set);
                reads.spawn(async move { (index, set.get(&name).await, name) });
            }
            for (index, got, name) in self.world.wait(set, "read", reads.join_all()).await {
                match got {
                    // More bad blocks than segment parity: the group recovers them in the
                    // background.
                    Err(error) if error.kind() == ErrorKind::Corrupt || error.is_backlog() => {
                        assert!(again < READ_TRIES, "{name}: {error}");
                        left.push((index, name));
                    }
                    got => self.clients[index].settle(&name, got),
                }
                self.tally.verified += 1;
            }
            if left.is_empty() {
                return;
            }
            for _ in 0..READ_BACKOFF_STEPS {
                self.world.advance(set).await;
            }
        }
    }

    /// Returns the counters so far.
    fn tally(&self) -> Tally {
        let mut sum = self.tally.clone();
        for Client { tally, .. } in &self.clients {
            sum.puts += tally.puts;
            sum.protected += tally.protected;
            sum.gets += tally.gets;
            sum.deletes += tally.deletes;
            sum.overwrites += tally.overwrites;
            sum.refused += tally.refused;
            sum.unknown += tally.unknown;
            sum.beyond += tally.beyond;
            sum.bytes += tally.bytes;
        }
        sum
    }
}

#[expect(clippy::disallowed_methods, reason = "its caller sets how long it runs")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(clippy::print_stderr, reason = "what a failing run is found again by")]
fn log(line: &str) {
    eprintln!("{line}");
}

/// Raises the limit of open files: each store of a tome has files open, 17 of them with these.
/// Returns whether that is allowed.
fn raise_open_files() -> bool {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).unwrap();
    limit.maximum.is_none_or(|most| most >= OPEN_FILES)
}

/// Returns the resident memory of this process.
fn resident_bytes() -> ByteCount {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    ByteCount::kib(line.trim().trim_end_matches(" kB").parse().unwrap())
}

const _: () = assert!(TOMES == 200, "the test is named after it");
