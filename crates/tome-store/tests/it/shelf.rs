//! A set of tomes with its index, on directories, whose disks take no time; hands that go on turning.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_tome::{Layout, Parts, TomeId};
use fulgurite_tome_store::{Promise, StoreOptions, TomeStore};
use fulgurite_tomes::fail_point::FailPoints;
use fulgurite_tomes::{Entropy, Injected, SetOptions, TomeSet};
use fulgurite_units::{ByteCount, Duration, ManualClock, Ratio, Seed, UnixTime};
use tempfile::TempDir;

const TOMES: u32 = 8;
/// How far the hands are turned at a time, a millisecond or so: little beside a lease.
const STEP: Duration = Duration::from_millis(500);

/// Directories for a set.
pub(crate) struct Shelf {
    pub(crate) folder: TempDir,
    disks: Arc<Simulated>,
    clock: ManualClock,
    stops: Arc<AtomicBool>,
    turns: Option<JoinHandle<()>>,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let places = (0..TOMES).map(PlaceId::new);
        let disks = Simulated::new(places, Times::PELICAN, Ratio::ZERO, Seed::new(1));
        let clock = ManualClock::at(UnixTime::from_millis(1_700_000_000_000));
        let stops = Arc::<AtomicBool>::default();
        let (hands, until) = (clock.clone(), Arc::clone(&stops));
        let turns = std::thread::spawn(move || {
            while !until.load(Ordering::Acquire) {
                std::thread::sleep(std::time::Duration::from_millis(1));
                hands.advance(STEP);
            }
        });
        let folder = tempfile::tempdir().unwrap();
        Self { folder, disks: Arc::new(disks), clock, stops, turns: Some(turns) }
    }

    pub(crate) fn root(&self, tome: TomeId) -> PathBuf {
        self.folder.path().join(format!("disk-{tome}"))
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("set")
    }

    pub(crate) fn awake(&self, tome: TomeId) -> PathBuf {
        self.directory().join(format!("tome-{:04}", tome.get()))
    }

    fn options(&self, segments: u32) -> SetOptions {
        let (block, segment) = (ByteCount::new(16 << 10), "6+2".parse().unwrap());
        let parts = Parts { block, segment, segments, regions: 4, spares: 400 };
        SetOptions {
            set: None,
            remotes: BTreeMap::new(),
            directory: self.directory(),
            roots: (0..TOMES).map(TomeId::new).map(|tome| (tome, self.root(tome))).collect(),
            layout: Layout::new(parts).unwrap(),
            split: "3+2".parse().unwrap(),
            backend: Arc::clone(&self.disks) as _,
            clock: self.clock.clock(),
            entropy: entropy(),
            fail: FailPoints::default(),
            injected: Injected::default(),
        }
    }

    /// A store over a set that is made if there is none.
    pub(crate) fn store(&self, promise: Promise) -> TomeStore {
        let set = TomeSet::init(self.options(96)).unwrap();
        self.over(set, promise)
    }

    /// The same over a set that is there.
    pub(crate) fn open(&self, promise: Promise) -> TomeStore {
        let set = TomeSet::open(self.options(96)).unwrap();
        self.over(set, promise)
    }

    fn over(&self, set: TomeSet, promise: Promise) -> TomeStore {
        let (directory, clock) = (self.directory(), self.clock.clock());
        let options = StoreOptions { directory, clock, entropy: entropy(), promise };
        TomeStore::open(set, options).unwrap()
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Release);
        if let Some(turns) = self.turns.take() {
            turns.join().unwrap();
        }
    }
}

/// Bytes that nobody else draws.
fn entropy() -> Entropy {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    Entropy::new(|| {
        let mut bytes = [0; 16];
        Seed::new(DRAWN.fetch_add(1, Ordering::Relaxed)).stream().fill(&mut bytes);
        bytes
    })
}

/// Bytes that look random and repeat for a seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seed::new(seed).stream().fill(&mut bytes);
    bytes
}

pub(crate) fn remove(path: &Path) {
    std::fs::remove_dir_all(path).unwrap();
}
