//! A rack on directories whose disks are simulated and take no time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_rack::work::Injected;
use fulgurite_rack::{RackOptions, RackStore, bench_support};
use fulgurite_rack_core::Shape;
use fulgurite_units::{ManualClock, Ratio, Seed, UnixTime};
use tempfile::TempDir;

/// Directories of a rack, with its simulated disks.
pub(crate) struct Shelf {
    pub(crate) folder: TempDir,
    pub(crate) disks: Arc<Simulated>,
    pub(crate) injected: Injected,
    /// May stand still, because disks take no time.
    pub(crate) clock: ManualClock,
}

pub(crate) fn shape() -> Shape {
    bench_support::shape().unwrap()
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

    pub(crate) fn options(&self) -> RackOptions {
        let options = bench_support::options(self.folder.path(), self.clock.clock()).unwrap();
        let backend = Arc::clone(&self.disks) as _;
        RackOptions { backend, injected: self.injected.clone(), ..options }
    }

    pub(crate) async fn init(&self) -> RackStore {
        RackStore::init(self.options()).await.unwrap()
    }

    pub(crate) fn open(&self) -> RackStore {
        RackStore::open(self.options()).unwrap()
    }

    /// Returns the stacks on all disks.
    pub(crate) fn stacks(&self) -> Vec<(PlaceId, PathBuf)> {
        let places = shape().places();
        places.flat_map(|place| files(place, &self.root(place).join("stacks"))).collect()
    }
}

fn files(place: PlaceId, folder: &Path) -> Vec<(PlaceId, PathBuf)> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| (place, entry.unwrap().path())).collect()
}

/// Returns pseudo-random bytes, the same for the same seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seed::new(seed).stream().fill(&mut bytes);
    bytes
}
