//! A rack whose process is killed at every step of a write, a repair and a garbage collection:
//! acknowledged objects are there, unacknowledged ones are there whole or not at all, and no
//! unwanted stacks stay on the disks.
//!
//! It re-executes itself as the process that is killed, so it has a `main` of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_rack::work::{DISK_FILE, Injected};
use fulgurite_rack::{Entropy, RackOptions, RackStore, ScrubPolicy};
use fulgurite_rack::{FAIL_POINTS, FailPoints};
use fulgurite_rack_core::{Policy, Shape, presets};
use fulgurite_tier::conformance::{CrashSuite, Output, Victim};
use fulgurite_units::{ManualClock, Ratio, Seed, UnixTime};
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Key;

const LENGTH: usize = 1_400_000;

fn main() {
    let suite = CrashSuite {
        points: &FAIL_POINTS,
        passages: &[0, 1],
        parallel: 1,
        work: |victim| run(be_killed(victim)),
        check: |folder, output| run(inspect(folder, output)),
    };
    suite.main();
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Puts, deletes, damages and repairs, and prints what was acknowledged.
async fn be_killed(victim: &Victim) {
    let folder = &victim.folder;
    let (options_of, clock) = options(folder, victim.fail_points(&FAIL_POINTS));
    let rack = RackStore::init(options_of).await.unwrap();
    victim.put_and_delete(&rack, LENGTH).await;
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
    // A disk is given up and replaced.
    let place = shape().places().next().unwrap();
    let report = rack.rebuild(place).await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
    std::fs::remove_dir_all(root(folder, place)).unwrap();
    let report = rack.replace(place).await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
    // Each group is verified on schedule, and the content of a lost index is recovered.
    clock.advance(fulgurite_units::Duration::from_secs(30 * 86_400));
    let is_over = |at: UnixTime| at.as_millis() > 30 * 86_400_000;
    while !rack.status().await.unwrap().verified_oldest.is_some_and(is_over) {
        tokio::task::yield_now().await;
    }
    let id = rack.rack();
    rack.stop();
    drop(rack);
    std::fs::remove_dir_all(folder.join("rack")).unwrap();
    victim.print("index lost");
    let (options, _) = options(folder, victim.fail_points(&FAIL_POINTS));
    let rack = RackStore::adopt(options, id).await.unwrap();
    rack.recover().await.unwrap();
}

async fn inspect(folder: &Path, output: &Output) {
    let context = &output.context;
    let (options, _) = options(folder, FailPoints::unarmed(&FAIL_POINTS));
    let rack = if output.has("index lost") {
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
    output.check_all(&rack, LENGTH).await;
    let report = rack.scrub().await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0], "{context}");
    // A complete but unacknowledged blob stays, for this index may be an older copy; a search of
    // the disks adds it.
    rack.recover().await.unwrap();
    let there = output.check_all(&rack, LENGTH).await;
    // A write garbage-collects its group.
    rack.put(&Key::from("last"), vec![7; LENGTH].into()).await.unwrap();
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
