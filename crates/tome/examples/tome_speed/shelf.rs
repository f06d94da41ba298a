//! A set of 16 tomes in directories of one disk, whose own disks are simulated and take no time,
//! and objects for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{SystemTime, UNIX_EPOCH};

use fulgurite_disks::{PlaceId, Simulated, Times};
use fulgurite_tome::{Entropy, FaultInjector, SetOptions, TomeSet, TomesError};
use fulgurite_tome::{FAIL_POINTS, FailPoints};
use fulgurite_tome_core::{Layout, Parts, TomeId};
use fulgurite_units::{ByteCount, Clock, Instant, ManualClock, Ratio, Seed, UnixTime};

const TOMES: u32 = 16;
/// Bytes of a block, and of an object: the largest one possible.
pub(crate) const BLOCK: usize = 128 << 10;
pub(crate) const OBJECT: usize = 64 * BLOCK;
/// Retry interval of a client that was refused.
const RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);
/// Start time of the manual clock.
const BEGIN: UnixTime = UnixTime::from_millis(1_700_000_000_000);

pub(crate) struct Shelf {
    folder: PathBuf,
    pub(crate) set: TomeSet,
    runtime: tokio::runtime::Runtime,
    /// Advanced by the measurement, if it is the set's clock.
    pub(crate) clock: ManualClock,
    noise: Vec<u8>,
}

impl Shelf {
    /// Returns a new set in an empty folder, whose clock stands still until it is advanced.
    pub(crate) fn new(folder: &Path) -> Self {
        let clock = ManualClock::at(BEGIN);
        Self::with_clock(folder, clock.clock(), clock)
    }

    /// The same with the clock of this machine.
    pub(crate) fn with_real_clock(folder: &Path) -> Self {
        let begin = std::time::Instant::now();
        let wall = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            UnixTime::from_millis(u64::try_from(since.as_millis()).unwrap())
        };
        let passed =
            move || Instant::from_nanos(u64::try_from(begin.elapsed().as_nanos()).unwrap());
        Self::with_clock(folder, Clock::new(wall, passed), ManualClock::at(BEGIN))
    }

    fn with_clock(folder: &Path, clock: Clock, manual_clock: ManualClock) -> Self {
        let folder = folder.join("tomes");
        let set = TomeSet::init(options(&folder, clock)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut noise = vec![0; OBJECT + (1 << 20)];
        Seed::new(1).stream().fill(&mut noise);
        Self { folder, set, runtime, clock: manual_clock, noise }
    }

    /// Incompressible bytes.
    pub(crate) fn noise(&self) -> &[u8] {
        &self.noise
    }

    /// Returns the bytes of an object; all are different.
    pub(crate) fn object(&self, number: usize, bytes: usize) -> Vec<u8> {
        self.noise[number % (1 << 20)..][..bytes].to_vec()
    }

    /// Runs a future to its end.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Puts an object; returns its tome.
    pub(crate) async fn put(&self, name: &str, bytes: &[u8]) -> TomeId {
        retry_while_busy(|| self.set.put(name, bytes.to_vec())).await
    }

    /// Waits until an object is protected.
    pub(crate) async fn protected(&self, name: &str) {
        retry_while_busy(|| self.set.protected(name)).await;
    }

    /// Puts objects concurrently and waits until they are protected; calls back when the last one
    /// was acknowledged.
    pub(crate) fn put_all(&self, objects: &[(String, Vec<u8>)], local: impl FnOnce()) {
        self.wait(async {
            join_all(objects.iter().map(|(name, bytes)| self.put(name, bytes))).await;
            local();
            join_all(objects.iter().map(|(name, _)| self.protected(name))).await;
        });
    }

    /// Returns all files with blocks.
    pub(crate) fn blocks(&self) -> Vec<PathBuf> {
        let disks = (0..TOMES).map(|tome| disk(&self.folder, tome));
        disks
            .flat_map(|disk| std::fs::read_dir(disk).unwrap())
            .map(|file| file.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("blocks-"))
            .collect()
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.set.stop();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Retries a request while its tome is busy: a tome refuses clients when messages of others fill
/// its inbox.
async fn retry_while_busy<T, F: Future<Output = fulgurite_tome::Result<T>>>(
    request: impl Fn() -> F,
) -> T {
    loop {
        match request().await {
            Err(TomesError::Busy { .. }) => tokio::time::sleep(RETRY_INTERVAL).await,
            done => return done.unwrap(),
        }
    }
}

/// Waits for all futures.
async fn join_all<T>(all: impl Iterator<Item = impl Future<Output = T>>) {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn disk(folder: &Path, tome: u32) -> PathBuf {
    folder.join(format!("disk-{tome}"))
}

/// Returns disks of 16 regions of 256 blocks.
fn layout() -> Layout {
    let (block, segment) = (ByteCount::new(BLOCK as u64), "62+2".parse().unwrap());
    Layout::new(Parts { block, segment, segments: 4, regions: 16, spares: 512 }).unwrap()
}

fn options(folder: &Path, clock: Clock) -> SetOptions {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    let disks =
        Simulated::new((0..TOMES).map(PlaceId::new), Times::PELICAN, Ratio::ZERO, Seed::new(1));
    let roots: BTreeMap<TomeId, PathBuf> =
        (0..TOMES).map(|tome| (TomeId::new(tome), disk(folder, tome))).collect();
    roots.values().for_each(|root| std::fs::create_dir_all(root).unwrap());
    SetOptions {
        set: None,
        directory: folder.join("set"),
        roots,
        remotes: BTreeMap::new(),
        layout: layout(),
        split: "13+3".parse().unwrap(),
        backend: Arc::new(disks),
        spin_ups_a_day: None,
        idle: fulgurite_tome_core::limits::IDLE,
        clock,
        entropy: Entropy::new(|| {
            let mut bytes = [0; 16];
            Seed::new(DRAWN.fetch_add(1, Ordering::Relaxed)).stream().fill(&mut bytes);
            bytes
        }),
        fail: FailPoints::unarmed(&FAIL_POINTS),
        faults: FaultInjector::default(),
    }
}
