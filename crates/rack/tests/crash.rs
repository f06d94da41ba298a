//! A rack whose process is killed at every step of a write, a repair and a garbage collection:
//! acknowledged objects are there, unacknowledged ones are there whole or not at all, and no
//! unwanted stacks stay on the disks.
//!
//! It re-executes itself as the process that is killed, so it has a `main` of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_rack::work::{DISK_FILE, Injected};
use fulgurite_rack::{Entropy, RackOptions, RackStore, ScrubPolicy};
use fulgurite_rack::{FAIL_POINTS, FailPoints};
use fulgurite_rack_core::{Policy, Shape, presets};
use fulgurite_units::{ManualClock, Ratio, Seed, UnixTime};
use object_store::path::Path as Key;
use object_store::{Error, ObjectStoreExt as _};

/// First argument of the process that is killed; the folder, the fail point and the count follow.
const VICTIM: &str = "victim";

const LENGTH: usize = 1_400_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).map(String::as_str) == Some(VICTIM) {
        let count = arguments[4].parse().unwrap();
        run(be_killed(Path::new(&arguments[2]), &arguments[3], count));
        return;
    }
    // Like a test harness: a filter for another test name runs nothing here.
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
    assert_eq!(killed, BTreeSet::from(FAIL_POINTS), "every fail point is reached");
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Runs a process that is killed at a passage of a fail point, and checks what it left. Returns
/// whether it was killed.
fn check(point: &str, count: u32) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let victim = Command::new(std::env::current_exe().unwrap())
        .args([VICTIM, folder.path().to_str().unwrap(), point, &count.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8(victim.stdout).unwrap();
    let printed: Vec<&str> = text.lines().collect();
    let was_killed = victim.status.code().is_none();
    let error = String::from_utf8_lossy(&victim.stderr);
    assert!(was_killed || printed.last() == Some(&"done"), "{point}: {} {error}", victim.status);
    run(inspect(folder.path(), &printed, &format!("{point}, passage {count}")));
    was_killed
}

/// Puts, damages, repairs, deletes and puts again, and prints what was acknowledged.
async fn be_killed(folder: &Path, point: &str, count: u32) {
    let (options_of, clock) =
        options(folder, FailPoints::armed(&FAIL_POINTS, point, count).unwrap());
    let rack = RackStore::init(options_of).await.unwrap();
    let mut printed = String::new();
    let mut print_line = |detail: &str| {
        use std::io::Write as _;
        printed.clear();
        printed.push_str(detail);
        printed.push('\n');
        std::io::stdout().write_all(printed.as_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
    };
    for key in ["0", "1"] {
        rack.put(&Key::from(key), bytes(key).into()).await.unwrap();
        print_line(&format!("put {key}"));
    }
    // Damages more stacks of a blob than may be lost, each in another stripe.
    let first = stacks(folder)[0].file_name().unwrap().to_str().unwrap()[..36].to_owned();
    let of_first =
        stacks(folder).into_iter().filter(|file| file.to_str().unwrap().contains(&first));
    for (stripe, file) in of_first.take(3).enumerate() {
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[4096 + stripe * 131_080 + 5] ^= 1;
        std::fs::write(file, bytes).unwrap();
    }
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.lost, report.made, report.problems.len()), (3, 3, 0));
    print_line("deleting 1");
    rack.delete(&Key::from("1")).await.unwrap();
    print_line("deleted 1");
    for key in ["2", "3"] {
        rack.put(&Key::from(key), bytes(key).into()).await.unwrap();
        print_line(&format!("put {key}"));
    }
    // A disk is given up and replaced.
    let place = shape().places().next().unwrap();
    let report = rack.rebuild(place).await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
    print_line("rebuilt");
    std::fs::remove_dir_all(root(folder, place)).unwrap();
    let report = rack.replace(place).await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
    // Each group is verified on schedule, and the content of a lost index is recovered.
    print_line("replaced");
    clock.advance(fulgurite_units::Duration::from_secs(30 * 86_400));
    let is_over = |at: UnixTime| at.as_millis() > 30 * 86_400_000;
    while !rack.status().await.unwrap().verified_oldest.is_some_and(is_over) {
        tokio::task::yield_now().await;
    }
    let id = rack.rack();
    rack.stop();
    drop(rack);
    std::fs::remove_dir_all(folder.join("rack")).unwrap();
    print_line("index lost");
    let (options, _) = options(folder, FailPoints::armed(&FAIL_POINTS, point, count).unwrap());
    let rack = RackStore::adopt(options, id).await.unwrap();
    rack.recover().await.unwrap();
    print_line("done");
}

async fn inspect(folder: &Path, printed: &[&str], context: &str) {
    let (options, _) = options(folder, FailPoints::unarmed(&FAIL_POINTS));
    let rack = if printed.contains(&"index lost") {
        // The disks name their rack.
        let text = std::fs::read_to_string(root(folder, PlaceId::new(1)).join(DISK_FILE)).unwrap();
        let id = serde_json::from_str::<serde_json::Value>(&text).unwrap();
        let id = id["rack"].as_str().unwrap().parse().unwrap();
        let rack = RackStore::adopt(options, id).await.unwrap();
        rack.recover().await.unwrap();
        rack
    } else {
        RackStore::init(options).await.unwrap()
    };
    for key in ["0", "1", "2", "3"] {
        let found = match rack.get(&Key::from(key)).await {
            Ok(found) => Some(found.bytes().await.unwrap()),
            Err(Error::NotFound { .. }) => None,
            Err(error) => panic!("{context}: {key}: {error}"),
        };
        let was_put = printed.contains(&format!("put {key}").as_str());
        let is_wanted = was_put && !printed.contains(&format!("deleting {key}").as_str());
        assert!(found.is_some() || !is_wanted, "{context}: {key} was acknowledged");
        let is_gone = printed.contains(&format!("deleted {key}").as_str());
        assert!(found.is_none() || !is_gone, "{context}: deleted {key} is back");
        assert!(found.as_ref().is_none_or(|found| *found == bytes(key)), "{context}: {key}");
    }
    let report = rack.scrub().await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0], "{context}");
    // A complete but unacknowledged blob stays, for this index may be an older copy; a search of
    // the disks adds it.
    rack.recover().await.unwrap();
    let mut there = 0;
    for key in ["0", "1", "2", "3"] {
        there += usize::from(rack.head(&Key::from(key)).await.is_ok());
    }
    // A write garbage-collects its group.
    rack.put(&Key::from("last"), bytes("last").into()).await.unwrap();
    let width = usize::try_from(shape().code().width()).unwrap();
    // Stacks on a disk that was given up do not count.
    let status = rack.status().await.unwrap();
    let disks = status.groups.iter().flat_map(|group| &group.disks);
    let given_up = disks.filter(|disk| disk.failure.as_deref() == Some("given up"));
    let given_up: Vec<PathBuf> = given_up.map(|disk| root(folder, disk.place)).collect();
    let is_kept = |file: &&PathBuf| !given_up.iter().any(|root| file.starts_with(root));
    let left = stacks(folder).iter().filter(is_kept).count();
    assert_eq!(left, (there + 1) * width, "{context}: no unwanted stacks are left");
    let report = rack.scrub().await.unwrap();
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

fn options(folder: &Path, fail: FailPoints) -> (RackOptions, ManualClock) {
    let clock = ManualClock::at(UnixTime::from_millis(1));
    let places: Vec<PlaceId> = shape().places().collect();
    let disks = Simulated::new(places.clone(), Times::PELICAN, Ratio::ZERO, Seed::new(1));
    let roots: BTreeMap<PlaceId, PathBuf> =
        places.into_iter().map(|place| (place, root(folder, place))).collect();
    // Ids must differ between processes.
    let (drawn, process) = (AtomicU64::new(0), u64::from(std::process::id()));
    let options = RackOptions {
        directory: folder.join("rack"),
        shape: shape(),
        policy: Policy::default(),
        roots,
        backend: Arc::new(disks),
        clock: clock.clock(),
        entropy: Entropy::new(move || {
            let number = drawn.fetch_add(1, Ordering::Relaxed);
            let mut bytes = [0; 16];
            Seed::new(process << 32 | number).stream().fill(&mut bytes);
            bytes
        }),
        scrub: ScrubPolicy::default(),
        rated_spin_ups: None,
        fail,
        injected: Injected::default(),
    };
    (options, clock)
}
