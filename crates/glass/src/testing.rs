//! The glass tier in a folder, with bodies in memory, for tests.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Deref, RangeInclusive};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_catalog::{
    Batch, CatalogError, Committer, Direction, FjallConfig, FjallStore, KeyRange, KeyValue,
    ReadView, Space, Transaction, Visitor,
};
use fulgurite_tier::FailPoints;
use fulgurite_units::{ArchiveId, ByteCount, ManualClock, ObjectId, PlatterId, SetId, UnixTime};

use crate::config::{
    Geometry, GlassConfig, LibraryOptions, LibraryShape, MediumOptions, Policy, SHARD_SIZE_DEFAULT,
};
use crate::library_driver::LiveLibrary;
use crate::plan::plan_set;
use crate::rows::{PLANS, SPACES};
use crate::seal::Sealer;
use crate::{
    Backlog, Bodies, Context, Excluded, FAIL_POINTS, FarLibrary, IngestedBody, KeepReason,
    PlacedShard, PlatterFiles, ReadAt, Released, Result, Shard, Shared, WaitingBody, cipher_crc,
};

const NOW: UnixTime = UnixTime::from_millis(1_767_609_000_250);
/// Bytes of each entry.
const ENTRY_BYTES: u32 = 100;

pub(crate) fn config() -> GlassConfig {
    GlassConfig {
        geometry: Geometry::profile("demo").unwrap(),
        shard_size: SHARD_SIZE_DEFAULT,
        medium: MediumOptions::perfect(1),
        library: LibraryOptions {
            shape: LibraryShape::small(),
            time_scale: 0.0,
            seed: 1,
            policy: Policy::default(),
            log: None,
        },
        far_redundancy: 0,
    }
}

/// A catalog that counts reads of plan rows.
struct Counting<V>(V, Arc<AtomicU64>);

impl<V: Deref<Target: ReadView> + Send + Sync> ReadView for Counting<V> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        self.1.fetch_add(u64::from(space == PLANS), Ordering::Relaxed);
        self.0.get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        self.0.scan(space, range, direction, &mut |key, value| {
            self.1.fetch_add(u64::from(space == PLANS), Ordering::Relaxed);
            visit(key, value)
        })
    }
}

impl KeyValue for Counting<Arc<FjallStore>> {
    fn spaces(&self) -> &[Space] {
        self.0.spaces()
    }

    fn snapshot(&self) -> Box<dyn ReadView> {
        Box::new(Counting(self.0.snapshot(), Arc::clone(&self.1)))
    }

    fn apply(&self, batch: Batch) -> Result<(), CatalogError> {
        self.0.apply(batch)
    }

    fn check(&self) -> Result<(), CatalogError> {
        self.0.check()
    }

    fn reopen(&self) -> Result<(), CatalogError> {
        self.0.reopen()
    }
}

/// Creates the context of the glass tier in this folder, and the count of plan rows read.
fn context(
    folder: &Path,
    config: &GlassConfig,
    far: Vec<Arc<dyn FarLibrary>>,
) -> (Context, Arc<AtomicU64>) {
    let (catalog, platters) = (folder.join("catalog"), folder.join("platters"));
    std::fs::create_dir(&catalog).unwrap();
    std::fs::create_dir(&platters).unwrap();
    let store = FjallStore::open(&catalog, &SPACES, &FjallConfig::default()).unwrap();
    let read = Arc::<AtomicU64>::default();
    let catalog: Arc<dyn KeyValue> = Arc::new(Counting(Arc::new(store), Arc::clone(&read)));
    let committer = Committer::start(Arc::clone(&catalog)).unwrap();
    let shared = Shared {
        archive: ArchiveId::from_bytes([9; 16]),
        catalog,
        committer: Arc::new(committer),
        folder: platters,
        clock: ManualClock::at(NOW).clock(),
        panics: Arc::default(),
        fail: Arc::new(FailPoints::unarmed(&FAIL_POINTS)),
        stopping: Arc::default(),
        far,
    };
    (Context::new(shared, config).unwrap(), read)
}

/// A catalog with a library and a sealer, without threads of its own.
pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) context: Arc<Context>,
    pub(crate) bodies: Arc<MemoryBodies>,
    library: LiveLibrary,
    pub(crate) files: PlatterFiles,
    pub(crate) sealer: Sealer,
    plan_rows_read: Arc<AtomicU64>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_far(0, Vec::new())
    }

    /// Creates one whose sets have this many platters in far libraries.
    pub(crate) fn with_far(far_redundancy: u16, far: Vec<Arc<dyn FarLibrary>>) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let config = GlassConfig { far_redundancy, ..config() };
        let (context, plan_rows_read) = context(dir.path(), &config, far);
        let context = Arc::new(context);
        let track_size = ByteCount::mib(1);
        let library = LiveLibrary::start(&config.library, track_size, &context.panics).unwrap();
        let bodies = Arc::<MemoryBodies>::default();
        let shared: Arc<dyn Bodies> = Arc::clone(&bodies) as _;
        let sealer = Sealer::new(&context, &shared, &library, &Arc::default(), &Arc::default());
        let files = context.files.clone();
        Self { _dir: dir, context, bodies, library, files, sealer, plan_rows_read }
    }

    pub(crate) fn plan(&self) -> SetId {
        self.plan_until(u64::MAX - 1)
    }

    pub(crate) fn plan_until(&self, until: u64) -> SetId {
        plan_set(&self.context, &*self.bodies, until, &Excluded::default()).unwrap().unwrap()
    }

    pub(crate) fn count(&self, space: Space) -> usize {
        let all = KeyRange::prefix(b"");
        self.context.catalog.range(space, &all, Direction::Ascending, 9999).unwrap().len()
    }

    /// Returns the plan rows read since the last call.
    pub(crate) fn plan_rows_read(&self) -> u64 {
        self.plan_rows_read.swap(0, Ordering::Relaxed)
    }

    /// Truncates a platter's file to half its size.
    pub(crate) fn damage(&self, platter: PlatterId) {
        let path = self.files.path(platter);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.library.stop();
    }
}

/// Bodies in memory, each a file by itself. Changes take effect before their transaction commits.
#[derive(Debug, Default)]
pub(crate) struct MemoryBodies(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    waiting: BTreeMap<u64, Body>,
    on_glass: u64,
}

#[derive(Clone, Debug)]
struct Body {
    id: ObjectId,
    name: String,
    bytes: Arc<[u8]>,
    placed: Vec<Shard>,
}

impl Body {
    /// Returns the bytes from the start that lie on glass without a gap.
    fn placed_bytes(&self) -> u64 {
        let next =
            |end, shard: &Shard| if shard.body_offset == end { end + shard.bytes } else { end };
        self.placed.iter().fold(0, next)
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl MemoryBodies {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, name: &str, bytes: usize) {
        let mut state = self.lock();
        let place = state.next();
        let id = ObjectId::from_bytes(u128::from(place).to_le_bytes());
        let body =
            Body { id, name: name.to_owned(), bytes: vec![9; bytes].into(), placed: Vec::new() };
        state.waiting.insert(place, body);
    }

    pub(crate) fn delete(&self, name: &str) {
        self.lock().waiting.retain(|_, body| body.name != name);
    }

    /// Returns the places of waiting bodies, in order.
    pub(crate) fn places(&self) -> Vec<u64> {
        self.lock().waiting.keys().copied().collect()
    }

    /// Returns the number of bodies that no longer wait.
    pub(crate) fn on_glass(&self) -> u64 {
        self.lock().on_glass
    }

    pub(crate) fn give_new_places(&self, places: &[u64]) -> Option<RangeInclusive<u64>> {
        let mut state = self.lock();
        let mut range: Option<RangeInclusive<u64>> = None;
        for place in places {
            let Some(body) = state.waiting.remove(place) else { continue };
            let new = state.next();
            state.waiting.insert(new, body);
            range = Some(range.map_or(new..=new, |range| *range.start()..=new));
        }
        range
    }
}

/// Bytes in memory.
struct Bytes(Arc<[u8]>);

impl ReadAt for Bytes {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let from = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.0[from..from + buffer.len()]);
        Ok(())
    }
}

impl Bodies for MemoryBodies {
    fn backlog(&self) -> Result<Backlog> {
        let state = self.lock();
        let bytes = state.waiting.values().map(|body| body.bytes.len() as u64).sum();
        Ok(Backlog { last: state.last, bytes })
    }

    fn waiting(
        &self,
        until: u64,
        wanted: &dyn Fn(u64) -> bool,
        take: &mut dyn FnMut(WaitingBody) -> ControlFlow<()>,
    ) -> Result<()> {
        let waiting = self.lock().waiting.clone();
        for (place, body) in waiting.range(..=until).filter(|(place, _)| wanted(**place)) {
            let waits = WaitingBody {
                place: *place,
                body: body.id,
                file: body.id,
                affinity_key: body.name.clone().into_bytes(),
                bytes: body.bytes.len() as u64,
                from: body.placed_bytes(),
                entry_bytes: ENTRY_BYTES,
            };
            if take(waits).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn body(&self, place: u64) -> Result<Option<IngestedBody>> {
        Ok(self.lock().waiting.get(&place).map(|body| {
            let mut crc = cipher_crc();
            crc.update(&body.bytes);
            let (bytes, placed) = (body.bytes.len() as u64, body.placed.clone());
            IngestedBody { body: body.id, bytes, digest: crc.finalize(), placed }
        }))
    }

    fn open(&self, place: u64) -> Result<Option<Box<dyn ReadAt>>> {
        let state = self.lock();
        let found = state.waiting.get(&place).map(|body| Arc::clone(&body.bytes));
        Ok(found.map(|bytes| -> Box<dyn ReadAt> { Box::new(Bytes(bytes)) }))
    }

    fn entry(&self, place: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.lock().waiting.get(&place).map(|_| vec![7; ENTRY_BYTES as usize]))
    }

    fn record_placed(&self, _tx: &mut Transaction<'_>, safe: &[PlacedShard]) -> Result<Released> {
        let mut released = Released::default();
        let mut state = self.lock();
        for placed in safe {
            let Some(body) = state.waiting.get_mut(&placed.place) else { continue };
            body.placed.push(placed.shard);
            released.bytes += placed.shard.bytes;
            if body.placed_bytes() == body.bytes.len() as u64 {
                state.waiting.remove(&placed.place);
                state.on_glass += 1;
                released.bodies += 1;
                released.files += 1;
            }
        }
        Ok(released)
    }

    fn keep_staged(
        &self,
        _tx: &mut Transaction<'_>,
        places: &[u64],
        reason: KeepReason,
    ) -> Result<()> {
        if reason == KeepReason::Damaged {
            self.lock().waiting.retain(|place, _| !places.contains(place));
        }
        Ok(())
    }

    fn requeue(
        &self,
        _tx: &mut Transaction<'_>,
        places: &[u64],
    ) -> Result<Option<RangeInclusive<u64>>> {
        Ok(self.give_new_places(places))
    }
}
