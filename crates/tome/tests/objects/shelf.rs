//! A set of tomes with its index, in directories, whose disks take no time; a thread advances its
//! manual clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fulgurite_tome::objects::{PutGuarantee, TomeStore, bench_support};
use fulgurite_tome::{FaultInjector, SetOptions, TomeSet};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{Duration, ManualClock, Seed, UnixTime};
use tempfile::TempDir;

/// Clock step, about every millisecond: small compared to a lease.
const STEP: Duration = Duration::from_millis(500);

/// Directories of a set.
pub(crate) struct Shelf {
    pub(crate) folder: TempDir,
    clock: ManualClock,
    /// Injected faults.
    pub(crate) faults: FaultInjector,
    stops: Arc<AtomicBool>,
    clock_thread: Option<JoinHandle<()>>,
}

impl Shelf {
    #[expect(clippy::disallowed_methods, reason = "a thread advances the clock")]
    pub(crate) fn new() -> Self {
        let clock = ManualClock::at(UnixTime::from_millis(1_700_000_000_000));
        let stops = Arc::<AtomicBool>::default();
        let (advanced, until) = (clock.clone(), Arc::clone(&stops));
        let clock_thread = std::thread::spawn(move || {
            while !until.load(Ordering::Acquire) {
                std::thread::sleep(std::time::Duration::from_millis(1));
                advanced.advance(STEP);
            }
        });
        let folder = tempfile::tempdir().unwrap();
        Self {
            folder,
            clock,
            faults: FaultInjector::default(),
            stops,
            clock_thread: Some(clock_thread),
        }
    }

    pub(crate) fn root(&self, tome: TomeId) -> PathBuf {
        self.folder.path().join(format!("disk-{tome}"))
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("set")
    }

    pub(crate) fn metadata(&self, tome: TomeId) -> PathBuf {
        self.directory().join(format!("tome-{:04}", tome.get()))
    }

    fn options(&self) -> SetOptions {
        let options = bench_support::set_options(self.folder.path(), self.clock.clock()).unwrap();
        SetOptions { faults: self.faults.clone(), ..options }
    }

    /// Opens a store over a set, which is created if needed.
    pub(crate) fn store(&self, promise: PutGuarantee) -> TomeStore {
        let set = TomeSet::init(self.options()).unwrap();
        self.open_store(set, promise)
    }

    /// Opens a store over an existing set.
    pub(crate) fn open(&self, promise: PutGuarantee) -> TomeStore {
        let set = TomeSet::open(self.options()).unwrap();
        self.open_store(set, promise)
    }

    fn open_store(&self, set: TomeSet, promise: PutGuarantee) -> TomeStore {
        bench_support::open_store(set, self.folder.path(), self.clock.clock(), promise).unwrap()
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Release);
        if let Some(clock_thread) = self.clock_thread.take() {
            clock_thread.join().unwrap();
        }
    }
}

/// Returns bytes that look random and are the same for a seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seed::new(seed).stream().fill(&mut bytes);
    bytes
}

pub(crate) fn remove(path: &Path) {
    std::fs::remove_dir_all(path).unwrap();
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
