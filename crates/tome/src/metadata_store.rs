//! The metadata store of one tome: the rows of its core, on always-on storage (NVRAM in the paper).
//!
//! ```text
//! Command::Commit(rows) --> each row changes the state    --> one batch, synced --> continue
//! start: stored state   --> rows that make the same TomeMetadata --> Tome::new
//! ```
//!
//! It keeps the state, not the history: as many rows as there are blocks, pending changes and
//! objects, however often they were written. Of what [`TomeMetadata`] knows, only the epochs of its
//! regions are not stored: they start over, and so does a check in progress across a start. Nothing
//! is cached in memory a second time: a row that changes another reads it first. Bytes of deltas
//! are in a file beside the store, where each is written once (`slots`). Not here: the meaning of
//! rows ([`TomeMetadata`]), and what follows from a failed commit (the driver).

mod member_slots;
mod rebuild;
mod slots;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fulgurite_catalog::row;
use fulgurite_catalog::{
    Batch, CatalogError, Direction, FjallConfig, FjallStore, KeyRange, KeyValue as _, ReadView,
    Space,
};
use fulgurite_codes::Signature;
use fulgurite_disks::make_folder;
use fulgurite_tome_core::metadata::{Row, TomeMetadata};
use fulgurite_tome_core::pending::PendingList;
use fulgurite_tome_core::{Layout, Offset, RegionIndex, TomeId};
use rustix::fs::FlockOperation;

use crate::FailPoints;
use crate::identity::TomeIdentity;
use crate::limits::{LOAD_PAGE_MAX, METADATA_BLOCK_CACHE, METADATA_WRITE_BUFFER};
use crate::rows::{
    BLOCKS, BlockRow, DELTAS, DeltaRow, FLOORS, FloorRow, MEMBER_SLOTS, MemberSlotRow, OBJECTS,
    ObjectRow, PENDING, PendingRow, SCRUB, SCRUB_KEY, SPACES, START_KEY, ScrubRow, TOME, TOME_KEY,
    TomeRow, block_key, delta_key, member_key, object_key, pending_key, region_key,
};
use crate::start_counts::StartRow;
use crate::{Result, TomesError, load};

pub(crate) use slots::Slot;
use slots::Slots;

/// Lock file of the process that has the store open.
const LOCK: &str = "lock";
/// The folder of the store itself.
const STORE: &str = "awake";

/// Metadata store of one tome, on stable storage.
#[derive(Debug)]
pub struct MetadataStore {
    tome: TomeId,
    folder: PathBuf,
    pub(crate) store: FjallStore,
    /// Bytes of deltas. Changed only by commits, which are serialized.
    slots: Mutex<Slots>,
    _lock: File,
}

impl MetadataStore {
    /// Opens the store in a folder, or creates it.
    ///
    /// # Errors
    /// [`TomesError::InUse`] when another process has it, [`TomesError::WrongStore`] when it
    /// belongs to another tome, set or layout; then nothing of it is changed.
    pub fn init(folder: &Path, identity: &TomeIdentity) -> Result<Self> {
        make_folder(folder).map_err(TomesError::io("create", folder))?;
        Self::start(folder, identity, true)
    }

    /// Opens an existing store.
    ///
    /// # Errors
    /// [`TomesError::WrongStore`] when there is none, and those of [`Self::init`].
    pub fn open(folder: &Path, identity: &TomeIdentity) -> Result<Self> {
        Self::start(folder, identity, false)
    }

    /// Opens an existing store, and returns its owner.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_any(folder: &Path) -> Result<(Self, TomeIdentity)> {
        let lock = lock(folder)?;
        let mut found = None;
        let store = open_store(folder, |view| {
            found = row::get::<TomeRow>(view, TOME, TOME_KEY)?;
            found.as_ref().map(|_| ()).ok_or_else(|| missing_store(folder))
        })?;
        let TomeRow { set, tome, layout } = found.ok_or_else(|| missing_store(folder))?;
        let slots = Mutex::new(open_slots(folder, &store, tome, &layout)?);
        let own = Self { tome, folder: folder.to_owned(), store, slots, _lock: lock };
        Ok((own, TomeIdentity::new(set, tome, layout)))
    }

    fn start(folder: &Path, identity: &TomeIdentity, may_make: bool) -> Result<Self> {
        let lock = lock(folder)?;
        let own = TomeRow { set: identity.set, tome: identity.tome, layout: identity.layout };
        if !may_make && !folder.join(STORE).is_dir() {
            return Err(missing_store(folder));
        }
        let mut is_made = false;
        let store = open_store(folder, |view| {
            let found = row::get::<TomeRow>(view, TOME, TOME_KEY)?;
            let Some(TomeRow { set, tome, layout }) = found else {
                return if may_make { Ok(()) } else { Err(missing_store(folder)) };
            };
            is_made = true;
            let other = identity.describe_difference(&TomeIdentity::new(set, tome, layout));
            other.map_or(Ok(()), |what| Err(wrong_store(folder, what)))
        })?;
        if !is_made {
            let mut batch = Batch::new();
            batch.put(TOME, TOME_KEY, row::encode(&own)?)?;
            store.apply(batch)?;
        }
        let slots = Mutex::new(open_slots(folder, &store, identity.tome, &identity.layout)?);
        let (tome, folder) = (identity.tome, folder.to_owned());
        Ok(Self { tome, folder, store, slots, _lock: lock })
    }

    /// Reopens the store in place after a failed commit, and tests a write. Committed rows are
    /// there; the failed commit is either durable as a whole or absent.
    ///
    /// # Errors
    /// When it cannot be read or written yet, or is another store; then it is as before.
    pub(crate) fn reopen(&self, identity: &TomeIdentity) -> Result<()> {
        if self.store.check().is_err() {
            self.store.reopen()?;
        }
        let row = row::get::<TomeRow>(&self.store, TOME, TOME_KEY)?;
        let TomeRow { set, tome, layout } = row.ok_or_else(|| missing_store(&self.folder))?;
        if let Some(what) = identity.describe_difference(&TomeIdentity::new(set, tome, layout)) {
            return Err(wrong_store(&self.folder, what));
        }
        // After a failed sync the same descriptor is not written through again.
        let slots = open_slots(&self.folder, &self.store, self.tome, &identity.layout)?;
        *self.slots() = slots;
        self.slots().probe()?;
        self.record_start(self.start_number()?)
    }

    /// Loads the tome's state.
    ///
    /// # Errors
    /// [`TomesError::TomeMetadata`] when the rows are inconsistent.
    pub fn load(&self, identity: &TomeIdentity) -> Result<TomeMetadata> {
        let slots = self.slots();
        let read = |slot| slots.read(slot);
        load::metadata(&*self.store.snapshot(), &read, identity.tome, identity.layout)
    }

    /// Returns the latest start of its set that it knows of.
    pub(crate) fn start_number(&self) -> Result<StartRow> {
        Ok(row::get(&self.store, TOME, START_KEY)?.unwrap_or_default())
    }

    /// Records the number of a start.
    pub(crate) fn record_start(&self, number: StartRow) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(TOME, START_KEY, row::encode(&number)?)?;
        Ok(self.store.apply(batch)?)
    }

    /// Commits rows of the core atomically; they are durable when it returns.
    ///
    /// # Errors
    /// When the commit failed. Whether it took effect is not known until the store is reopened.
    pub fn commit(&self, rows: &[Row], fail: &FailPoints) -> Result<()> {
        let mut slots = self.slots();
        let mut changes = Changes::new(self, &mut slots);
        for row in rows {
            changes.add(row)?;
        }
        let (batch, freed) = changes.into_batch()?;
        if slots.is_unsynced() {
            fail.pass("tomes-deltas-written");
            slots.sync()?;
            fail.pass("tomes-deltas-synced");
        }
        fail.pass("tomes-commit-begun");
        self.store.apply(batch)?;
        fail.pass("tomes-committed");
        // Not earlier: until then durable rows refer to them.
        slots.give_back(freed);
        Ok(())
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the file with the bytes of deltas that rows refer to.
fn open_slots(folder: &Path, view: &FjallStore, tome: TomeId, layout: &Layout) -> Result<Slots> {
    let used = load::slots(view, tome)?;
    let slots = Slots::open(folder, layout.block_bytes(), &used)?;
    slots.map_err(|what| load::damaged(tome, what))
}

fn open_store(
    folder: &Path,
    accept: impl FnOnce(&dyn ReadView) -> Result<()>,
) -> Result<FjallStore> {
    let path = folder.join(STORE);
    match FjallStore::open_if(&path, &SPACES, &config(), accept) {
        Err(TomesError::Catalog(CatalogError::Locked { path })) => Err(TomesError::InUse { path }),
        opened => opened,
    }
}

/// Returns memory and thread limits of a store: each tome has one.
pub(crate) const fn config() -> FjallConfig {
    FjallConfig {
        block_cache: METADATA_BLOCK_CACHE,
        write_buffer: METADATA_WRITE_BUFFER,
        worker_count: 1,
    }
}

/// Locks a folder for this process.
///
/// # Errors
/// [`TomesError::InUse`] when another process has it.
pub(crate) fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    if !folder.is_dir() {
        return Err(wrong_store(folder, "it is missing: there is no such folder".to_owned()));
    }
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(TomesError::io("open", &path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(TomesError::InUse { path }),
        Err(errno) => Err(TomesError::io("lock", &path)(errno.into())),
    }
}

fn missing_store(folder: &Path) -> TomesError {
    wrong_store(folder, "it is missing or incomplete".to_owned())
}

fn wrong_store(folder: &Path, what: String) -> TomesError {
    TomesError::WrongStore { path: PathBuf::from(folder), what }
}

/// Changes of a commit, on top of the stored rows.
struct Changes<'a> {
    tome: TomeId,
    store: &'a FjallStore,
    slots: &'a mut Slots,
    /// Slots written for it.
    taken: BTreeSet<Slot>,
    rows: BTreeMap<(Space, Vec<u8>), Option<Vec<u8>>>,
    /// Pending changes of the regions that it touches: before and after.
    pending: BTreeMap<RegionIndex, (PendingList, PendingList)>,
}

impl<'a> Changes<'a> {
    fn new(store: &'a MetadataStore, slots: &'a mut Slots) -> Self {
        let (taken, rows, pending) = Default::default();
        Self { tome: store.tome, store: &store.store, slots, taken, rows, pending }
    }

    fn add(&mut self, row: &Row) -> Result<()> {
        match row {
            Row::MemberSlot { region, group } => {
                let key = region_key(*region).finish();
                if self.get::<MemberSlotRow>(MEMBER_SLOTS, &key)?.is_none() {
                    self.put(MEMBER_SLOTS, key, &MemberSlotRow(group.clone()))?;
                }
            }
            Row::Block { region, offset, physical_block, version, change } => {
                let row = BlockRow {
                    physical_block: *physical_block,
                    version: *version,
                    signature: change.0,
                };
                self.block(*region, *offset, row)?;
            }
            Row::Pending { region, version, pending } => {
                self.pending(*region)?.push(*version, *pending)?;
            }
            Row::Sent { region, version } => self.pending(*region)?.mark_sent(*version),
            Row::Confirmed { region, version, parity } => {
                self.pending(*region)?.confirm(*version, *parity);
            }
            Row::Stored { region, member, change, bytes } => {
                let key = delta_key(*region, *member, change.version);
                let slot = self.slots.write(bytes)?;
                self.taken.insert(slot);
                let row = DeltaRow { change: *change, is_folded: false, slot: Some(slot) };
                self.put(DELTAS, key, &row)?;
            }
            Row::Folded { region, member, version } => {
                let key = delta_key(*region, *member, *version);
                if let Some(row) = self.get::<DeltaRow>(DELTAS, &key)? {
                    self.put(DELTAS, key, &DeltaRow { is_folded: true, ..row })?;
                }
            }
            Row::Floor { region, member, floor } => {
                let below = KeyRange::between(
                    member_key(*region, *member).finish(),
                    delta_key(*region, *member, *floor),
                );
                self.remove_deltas(&below)?;
                let key = member_key(*region, *member).finish();
                let before = self.get::<FloorRow>(FLOORS, &key)?;
                if before.is_none_or(|FloorRow(before)| before < *floor) {
                    self.put(FLOORS, key, &FloorRow(*floor))?;
                }
            }
            Row::Object { name, object } => {
                self.put(OBJECTS, object_key(name), &ObjectRow(object.clone()))?;
            }
            Row::Removed { name } => {
                self.rows.insert((OBJECTS, object_key(name)), None);
            }
            Row::Scrubbed(scrubbed) => {
                self.put(SCRUB, SCRUB_KEY.to_vec(), &ScrubRow(*scrubbed))?;
            }
            Row::Frozen { region, .. }
            | Row::Building { region, .. }
            | Row::Cleared { region }
            | Row::SlotBuilt { region }
            | Row::Named { region }
            | Row::Dropped { region }
            | Row::Learned { region, .. }
            | Row::Regroup { region, .. } => self.apply_membership(*region, row)?,
        }
        Ok(())
    }

    /// Moves a block to another physical block; its signature changes by that of `row`.
    fn block(&mut self, region: RegionIndex, offset: Offset, mut row: BlockRow) -> Result<()> {
        let key = block_key(region, offset);
        if let Some(before) = self.get::<BlockRow>(BLOCKS, &key)? {
            row.signature = (Signature(before.signature) ^ Signature(row.signature)).0;
            // The block was only rewritten elsewhere after repair: changes are computed from there.
            if before.version == row.version {
                self.pending(region)?.moved(before.physical_block, row.physical_block);
            }
        }
        self.put(BLOCKS, key, &row)
    }

    /// Returns the changes of a region that parities lack.
    fn pending(&mut self, region: RegionIndex) -> Result<&mut PendingList> {
        if !self.pending.contains_key(&region) {
            let list = load::pending(self.store, region)?;
            self.pending.insert(region, (list.clone(), list));
        }
        let found = self.pending.get_mut(&region).map(|(_, list)| list);
        found.ok_or_else(|| {
            load::damaged(self.tome, format!("no pending changes of region {region}"))
        })
    }

    fn remove_deltas(&mut self, range: &KeyRange) -> Result<()> {
        let stored = self.store.range(DELTAS, range, Direction::Ascending, LOAD_PAGE_MAX)?;
        let staged =
            self.rows.keys().filter(|(space, key)| *space == DELTAS && range.contains(key));
        let staged: Vec<Vec<u8>> = staged.map(|(_, key)| key.clone()).collect();
        for key in stored.into_iter().map(|(key, _)| key).chain(staged) {
            self.rows.insert((DELTAS, key), None);
        }
        Ok(())
    }

    fn get<T: row::Row>(&self, space: Space, key: &[u8]) -> Result<Option<T>> {
        match self.rows.get(&(space, key.to_vec())) {
            Some(staged) => {
                Ok(staged.as_ref().map(|bytes| row::decode(space, bytes)).transpose()?)
            }
            None => Ok(row::get(self.store, space, key)?),
        }
    }

    fn put<T: row::Row>(&mut self, space: Space, key: Vec<u8>, row: &T) -> Result<()> {
        self.rows.insert((space, key), Some(row::encode(row)?));
        Ok(())
    }

    /// Returns slots that the commit leaves unreferenced, including those written in vain.
    fn freed_slots(&self) -> Result<BTreeSet<Slot>> {
        let mut freed = self.taken.clone();
        for ((space, key), value) in self.rows.range((DELTAS, Vec::new())..) {
            if *space != DELTAS {
                break;
            }
            let slot =
                |bytes: &[u8]| Ok::<_, CatalogError>(row::decode::<DeltaRow>(*space, bytes)?.slot);
            let before = self.store.get(*space, key)?;
            freed.extend(before.as_deref().map(slot).transpose()?.flatten());
            if let Some(after) = value.as_deref().map(slot).transpose()?.flatten() {
                freed.remove(&after);
            }
        }
        Ok(freed)
    }

    /// Returns the batch, and the slots that are free once it is committed.
    fn into_batch(self) -> Result<(Batch, BTreeSet<Slot>)> {
        let freed = self.freed_slots()?;
        let mut batch = Batch::new();
        for (region, (before, after)) in self.pending {
            for (version, _) in before.iter().filter(|(version, _)| after.get(*version).is_none()) {
                batch.delete(PENDING, pending_key(region, version))?;
            }
            for (version, pending) in after.iter() {
                if before.get(version) != Some(pending) {
                    let bytes = row::encode(&PendingRow(*pending))?;
                    batch.put(PENDING, pending_key(region, version), bytes)?;
                }
            }
        }
        for ((space, key), value) in self.rows {
            match value {
                Some(bytes) => batch.put(space, key, bytes)?,
                None => batch.delete(space, key)?,
            }
        }
        Ok((batch, freed))
    }
}
