//! The embedded backend: an LSM store of the crate fjall in one directory.
//!
//! What fjall guarantees, from reading its source (3.1.13): a batch is written to the journal and
//! `fdatasync`ed before any of its rows enter the memtables, so a row that can be read is durable.
//! A failed journal write or background flush poisons the store until it is reopened, which
//! [`KeyValue::reopen`] does in place. Opening begins with an empty journal: what the old one held
//! is in synced tables before the store is written to (design note 0011).
//!
//! What it does not guarantee: a fjall snapshot taken while a batch enters the memtables may see a
//! part of it, and more of it later, because a flush or compaction that ends at that moment
//! publishes a sequence number above the batch's. So snapshots are taken here only between batches.
//! The last one is kept, and every read goes through it or a copy.
//!
//! ```text
//!   apply --> journal, synced --> memtable of each space --rotate--> tables, compacted
//!                                 (write_buffer, all spaces)          (block_cache)
//! ```
//!
//! Memtables are rotated here, all spaces together, each time `write_buffer` bytes were written.
//! That bounds the memory over all spaces, lets whole journals go, and bounds what has to be
//! replayed after a crash.
//!
//! fjall also trusts its files at open. It takes a missing part for one that was never created, a
//! damaged record of a journal for the end of it, and the list of tables as it finds it; rows are
//! then silently lost, and their tables deleted. It reads a block of a table only when it needs it,
//! and runs into damage then. The modules `layout`, `journal` and `verify` check the directory and
//! every table first. Damage found later is kept for [`FjallStore::damage`].

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::ops::{ControlFlow, Deref};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};
use fulgurite_units::ByteCount;

use self::found_damage::FoundDamage;
use self::layout::Tables;
use crate::error::panic_message;
use crate::limits::{
    KEY_BYTES_MAX, READERS_BLOCKED_MAX, READERS_BLOCKED_TIMES_MAX, TABLE_CHECK_INTERVAL,
};
use crate::{Batch, CatalogError, Direction, KeyRange, KeyValue, ReadView, Space, Visitor};

mod bit_repair;
mod compaction;
mod cut_batch;
mod errors;
mod found_damage;
mod journal;
mod layout;
mod load;
mod salvage;
mod table;
mod table_list;
mod verify;

pub use cut_batch::CutBatch;
pub use salvage::{Damage, SalvageReport, SalvageVisitor};

/// Memory and threads that the store may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FjallConfig {
    /// Size of the cache for blocks of tables.
    pub block_cache: ByteCount,
    /// Rows in memory, over all spaces, before they are flushed to tables. During a flush, and if
    /// the workers fall behind, up to four times as much is in memory; then writers wait.
    pub write_buffer: ByteCount,
    /// Threads that flush and compact tables. With one, a flush waits for a running compaction, and
    /// writers wait for the flush: 0.3 s at worst instead of 0.07 s.
    pub worker_count: usize,
}

impl Default for FjallConfig {
    fn default() -> Self {
        Self { block_cache: ByteCount::mib(24), write_buffer: ByteCount::mib(16), worker_count: 2 }
    }
}

/// Rotated memtables that may be pending before writers wait. fjall itself stalls at four, in a
/// loop that does not end if the flush failed.
const SEALED_MEMTABLES_MAX: usize = 2;

/// Tables on level zero before writers wait for compaction. fjall itself stalls at 20.
const LEVEL_ZERO_TABLES_MAX: usize = 18;

/// Poll interval of a waiting writer.
const STALL_POLL: Duration = Duration::from_millis(1);

/// Open files kept by the store.
const OPEN_FILES_MAX: usize = 256;

/// The engine of a store, or why the store is closed.
type EngineState = Result<Arc<Engine>, CatalogError>;

/// An ordered key-value store in a directory of its own.
pub struct FjallStore {
    path: PathBuf,
    spaces: Vec<Space>,
    config: FjallConfig,
    cut_batch: Option<CutBatch>,
    /// The error while it could not be reopened.
    engine: RwLock<EngineState>,
    /// When tables were last verified after a failure.
    checked: Mutex<Option<Instant>>,
    found_damage: Arc<FoundDamage>,
}

impl FjallStore {
    /// Opens the store in `path`, and creates it if the directory is absent or empty. Missing
    /// spaces are added. Every table is read and verified first.
    ///
    /// The caller must hold a lock on the parent directory: two processes must not create the same
    /// store at once. Afterwards the store itself is locked.
    pub fn open(path: &Path, spaces: &[Space], config: &FjallConfig) -> Result<Self, CatalogError> {
        Self::open_if(path, spaces, config, |_| Ok(()))
    }

    /// Like `open`, but only if `accept` agrees to the content of the store. If not, the store
    /// stays as it was found, except for a torn batch, which is cut off.
    pub fn open_if<E: From<CatalogError>>(
        path: &Path,
        spaces: &[Space],
        config: &FjallConfig,
        accept: impl FnOnce(&dyn ReadView) -> Result<(), E>,
    ) -> Result<Self, E> {
        if layout::is_absent(path)? {
            Self::create(path, spaces, config)?;
        }
        let found_damage = Arc::<FoundDamage>::default();
        let at = OpenParameters { path, spaces, config, found_damage: &found_damage };
        let (engine, cut_batch) = Engine::open_settled(at, Tables::Checked, accept)?;
        Ok(Self {
            path: path.to_owned(),
            spaces: spaces.to_vec(),
            config: *config,
            cut_batch,
            engine: RwLock::new(Ok(Arc::new(engine))),
            checked: Mutex::default(),
            found_damage,
        })
    }

    // Built under a temporary name and renamed: a directory that exists is complete.
    fn create(path: &Path, spaces: &[Space], config: &FjallConfig) -> Result<(), CatalogError> {
        let part = layout::clear_part(path)?;
        let at = OpenParameters { path: &part, spaces, config, found_damage: &Arc::default() };
        let engine = Engine::open(at, &layout::Directories::new())?;
        layout::write_spaces(&part, &engine.directories()?)?;
        drop(engine);
        layout::publish(&part, path)
    }

    /// Reads the store at `path`, which must not be open, without opening or changing it. Calls
    /// `visit` with the newest readable version of each row of `spaces`, by space and key. Where
    /// the newest version is lost, a row may be an older one, or one that was deleted. The report
    /// lists the damage; it is empty for an undamaged store.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn salvage(
        path: &Path,
        spaces: &[Space],
        visit: &mut SalvageVisitor<'_>,
    ) -> Result<SalvageReport, CatalogError> {
        salvage::salvage(path, spaces, visit)
    }

    /// Returns the torn batch that was cut off at open, if there was one. It was not acknowledged,
    /// unless the disk lost synced data.
    #[must_use]
    pub const fn cut_batch(&self) -> Option<&CutBatch> {
        self.cut_batch.as_ref()
    }

    /// Returns damage found since the store was opened: a block or a row that cannot be read, or a
    /// table that is not as it was written. Reopening the store does not repair it.
    #[must_use]
    pub fn damage(&self) -> Option<CatalogError> {
        self.found_damage.get()
    }

    /// Returns the bytes of all files of the store.
    pub fn disk_bytes(&self) -> Result<ByteCount, CatalogError> {
        let bytes = self.engine()?.database.disk_space();
        bytes.map(ByteCount::new).map_err(|error| errors::write("measure the store", error))
    }

    fn engine(&self) -> Result<Arc<Engine>, CatalogError> {
        self.engine.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn view(&self) -> Result<View<Arc<Engine>>, CatalogError> {
        let engine = self.engine()?;
        Ok(View { snapshot: engine.snapshot(), engine })
    }

    fn place(&self) -> OpenParameters<'_> {
        OpenParameters {
            path: &self.path,
            spaces: &self.spaces,
            config: &self.config,
            found_damage: &self.found_damage,
        }
    }

    /// Verifies tables after a failure, before the store is reopened: a compaction may have run
    /// into a damaged one, and would do so again.
    fn check_tables(&self) -> Result<(), CatalogError> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.is_some_and(|at| at.elapsed() < TABLE_CHECK_INTERVAL) {
            return Ok(());
        }
        *checked = Some(Instant::now());
        layout::check_tables(&self.path).inspect_err(|error| self.found_damage.record(error))
    }

    /// Locks the engine once it has no readers. New readers are blocked only briefly at a time,
    /// because one may need a second view to finish its first.
    fn lock_without_readers(&self) -> Result<RwLockWriteGuard<'_, EngineState>, CatalogError> {
        for _ in 0..READERS_BLOCKED_TIMES_MAX {
            let engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
            let until = Instant::now() + READERS_BLOCKED_MAX;
            while Instant::now() < until {
                if engine.as_ref().map_or(true, |engine| Arc::strong_count(engine) == 1) {
                    return Ok(engine);
                }
                std::thread::sleep(STALL_POLL);
            }
            drop(engine);
            std::thread::sleep(READERS_BLOCKED_MAX);
        }
        Err(CatalogError::InUse)
    }
}

impl ReadView for FjallStore {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        self.view()?.get(space, key)
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        self.view()?.scan(space, range, direction, visit)
    }

    fn report_damage(&self, error: &CatalogError) {
        self.found_damage.record(error);
    }
}

impl KeyValue for FjallStore {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn snapshot(&self) -> Box<dyn ReadView> {
        match self.view() {
            Ok(view) => Box::new(view),
            Err(error) => Box::new(Unreadable(error)),
        }
    }

    fn apply(&self, batch: Batch) -> Result<(), CatalogError> {
        self.engine()?.apply(batch)
    }

    fn check(&self) -> Result<(), CatalogError> {
        self.engine()?.check_usable()
    }

    fn reopen(&self) -> Result<(), CatalogError> {
        // A damaged table stays damaged, so do not block readers for it again.
        if let Some(damage) = self.found_damage.damaged_file() {
            return Err(damage);
        }
        // While the store is usable, rows are flushed before readers are blocked.
        let is_flushed = match self.engine() {
            Ok(engine) if engine.check_usable().is_ok() => engine.flush().map(|()| true)?,
            _ => false,
        };
        let mut place = self.lock_without_readers()?;
        *place = Err(CatalogError::Closed { reason: "it is being reopened".to_owned() });
        // The journal of a flushed store is not replayed: that would bring back deletions that
        // compaction has dropped.
        let settled = if is_flushed {
            layout::renew_journal(&self.path)
        } else {
            layout::sync_table_directories(&self.path)
        };
        let accept = |_: &dyn ReadView| Ok::<(), CatalogError>(());
        let checked = settled.and_then(|()| if is_flushed { Ok(()) } else { self.check_tables() });
        let opened =
            checked.and_then(|()| Engine::open_settled(self.place(), Tables::Trusted, accept));
        let (engine, result) = match opened {
            Ok((engine, _)) => (Ok(engine), Ok(())),
            // If tables cannot be written, or one is damaged, the store can still be read.
            Err(error) => (Engine::open_to_read(self.place()), Err(error)),
        };
        *place = engine.map(Arc::new).map_err(|error| CatalogError::closed(&error));
        result
    }
}

impl Drop for FjallStore {
    /// Leaves an empty journal, so that the next open has nothing to replay. Best effort: every row
    /// is durable in the journal.
    fn drop(&mut self) {
        let place = self.engine.get_mut().unwrap_or_else(PoisonError::into_inner);
        // An open snapshot keeps the store open.
        let closed = Err(CatalogError::Closed { reason: "it was dropped".to_owned() });
        let Some(engine) = mem::replace(place, closed).ok().and_then(Arc::into_inner) else {
            return;
        };
        let flushed = engine.check_usable().and_then(|()| engine.flush());
        drop(engine);
        if let Err(error) = flushed.and_then(|()| layout::renew_journal(&self.path)) {
            tracing::warn!(%error, "catalog closes with rows that are only in its journal");
        }
    }
}

impl fmt::Debug for FjallStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FjallStore").field("spaces", &self.spaces).finish_non_exhaustive()
    }
}

/// Parameters for opening a database.
#[derive(Clone, Copy)]
struct OpenParameters<'a> {
    path: &'a Path,
    spaces: &'a [Space],
    config: &'a FjallConfig,
    found_damage: &'a Arc<FoundDamage>,
}

/// The open database; closed when the store and its last snapshot are gone.
struct Engine {
    database: Database,
    keyspaces: BTreeMap<&'static str, Keyspace>,
    write_buffer: ByteCount,
    writer: Mutex<Writer>,
    latest: RwLock<fjall::Snapshot>,
    /// Set when its journal holds batches that are not in tables, so that it must not be written
    /// to.
    is_read_only: bool,
    found_damage: Arc<FoundDamage>,
}

/// State used only by the thread that writes a batch.
#[derive(Default)]
struct Writer {
    unrotated_bytes: u64,
}

impl Engine {
    /// Opens the database with an empty journal. Also returns the torn batch that was cut off, if
    /// any.
    ///
    /// A journal may have pages that can be read but never reached the disk: those of a failed
    /// sync, in this process or the previous one. So nothing is appended to an existing journal.
    /// Its rows are flushed to new tables and synced, and then an empty journal replaces it, but
    /// not before `accept` has seen the rows.
    fn open_settled<E: From<CatalogError>>(
        at: OpenParameters<'_>,
        tables: Tables,
        accept: impl FnOnce(&dyn ReadView) -> Result<(), E>,
    ) -> Result<(Self, Option<CutBatch>), E> {
        let path = at.path;
        let (known, cut) = layout::check(path, tables)?;
        let is_settled = !layout::has_batches(path)?;
        let engine = Self::open(at, &known)?;
        accept(&View { snapshot: engine.snapshot(), engine: &engine })?;
        let mut directories = known.clone();
        directories.extend(engine.directories()?);
        layout::write_spaces(path, &directories)?;
        if is_settled {
            return Ok((engine, cut));
        }
        engine.flush()?;
        drop(engine);
        layout::renew_journal(path)?;
        Ok((Self::open(at, &directories)?, cut))
    }

    /// Opens the database read-only, as it is.
    fn open_to_read(at: OpenParameters<'_>) -> Result<Self, CatalogError> {
        let (known, _) = layout::check(at.path, Tables::Trusted)?;
        let mut engine = Self::open(at, &known)?;
        engine.is_read_only = true;
        Ok(engine)
    }

    /// Opens the database, which must have all keyspaces of `known`.
    fn open(at: OpenParameters<'_>, known: &layout::Directories) -> Result<Self, CatalogError> {
        let OpenParameters { path, spaces, config, found_damage } = at;
        // Damage that the layout check does not detect may cause a panic inside.
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let database = Database::builder(path)
                .cache_size(config.block_cache.get())
                .worker_threads(config.worker_count.max(1))
                .max_cached_files(Some(OPEN_FILES_MAX))
                .open()
                .map_err(|error| errors::open(path, error))?;
            if let Some(lost) = known.keys().find(|name| !database.keyspace_exists(name)) {
                return Err(errors::damaged(path, format!("space {lost} is missing")));
            }
            let mut keyspaces = BTreeMap::new();
            for space in spaces {
                let keyspace = database
                    .keyspace(space.name(), KeyspaceCreateOptions::default)
                    .map_err(|error| errors::open(path, error))?;
                keyspaces.insert(space.name(), keyspace);
            }
            Ok((database, keyspaces))
        }));
        let (database, keyspaces) = opened.unwrap_or_else(|payload| {
            Err(errors::damaged(path, format!("opening panicked: {}", panic_message(&*payload))))
        })?;
        let latest = RwLock::new(database.snapshot());
        let (write_buffer, writer) = (config.write_buffer, Mutex::default());
        let (found_damage, is_read_only) = (Arc::clone(found_damage), false);
        Ok(Self { database, keyspaces, write_buffer, writer, latest, is_read_only, found_damage })
    }

    /// Returns a snapshot after the last batch. Never waits for a batch that is being written.
    fn snapshot(&self) -> fjall::Snapshot {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Maps an error of reading `space`, and records damage.
    fn read_error(&self, space: Space, error: fjall::Error) -> CatalogError {
        let error = errors::read(space, error);
        self.found_damage.record(&error);
        error
    }

    fn keyspace(&self, space: Space) -> Result<&Keyspace, CatalogError> {
        let keyspace = self.keyspaces.get(space.name());
        keyspace.ok_or(CatalogError::UnknownSpace { space: space.name() })
    }

    /// Returns the directory of each open space.
    fn directories(&self) -> Result<layout::Directories, CatalogError> {
        let number = |(name, keyspace): (&&str, &Keyspace)| {
            let number = layout::directory_number(keyspace.path())?;
            Ok(((*name).to_owned(), number))
        };
        self.keyspaces.iter().map(number).collect()
    }

    fn apply(&self, batch: Batch) -> Result<(), CatalogError> {
        // A panic while the lock was held came from fjall. The fate of that batch is unknown, as
        // after an error, and the committer writes no more.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_usable()?;
        for space in batch.spaces() {
            self.wait_for_workers(self.keyspace(space)?)?;
        }
        let bytes = batch.bytes() as u64;
        let rows = batch.row_count();
        let mut writes = fjall::OwnedWriteBatch::with_capacity(self.database.clone(), rows)
            .durability(Some(PersistMode::SyncData));
        for (space, key, value) in batch.into_writes() {
            let keyspace = self.keyspace(space)?;
            match value {
                Some(value) => writes.insert(keyspace, key, value),
                None => writes.remove(keyspace, key),
            }
        }
        writes.commit().map_err(|error| errors::write("write a batch", error))?;
        let content = self.database.snapshot();
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = content;
        writer.unrotated_bytes += bytes;
        if writer.unrotated_bytes >= self.write_buffer.get() {
            self.rotate_memtables()?;
            writer.unrotated_bytes = 0;
        }
        Ok(())
    }

    // Ends when the backlog is gone or the store is poisoned, so a failed flush gives an error here
    // instead of an endless stall in the commit.
    fn wait_for_workers(&self, keyspace: &Keyspace) -> Result<(), CatalogError> {
        while keyspace.sealed_memtable_count() > SEALED_MEMTABLES_MAX
            || keyspace.l0_table_count() > LEVEL_ZERO_TABLES_MAX
        {
            self.check_usable()?;
            std::thread::sleep(STALL_POLL);
        }
        Ok(())
    }

    fn check_usable(&self) -> Result<(), CatalogError> {
        if self.is_read_only {
            let reason = "the rows of its journal are not in tables yet".to_owned();
            return Err(CatalogError::Poisoned { reason });
        }
        // Persisting to the operating system costs nothing after a synced commit. It is called only
        // because it checks the poison flag.
        let usable = self.database.persist(PersistMode::Buffer);
        usable.map_err(|error| errors::write("write the journal", error))
    }

    /// Flushes all rows to tables, and returns once they are synced.
    fn flush(&self) -> Result<(), CatalogError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.rotate_memtables()?;
        writer.unrotated_bytes = 0;
        while self.keyspaces.values().any(|space| space.sealed_memtable_count() > 0) {
            self.check_usable()?;
            std::thread::sleep(STALL_POLL);
        }
        Ok(())
    }

    /// Rotates the memtables, which the workers then flush to tables.
    fn rotate_memtables(&self) -> Result<(), CatalogError> {
        for keyspace in self.keyspaces.values() {
            keyspace.rotate_memtable().map_err(|error| errors::write("rotate rows", error))?;
        }
        Ok(())
    }
}

/// A snapshot. It keeps the database open.
struct View<E> {
    snapshot: fjall::Snapshot,
    engine: E,
}

impl<E: Deref<Target = Engine> + Send + Sync> ReadView for View<E> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        let keyspace = self.engine.keyspace(space)?;
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        let value = self.snapshot.get(keyspace, key);
        let value = value.map_err(|error| self.engine.read_error(space, error))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        let keyspace = self.engine.keyspace(space)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut rows = self.snapshot.range::<&[u8], _>(keyspace, range.bounds());
        let mut next = || match direction {
            Direction::Ascending => rows.next(),
            Direction::Descending => rows.next_back(),
        };
        while let Some(row) = next() {
            let read = row.into_inner();
            let (key, value) = read.map_err(|error| self.engine.read_error(space, error))?;
            if visit(&key, &value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn report_damage(&self, error: &CatalogError) {
        self.engine.found_damage.record(error);
    }
}

/// Stands in while there is no engine: every read is an error.
struct Unreadable(CatalogError);

impl ReadView for Unreadable {
    fn get(&self, _: Space, _: &[u8]) -> Result<Option<Vec<u8>>, CatalogError> {
        Err(self.0.clone())
    }

    fn scan(
        &self,
        _: Space,
        _: &KeyRange,
        _: Direction,
        _: &mut Visitor<'_>,
    ) -> Result<(), CatalogError> {
        Err(self.0.clone())
    }
}
