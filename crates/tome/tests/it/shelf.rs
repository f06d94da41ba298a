//! A set of tomes on directories whose disks are simulated and take no time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use fulgurite_disks::{Guard, Lease, PlaceId, Power, Simulated, Times};
use fulgurite_tome::{Entropy, FaultInjector, SetOptions, SetStatus, TomeSet, UnpluggedTome};
use fulgurite_tome::{FAIL_POINTS, FailPoints};
use fulgurite_tome_core::metadata::Object;
use fulgurite_tome_core::offline_read;
use fulgurite_tome_core::{Layout, Parts, RegionId, TomeId};
use fulgurite_units::{ByteCount, Duration, ManualClock, Ratio, Seed, UnixTime};
use tempfile::TempDir;

/// Tomes of all sets here.
pub(crate) const TOMES: u32 = 8;
/// Tomes that a set may get in addition.
const ADDED_MAX: u32 = 2;
/// Bytes of a block.
pub(crate) const BLOCK: usize = 512;
/// Clock step, about every millisecond. With a larger one a lease would expire before a slow
/// machine has used it.
const STEP: Duration = Duration::from_secs(2);
/// Most clock steps that an operation may take.
const STEPS_MAX: u32 = 20_000;

/// Directories of a set, and its simulated disks.
pub(crate) struct Shelf {
    pub(crate) folder: PathBuf,
    /// Removed on drop, if it created the folder.
    _made: Option<TempDir>,
    pub(crate) disks: Arc<Simulated>,
    pub(crate) faults: FaultInjector,
    pub(crate) clock: ManualClock,
    /// Tomes that were added.
    added: AtomicU32,
}

pub(crate) fn tomes() -> impl Iterator<Item = TomeId> {
    (0..TOMES).map(TomeId::new)
}

pub(crate) fn root(folder: &Path, tome: TomeId) -> PathBuf {
    folder.join(format!("disk-{tome}"))
}

pub(crate) fn metadata(folder: &Path, tome: TomeId) -> PathBuf {
    folder.join(format!("set/tome-{:04}", tome.get()))
}

pub(crate) fn layout() -> Layout {
    let (block, segment) = (ByteCount::new(BLOCK as u64), "4+2".parse().unwrap());
    Layout::new(Parts { block, segment, segments: 3, regions: 4, spares: 60 }).unwrap()
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let made = tempfile::tempdir().unwrap();
        let shelf = Self::in_folder(made.path());
        Self { _made: Some(made), ..shelf }
    }

    pub(crate) fn in_folder(folder: &Path) -> Self {
        let places = (0..TOMES + ADDED_MAX).map(PlaceId::new);
        let disks = Simulated::new(places, Times::PELICAN, Ratio::ZERO, Seed::new(1));
        Self {
            folder: folder.to_owned(),
            _made: None,
            disks: Arc::new(disks),
            faults: FaultInjector::default(),
            clock: ManualClock::at(UnixTime::from_millis(1_700_000_000_000)),
            added: AtomicU32::new(0),
        }
    }

    /// Adds a tome, with which the set is opened from now on.
    pub(crate) fn add(&self) -> TomeId {
        let added = self.added.fetch_add(1, Ordering::Relaxed);
        assert!(added < ADDED_MAX, "there is a place for it");
        TomeId::new(TOMES + added)
    }

    pub(crate) fn options(&self) -> SetOptions {
        let folder = &self.folder;
        SetOptions {
            set: None,
            directory: folder.join("set"),
            roots: (0..TOMES + self.added.load(Ordering::Relaxed))
                .map(|tome| (TomeId::new(tome), root(folder, TomeId::new(tome))))
                .collect(),
            remotes: BTreeMap::new(),
            layout: layout(),
            split: "3+2".parse().unwrap(),
            backend: Arc::clone(&self.disks) as _,
            spin_ups_a_day: None,
            idle: fulgurite_tome_core::limits::IDLE,
            clock: self.clock.clock(),
            entropy: Entropy::new(draw),
            fail: FailPoints::unarmed(&FAIL_POINTS),
            faults: self.faults.clone(),
        }
    }

    pub(crate) fn init(&self) -> TomeSet {
        TomeSet::init(self.options()).unwrap()
    }

    pub(crate) fn open(&self) -> TomeSet {
        TomeSet::open(self.options()).unwrap()
    }

    /// Runs a future while time passes.
    pub(crate) async fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        for _ in 0..STEPS_MAX {
            let step = std::time::Duration::from_millis(1);
            if let Ok(done) = tokio::time::timeout(step, &mut future).await {
                return done;
            }
            self.clock.advance(STEP);
        }
        panic!("it does not end in time");
    }

    /// Lets time pass until no member slot moves; returns the status of the set.
    pub(crate) async fn moved(&self, set: &TomeSet) -> SetStatus {
        for _ in 0..STEPS_MAX {
            let status = set.status().await;
            if status.moves.under_way.is_empty() && status.moves.leaving.is_empty() {
                return status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            self.clock.advance(STEP);
        }
        panic!("member slots still move: {:?}", set.status().await.moves);
    }

    /// Lets time pass until all disks stand still and everything is protected.
    pub(crate) async fn settle(&self, set: &TomeSet) -> SetStatus {
        for _ in 0..STEPS_MAX {
            let status = set.status().await;
            let is_still =
                status.tomes.iter().all(|tome| !tome.power.is_spinning() && tome.token.is_none());
            let left = status.tomes.iter().filter(|tome| tome.failure.is_none());
            let left: ByteCount = left.map(|tome| tome.unprotected.bytes).sum();
            if is_still && left == ByteCount::ZERO {
                return status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            self.clock.advance(STEP);
        }
        panic!("disks still spin");
    }
}

/// Returns bytes that no other call or process draws.
fn draw() -> [u8; 16] {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    let number = u64::from(std::process::id()) << 32 | DRAWN.fetch_add(1, Ordering::Relaxed);
    let mut bytes = [0; 16];
    Seed::new(number).stream().fill(&mut bytes);
    bytes
}

/// Removes a tome, with its disk and its metadata store.
pub(crate) fn lose(folder: &Path, tome: TomeId) {
    std::fs::remove_dir_all(root(folder, tome)).unwrap();
    std::fs::remove_dir_all(metadata(folder, tome)).unwrap();
}

/// Opens a tome offline from its two directories.
pub(crate) fn pull(folder: &Path, tome: TomeId) -> UnpluggedTome {
    UnpluggedTome::open(&metadata(folder, tome), spinning_lease(folder, tome)).unwrap()
}

/// Returns a lease on a spinning disk.
pub(crate) fn spinning_lease(folder: &Path, tome: TomeId) -> Lease {
    let (guard, place) = (Guard::new(), PlaceId::new(tome.get()));
    guard.add(place, root(folder, tome));
    guard.turn(place, Power::SpinningUp).unwrap();
    guard.turn(place, Power::Active).unwrap();
    guard.acquire(place).unwrap()
}

/// Recovers a lost tome's object from tomes that are not lost.
pub(crate) fn recovered(
    all: &mut BTreeMap<TomeId, UnpluggedTome>,
    lost: &BTreeSet<TomeId>,
    tome: TomeId,
    object: &Object,
) -> Vec<u8> {
    assert!(lost.contains(&tome), "the tome is lost");
    let mut bytes = Vec::new();
    for (index, offset) in &object.blocks {
        let slot = RegionId { tome, index: *index };
        let group = {
            let left = all.iter().filter(|(tome, _)| !lost.contains(tome));
            let regions = left.flat_map(|(_, tome)| tome.metadata().regions());
            let mut groups = regions.map(|(_, region)| region.group());
            groups.find(|group| group.member(slot).is_some()).unwrap().clone()
        };
        let mut holdings = Vec::new();
        for slot in group.slots().iter().filter(|slot| !lost.contains(&slot.tome)) {
            let member = all.get_mut(&slot.tome).unwrap();
            holdings.push(member.holding(group.id(), *offset).unwrap());
        }
        let member = group.member(slot).unwrap();
        bytes.extend(offline_read::recover(group.id(), group.split(), member, &holdings).unwrap());
    }
    bytes.truncate(usize::try_from(object.bytes).unwrap());
    bytes
}

/// Returns bytes that look random and are the same for a name.
pub(crate) fn noise(name: &str, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seed::new(name.bytes().map(u64::from).sum()).stream().fill(&mut bytes);
    bytes
}
