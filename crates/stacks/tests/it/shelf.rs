//! A rack on directories whose disks are simulated and take no time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_rack::{Policy, Shape, presets};
use fulgurite_stacks::fail_point::FailPoints;
use fulgurite_stacks::work::Injected;
use fulgurite_stacks::{Entropy, RackOptions, RackStore, ScrubPolicy};
use fulgurite_units::{ManualClock, Ratio, Seed, UnixTime};
use tempfile::TempDir;

/// Directories for a rack, and what its disks are simulated by.
pub(crate) struct Shelf {
    pub(crate) folder: TempDir,
    pub(crate) disks: Arc<Simulated>,
    pub(crate) injected: Injected,
    /// Disks take no time, so it may stand still.
    pub(crate) clock: ManualClock,
}

pub(crate) fn shape() -> Shape {
    presets::shape("laptop").unwrap()
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let disks = Simulated::new(shape().places(), Times::PELICAN, Ratio::ZERO, Seed::new(1));
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(UnixTime::from_millis(1_700_000_000_000));
        Self { folder, disks: Arc::new(disks), injected: Injected::default(), clock }
    }

    pub(crate) fn root(&self, place: PlaceId) -> PathBuf {
        self.folder.path().join(format!("disk-{place}"))
    }

    /// The index of this one, and the disks of `of`.
    pub(crate) fn options(&self) -> RackOptions {
        static DRAWN: AtomicU64 = AtomicU64::new(1);
        let roots: BTreeMap<PlaceId, PathBuf> =
            shape().places().map(|place| (place, self.root(place))).collect();
        RackOptions {
            directory: self.folder.path().join("rack"),
            shape: shape(),
            policy: Policy::default(),
            roots,
            backend: Arc::clone(&self.disks) as _,
            clock: self.clock.clock(),
            entropy: Entropy::new(|| {
                let number = DRAWN.fetch_add(1, Ordering::Relaxed);
                let mut bytes = [0; 16];
                Seed::new(number).stream().fill(&mut bytes);
                bytes
            }),
            scrub: ScrubPolicy::default(),
            fail: FailPoints::default(),
            injected: self.injected.clone(),
        }
    }

    pub(crate) async fn init(&self) -> RackStore {
        RackStore::init(self.options()).await.unwrap()
    }

    pub(crate) fn open(&self) -> RackStore {
        RackStore::open(self.options()).unwrap()
    }

    /// The stacks on all disks.
    pub(crate) fn stacks(&self) -> Vec<(PlaceId, PathBuf)> {
        let places = shape().places();
        places.flat_map(|place| files(place, &self.root(place).join("stacks"))).collect()
    }
}

fn files(place: PlaceId, folder: &Path) -> Vec<(PlaceId, PathBuf)> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| (place, entry.unwrap().path())).collect()
}

/// Bytes that look random and repeat for a seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seed::new(seed).stream().fill(&mut bytes);
    bytes
}
