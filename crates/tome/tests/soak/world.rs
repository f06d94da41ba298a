//! The directories of a set of 200 tomes, its clock, and its faults.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_disks::{Fault, PlaceId, Simulated, Times};
use fulgurite_tome::limits::{HEADER_BYTES, LABEL_BYTES};
use fulgurite_tome::{Entropy, FaultInjector, InjectedFault, SetOptions, SetStatus, TomeSet};
use fulgurite_tome::{FAIL_POINTS, FailPoints};
use fulgurite_tome_core::{Layout, Parts, TomeId};
use fulgurite_units::{ByteCount, Duration, ManualClock, RandomStream, Ratio, Seed, UnixTime};
use tempfile::TempDir;

use crate::Tally;

/// Tomes of a set, besides lost ones.
pub(crate) const TOMES: u32 = 200;
/// Tomes added for lost ones.
const ADDED_MAX: u32 = 800;
/// An in-memory file system.
const MEMORY: &str = "/dev/shm";
/// Free bytes there for a short run, which takes a quarter of them.
const FREE_MIN: u64 = 256 << 20;
/// Bytes of a block.
pub(crate) const BLOCK: usize = 512;
/// Clock step once all tomes are idle.
const STEP: Duration = Duration::from_secs(2);
/// Most clock steps that an operation may take.
const STEPS_MAX: u32 = 20_000;
/// Bad blocks listed when a segment has more of them than parity.
const FLIPPED_MAX: usize = 4096;
/// Failed spin-ups in a row that are tolerated.
const SPIN_UP_FAILURES: u32 = 2;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// A byte of a block on a disk changes.
    BadBlock,
    /// A tome's messages to others are lost, until that is repaired.
    MessagesLost,
    /// Its messages arrive again.
    MessagesResume,
    /// A disk does not spin up, a few times.
    Slow,
    /// A tome cannot write, sync or commit any more, and fails.
    Broken,
}

/// A set of tomes on directories whose disks take no time.
pub(crate) struct World {
    folder: TempDir,
    disks: Arc<Simulated>,
    faults: FaultInjector,
    clock: ManualClock,
    /// Tomes with which the set is opened, including lost ones.
    tomes: u32,
    /// Those of them that were created: the set was opened with them.
    made: u32,
    pub(crate) lost: BTreeSet<TomeId>,
    /// Tomes with a bad block since all objects were last read.
    bad: BTreeSet<TomeId>,
    mute: BTreeSet<TomeId>,
    /// Locations of bad blocks in recent rounds.
    pub(crate) flipped: Vec<(TomeId, String)>,
    random: RandomStream,
}

impl World {
    pub(crate) fn new(seed: Seed, is_short: bool) -> Self {
        let places = (0..TOMES + ADDED_MAX).map(PlaceId::new);
        let disks = Simulated::new(places, Times::PELICAN, Ratio::ZERO, seed.child(b"disks"));
        Self {
            folder: if is_short { folder_in_memory() } else { tempfile::tempdir().unwrap() },
            disks: Arc::new(disks),
            faults: FaultInjector::default(),
            clock: ManualClock::at(UnixTime::from_millis(1_700_000_000_000)),
            tomes: TOMES,
            made: 0,
            lost: BTreeSet::new(),
            bad: BTreeSet::new(),
            mute: BTreeSet::new(),
            flipped: Vec::new(),
            random: seed.child(b"troubles").stream(),
        }
    }

    /// Opens the set, with all faults removed and added tomes created.
    pub(crate) fn open(&mut self) -> Arc<TomeSet> {
        // A new clock, as in a new process: no listener of the previous one remains.
        self.clock = ManualClock::at(self.clock.clock().now());
        self.mend();
        let root = |tome: TomeId| self.folder.path().join(format!("disk-{tome}"));
        let options = SetOptions {
            set: None,
            directory: self.folder.path().join("set"),
            roots: (0..self.tomes).map(TomeId::new).map(|tome| (tome, root(tome))).collect(),
            remotes: std::collections::BTreeMap::new(),
            layout: layout(),
            split: "3+2".parse().unwrap(),
            backend: Arc::clone(&self.disks) as _,
            spin_ups_a_day: None,
            idle: fulgurite_tome_core::limits::IDLE,
            clock: self.clock.clock(),
            entropy: Entropy::new(draw),
            fail: FailPoints::unarmed(&FAIL_POINTS),
            faults: self.faults.clone(),
        };
        self.made = self.tomes;
        Arc::new(TomeSet::init(options).unwrap())
    }

    /// Injects no more faults; failed tomes stay so until the set is opened again.
    pub(crate) fn mend(&mut self) {
        (0..self.tomes).for_each(|tome| self.faults.mend(TomeId::new(tome)));
        self.mute.clear();
    }

    /// Advances the clock once every tome is idle. Returns the status before that.
    pub(crate) async fn advance(&self, set: &TomeSet) -> SetStatus {
        let status = set.status().await;
        self.clock.advance(STEP);
        status
    }

    /// Lets time pass until the status meets a condition.
    pub(crate) async fn until(
        &self,
        set: &TomeSet,
        what: &str,
        is_met: impl Fn(&SetStatus) -> bool,
    ) {
        for _ in 0..STEPS_MAX {
            if is_met(&self.advance(set).await) {
                return;
            }
        }
        let SetStatus { reasons, moves, tomes, .. } = set.status().await;
        let tomes: Vec<_> = tomes.iter().filter(|t| t.unprotected.bytes.get() > 0).collect();
        panic!("never {what}: {reasons:?} {moves:?} {tomes:?}");
    }

    /// Runs a future while time passes.
    pub(crate) async fn wait<T>(
        &self,
        set: &TomeSet,
        what: &str,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = std::pin::pin!(future);
        for _ in 0..STEPS_MAX {
            tokio::select! {
                biased;
                done = &mut future => return done,
                _ = self.advance(set) => {}
            }
        }
        panic!("never {what}: {:?}", set.status().await.reasons);
    }

    /// Injects a fault somewhere.
    pub(crate) fn inject(&mut self, kind: FaultKind, tally: &mut Tally) {
        let tome = self.any_tome();
        let is_done = match kind {
            FaultKind::BadBlock => self.bad.insert(tome) && self.flip(tome),
            FaultKind::MessagesLost => {
                self.faults.inject(tome, InjectedFault::Send);
                self.mute.insert(tome)
            }
            FaultKind::MessagesResume => match self.mute.pop_first() {
                Some(tome) => {
                    self.faults.mend(tome);
                    true
                }
                None => false,
            },
            FaultKind::Slow => {
                let fault = Fault::SpinUpFails(SPIN_UP_FAILURES);
                self.disks.inject(PlaceId::new(tome.get()), fault).unwrap();
                true
            }
            FaultKind::Broken => {
                let fault = [
                    InjectedFault::Write,
                    InjectedFault::Room,
                    InjectedFault::Sync,
                    InjectedFault::Commit,
                ];
                let which = self.random.below(fault.len() as u64);
                self.faults.inject(tome, fault[usize::try_from(which).unwrap()]);
                true
            }
        };
        if is_done {
            *tally.faults.entry(format!("{kind:?}")).or_default() += 1;
        }
    }

    /// Records that everything was read, so that bad blocks are rebuilt.
    pub(crate) fn mark_repaired(&mut self) {
        self.bad.clear();
        let old = self.flipped.len().saturating_sub(FLIPPED_MAX);
        self.flipped.drain(..old);
    }

    /// Returns a random tome that is not lost.
    pub(crate) fn any_tome(&mut self) -> TomeId {
        let here: Vec<TomeId> =
            (0..self.made).map(TomeId::new).filter(|tome| !self.lost.contains(tome)).collect();
        here[usize::try_from(self.random.below(here.len() as u64)).unwrap()]
    }

    /// Removes a tome for good, and adds one. The set must not be open.
    pub(crate) fn lose(&mut self, tome: TomeId) {
        for folder in [format!("disk-{tome}"), format!("set/tome-{:04}", tome.get())] {
            std::fs::remove_dir_all(self.folder.path().join(folder)).unwrap();
        }
        assert!(self.lost.insert(tome), "it was there");
        self.tomes += 1;
        assert!(self.tomes <= TOMES + ADDED_MAX, "there is a place for one more");
    }

    /// Changes one byte of a random block. Returns whether there was a block.
    fn flip(&mut self, tome: TomeId) -> bool {
        let folder: PathBuf = self.folder.path().join(format!("disk-{tome}"));
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_blocks = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("blocks-") && !name.ends_with(".new")
        };
        let mut files: Vec<PathBuf> = entries.filter(is_blocks).collect();
        files.sort();
        if files.is_empty() {
            return false;
        }
        let path = &files[usize::try_from(self.random.below(files.len() as u64)).unwrap()];
        let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let slot = (LABEL_BYTES + BLOCK) as u64;
        let slots = (file.metadata().unwrap().len() - HEADER_BYTES as u64) / slot;
        if slots == 0 {
            return false;
        }
        let at = HEADER_BYTES as u64 + self.random.below(slots) * slot + self.random.below(slot);
        let what = format!("{} slot {}", path.display(), (at - HEADER_BYTES as u64) / slot);
        self.flipped.push((tome, what));
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << self.random.below(8)], at).unwrap();
        true
    }
}

/// Returns a folder in memory if there is room for it.
fn folder_in_memory() -> TempDir {
    let free = rustix::fs::statvfs(MEMORY).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
    let made = if free >= FREE_MIN { tempfile::tempdir_in(MEMORY) } else { tempfile::tempdir() };
    made.unwrap()
}

fn layout() -> Layout {
    let (block, segment) = (ByteCount::new(BLOCK as u64), "4+2".parse().unwrap());
    Layout::new(Parts { block, segment, segments: 3, regions: 2, spares: 60 }).unwrap()
}

/// Returns bytes that no other call draws.
fn draw() -> [u8; 16] {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    let mut bytes = [0; 16];
    Seed::new(DRAWN.fetch_add(1, Ordering::Relaxed)).stream().fill(&mut bytes);
    bytes
}
