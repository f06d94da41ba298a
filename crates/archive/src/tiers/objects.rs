//! One tier: bodies in, bodies out, bodies away.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_platters::cipher_crc;
use fulgurite_restore::Capacity;
use fulgurite_units::{ArchiveId, Kin, ObjectId, ReadBack};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    Error, Extensions, GetOptions, ObjectStore, ObjectStoreExt as _, PutOptions, PutPayload,
};
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::parcel::Parcel;
use super::store::Address;
use super::{EntryFile, MoveWhen, TierOptions, claim, store};
use crate::bodies::log::LogReader;
use crate::limits::{
    TIER_BODIES_AT_ONCE, TIER_BRING_BYTES, TIER_BROUGHT_MAX, TIER_ENTRIES_AT_ONCE, TIER_PART_BYTES,
    TIER_PARTS_AT_ONCE, TIER_RESTORES_AT_ONCE,
};
use crate::objects::classes::TierName;
use crate::{ArchiveError, Result};

/// Why a tier does not do what it is asked for.
pub(super) struct Refusal(String);

impl From<String> for Refusal {
    fn from(what: String) -> Self {
        Self(what)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error_text(&error))
    }
}

/// What a store says, with every cause that it has not said itself.
pub(super) fn error_text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}

/// What memory of bodies under way is counted in.
const BRING_UNIT_BYTES: u64 = 4096;

/// A folder or a bucket with bodies in it.
#[derive(Debug)]
pub(crate) struct ObjectTier {
    name: TierName,
    address: Address,
    archive: ArchiveId,
    runtime: Handle,
    /// Whether the tier was this archive's before: then it is not made anew.
    was_taken: AtomicBool,
    store: OnceCell<(Arc<dyn ObjectStore>, Path)>,
    claimed: OnceCell<()>,
    /// How many read each body now, or bring it: what is pinned is not removed.
    pinned: Mutex<BTreeMap<ObjectId, usize>>,
    /// Memory that bodies may take that puts wait for, in units.
    bringing: Semaphore,
    /// Held while a body is removed.
    removing: tokio::sync::Mutex<()>,
    /// Bodies whose puts were acknowledged here by this run: they are read back, and not put again.
    brought: Mutex<BTreeSet<ObjectId>>,
    when: MoveWhen,
    with_entries: bool,
    restores_at_once: usize,
    bodies_at_once: usize,
    /// What waits shall be brought now, whatever `when` says.
    is_urged: AtomicBool,
    /// Whether its store knows of older copies of itself.
    counts_itself: bool,
    /// Whether it is an older copy of what it was.
    is_older: AtomicBool,
}

/// A body of the log on its way to a tier.
#[derive(Debug)]
pub(super) struct Cargo {
    pub(super) reader: LogReader,
    pub(super) file: EntryFile,
    /// What it is likely read together with, for a tier whose disks sleep.
    pub(super) kin: Kin,
}

/// Keeps a body in its tier while somebody reads it or brings it.
#[derive(Debug)]
pub(super) struct Pin {
    tier: Arc<ObjectTier>,
    body: ObjectId,
}

/// A body of the log that is put.
struct StagedBody<'a> {
    reader: LogReader,
    file: &'a EntryFile,
    crc: crc_fast::Digest,
}

impl Parcel for StagedBody<'_> {
    fn read(&mut self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.reader.read_at(at, buffer)?;
        self.crc.update(buffer);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.crc.finalize() == self.file.digest {
            return Ok(());
        }
        Err(ArchiveError::Corrupt {
            what: format!("staged body {} is not what was ingested", self.file.body),
        })
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pinned = self.tier.pinned();
        if let Some(count) = pinned.get_mut(&self.body) {
            *count -= 1;
            if *count == 0 {
                pinned.remove(&self.body);
            }
        }
    }
}

impl ObjectTier {
    pub(super) fn open(
        name: &TierName,
        options: &TierOptions,
        (archive, was_taken): (ArchiveId, bool),
        runtime: &Handle,
    ) -> Result<Self> {
        Ok(Self {
            name: name.clone(),
            address: store::address(name, options)?,
            archive,
            runtime: runtime.clone(),
            was_taken: AtomicBool::new(was_taken),
            store: OnceCell::new(),
            claimed: OnceCell::new(),
            pinned: Mutex::default(),
            removing: tokio::sync::Mutex::default(),
            bringing: Semaphore::new((TIER_BRING_BYTES / BRING_UNIT_BYTES) as usize),
            brought: Mutex::default(),
            when: options.when.clone(),
            with_entries: options.with_entries,
            restores_at_once: match options.restores_at_once {
                0 => TIER_RESTORES_AT_ONCE,
                told => told,
            },
            bodies_at_once: match options.bodies_at_once {
                0 => TIER_BODIES_AT_ONCE,
                told => told,
            },
            is_urged: AtomicBool::new(false),
            counts_itself: options.store.is_some(),
            is_older: AtomicBool::new(false),
        })
    }

    pub(crate) const fn name(&self) -> &TierName {
        &self.name
    }

    pub(super) const fn when(&self) -> &MoveWhen {
        &self.when
    }

    /// Bodies that are brought to it at a time.
    pub(super) const fn bodies_at_once(&self) -> usize {
        self.bodies_at_once
    }

    /// What restores have of it at a time.
    pub(crate) const fn capacity(&self) -> Capacity {
        Capacity::of_queue(self.restores_at_once)
    }

    /// Whether its store knows of older copies of itself.
    pub(super) const fn counts_itself(&self) -> bool {
        self.counts_itself
    }

    /// Whether it is an older copy: what was brought since is not in it.
    pub(crate) fn is_older(&self) -> bool {
        self.is_older.load(Ordering::SeqCst)
    }

    /// Takes in whether it is one. Whether that is new.
    pub(super) fn set_older(&self, is_older: bool) -> bool {
        self.is_older.swap(is_older, Ordering::SeqCst) != is_older
    }

    /// Has all that waits now brought there, as if it had waited for long enough.
    pub(crate) fn urge(&self) {
        self.is_urged.store(true, Ordering::SeqCst);
    }

    /// Whether it was urged since this was asked last.
    pub(super) fn was_urged(&self) -> bool {
        self.is_urged.swap(false, Ordering::SeqCst)
    }

    /// Whether bodies have their entries with them.
    pub(super) const fn has_entries(&self) -> bool {
        self.with_entries
    }

    pub(super) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Waits for what a store is asked. Not for threads that run tasks.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    fn pinned(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectId, usize>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pin(self: &Arc<Self>, body: ObjectId) -> Pin {
        *self.pinned().entry(body).or_default() += 1;
        Pin { tier: Arc::clone(self), body }
    }

    /// Whether somebody reads a body or brings it.
    pub(super) fn is_pinned(&self, body: ObjectId) -> bool {
        self.pinned().contains_key(&body)
    }

    /// Pins a body that may have been brought before; not while it is just being removed.
    pub(super) async fn pin_again(self: &Arc<Self>, body: ObjectId) -> Pin {
        let _no_removal = self.removing.lock().await;
        self.pin(body)
    }

    fn brought(&self) -> std::sync::MutexGuard<'_, BTreeSet<ObjectId>> {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A body whose put was acknowledged here need not be put again.
    pub(super) fn note_brought(&self, body: ObjectId) {
        let mut brought = self.brought();
        // What does not fit is put twice.
        if brought.len() < TIER_BROUGHT_MAX {
            brought.insert(body);
        }
    }

    /// The store, and where in it the tier begins.
    pub(super) async fn store(&self) -> Result<(&dyn ObjectStore, &Path)> {
        let open = || async {
            match &self.address {
                Address::Bucket(store, root) => {
                    Ok::<_, ArchiveError>((Arc::clone(store), root.clone()))
                }
                Address::Directory(path) => {
                    let may_create = !self.was_taken();
                    let store = store::directory(path, may_create);
                    Ok((store.map_err(|what| self.unavailable(what))?, Path::default()))
                }
            }
        };
        let (store, root) = self.store.get_or_try_init(open).await?;
        Ok((&**store, root))
    }

    pub(super) fn unavailable(&self, what: impl Into<Refusal>) -> ArchiveError {
        ArchiveError::TierUnavailable { tier: self.name.to_string(), what: what.into().0 }
    }

    /// Something is not as the rows say.
    pub(super) fn other(&self, path: &Path, what: &str) -> ArchiveError {
        ArchiveError::Corrupt { what: format!("{path} in tier \"{}\" {what}", self.name) }
    }

    /// What a store's refusal means for something that a row says is there, with so many bytes.
    pub(super) async fn lost(&self, path: &Path, bytes: u64, error: Error) -> ArchiveError {
        let Ok((store, _)) = self.store().await else { return self.unavailable(error) };
        match store.head(path).await {
            Ok(found) if found.size < bytes => self.other(path, "is cut short"),
            // Of an empty folder, as before its disk is mounted, nothing is lost.
            Err(Error::NotFound { .. }) => match self.confirm().await {
                Ok(()) => self.other(path, "is not there, and was confirmed"),
                Err(error) => error,
            },
            Ok(_) | Err(_) => self.unavailable(error),
        }
    }

    /// Whether the tier was this archive's before.
    pub(super) fn was_taken(&self) -> bool {
        self.was_taken.load(Ordering::SeqCst)
    }

    /// Whether it may be an empty folder from one moment to the next.
    pub(super) const fn may_be_unmounted(&self) -> bool {
        matches!(self.address, Address::Directory(_))
    }

    /// Makes sure that the tier is this archive's. Asked of the store until it said so once.
    pub(super) async fn claim(&self) -> Result<()> {
        let take = || async {
            let (store, root) = self.store().await?;
            let is_first = !self.was_taken();
            let (archive, name) = (self.archive, self.name.as_str());
            let owner = self.owner_by_bodies().await?;
            if let Some(other) = owner.filter(|owner| *owner != archive) {
                let what = format!("its bodies are of archive {other}, not of this one, {archive}");
                return Err(self.unavailable(what));
            }
            let is_free = is_first || owner.is_some();
            let taken = claim::take(store, root, archive, name, is_free).await;
            taken.map_err(|what| self.unavailable(what))?;
            self.was_taken.store(true, Ordering::SeqCst);
            Ok(())
        };
        self.claimed.get_or_try_init(take).await.copied()
    }

    /// Makes sure that the tier is still there: what was claimed may be unmounted since.
    pub(super) async fn confirm(&self) -> Result<()> {
        let (store, root) = self.store().await?;
        let confirmed = claim::confirm(store, root, self.archive, self.name.as_str()).await;
        confirmed.map_err(|what| self.unavailable(what))
    }

    /// Brings a body and its entry into the tier and does not read them back. Both at once: of a
    /// put that was not acknowledged nothing has to be whole.
    pub(super) async fn bring(&self, cargo: Cargo) -> Result<()> {
        let Cargo { reader, file, kin } = cargo;
        let _room = self.room(file.bytes).await;
        let entry = Bytes::from(file.encode());
        let put_entry = self.put_entry(&file, entry, kin);
        tokio::try_join!(self.put_body(reader, &file, kin), put_entry).map(drop)
    }

    /// Waits for the memory that a body takes on its way there.
    async fn room(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let most = ((TIER_PARTS_AT_ONCE + 1) * TIER_PART_BYTES) as u64;
        let units = bytes.min(most).div_ceil(BRING_UNIT_BYTES);
        // Nobody closes it.
        self.bringing.acquire_many(u32::try_from(units).unwrap_or(u32::MAX)).await.ok()
    }

    /// Has a body and its entry in the tier, read back.
    pub(super) async fn move_in(&self, cargo: Cargo) -> Result<()> {
        let body = cargo.file.body;
        if self.brought().contains(&body) {
            let read = self.verify(body, cargo.file.bytes, cargo.file.digest).await;
            self.brought().remove(&body);
            match read {
                Err(ArchiveError::Corrupt { what }) => {
                    tracing::warn!(
                        what,
                        "a body is put once more: it was not read back as it was put"
                    );
                }
                read => return read,
            }
        }
        self.put(cargo).await
    }

    /// Brings a body and its entry into the tier and reads both back. Again after a crash it does
    /// the same.
    async fn put(&self, cargo: Cargo) -> Result<()> {
        let Cargo { reader, file, kin } = cargo;
        self.put_body(reader, &file, kin).await?;
        let entry = Bytes::from(file.encode());
        self.put_entry(&file, entry.clone(), kin).await?;
        self.check(&file, &entry).await
    }

    async fn put_entry(&self, file: &EntryFile, entry: Bytes, kin: Kin) -> Result<()> {
        let (store, root) = self.store().await?;
        let options = PutOptions { extensions: extensions(kin), ..PutOptions::default() };
        let payload = PutPayload::from(entry);
        let put = store.put_opts(&entry_path(root, file.body), payload, options).await;
        put.map(drop).map_err(|error| self.unavailable(error))
    }

    async fn put_body(&self, reader: LogReader, file: &EntryFile, kin: Kin) -> Result<()> {
        let (_, root) = self.store().await?;
        let mut body = StagedBody { reader, file, crc: cipher_crc() };
        let labels = (self.attributes(file), extensions(kin));
        self.put_parcel(&body_path(root, file.body), file.bytes, labels, &mut body).await
    }

    /// Reads back what was written: the log's copy goes on the word of this.
    async fn check(&self, file: &EntryFile, entry: &Bytes) -> Result<()> {
        let differs = |what: &str| {
            let body = file.body;
            self.unavailable(format!("it gives {what} of body {body} back as it did not get it"))
        };
        let (store, root) = self.store().await?;
        let found = store.get_opts(&entry_path(root, file.body), read_back()).await;
        let found = found.map_err(|error| self.unavailable(error))?.bytes().await;
        if found.map_err(|error| self.unavailable(error))? != *entry {
            return Err(differs("the entry"));
        }
        let read = crc_of(store, &body_path(root, file.body)).await;
        if read.map_err(|error| self.unavailable(error))? == (file.bytes, file.digest) {
            Ok(())
        } else {
            Err(differs("the bytes"))
        }
    }

    /// Reads a body and its entry whole, and says what of them is not as the row says.
    pub(super) async fn verify(&self, body: ObjectId, bytes: u64, digest: u64) -> Result<()> {
        let (store, root) = self.store().await?;
        let path = entry_path(root, body);
        let found = async { store.get_opts(&path, read_back()).await?.bytes().await };
        let entry = match found.await {
            Ok(found) => EntryFile::decode(&found).map_err(|why| self.other(&path, &why))?,
            Err(error) => match self.carried(&body_path(root, body)).await? {
                Some(entry) if matches!(error, Error::NotFound { .. }) => entry,
                _ => return Err(self.lost(&path, 0, error).await),
            },
        };
        let told = (entry.archive, entry.body, entry.bytes, entry.digest);
        if told != (self.archive, body, bytes, digest) {
            return Err(self.other(&path, "is of another body"));
        }
        let path = body_path(root, body);
        match crc_of(store, &path).await {
            Ok(read) if read == (bytes, digest) => Ok(()),
            Ok((read, _)) if read < bytes => Err(self.other(&path, "is cut short")),
            Ok(_) => Err(self.other(&path, "is not what was brought there")),
            Err(error) => Err(self.lost(&path, bytes, error).await),
        }
    }

    /// A stretch of a body's ciphertext.
    pub(super) async fn read(&self, body: ObjectId, range: Range<u64>) -> Result<Bytes> {
        let (wanted, end) = (range.end - range.start, range.end);
        let (store, root) = self.store().await?;
        let path = body_path(root, body);
        let found = match store.get_range(&path, range).await {
            Ok(found) => found,
            Err(error) => return Err(self.lost(&path, end, error).await),
        };
        if found.len() as u64 == wanted {
            return Ok(found);
        }
        Err(self.other(&path, "is cut short"))
    }

    /// Takes a body and its entry away if `is_named` says that it is still to be removed; `false`
    /// while somebody reads it or brings it. What is not there is done.
    pub(super) async fn remove(
        &self,
        body: ObjectId,
        is_named: impl Fn() -> Result<bool>,
    ) -> Result<bool> {
        let _removing = self.removing.lock().await;
        if self.is_pinned(body) {
            return Ok(false);
        }
        // A put that was under way when this was looked for may have been acknowledged since.
        if !is_named()? {
            return Ok(true);
        }
        self.brought().remove(&body);
        // The entry first: a body without one is named by nothing.
        let (store, root) = self.store().await?;
        for path in [entry_path(root, body), body_path(root, body)] {
            match store.delete(&path).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.unavailable(error)),
            }
        }
        Ok(true)
    }

    /// All that is in the tier, for a recovery; of an entry that says nothing why it does not.
    pub(crate) fn contents(&self) -> Result<Vec<Result<InTier, String>>> {
        self.wait(async {
            // The empty folder of a disk that is not mounted holds nothing, and says so as well.
            if let Err(error) = self.confirm().await
                && self.owner_by_bodies().await? != Some(self.archive)
            {
                return Err(error);
            }
            let (store, root) = self.store().await?;
            let (mut bytes, mut entries) = (BTreeMap::new(), Vec::new());
            let mut listed = store.list(Some(&root.clone().join("bodies")));
            while let Some(meta) = listed.try_next().await.map_err(|e| self.unavailable(e))? {
                if meta.location.as_ref().ends_with(".entry") {
                    entries.push(meta.location);
                } else {
                    bytes.insert(meta.location, meta.size);
                }
            }
            let bytes = &bytes;
            let mut alone = Vec::new();
            if self.with_entries {
                let named: BTreeSet<&Path> = entries.iter().collect();
                let is_alone = |body: &&Path| !named.contains(&Path::from(format!("{body}.entry")));
                for body in bytes.keys().filter(is_alone) {
                    let file = self.carried(body).await?;
                    let bytes = bytes.get(body).copied();
                    alone.extend(file.map(|file| Ok(InTier { file, bytes })));
                }
            }
            let read = futures::stream::iter(entries).map(|path| async move {
                let found = store.get(&path).await.map_err(|e| self.unavailable(e))?;
                let found = found.bytes().await.map_err(|e| self.unavailable(e))?;
                Ok::<_, ArchiveError>(
                    EntryFile::decode(&found)
                        .map(|file| {
                            let bytes = bytes.get(&body_path(root, file.body)).copied();
                            InTier { file, bytes }
                        })
                        .map_err(|why| format!("{path} of tier \"{}\": {why}", self.name)),
                )
            });
            let read = read.buffer_unordered(TIER_ENTRIES_AT_ONCE);
            let mut found: Vec<_> = read.try_collect().await?;
            found.extend(alone);
            Ok(found)
        })
    }
}

/// Bytes and checksum of what lies at `path`.
async fn crc_of(store: &dyn ObjectStore, path: &Path) -> object_store::Result<(u64, u64)> {
    let mut stream = store.get_opts(path, read_back()).await?.into_stream();
    let (mut crc, mut bytes) = (cipher_crc(), 0);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        crc.update(&chunk);
        bytes += chunk.len() as u64;
    }
    Ok((bytes, crc.finalize()))
}

pub(super) fn body_path(root: &Path, body: ObjectId) -> Path {
    root.clone().join("bodies").join(body.to_string())
}

fn entry_path(root: &Path, body: ObjectId) -> Path {
    root.clone().join("bodies").join(format!("{body}.entry"))
}

/// A body of a tier, as its entry says it.
#[derive(Debug)]
pub(crate) struct InTier {
    pub(crate) file: EntryFile,
    /// Of the body that is there, if one is.
    pub(crate) bytes: Option<u64>,
}

/// A read of nobody but the archive, which compares what it finds.
fn read_back() -> GetOptions {
    let mut extensions = Extensions::new();
    extensions.insert(ReadBack);
    GetOptions { extensions, ..GetOptions::default() }
}

/// What a store whose disks sleep may go by, and others pass over.
fn extensions(kin: Kin) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(kin);
    extensions
}
