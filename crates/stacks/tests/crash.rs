//! A rack whose process is killed at every step of a write, a repair and a sweep: what was
//! acknowledged is there, what was not is there whole or not at all, and nothing stays on the disks
//! that nobody wants.
//!
//! It runs itself as the process that is killed, so it has a `main` of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_rack::{Policy, Shape, presets};
use fulgurite_stacks::fail_point::{FAIL_POINTS, FailPoints};
use fulgurite_stacks::work::Injected;
use fulgurite_stacks::{Entropy, RackOptions, RackStore};
use fulgurite_units::{ManualClock, Ratio, Seed, UnixTime};
use object_store::path::Path as Key;
use object_store::{Error, ObjectStoreExt as _};

/// The first argument of the process that is killed; then come the folder, the point and its count.
const VICTIM: &str = "victim";

const LENGTH: usize = 1_400_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).map(String::as_str) == Some(VICTIM) {
        let count = arguments[4].parse().unwrap();
        run(be_killed(Path::new(&arguments[2]), &arguments[3], count));
        return;
    }
    // As a harness does: whoever runs one test of another name runs none of these.
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    if filter.is_some_and(|filter| !"crash".contains(filter.as_str())) {
        return;
    }
    let mut killed = BTreeSet::new();
    for point in FAIL_POINTS {
        for count in 0..2 {
            if check(point, count) {
                killed.insert(point);
            }
        }
    }
    assert_eq!(killed, BTreeSet::from(FAIL_POINTS), "every point is passed");
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Has a process killed at a passage of a point and looks at what it left. Whether it was killed.
fn check(point: &str, count: u32) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let victim = Command::new(std::env::current_exe().unwrap())
        .args([VICTIM, folder.path().to_str().unwrap(), point, &count.to_string()])
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8(victim.stdout).unwrap();
    let said: Vec<&str> = text.lines().collect();
    let was_killed = victim.status.code().is_none();
    assert!(was_killed || said.last() == Some(&"done"), "{point}: {}", victim.status);
    run(look(folder.path(), &said, &format!("{point}, passage {count}")));
    was_killed
}

/// Puts, damages, mends, deletes and puts again, and says what was acknowledged.
async fn be_killed(folder: &Path, point: &str, count: u32) {
    let rack = RackStore::init(options(folder, FailPoints::armed(point, count).unwrap())).await;
    let rack = rack.unwrap();
    let mut said = String::new();
    let mut say = |what: &str| {
        use std::io::Write as _;
        said.clear();
        said.push_str(what);
        said.push('\n');
        std::io::stdout().write_all(said.as_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
    };
    for key in ["0", "1"] {
        rack.put(&Key::from(key), bytes(key).into()).await.unwrap();
        say(&format!("put {key}"));
    }
    std::fs::remove_file(&stacks(folder)[0]).unwrap();
    let report = rack.verify().await.unwrap();
    assert_eq!((report.lost, report.made, report.problems.len()), (1, 1, 0));
    say("deleting 1");
    rack.delete(&Key::from("1")).await.unwrap();
    say("deleted 1");
    for key in ["2", "3"] {
        rack.put(&Key::from(key), bytes(key).into()).await.unwrap();
        say(&format!("put {key}"));
    }
    say("done");
}

async fn look(folder: &Path, said: &[&str], context: &str) {
    let rack = RackStore::init(options(folder, FailPoints::default())).await.unwrap();
    let mut there = 0;
    for key in ["0", "1", "2", "3"] {
        let found = match rack.get(&Key::from(key)).await {
            Ok(found) => Some(found.bytes().await.unwrap()),
            Err(Error::NotFound { .. }) => None,
            Err(error) => panic!("{context}: {key}: {error}"),
        };
        let was_put = said.contains(&format!("put {key}").as_str());
        let is_wanted = was_put && !said.contains(&format!("deleting {key}").as_str());
        assert!(found.is_some() || !is_wanted, "{context}: {key} was acknowledged");
        let is_gone = said.contains(&format!("deleted {key}").as_str());
        assert!(found.is_none() || !is_gone, "{context}: {key} is back");
        assert!(found.as_ref().is_none_or(|found| *found == bytes(key)), "{context}: {key}");
        there += usize::from(found.is_some());
    }
    let report = rack.verify().await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0], "{context}");
    // A write sweeps its group.
    rack.put(&Key::from("last"), bytes("last").into()).await.unwrap();
    let width = usize::try_from(shape().code().width()).unwrap();
    assert_eq!(stacks(folder).len(), (there + 1) * width, "{context}: nothing is left over");
    let report = rack.verify().await.unwrap();
    assert_eq!((report.lost, report.problems.len()), (0, 0), "{context}");
}

fn bytes(key: &str) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    Seed::new(key.bytes().map(u64::from).sum()).stream().fill(&mut bytes);
    bytes
}

fn shape() -> Shape {
    presets::shape("laptop").unwrap()
}

fn root(folder: &Path, place: PlaceId) -> PathBuf {
    folder.join(format!("disk-{place}"))
}

fn stacks(folder: &Path) -> Vec<PathBuf> {
    let folders = shape().places().map(|place| root(folder, place).join("stacks"));
    let entries = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn options(folder: &Path, fail: FailPoints) -> RackOptions {
    let places: Vec<PlaceId> = shape().places().collect();
    let disks = Simulated::new(places.clone(), Times::PELICAN, Ratio::ZERO, Seed::new(1));
    let roots: BTreeMap<PlaceId, PathBuf> =
        places.into_iter().map(|place| (place, root(folder, place))).collect();
    // Another process draws others.
    let (drawn, process) = (AtomicU64::new(0), u64::from(std::process::id()));
    RackOptions {
        directory: folder.join("rack"),
        shape: shape(),
        policy: Policy::default(),
        roots,
        backend: Arc::new(disks),
        clock: ManualClock::at(UnixTime::from_millis(1)).clock(),
        entropy: Entropy::new(move || {
            let number = drawn.fetch_add(1, Ordering::Relaxed);
            let mut bytes = [0; 16];
            Seed::new(process << 32 | number).stream().fill(&mut bytes);
            bytes
        }),
        fail,
        injected: Injected::default(),
    }
}
