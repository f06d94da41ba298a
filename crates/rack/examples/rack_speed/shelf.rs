//! A rack of 18 directories on one disk with simulated disks that take no time, and the blob put
//! into it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fulgurite_disks::{Pace, PlaceId, Simulated, Times};
use fulgurite_rack::work::Injected;
use fulgurite_rack::{Entropy, RackOptions, RackStore, ScrubPolicy};
use fulgurite_rack::{FAIL_POINTS, FailPoints};
use fulgurite_rack_core::{Policy, Shape};
use fulgurite_units::{Clock, Instant, ManualClock, Ratio, Seed, UnixTime};
use futures::TryStreamExt as _;
use object_store::{ObjectStoreExt as _, PutPayload};

/// Distinct pieces of random bytes; a blob repeats them.
const NOISE_PIECES: usize = 64;
const PIECE: usize = 1 << 20;
/// One group of 18 disks, each blob on all of them.
const SHAPE: &str = r#"
name = "one-group"
axes = [{ name = "tray", size = 6 }, { name = "disk", size = 3 }]
groups = { size = 18, spread = "tray" }
code = { data = 15, redundancy = 3 }
watts = { standby = 1.56, spinning_up = 21.53, active = 9.42 }
pace = { switch = "14s", bytes_per_second = "500MiB" }
domain = [{ name = "power", key = [], capacity = 18, kind = "hard" }]
unit = [{ name = "tray", key = ["tray"] }]
"#;
/// Large enough to become a blob instead of being inlined in the index.
const SMALL: usize = 64 << 10;

pub(crate) struct Shelf {
    folder: PathBuf,
    store: RackStore,
    runtime: tokio::runtime::Runtime,
    pieces: Vec<Bytes>,
}

impl Shelf {
    /// Creates a rack in a folder that has none; its blobs have `mib` MiB.
    pub(crate) fn new(folder: &Path, mib: usize) -> Self {
        let folder = folder.join("rack");
        let options = options(&folder);
        Self::over(folder, options, mib)
    }

    /// The same with simulated disks that spin up and read as fast as Pelican's.
    pub(crate) fn paced(folder: &Path, mib: usize) -> Self {
        let folder = folder.join("rack");
        let options = options(&folder);
        let (places, times) = (options.shape.places(), Times::PELICAN);
        let real = Ratio::new(1.0).unwrap();
        let disks = Simulated::new(places, times, real, Seed::new(1)).with_pace(Pace::PELICAN);
        let options = RackOptions { backend: Arc::new(disks), clock: clock(), ..options };
        Self::over(folder, options, mib)
    }

    fn over(folder: PathBuf, options: RackOptions, mib: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = runtime.block_on(RackStore::init(options)).unwrap();
        let piece = |seed| {
            let mut piece = vec![0; PIECE];
            Seed::new(seed).stream().fill(&mut piece);
            Bytes::from(piece)
        };
        let noise: Vec<Bytes> = (1..).take(NOISE_PIECES).map(piece).collect();
        let pieces = noise.iter().cycle().take(mib).cloned().collect();
        Self { folder, store, runtime, pieces }
    }

    /// Returns the pieces of the blob, 1 MiB each.
    pub(crate) fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// Puts the blob.
    pub(crate) fn put(&self) {
        let payload: PutPayload = self.pieces.iter().cloned().collect();
        self.runtime.block_on(self.store.put(&key(), payload)).unwrap();
    }

    /// Gets the blob. Returns the number of bytes.
    pub(crate) fn get(&self) -> usize {
        self.runtime.block_on(async {
            let mut stream = self.store.get(&key()).await.unwrap().into_stream();
            let mut count = 0;
            while let Some(bytes) = stream.try_next().await.unwrap() {
                count += bytes.len();
            }
            count
        })
    }

    /// Reads and verifies all of its stacks.
    pub(crate) fn verify(&self) {
        let report = self.runtime.block_on(self.store.scrub()).unwrap();
        assert_eq!((report.blobs, report.lost), (1, 0));
    }

    /// Deletes the blob and puts a small one, which garbage-collects the stacks now rather than
    /// during a timed put.
    pub(crate) fn delete(&self) {
        self.runtime.block_on(self.store.delete(&key())).unwrap();
        let small: object_store::path::Path = "small".into();
        let payload = PutPayload::from_bytes(self.pieces[0].slice(..SMALL));
        self.runtime.block_on(self.store.put(&small, payload)).unwrap();
    }

    /// Returns the files of all stacks.
    pub(crate) fn stacks(&self) -> Vec<PathBuf> {
        let disks = std::fs::read_dir(&self.folder).unwrap().map(|disk| disk.unwrap().path());
        let stacks = disks.map(|disk| disk.join("stacks")).filter(|stacks| stacks.is_dir());
        stacks
            .flat_map(|stacks| std::fs::read_dir(stacks).unwrap())
            .map(|stack| stack.unwrap().path())
            .collect()
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.store.stop();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Returns the machine's clock.
fn clock() -> Clock {
    let begin = std::time::Instant::now();
    let passed = move || Instant::from_nanos(u64::try_from(begin.elapsed().as_nanos()).unwrap());
    let wall = || {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        UnixTime::from_millis(u64::try_from(since.as_millis()).unwrap())
    };
    Clock::new(wall, passed)
}

fn key() -> object_store::path::Path {
    "blob".into()
}

fn options(folder: &Path) -> RackOptions {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    let shape = Shape::parse(SHAPE).unwrap();
    let disks = Simulated::new(shape.places(), Times::PELICAN, Ratio::ZERO, Seed::new(1));
    let roots: BTreeMap<PlaceId, PathBuf> =
        shape.places().map(|place| (place, folder.join(format!("disk-{place}")))).collect();
    roots.values().for_each(|root| std::fs::create_dir_all(root).unwrap());
    RackOptions {
        directory: folder.join("rack"),
        shape,
        policy: Policy::default(),
        roots,
        backend: Arc::new(disks),
        clock: ManualClock::at(UnixTime::from_millis(1_700_000_000_000)).clock(),
        entropy: Entropy::new(|| {
            let mut bytes = [0; 16];
            Seed::new(DRAWN.fetch_add(1, Ordering::Relaxed)).stream().fill(&mut bytes);
            bytes
        }),
        fail: FailPoints::unarmed(&FAIL_POINTS),
        injected: Injected::default(),
        scrub: ScrubPolicy::default(),
        rated_spin_ups: None,
    }
}
