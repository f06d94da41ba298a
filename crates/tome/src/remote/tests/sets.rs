//! Sets over sockets: what is put persists, whichever process stops or is cut off meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::token::FromTokenManager;
use fulgurite_units::{ByteCount, ErrorKind};
use tokio::runtime::Handle;

use super::world::{BLOCK, World, draw, noise};
use crate::remote::{PeerName, ServeOptions, TomesFile, remotes, serve};
use crate::{
    Entropy, InjectedFault, RemoteHandle, SetLink, SetOptions, TomeRequest, TomeSet, TomeStatus,
    TomesError,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_put_protected_read_and_deleted_over_sockets() {
    let world = World::served().await;
    let set = world.init().await;
    let lengths = [1, BLOCK, 5 * BLOCK + 1, 11 * BLOCK + 3];
    let name = |length: usize| format!("object of {length}");
    for length in lengths {
        world.keep(&set, &name(length), noise(&name(length), length)).await;
    }
    assert_eq!(set.list().len(), lengths.len());
    for length in lengths {
        let read = world.wait(set.get(&name(length))).await.unwrap();
        assert_eq!(read, noise(&name(length), length));
    }
    let taken = world.wait(set.put(&name(1), vec![2])).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    world.wait(set.delete(&name(1))).await.unwrap();
    let gone = set.get(&name(1)).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound, "{gone}");
    world.keep(&set, &name(1), vec![7]).await;
    assert_eq!(world.wait(set.get(&name(1))).await.unwrap(), [7]);
    let status = world.wait(set.status()).await;
    assert!(status.is_well(), "{:?}", status.reasons);
    assert!(status.tomes.iter().all(|tome| tome.unprotected.bytes == ByteCount::ZERO));
    assert_eq!(status.tomes.iter().map(|tome| tome.objects).sum::<u64>(), lengths.len() as u64);
    assert!(status.tomes.iter().any(|tome| tome.spin_ups >= 2), "disks were spun up");
    set.stop();
    let stopped = set.get(&name(1)).await.unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Unavailable, "{stopped}");
    drop(set);
    // Names come from the tomes.
    let set = TomeSet::open(world.options()).unwrap();
    world.wait(world.answer(&set)).await;
    assert_eq!(set.list().len(), lengths.len());
    assert_eq!(world.wait(set.get(&name(BLOCK))).await.unwrap(), noise(&name(BLOCK), BLOCK));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_and_remote_tomes_form_one_set() {
    let mut world = World::new(6, 3).await;
    world.serve_all().await;
    let set = world.init().await;
    for number in 0..6 {
        let name = format!("object {number}");
        world.keep(&set, &name, noise(&name, 4 * BLOCK)).await;
    }
    for name in set.list() {
        let read = world.wait(set.get(&name)).await.unwrap();
        assert_eq!(read, noise(&name, 4 * BLOCK));
    }
    // Creation takes one spin-up; more are for objects, or for deltas of others.
    let status = world.wait(set.status()).await;
    let has_spun_up = |tome: &TomeStatus| tome.spin_ups >= 2;
    assert!(status.tomes[..3].iter().any(has_spun_up), "here");
    assert!(status.tomes[3..].iter().any(has_spun_up), "elsewhere");
    assert!(status.is_well(), "{:?}", status.reasons);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_messages_are_idempotent() {
    let mut world = World::new(6, 0).await;
    world.is_duplicating = true;
    world.serve_all().await;
    let set = world.init().await;
    for number in 0..3 {
        let name = format!("object {number}");
        world.keep(&set, &name, noise(&name, 3 * BLOCK)).await;
        assert_eq!(world.wait(set.get(&name)).await.unwrap(), noise(&name, 3 * BLOCK));
    }
    let status = world.wait(set.status()).await;
    assert!(status.is_well(), "{:?}", status.reasons);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_remote_tome_catches_up() {
    let mut world = World::served().await;
    let set = world.init().await;
    let before = world.keep(&set, "before", noise("before", 3 * BLOCK)).await;
    let other = TomeId::new((before.get() + 1) % 6);
    world.stop(before).await;
    // Requests to it fail, and puts of others stay unprotected if it is in their group: of six
    // tomes in groups of five, a group has all but one.
    let away = async {
        while set.status().await.tomes[before.get() as usize].away.is_none() {
            tokio::task::yield_now().await;
        }
    };
    world.wait(away).await;
    assert!(!set.status().await.is_well());
    // The other members have it as well.
    assert_eq!(world.wait(set.get("before")).await.unwrap(), noise("before", 3 * BLOCK));
    assert_eq!(set.status().await.degraded_reads.lost, 1);
    let tome = world.wait(set.put("meanwhile", noise("meanwhile", 4 * BLOCK))).await.unwrap();
    assert_ne!(tome, before, "it goes to one that answers");
    world.stop(other).await;
    world.serve(other).await;
    world.serve(before).await;
    world.wait(world.answer(&set)).await;
    for name in ["before", "meanwhile"] {
        let protected = async {
            while let Err(error) = set.protected(name).await {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                tokio::task::yield_now().await;
            }
        };
        world.wait(protected).await;
        let length = if name == "before" { 3 } else { 4 };
        assert_eq!(world.wait(set.get(name)).await.unwrap(), noise(name, length * BLOCK));
    }
    let status = world.wait(set.status()).await;
    assert!(status.is_well(), "{:?}", status.reasons);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remote_tome_recovers_from_transient_storage_failure() {
    for fault in [InjectedFault::Sync, InjectedFault::Commit] {
        let world = World::served().await;
        let set = world.init().await;
        world.keep(&set, "before", noise("before", 3 * BLOCK)).await;
        (0..6).for_each(|tome| world.faults.inject(TomeId::new(tome), fault));
        let error = world.wait(set.put("after", noise("after", BLOCK))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}: {error}");
        assert!(!set.status().await.is_well(), "{fault:?}");
        (0..6).for_each(|tome| world.faults.mend(TomeId::new(tome)));
        let well = async {
            while !set.status().await.is_well() {
                tokio::task::yield_now().await;
            }
        };
        world.wait(well).await;
        assert_eq!(world.wait(set.get("before")).await.unwrap(), noise("before", 3 * BLOCK));
        // It was not acknowledged, and is not there: its name is free.
        assert_eq!(set.tome_of("after").unwrap_err().kind(), ErrorKind::NotFound, "{fault:?}");
        world.keep(&set, "after", noise("after", BLOCK)).await;
        assert_eq!(world.wait(set.get("after")).await.unwrap(), noise("after", BLOCK));
    }
}

/// Waits until all tomes answer except these.
async fn answer_but(set: &TomeSet, away: &[TomeId]) {
    let is_expected = |status: &TomeStatus| status.away.is_some() == away.contains(&status.tome);
    while !set.status().await.tomes.iter().all(is_expected) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_remote_tome_is_rebuilt_on_others() {
    let mut world = World::new(8, 1).await;
    world.serve_all().await;
    let new = TomeId::new(7);
    let mut seven = world.options();
    seven.remotes.remove(&new);
    let set = TomeSet::init(seven).unwrap();
    world.wait(answer_but(&set, &[])).await;
    let mut objects = BTreeMap::new();
    for number in 0..16 {
        let name = format!("object {number}");
        let tome = world.keep(&set, &name, noise(&name, (number % 5 + 1) * BLOCK - 9)).await;
        objects.insert(name, (tome, (number % 5 + 1) * BLOCK - 9));
    }
    let lost = objects.values().map(|(tome, _)| *tome).find(|tome| tome.get() > 0).unwrap();
    let here = set.rebuild(lost).await.unwrap_err();
    assert_eq!(here.kind(), ErrorKind::Invalid, "{here}");
    let refused = set.retire(lost).await.unwrap_err();
    assert!(refused.to_string().contains("in another process"), "{refused}");
    world.wait(set.scrub(lost)).await.unwrap();
    assert!(set.spin_ups().await.iter().any(|spin_up| spin_up.places[0].get() == lost.get()));
    let mut groups = 0;
    let count = |checked: crate::GroupChecked| {
        assert_eq!((checked.findings.len(), checked.failure), (0, None));
        groups += 1;
    };
    world.wait(set.verify(count)).await.unwrap();
    assert_eq!(groups, set.groups().unwrap());
    set.stop();
    drop(set);
    world.stop(lost).await;
    std::fs::remove_dir_all(world.root(lost)).unwrap();
    std::fs::remove_dir_all(world.directory(lost)).unwrap();

    let set = TomeSet::init(world.options()).unwrap();
    assert_eq!(set.added(), 1);
    world.wait(answer_but(&set, &[lost])).await;
    for (name, (tome, length)) in &objects {
        assert_eq!(set.tome_of(name).unwrap(), *tome, "it is known before its tome answers");
        let read = world.wait(set.get(name)).await.unwrap();
        assert_eq!(read, noise(name, *length), "{name}");
    }
    let planned = set.rebuild(lost).await.unwrap();
    assert!(planned.under_way.iter().any(|moving| moving.planned.to.tome == new), "{planned:?}");
    let moved = async {
        while !set.status().await.moves.out.contains(&lost) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    world.wait(moved).await;
    let status = world.wait(set.status()).await;
    assert!(status.is_well(), "{:?}", status.reasons);
    for (name, (_, length)) in &objects {
        assert_ne!(set.tome_of(name).unwrap(), lost);
        assert_eq!(world.wait(set.get(name)).await.unwrap(), noise(name, *length), "{name}");
    }
    let none = set.get("nothing").await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound, "no tome is waited for: {none}");
    world.keep(&set, "after", noise("after", BLOCK)).await;
    set.stop();
    drop(set);
    let set = TomeSet::open(world.options()).unwrap();
    world.wait(answer_but(&set, &[lost])).await;
    assert_eq!(world.wait(set.status()).await.reasons, [] as [&str; 0]);
    for (name, (_, length)) in &objects {
        assert_eq!(world.wait(set.get(name)).await.unwrap(), noise(name, *length), "{name}");
    }
    set.stop();
}

/// A tome that answers removals only when it is stopped.
#[derive(Debug)]
struct SilentTome {
    inner: Arc<dyn RemoteHandle>,
    held: Arc<Mutex<Vec<TomeRequest>>>,
}

impl RemoteHandle for SilentTome {
    fn begin(&self, set_link: SetLink) {
        self.inner.begin(set_link);
    }

    fn send_request(&self, request: TomeRequest) {
        if matches!(request, TomeRequest::Delete { .. }) && self.away().is_none() {
            self.held.lock().unwrap().push(request);
        } else {
            self.inner.send_request(request);
        }
    }

    fn send(&self, from: TomeId, message: Message) {
        self.inner.send(from, message);
    }

    fn send_to_holder(&self, message: FromTokenManager) {
        self.inner.send_to_holder(message);
    }

    fn away(&self) -> Option<String> {
        self.inner.away()
    }

    fn stop(&self) {
        self.held.lock().unwrap().drain(..).for_each(|held| held.refuse(TomesError::Stopped));
        self.inner.stop();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_stops_while_a_remote_tome_does_not_answer() {
    let mut world = World::served().await;
    let held = Arc::<Mutex<Vec<TomeRequest>>>::default();
    let mut options = world.options();
    for inner in options.remotes.values_mut() {
        let silent = SilentTome { inner: Arc::clone(inner), held: Arc::clone(&held) };
        *inner = Arc::new(silent);
    }
    let set = TomeSet::init(options).unwrap();
    world.wait(world.answer(&set)).await;
    let tome = world.keep(&set, "gone", noise("gone", BLOCK)).await;
    world.stop(tome).await;
    world.wait(answer_but(&set, &[tome])).await;
    // The tome gets the removal when it answers again.
    world.wait(set.delete("gone")).await.unwrap();
    world.serve(tome).await;
    let is_sent = async {
        while held.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    world.wait(is_sent).await;
    let stop = tokio::task::spawn_blocking(move || set.stop());
    tokio::time::timeout(std::time::Duration::from_secs(20), stop).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_recovers_from_network_partition() {
    let world = World::served().await;
    let set = world.init().await;
    let tome = world.wait(set.put("cut", noise("cut", 5 * BLOCK))).await.unwrap();
    // All others are cut off: nothing can be protected.
    let others: Vec<_> = world.proxies.iter().filter(|(other, _)| **other != tome).collect();
    others.iter().for_each(|(_, proxy)| proxy.cut());
    let others_away = async {
        while set.status().await.tomes.iter().filter(|tome| tome.away.is_some()).count() < 5 {
            tokio::task::yield_now().await;
        }
    };
    world.wait(others_away).await;
    for _ in 0..200 {
        world.clock.advance(fulgurite_units::Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    others.iter().for_each(|(_, proxy)| proxy.heal());
    world.wait(world.answer(&set)).await;
    let protected = async {
        while let Err(error) = set.protected("cut").await {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            tokio::task::yield_now().await;
        }
    };
    world.wait(protected).await;
    world.keep(&set, "after", noise("after", BLOCK)).await;
    assert_eq!(world.wait(set.get("cut")).await.unwrap(), noise("cut", 5 * BLOCK));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unanswered_put_reserves_its_name_until_outcome_is_known() {
    let world = World::served().await;
    let set = world.init().await;
    {
        let mut put = std::pin::pin!(set.put("cut", noise("cut", 2 * BLOCK)));
        // It waits for a disk, since the clock stands still.
        let begun = async {
            tokio::select! {
                done = &mut put => panic!("{done:?}"),
                () = begun(&world) => {}
            }
        };
        begun.await;
        world.proxies.values().for_each(super::world::Proxy::cut);
        let unknown = put.await.unwrap_err();
        assert!(matches!(unknown, TomesError::Unanswered { .. }), "{unknown}");
    }
    let taken = set.put("cut", vec![1]).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict, "the outcome is unknown");
    world.proxies.values().for_each(super::world::Proxy::heal);
    world.wait(world.answer(&set)).await;
    let there = async {
        while set.get("cut").await.is_err() {
            tokio::task::yield_now().await;
        }
        set.get("cut").await.unwrap()
    };
    assert_eq!(world.wait(there).await, noise("cut", 2 * BLOCK), "it continued");
}

/// Returns when a tome has received a put.
async fn begun(world: &World) {
    loop {
        for server in world.servers.values() {
            let Some(tome) = server.tome() else { continue };
            if tome.puts_under_way() > 0 {
                return;
            }
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tome_without_metadata_store_is_not_recreated() {
    let mut world = World::served().await;
    let set = world.init().await;
    let tome = world.keep(&set, "first", noise("first", BLOCK)).await;
    world.stop(tome).await;
    std::fs::remove_dir_all(world.directory(tome)).unwrap();
    drop(set);
    world.serve(tome).await;
    // Creating the set again does not create it again: it was created before.
    let set = TomeSet::init(world.options()).unwrap();
    let reported = async {
        loop {
            let status = set.status().await;
            let away: Vec<_> = status.tomes.iter().filter_map(|t| t.away.as_deref()).collect();
            if let [why] = away[..]
                && why.contains("it is missing")
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    world.wait(reported).await;
    assert!(!world.directory(tome).join("tome-0000").join("awake").exists());
    let unknown = set.get("second").await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unavailable, "it may be at the tome that is away");
    let read = world.wait(set.get("first")).await.unwrap();
    assert_eq!(read, noise("first", BLOCK), "read from its group");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_one_tomes_file() {
    let world = World::new(6, 0).await;
    let (mut listeners, mut addresses) = (Vec::new(), BTreeMap::new());
    for tome in (0..6).map(TomeId::new) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        addresses.insert(tome, listener.local_addr().unwrap());
        listeners.push(listener);
    }
    let file = |name| TomesFile::read(&world.file(name, &addresses)).unwrap();
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let mut served = Vec::new();
    for (tome, listener) in (0..6).map(TomeId::new).zip(listeners) {
        let (file, mut stopping) = (file(PeerName::Tome(tome)), stopping.clone());
        let options = ServeOptions {
            tome,
            listener: Some(listener),
            directory: world.directory(tome),
            root: world.root(tome),
            backend: Arc::clone(&world.disks) as _,
            clock: world.clock.clock(),
            entropy: Entropy::new(draw),
        };
        served.push(tokio::spawn(async move {
            let gone = async move {
                stopping.wait_for(|is_stopping| *is_stopping).await.unwrap();
            };
            serve(&file, options, Box::pin(gone)).await
        }));
    }
    let file = file(PeerName::TokenManager);
    let remotes = remotes(&file, &world.clock.clock(), &Handle::current()).unwrap();
    let set = TomeSet::init(SetOptions { remotes, ..world.options() }).unwrap();
    world.wait(world.answer(&set)).await;
    world.keep(&set, "first", noise("first", 2 * BLOCK)).await;
    assert_eq!(world.wait(set.get("first")).await.unwrap(), noise("first", 2 * BLOCK));
    stop.send(true).unwrap();
    for served in served {
        served.await.unwrap().unwrap();
    }
    assert_eq!(set.get("first").await.unwrap_err().kind(), ErrorKind::Unavailable);
}
