//! Small objects in stripes, over simulated sites that fail. Time advances only while all tasks
//! wait, so a run is determined by its seed.
//!
//! ```text
//! clients: put, put on conditions, delete, get, give up in the middle --> history --> both checks
//! sites:   late, cut off, down, mute                 maintainer: hints, collection
//! then no faults --> a single repair makes all whole --> all deleted --> nothing is left
//! ```

mod sites;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fulgurite_geo::objects::{GeoOptions, GeoStore, MaintenanceReport, SiteEntry, SiteMap};
use fulgurite_geo::stores::{Entropy, Opener};
use fulgurite_units::{Clock, Instant, RandomStream, Seed, UnixTime};

use crate::history::{Call, Moment, Operation, Precondition, Reply, versions, windows};
use crate::real::client::execute_call;
use sites::{Simulated, SiteFaults, State};

const CLIENTS: u64 = 3;
/// Concurrent calls of one client: enough to share stripes.
const AT_ONCE: u64 = 4;
/// Lives of a client: each ends with its death.
const LIVES: u64 = 3;
const KEYS: u64 = 6;
const FAULTS_MAX: u64 = 1000;
/// Wall clock time at the start of a run, in milliseconds: later than the dates that stores in
/// memory give to their blobs.
const BEGINS_MS: u64 = 4_000_000_000_000;
const DAY_MS: u64 = 86_400_000;

/// Returns the seeds to run.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let from = number("FULGURITE_TEST_STRIPES_FROM").unwrap_or(0);
    from..from + number("FULGURITE_TEST_STRIPES_SEEDS").unwrap_or(40)
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    calls: usize,
    unknown: usize,
    stripes: u64,
    settled: u64,
    rebuilt: u64,
    hash: u64,
}

/// Shared state of a run.
struct Run {
    sites: Simulated,
    random: Mutex<RandomStream>,
    began: tokio::time::Instant,
    history: Mutex<Vec<Operation>>,
    /// Number of clients still working.
    working: AtomicU64,
    /// Id of the next value.
    tags: AtomicU64,
}

impl Run {
    fn new(seed: u64) -> Arc<Self> {
        let random = |what: &[u8]| Seed::new(seed).child(what).stream();
        let mut map = String::from(
            "name = 'test'\ndata = 2\nparity = 1\nround = '300ms'\npatience = '3s'\nlease = '4s'\n\
             grace = '10s'\nbatch = '20ms'\nchunk = '64KiB'\n",
        );
        for site in ["a", "b", "c"] {
            map += &format!("[[sites]]\nname = '{site}'\n");
            map += &format!("table = 'mem://{site}'\nblobs = 'mem://{site}'\n");
        }
        let sites = Simulated {
            killed: Arc::default(),
            opener: Arc::new(Opener::new(entropy(random(b"tags")), [])),
            faults: Arc::new(SiteFaults::new(random(b"weather"))),
            map: SiteMap::parse(&map).unwrap(),
        };
        let (random, began) = (Mutex::new(random(b"run")), tokio::time::Instant::now());
        let (working, tags) = (AtomicU64::new(CLIENTS), AtomicU64::new(1));
        Arc::new(Self { sites, random, began, history: Mutex::default(), working, tags })
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.lock().unwrap().below(bound)
    }

    fn now(&self) -> Moment {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap()
    }

    /// Returns the options of a program whose clock is some days ahead.
    fn options(&self, sites: &Simulated, days: u64) -> GeoOptions {
        let (began, stream) = (self.began, Seed::new(self.below(u64::MAX)).stream());
        let wall = move || {
            let passed = u64::try_from(began.elapsed().as_millis()).unwrap();
            UnixTime::from_millis(BEGINS_MS + days * DAY_MS + passed)
        };
        GeoOptions {
            cache: None,
            orphan_age: fulgurite_units::Duration::from_secs(86_400),
            map: self.sites.map.clone(),
            file: None,
            near: None,
            clock: Clock::new(wall, || Instant::from_nanos(0)),
            entropy: entropy(stream),
            opener: Arc::new(sites.clone()),
        }
    }

    /// Returns the last version of an object that any client saw, and its value.
    fn seen(&self, key: u64) -> Option<(u64, u64)> {
        let history = self.history.lock().unwrap();
        let mut calls = history.iter().rev().filter(|one| one.key == key);
        calls.find_map(|one| match (one.call, one.reply) {
            (Call::Put(tag, _), Reply::Wrote(version)) => Some((version, tag)),
            (_, Reply::Read(tag, version)) => Some((version, tag)),
            _ => None,
        })
    }

    async fn random_sleep(&self, least_ms: u64, more_ms: u64) {
        let ms = least_ms + self.below(more_ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Runs a call and records its answer; unknown if the client gives up or is killed.
    async fn call(&self, store: &GeoStore, ids: (u64, u64), call: Call, end: impl Future) {
        let ((client, key), called) = (ids, self.now());
        let reply = tokio::select! {
            biased;
            _ = end => Reply::Unknown,
            reply = execute_call(store, key, call) => reply,
        };
        let returned = if reply == Reply::Unknown { Moment::MAX } else { self.now() };
        let one = Operation { client, key, call, reply, called, returned };
        self.history.lock().unwrap().push(one);
    }
}

/// Returns a source of random bytes from a stream.
fn entropy(random: RandomStream) -> Entropy {
    let random = Mutex::new(random);
    Entropy::new(move || {
        let mut bytes = [0; 16];
        random.lock().unwrap().fill(&mut bytes);
        bytes
    })
}

/// Runs a client: it is killed after each life, and restarts after all but the last.
async fn run_client(run: Arc<Run>, client: u64) {
    for _ in 0..LIVES {
        let sites = run.sites.program();
        let store = loop {
            match GeoStore::open(run.options(&sites, 0)).await {
                Ok(store) => break store,
                // Too few sites answer at the moment.
                Err(_) => run.random_sleep(100, 1).await,
            }
        };
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| tokio::spawn(work(Arc::clone(&run), store.clone(), sites.clone(), client)))
            .collect();
        run.random_sleep(300, 2000).await;
        sites.killed.kill();
        futures::future::try_join_all(workers).await.unwrap();
    }
    run.working.fetch_sub(1, Ordering::Relaxed);
}

async fn work(run: Arc<Run>, store: GeoStore, sites: Simulated, client: u64) {
    while !sites.killed.is_set() {
        let (key, tag) = (run.below(KEYS), run.tags.fetch_add(1, Ordering::Relaxed));
        let call = match (run.below(100), run.seen(key)) {
            (0..35, _) => Call::Put(tag, Precondition::Always),
            (35..45, _) => Call::Put(tag, Precondition::Absent),
            (45..55, Some((version, value))) => Call::Put(tag, Precondition::Is(version, value)),
            (55..65, _) => Call::Delete,
            _ => Call::Get,
        };
        // Some calls are abandoned in the middle.
        let limit_ms = if run.below(12) == 0 { run.below(400) } else { 1 << 40 };
        let end = async {
            tokio::select! {
                biased;
                () = sites.killed.wait() => {}
                () = tokio::time::sleep(Duration::from_millis(limit_ms)) => {}
            }
        };
        run.call(&store, (client, key), call, end).await;
        run.random_sleep(0, 120).await;
    }
}

/// Injects one fault after the other, for as long as clients work.
async fn inject_faults(run: &Run) {
    for _ in 0..FAULTS_MAX {
        if run.working.load(Ordering::Relaxed) == 0 {
            return;
        }
        run.random_sleep(100, 500).await;
        let state = match run.below(4) {
            // Rounds last 300 ms.
            0 => State { late_ms: 100 + run.below(400), ..State::default() },
            1 => State { is_cut: true, ..State::default() },
            2 => State { is_mute: true, ..State::default() },
            _ => State { is_down: true, ..State::default() },
        };
        let first = usize::try_from(run.below(3)).unwrap();
        let count = if run.below(4) == 0 { 2 } else { 1 };
        let failed: Vec<usize> = (0..count).map(|more| (first + more) % 3).collect();
        failed.iter().for_each(|site| run.sites.faults.set(*site, state));
        run.random_sleep(200, 1200).await;
        failed.iter().for_each(|site| run.sites.faults.set(*site, State::default()));
    }
}

/// Runs a seed in simulated time.
fn run(seed: u64) -> Totals {
    let mut time = tokio::runtime::Builder::new_current_thread();
    let time = time.enable_time().start_paused(true).build().unwrap();
    time.block_on(run_in_time(seed))
}

async fn run_in_time(seed: u64) -> Totals {
    let run = Run::new(seed);
    let maintainer = GeoStore::init(run.options(&run.sites, 0)).await.unwrap();
    maintainer.spawn_maintenance(
        fulgurite_units::Duration::from_secs(1),
        fulgurite_units::Duration::from_secs(3),
    );
    let clients = (0..CLIENTS).map(|client| tokio::spawn(run_client(Arc::clone(&run), client)));
    let clients: Vec<_> = clients.collect();
    inject_faults(&run).await;
    futures::future::try_join_all(clients).await.unwrap();
    drop(maintainer);
    // Operations in flight still end.
    tokio::time::sleep(Duration::from_secs(120)).await;
    let healed = heal_in_one_pass(&run).await;
    let history = run.history.lock().unwrap().clone();
    versions::check(&history).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    windows::check(&history).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    delete_everything(&run).await;
    let mut totals = Totals {
        calls: history.len(),
        unknown: history.iter().filter(|one| one.reply == Reply::Unknown).count(),
        stripes: healed.objects.saturating_sub(KEYS),
        settled: healed.settled,
        rebuilt: healed.rebuilt,
        hash: 0,
    };
    for one in &history {
        // Without the times, which contain fractions of a millisecond of the machine's clock.
        let text = format!("{:?}", (one.client, one.key, one.call, one.reply));
        totals.hash = text.bytes().fold(totals.hash, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    }
    totals
}

fn never() -> impl Future {
    std::future::pending::<()>()
}

/// Without further faults, a single repair settles, rebuilds and makes obsolete whatever it must,
/// and reports that all is whole. Then every object is read.
async fn heal_in_one_pass(run: &Run) -> MaintenanceReport {
    let store = GeoStore::open(run.options(&run.sites, 0)).await.unwrap();
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!((&report.lost, &report.problems), (&vec![], &vec![]), "{report:?}");
    assert_eq!((report.whole, report.unsure, report.missing), (report.objects, 0, 0), "{report:?}");
    let hints = store.process_hints().await.unwrap();
    assert_eq!(hints.whole, hints.objects, "{hints:?}");
    assert_eq!(store.process_hints().await.unwrap().objects, 0);
    for key in 0..KEYS {
        run.call(&store, (CLIENTS, key), Call::Get, never()).await;
        let reply = run.history.lock().unwrap().last().map(|one| one.reply);
        assert!(matches!(reply, Some(Reply::Read(..) | Reply::Nothing)), "{key}: {reply:?}");
    }
    report
}

/// Deletes and collects everything: no fragment of objects or stripes is left.
async fn delete_everything(run: &Run) {
    let store = GeoStore::open(run.options(&run.sites, 0)).await.unwrap();
    for key in 0..KEYS {
        run.call(&store, (CLIENTS, key), Call::Delete, never()).await;
    }
    let mut last = Vec::new();
    for day in 1..=6 {
        let store = GeoStore::open(run.options(&run.sites, day)).await.unwrap();
        let hour = fulgurite_units::Duration::from_secs(3600);
        last =
            vec![store.collect(&|_| {}).await.unwrap(), store.sweep(hour, &|_| {}).await.unwrap()];
        assert!(last.iter().all(|report| report.problems.is_empty()), "{last:?}");
        if run.sites.fragments().await == 0 {
            return;
        }
    }
    panic!("{} fragments are left: {last:?}", run.sites.fragments().await);
}

#[test]
fn stripe_histories_are_correct_and_heal_at_once() {
    let mut total = Totals::default();
    for seed in seeds() {
        println!("seed {seed}");
        let one = run(seed);
        total.calls += one.calls;
        total.unknown += one.unknown;
        total.stripes += one.stripes;
        total.settled += one.settled;
        total.rebuilt += one.rebuilt;
    }
    println!("{total:?}");
    // A run without any failures proves nothing.
    if seeds().count() >= 20 {
        let often = seeds().count();
        assert!(total.unknown > often && total.stripes > often as u64, "{total:?}");
        assert!(total.settled > 0 && total.rebuilt > 0, "{total:?}");
    }
}

#[test]
fn same_seed_gives_same_run() {
    assert_eq!(run(3), run(3));
    assert_ne!(run(3).hash, run(4).hash);
}

/// Puts some objects, small ones in stripes; one site is slow from then on.
async fn with_a_late_site(state: State) -> (Arc<Run>, GeoStore) {
    let run = Run::new(1);
    let store = GeoStore::init(run.options(&run.sites, 0)).await.unwrap();
    let puts = (0..KEYS)
        .map(|key| execute_call(&store, key, Call::Put(2 * key + 1, Precondition::Always)));
    let reply = futures::future::join_all(puts).await;
    assert!(reply.iter().all(|reply| matches!(reply, Reply::Wrote(_))), "{reply:?}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    run.sites.faults.set(2, state);
    (run, store)
}

#[tokio::test(start_paused = true)]
async fn objects_not_read_in_time_are_retried() {
    let (run, store) = with_a_late_site(State { rows_late_ms: 400, ..State::default() }).await;
    // All objects are checked at once, and no row of the site arrives within a round.
    let (report, ()) = futures::future::join(store.heal(&|_| {}), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        run.sites.faults.set(2, State::default());
    })
    .await;
    let report = report.unwrap();
    assert!(report.objects > KEYS, "{report:?}");
    assert_eq!((report.whole, report.unsure), (report.objects, 0), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn unread_objects_are_not_reported_incomplete() {
    let (run, store) = with_a_late_site(State { rows_late_ms: 400, ..State::default() }).await;
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!((report.whole, report.missing, report.unsure), (0, 0, report.objects), "{report:?}");
    run.sites.faults.set(2, State::default());
    tokio::time::sleep(Duration::from_secs(200)).await;
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!((report.whole, report.unsure), (report.objects, 0), "{report:?}");
}

/// Kills a client once one site of three has its put; then all sites work.
async fn kill_after_first_site(run: &Run, key: u64) {
    let down = State { is_down: true, ..State::default() };
    let sites = run.sites.program();
    let client = GeoStore::open(run.options(&sites, 0)).await.unwrap();
    [1, 2].into_iter().for_each(|site| run.sites.faults.set(site, down));
    let end = tokio::time::sleep(Duration::from_millis(200));
    run.call(&client, (0, key), Call::Put(4, Precondition::Always), end).await;
    sites.killed.kill();
    [1, 2].into_iter().for_each(|site| run.sites.faults.set(site, State::default()));
}

fn undecided(store: &GeoStore) -> (u64, u64) {
    let snapshot = store.snapshot();
    (snapshot.undecided, snapshot.oldest_undecided_seconds)
}

#[tokio::test(start_paused = true)]
async fn undecided_version_is_reported_until_decided() {
    let run = Run::new(2);
    let store = GeoStore::init(run.options(&run.sites, 0)).await.unwrap();
    kill_after_first_site(&run, 0).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(undecided(&store), (0, 0), "the version was not seen yet");
    let report = store.undecided_report().await.unwrap();
    assert_eq!((report.versions, &*report.objects), (1, &["object/0".to_owned()][..]));
    assert_eq!((report.oldest_seconds, undecided(&store)), (100, (1, 100)), "{report:?}");
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(undecided(&store), (1, 150));
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!(
        (report.settled, report.undecided, report.whole),
        (1, 0, report.objects),
        "{report:?}"
    );
    assert_eq!(undecided(&store), (0, 0));
    assert_eq!(store.undecided_report().await.unwrap().versions, 0);
}

#[tokio::test(start_paused = true)]
async fn background_maintenance_settles_undecided_versions() {
    let run = Run::new(2);
    let store = GeoStore::init(run.options(&run.sites, 0)).await.unwrap();
    kill_after_first_site(&run, 0).await;
    assert_eq!(store.undecided_report().await.unwrap().versions, 1);
    let seconds = fulgurite_units::Duration::from_secs;
    store.spawn_maintenance(seconds(1), seconds(3600));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(undecided(&store).0, 1, "its proposer may still be running");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((undecided(&store), store.undecided_report().await.unwrap().versions), ((0, 0), 0));
}

#[tokio::test(start_paused = true)]
async fn objects_put_during_replacement_have_voting_rows() {
    let run = Run::new(3);
    let store = GeoStore::init(run.options(&run.sites, 0)).await.unwrap();
    let client = GeoStore::open(run.options(&run.sites.program(), 0)).await.unwrap();
    let place = Some("mem://another".to_owned());
    let (name, rebuilding) = ("c".to_owned(), false);
    let entry = SiteEntry { name, table: place.clone(), blobs: place, rebuilding };
    let (replaced, count) = futures::future::join(
        async {
            let report = store.replace_site("c", entry, &|_, _| {}).await.unwrap();
            run.working.store(0, Ordering::Relaxed);
            report
        },
        async {
            let mut count = 0;
            while run.working.load(Ordering::Relaxed) > 0 {
                // Each is a new object, in a new stripe.
                let reply =
                    execute_call(&client, count, Call::Put(4 * count + 1, Precondition::Always))
                        .await;
                assert!(matches!(reply, Reply::Wrote(_)), "{reply:?}");
                run.random_sleep(100, 100).await;
                count += 1;
            }
            count
        },
    )
    .await;
    assert_eq!((replaced.problems, replaced.lost), (vec![], vec![]));
    assert!(count > 20, "{count}");
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!((report.whole, report.unsure), (report.objects, 0), "{report:?}");
    // The site votes on all of them: any other may fail now.
    run.sites.faults.set(0, State { is_down: true, ..State::default() });
    for key in 0..count {
        let reply = execute_call(&store, key, Call::Get).await;
        assert!(matches!(reply, Reply::Read(..)), "{key}: {reply:?}");
    }
}
