//! A set of tomes whose process is killed at every step: what was acknowledged is there after a
//! restart, what was acknowledged as protected survives without two tomes' directories, and what
//! was not acknowledged is either whole or absent.
//!
//! It runs itself as the process that is killed, so it has a `main` of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "it/shelf.rs"]
mod shelf;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use fulgurite_tome::{FAIL_POINTS, FailPoints};
use fulgurite_tome::{SetOptions, TomeSet, UnpluggedTome};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{ByteCount, ErrorKind};

use shelf::{BLOCK, Shelf, lose, metadata, noise, pull, recovered, root, tomes};

/// First argument of the process that is killed, followed by the folder, the point and its count.
const VICTIM: &str = "victim";

/// Passages of a point at which a process is killed.
const PASSAGES: [u32; 2] = [0, 7];

/// Processes that run in parallel.
const PARALLEL: usize = 3;

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
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).map(String::as_str) == Some(VICTIM) {
        let count = arguments[4].parse().unwrap();
        run(run_victim(&Shelf::in_folder(Path::new(&arguments[2])), (&arguments[3], count)));
        return;
    }
    // As a test harness does: a filter for another name selects none of these.
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    if filter.is_some_and(|filter| !"crash".contains(filter.as_str())) {
        return;
    }
    // Most of their time is waiting.
    let all = || FAIL_POINTS.into_iter().flat_map(|point| PASSAGES.map(|count| (point, count)));
    let killed = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for first in 0..PARALLEL {
            let killed = &killed;
            scope.spawn(move || {
                for (point, count) in all().skip(first).step_by(PARALLEL) {
                    if check(point, count) {
                        killed.lock().unwrap().insert(point);
                    }
                }
            });
        }
    });
    assert_eq!(killed.into_inner().unwrap(), BTreeSet::from(FAIL_POINTS), "every point was passed");
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(future)
}

/// Has a process killed at a passage of a point and checks what it left. Returns whether it was
/// killed.
fn check(point: &str, count: u32) -> bool {
    let shelf = Shelf::new();
    let victim = Command::new(std::env::current_exe().unwrap())
        .args([VICTIM, shelf.folder.to_str().unwrap(), point, &count.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8(victim.stdout).unwrap();
    let output: Vec<&str> = text.lines().collect();
    let was_killed = victim.status.code().is_none();
    let error = String::from_utf8_lossy(&victim.stderr);
    assert!(was_killed || output.last() == Some(&"done"), "{point}: {} {error}", victim.status);
    let context = format!("{point}, passage {count}");
    without_two(&shelf, &output, &context);
    run(check_set(&shelf, &output, &context));
    was_killed
}

/// Puts, protects and deletes, loses a tome and rebuilds it, and prints what was acknowledged.
async fn run_victim(shelf: &Shelf, (point, count): (&str, u32)) {
    let fail = FailPoints::armed(&FAIL_POINTS, point, count).unwrap();
    let set = TomeSet::init(SetOptions { fail, ..shelf.options() }).unwrap();
    let print = |what: &str| {
        let mut out = std::io::stdout();
        out.write_all(format!("{what}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    };
    for name in ["0", "1"] {
        let tome = shelf.wait(set.put(name, noise(name, LENGTH))).await.unwrap();
        print(&format!("put {name}"));
        shelf.wait(set.protected(name)).await.unwrap();
        print(&format!("protected {name} {tome}"));
    }
    shelf.settle(&set).await;
    print("deleting 1");
    shelf.wait(set.delete("1")).await.unwrap();
    print("deleted 1");
    for name in ["2", "3"] {
        shelf.wait(set.put(name, noise(name, LENGTH))).await.unwrap();
        print(&format!("put {name}"));
    }
    for name in ["2", "3"] {
        let tome = set.tome_of(name).unwrap();
        shelf.wait(set.protected(name)).await.unwrap();
        print(&format!("protected {name} {tome}"));
    }
    let lost = set.tome_of("3").unwrap();
    let unknown = set.tome_of("2").unwrap();
    set.stop();
    drop(set);
    print(&format!("unknown {unknown}"));
    remove(&metadata(&shelf.folder, unknown));
    let inventory_fail_point = || match INVENTORY.contains(&point) {
        true => FailPoints::armed(&FAIL_POINTS, point, count).unwrap(),
        false => FailPoints::unarmed(&FAIL_POINTS),
    };
    let set =
        TomeSet::open(SetOptions { fail: inventory_fail_point(), ..shelf.options() }).unwrap();
    inventory(shelf, &set, unknown).await;
    set.stop();
    drop(set);
    let set =
        TomeSet::open(SetOptions { fail: inventory_fail_point(), ..shelf.options() }).unwrap();
    assert_eq!(set.rebuilt().len(), 1);
    shelf.settle(&set).await;
    set.stop();
    drop(set);
    print(&format!("rebuilt {unknown}"));
    print(&format!("lost {lost}"));
    lose(&shelf.folder, lost);
    shelf.add();
    // Other points were passed above.
    let is_of_moves =
        FAIL_POINTS.iter().skip_while(|name| **name != MOVES_FROM).any(|name| *name == point);
    let fail = FailPoints::armed(&FAIL_POINTS, point, count).unwrap();
    let fail = if is_of_moves { fail } else { FailPoints::unarmed(&FAIL_POINTS) };
    let set = TomeSet::init(SetOptions { fail, ..shelf.options() }).unwrap();
    if point == REMOVAL_KEPT {
        print("deleting 3");
        set.delete("3").await.unwrap();
        print("deleted 3");
    }
    set.rebuild(lost).await.unwrap();
    shelf.moved(&set).await;
    set.stop();
    drop(set);
    let set = shelf.open();
    assert_eq!(shelf.wait(set.get("0")).await.unwrap(), noise("0", LENGTH));
    print("done");
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
fn unknown_of(output: &[&str]) -> Option<TomeId> {
    let unknown = output.iter().find_map(|line| line.strip_prefix("unknown "))?;
    let is_rebuilt = output.iter().any(|line| line.starts_with("rebuilt "));
    (!is_rebuilt).then(|| TomeId::new(unknown.parse().unwrap()))
}

/// Checks that objects acknowledged as protected are recovered without their tome and any other.
fn without_two(shelf: &Shelf, output: &[&str], context: &str) {
    let protected: Vec<(&str, TomeId)> = output
        .iter()
        .filter_map(|line| line.strip_prefix("protected ")?.split_once(' '))
        .filter(|(name, _)| !output.contains(&format!("deleting {name}").as_str()))
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
fn lost_of(output: &[&str]) -> Option<TomeId> {
    let lost = output.iter().find_map(|line| line.strip_prefix("lost "))?;
    Some(TomeId::new(lost.parse().unwrap()))
}

async fn check_set(shelf: &Shelf, output: &[&str], context: &str) {
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
        let was_put = output.contains(&format!("put {name}").as_str());
        let is_wanted = was_put && !output.contains(&format!("deleting {name}").as_str());
        assert!(found.is_some() || !is_wanted, "{context}: {name} was acknowledged");
        let is_gone = output.contains(&format!("deleted {name}").as_str());
        assert!(found.is_none() || !is_gone, "{context}: {name} is back");
        let is_same = |found: &Vec<u8>| *found == noise(name, LENGTH);
        assert!(found.as_ref().is_none_or(is_same), "{context}: {name}");
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
