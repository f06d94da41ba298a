//! A set of tomes whose process is killed at every step: what was acknowledged is there after a
//! restart, what was acknowledged as protected survives without two tomes' directories, and what
//! was not acknowledged is either whole or absent.
//!
//! It runs itself as the process that is killed, so it has a `main` of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "some items are used only there")]
#[path = "it/shelf.rs"]
mod shelf;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fulgurite_tier::conformance::{CrashSuite, Output, Victim};
use fulgurite_tome::{FAIL_POINTS, FailPoints};
use fulgurite_tome::{SetOptions, TomeSet, UnpluggedTome};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{ByteCount, ErrorKind};

use shelf::{BLOCK, Shelf, lose, metadata, noise, pull, recovered, root, tomes};

const NAMES: [&str; 4] = ["0", "1", "2", "3"];

/// Points from here on are passed when member slots move.
const MOVES_FROM: &str = "tomes-moves-planned";

/// This point is passed when an object of a lost tome is removed.
const REMOVAL_KEPT: &str = "tomes-removal-kept";
/// And these when a metadata store is rebuilt.
const INVENTORY: [&str; 3] =
    ["tomes-inventoried", "tomes-metadata-rebuilt", "tomes-metadata-recorded"];

const LENGTH: usize = 2 * BLOCK + 7;

fn main() {
    let suite = CrashSuite {
        points: &FAIL_POINTS,
        passages: &[0, 7],
        parallel: 3,
        work: |victim| run(be_killed(&Shelf::in_folder(&victim.folder), victim)),
        check: |folder, output| {
            let shelf = Shelf::in_folder(folder);
            without_two(&shelf, output);
            run(check_set(&shelf, output));
        },
    };
    suite.main();
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(future)
}

/// Puts, protects and deletes, loses a tome and rebuilds it, and prints what was acknowledged.
async fn be_killed(shelf: &Shelf, victim: &Victim) {
    let (point, fail_points) = (victim.point.as_str(), || victim.fail_points(&FAIL_POINTS));
    let set = TomeSet::init(SetOptions { fail: fail_points(), ..shelf.options() }).unwrap();
    let put = async |name: &str| {
        victim.put(name, shelf.wait(set.put(name, noise(name, LENGTH)))).await;
    };
    for name in ["0", "1"] {
        put(name).await;
        protect(shelf, &set, victim, name).await;
    }
    shelf.settle(&set).await;
    victim.delete("1", shelf.wait(set.delete("1"))).await;
    put("2").await;
    put("3").await;
    protect(shelf, &set, victim, "2").await;
    protect(shelf, &set, victim, "3").await;
    let lost = set.tome_of("3").unwrap();
    let unknown = set.tome_of("2").unwrap();
    set.stop();
    drop(set);
    victim.print(&format!("unknown {unknown}"));
    remove(&metadata(&shelf.folder, unknown));
    // Other points were passed above.
    let armed_if = |is_armed: bool| match is_armed {
        true => fail_points(),
        false => FailPoints::unarmed(&FAIL_POINTS),
    };
    let is_inventory = INVENTORY.contains(&point);
    let set =
        TomeSet::open(SetOptions { fail: armed_if(is_inventory), ..shelf.options() }).unwrap();
    inventory(shelf, &set, unknown).await;
    set.stop();
    drop(set);
    let set =
        TomeSet::open(SetOptions { fail: armed_if(is_inventory), ..shelf.options() }).unwrap();
    assert_eq!(set.rebuilt().len(), 1);
    shelf.settle(&set).await;
    set.stop();
    drop(set);
    victim.print(&format!("rebuilt {unknown}"));
    victim.print(&format!("lost {lost}"));
    lose(&shelf.folder, lost);
    shelf.add();
    let is_of_moves =
        FAIL_POINTS.iter().skip_while(|name| **name != MOVES_FROM).any(|name| *name == point);
    let set = TomeSet::init(SetOptions { fail: armed_if(is_of_moves), ..shelf.options() }).unwrap();
    if point == REMOVAL_KEPT {
        victim.delete("3", set.delete("3")).await;
    }
    set.rebuild(lost).await.unwrap();
    shelf.moved(&set).await;
    set.stop();
    drop(set);
    let set = shelf.open();
    assert_eq!(shelf.wait(set.get("0")).await.unwrap(), noise("0", LENGTH));
}

/// Waits until an object is protected, and prints that, with its tome.
async fn protect(shelf: &Shelf, set: &TomeSet, victim: &Victim, name: &str) {
    let tome = set.tome_of(name).unwrap();
    shelf.wait(set.protected(name)).await.unwrap();
    victim.print(&format!("protected {name} {tome}"));
}

/// Runs the inventory of a lost tome's disk.
async fn inventory(shelf: &Shelf, set: &TomeSet, tome: TomeId) {
    set.inventory(tome).unwrap();
    let whole = async {
        while !set.inventory_progress(tome).unwrap().is_whole() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    shelf.wait(whole).await;
}

/// Returns the tome whose metadata store was removed, if it was not rebuilt.
fn unknown_of(output: &Output) -> Option<TomeId> {
    let unknown = output.after("unknown ").next()?;
    output.after("rebuilt ").next().is_none().then(|| TomeId::new(unknown.parse().unwrap()))
}

/// Checks that objects acknowledged as protected are recovered without their tome and any other.
fn without_two(shelf: &Shelf, output: &Output) {
    let context = &output.context;
    let protected: Vec<(&str, TomeId)> = output
        .after("protected ")
        .map(|line| line.split_once(' ').unwrap())
        .filter(|(name, _)| !output.has(&format!("deleting {name}")))
        .map(|(name, tome)| (name, TomeId::new(tome.parse().unwrap())))
        .collect();
    if protected.is_empty() || lost_of(output).is_some() || unknown_of(output).is_some() {
        return;
    }
    let mut all: BTreeMap<TomeId, UnpluggedTome> =
        tomes().map(|tome| (tome, pull(&shelf.folder, tome))).collect();
    for (name, tome) in protected {
        let object = all[&tome].metadata().object(name).unwrap().clone();
        for other in tomes().filter(|other| *other != tome) {
            let lost = BTreeSet::from([tome, other]);
            let bytes = recovered(&mut all, &lost, tome, &object);
            assert_eq!(bytes, noise(name, LENGTH), "{context}: {name} without {lost:?}");
        }
    }
}

/// Returns the tome whose directories were removed.
fn lost_of(output: &Output) -> Option<TomeId> {
    Some(TomeId::new(output.after("lost ").next()?.parse().unwrap()))
}

async fn check_set(shelf: &Shelf, output: &Output) {
    let context = &output.context;
    let lost = lost_of(output);
    if let Some(lost) = lost {
        shelf.add();
        // It may have been killed before it removed them.
        remove(&root(&shelf.folder, lost));
        remove(&metadata(&shelf.folder, lost));
    }
    // An interrupted step continues.
    let mut set = shelf.init();
    let unknown = unknown_of(output);
    if let Some(tome) = unknown.filter(|tome| set.unknown().contains(tome)) {
        // It was killed before the store was rebuilt, so the inventory is requested again.
        inventory(shelf, &set, tome).await;
        set.stop();
        drop(set);
        set = shelf.init();
        assert_eq!(set.rebuilt().len(), 1, "{context}");
    }
    if let Some(lost) = lost {
        set.rebuild(lost).await.unwrap();
        let status = shelf.moved(&set).await;
        assert_eq!(status.moves.out, BTreeSet::from([lost]), "{context}");
    }
    for name in NAMES {
        let found = match shelf.wait(set.get(name)).await {
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{context}: {name}: {error}"),
        };
        output.check(name, found.as_deref(), &noise(name, LENGTH));
    }
    shelf.wait(set.put("last", noise("last", LENGTH))).await.unwrap();
    for name in set.list() {
        shelf.wait(set.protected(&name)).await.unwrap();
    }
    shelf.settle(&set).await;
    let status = set.status().await;
    assert!(status.is_well(), "{context}: {:?}", status.reasons);
    let unprotected = status.tomes.iter().map(|tome| tome.unprotected.bytes).sum();
    assert_eq!(ByteCount::ZERO, unprotected, "{context}: nothing is forgotten");
}

fn remove(path: &Path) {
    if path.exists() {
        std::fs::remove_dir_all(path).unwrap();
    }
}
