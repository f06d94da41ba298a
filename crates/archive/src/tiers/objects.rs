//! One tier of objects: writes, reads and removes bodies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_glass::cipher_crc;
use fulgurite_restore::Capacity;
use fulgurite_units::{AffinityGroup, ArchiveId, ObjectId, ReadBack};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    Error, Extensions, GetOptions, ObjectStore, ObjectStoreExt as _, PutOptions, PutPayload,
};
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::store::Address;
use super::upload_source::UploadSource;
use super::{EntryFile, MovePolicy, TierOptions, claim, store};
use crate::bodies::log::LogReader;
use crate::limits::{
    TIER_BODIES_AT_ONCE, TIER_ENTRIES_AT_ONCE, TIER_PART_BYTES, TIER_PARTS_AT_ONCE,
    TIER_RESTORES_AT_ONCE, TIER_UPLOAD_BYTES, TIER_UPLOADED_MAX,
};
use crate::model::classes::TierName;
use crate::{ArchiveError, Result};

/// Why a tier does not serve a request.
pub(super) struct TierFailure(String);

impl From<String> for TierFailure {
    fn from(what: String) -> Self {
        Self(what)
    }
}

impl From<Error> for TierFailure {
    fn from(error: Error) -> Self {
        Self(error_text(&error))
    }
}

/// Formats a store error with every cause that its message does not contain.
pub(super) fn error_text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        source = cause.source();
    }
    text
}

/// Unit of `upload_memory`, in bytes.
const UPLOAD_UNIT_BYTES: u64 = 4096;

/// A folder or a bucket with bodies in it.
#[derive(Debug)]
pub(crate) struct ObjectTier {
    name: TierName,
    address: Address,
    archive: ArchiveId,
    /// The id of its store, if it has one.
    store_id: Option<String>,
    runtime: Handle,
    /// Whether the tier belonged to this archive before: then it is not created again.
    was_claimed: AtomicBool,
    store: OnceCell<(Arc<dyn ObjectStore>, Path)>,
    claimed: OnceCell<()>,
    /// Number of current readers and writers of each body; pinned bodies are not removed.
    pinned: Mutex<BTreeMap<ObjectId, usize>>,
    /// Memory for bodies that puts wait for, in units.
    upload_memory: Semaphore,
    /// Held while a body is removed.
    removing: tokio::sync::Mutex<()>,
    /// Bodies whose puts this run acknowledged here: they are read back, but not uploaded again.
    uploaded: Mutex<BTreeSet<ObjectId>>,
    move_policy: MovePolicy,
    with_entries: bool,
    restores_at_once: usize,
    bodies_at_once: usize,
    /// Set to move waiting bodies now, whatever `move_policy` says.
    is_move_requested: AtomicBool,
    /// Whether its store itself detects older copies.
    detects_older: bool,
    /// Whether it is an older copy.
    is_older: AtomicBool,
}

/// A body of the log to be written to a tier.
#[derive(Debug)]
pub(super) struct OutgoingBody {
    pub(super) reader: LogReader,
    pub(super) file: EntryFile,
    /// Affinity group: what it is likely to be read together with, for a tier whose disks spin
    /// down.
    pub(super) affinity: AffinityGroup,
}

/// Keeps a body in its tier while it is read or written.
#[derive(Debug)]
pub(super) struct Pin {
    tier: Arc<ObjectTier>,
    body: ObjectId,
}

/// The source of a body that is put.
struct StagedBody<'a> {
    reader: LogReader,
    file: &'a EntryFile,
    crc: crc_fast::Digest,
}

impl UploadSource for StagedBody<'_> {
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
        (archive, was_claimed): (ArchiveId, bool),
        runtime: &Handle,
    ) -> Result<Self> {
        Ok(Self {
            name: name.clone(),
            address: store::address(name, options)?,
            archive,
            store_id: options.store_id.clone(),
            runtime: runtime.clone(),
            was_claimed: AtomicBool::new(was_claimed),
            store: OnceCell::new(),
            claimed: OnceCell::new(),
            pinned: Mutex::default(),
            removing: tokio::sync::Mutex::default(),
            upload_memory: Semaphore::new((TIER_UPLOAD_BYTES / UPLOAD_UNIT_BYTES) as usize),
            uploaded: Mutex::default(),
            move_policy: options.move_policy.clone(),
            with_entries: options.with_entries,
            restores_at_once: match options.restores_at_once {
                0 => TIER_RESTORES_AT_ONCE,
                stated => stated,
            },
            bodies_at_once: match options.bodies_at_once {
                0 => TIER_BODIES_AT_ONCE,
                stated => stated,
            },
            is_move_requested: AtomicBool::new(false),
            detects_older: options.store.is_some(),
            is_older: AtomicBool::new(false),
        })
    }

    pub(crate) const fn name(&self) -> &TierName {
        &self.name
    }

    /// Returns the id of its store, if it has one.
    pub(crate) const fn store_id(&self) -> Option<&String> {
        self.store_id.as_ref()
    }

    pub(super) const fn move_policy(&self) -> &MovePolicy {
        &self.move_policy
    }

    /// Bodies written to it at a time.
    pub(super) const fn bodies_at_once(&self) -> usize {
        self.bodies_at_once
    }

    /// Returns what restores may have in flight from it.
    pub(crate) const fn capacity(&self) -> Capacity {
        Capacity::for_queue(self.restores_at_once)
    }

    /// Whether its store itself detects older copies.
    pub(super) const fn detects_older(&self) -> bool {
        self.detects_older
    }

    /// Whether it is an older copy, which lacks bodies that were written since.
    pub(crate) fn is_older(&self) -> bool {
        self.is_older.load(Ordering::SeqCst)
    }

    /// Sets whether it is an older copy; returns whether that changed.
    pub(super) fn set_older(&self, is_older: bool) -> bool {
        self.is_older.swap(is_older, Ordering::SeqCst) != is_older
    }

    /// Makes the mover write all waiting bodies now, as if they were due.
    pub(crate) fn request_move(&self) {
        self.is_move_requested.store(true, Ordering::SeqCst);
    }

    /// Returns whether `request_move` was called since the last call.
    pub(super) fn take_move_request(&self) -> bool {
        self.is_move_requested.swap(false, Ordering::SeqCst)
    }

    /// Whether bodies carry their entries.
    pub(super) const fn has_entries(&self) -> bool {
        self.with_entries
    }

    pub(super) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Blocks on a request to the store. Not for threads that run async tasks.
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

    /// Whether a body is being read or written.
    pub(super) fn is_pinned(&self, body: ObjectId) -> bool {
        self.pinned().contains_key(&body)
    }

    /// Pins a body that may have been written before; waits while a body is being removed.
    pub(super) async fn pin_existing(self: &Arc<Self>, body: ObjectId) -> Pin {
        let _no_removal = self.removing.lock().await;
        self.pin(body)
    }

    fn uploaded(&self) -> std::sync::MutexGuard<'_, BTreeSet<ObjectId>> {
        self.uploaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the put of a body was acknowledged here, so that it is not uploaded again.
    pub(super) fn record_uploaded(&self, body: ObjectId) {
        let mut uploaded = self.uploaded();
        // A body that does not fit in the set is uploaded twice.
        if uploaded.len() < TIER_UPLOADED_MAX {
            uploaded.insert(body);
        }
    }

    /// Returns the store, and the path of the tier in it.
    pub(super) async fn store(&self) -> Result<(&dyn ObjectStore, &Path)> {
        let open = || async {
            match &self.address {
                Address::Bucket(store, root) => {
                    Ok::<_, ArchiveError>((Arc::clone(store), root.clone()))
                }
                Address::Directory(path) => {
                    let may_create = !self.was_claimed();
                    let store = store::directory(path, may_create);
                    Ok((store.map_err(|what| self.unavailable(what))?, Path::default()))
                }
            }
        };
        let (store, root) = self.store.get_or_try_init(open).await?;
        Ok((&**store, root))
    }

    pub(super) fn unavailable(&self, what: impl Into<TierFailure>) -> ArchiveError {
        ArchiveError::TierUnavailable { tier: self.name.to_string(), what: what.into().0 }
    }

    /// Creates the error for something that differs from its row.
    pub(super) fn other(&self, path: &Path, what: &str) -> ArchiveError {
        ArchiveError::Corrupt { what: format!("{path} in tier \"{}\" {what}", self.name) }
    }

    /// Interprets a store error for a file that has `bytes` bytes according to a row.
    pub(super) async fn lost(&self, path: &Path, bytes: u64, error: Error) -> ArchiveError {
        let Ok((store, _)) = self.store().await else { return self.unavailable(error) };
        match store.head(path).await {
            Ok(found) if found.size < bytes => self.other(path, "is truncated"),
            // The empty mount point of an unmounted disk does not mean a loss.
            Err(Error::NotFound { .. }) => match self.confirm().await {
                Ok(()) => self.other(path, "is missing, although it was confirmed"),
                Err(error) => error,
            },
            Ok(_) | Err(_) => self.unavailable(error),
        }
    }

    /// Whether the tier belonged to this archive before.
    pub(super) fn was_claimed(&self) -> bool {
        self.was_claimed.load(Ordering::SeqCst)
    }

    /// Whether it can become an empty mount point at any moment.
    pub(super) const fn may_be_unmounted(&self) -> bool {
        matches!(self.address, Address::Directory(_))
    }

    /// Verifies that this archive owns the tier. The store is queried until it has confirmed that
    /// once.
    pub(super) async fn claim(&self) -> Result<()> {
        let take = || async {
            let (store, root) = self.store().await?;
            let is_first = !self.was_claimed();
            let (archive, name) = (self.archive, self.name.as_str());
            let owner = self.owner_from_bodies().await?;
            if let Some(other) = owner.filter(|owner| *owner != archive) {
                let what = format!("its bodies are of archive {other}, not of this one, {archive}");
                return Err(self.unavailable(what));
            }
            let is_free = is_first || owner.is_some();
            let taken = claim::take(store, root, archive, name, is_free).await;
            taken.map_err(|what| self.unavailable(what))?;
            self.was_claimed.store(true, Ordering::SeqCst);
            Ok(())
        };
        self.claimed.get_or_try_init(take).await.copied()
    }

    /// Verifies that the tier is still there: its disk may have been unmounted since the claim.
    pub(super) async fn confirm(&self) -> Result<()> {
        let (store, root) = self.store().await?;
        let confirmed = claim::confirm(store, root, self.archive, self.name.as_str()).await;
        confirmed.map_err(|what| self.unavailable(what))
    }

    /// Writes a body and its entry without reading them back. In parallel, because a put that is
    /// not acknowledged need not be complete.
    pub(super) async fn upload(&self, outgoing_body: OutgoingBody) -> Result<()> {
        let OutgoingBody { reader, file, affinity } = outgoing_body;
        let _room = self.room(file.bytes).await;
        let entry = Bytes::from(file.encode());
        let put_entry = self.put_entry(&file, entry, affinity);
        tokio::try_join!(self.put_body(reader, &file, affinity), put_entry).map(drop)
    }

    /// Waits for the memory that a body needs while it is written.
    async fn room(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let most = ((TIER_PARTS_AT_ONCE + 1) * TIER_PART_BYTES) as u64;
        let units = bytes.min(most).div_ceil(UPLOAD_UNIT_BYTES);
        // Nobody closes the semaphore.
        self.upload_memory.acquire_many(u32::try_from(units).unwrap_or(u32::MAX)).await.ok()
    }

    /// Ensures that a body and its entry are in the tier, and reads them back.
    pub(super) async fn move_in(&self, outgoing_body: OutgoingBody) -> Result<()> {
        let body = outgoing_body.file.body;
        if self.uploaded().contains(&body) {
            let read = self.verify(body, outgoing_body.file.bytes, outgoing_body.file.digest).await;
            self.uploaded().remove(&body);
            match read {
                Err(ArchiveError::Corrupt { what }) => {
                    tracing::warn!(what, "uploading a body again: it did not read back as written");
                }
                read => return read,
            }
        }
        self.put(outgoing_body).await
    }

    /// Writes a body and its entry and reads both back. Idempotent after a crash.
    async fn put(&self, outgoing_body: OutgoingBody) -> Result<()> {
        let OutgoingBody { reader, file, affinity } = outgoing_body;
        self.put_body(reader, &file, affinity).await?;
        let entry = Bytes::from(file.encode());
        self.put_entry(&file, entry.clone(), affinity).await?;
        self.check(&file, &entry).await
    }

    async fn put_entry(
        &self,
        file: &EntryFile,
        entry: Bytes,
        affinity: AffinityGroup,
    ) -> Result<()> {
        let (store, root) = self.store().await?;
        let options = PutOptions { extensions: extensions(affinity), ..PutOptions::default() };
        let payload = PutPayload::from(entry);
        let put = store.put_opts(&entry_path(root, file.body), payload, options).await;
        put.map(drop).map_err(|error| self.unavailable(error))
    }

    async fn put_body(
        &self,
        reader: LogReader,
        file: &EntryFile,
        affinity: AffinityGroup,
    ) -> Result<()> {
        let (_, root) = self.store().await?;
        let mut body = StagedBody { reader, file, crc: cipher_crc() };
        let labels = (self.attributes(file), extensions(affinity));
        self.put_source(&body_path(root, file.body), file.bytes, labels, &mut body).await
    }

    /// Reads back what was written: the log's copy is freed on this evidence.
    async fn check(&self, file: &EntryFile, entry: &Bytes) -> Result<()> {
        let differs = |what: &str| {
            let body = file.body;
            self.unavailable(format!("{what} of body {body} does not read back as written"))
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

    /// Reads a body and its entry whole, and returns an error if either differs from the row.
    pub(super) async fn verify(&self, body: ObjectId, bytes: u64, digest: u64) -> Result<()> {
        let (store, root) = self.store().await?;
        let path = entry_path(root, body);
        let found = async { store.get_opts(&path, read_back()).await?.bytes().await };
        let entry = match found.await {
            Ok(found) => EntryFile::decode(&found).map_err(|reason| self.other(&path, &reason))?,
            Err(error) => match self.entry_attribute(&body_path(root, body)).await? {
                Some(entry) if matches!(error, Error::NotFound { .. }) => entry,
                _ => return Err(self.lost(&path, 0, error).await),
            },
        };
        let stated = (entry.archive, entry.body, entry.bytes, entry.digest);
        if stated != (self.archive, body, bytes, digest) {
            return Err(self.other(&path, "is of another body"));
        }
        let path = body_path(root, body);
        match crc_of(store, &path).await {
            Ok(read) if read == (bytes, digest) => Ok(()),
            Ok((read, _)) if read < bytes => Err(self.other(&path, "is truncated")),
            Ok(_) => Err(self.other(&path, "differs from what was written")),
            Err(error) => Err(self.lost(&path, bytes, error).await),
        }
    }

    /// Reads a range of a body's ciphertext.
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
        Err(self.other(&path, "is truncated"))
    }

    /// Removes a body and its entry if `is_named` returns that it is still to be removed; `false`
    /// while it is read or written. A missing body counts as removed.
    pub(super) async fn remove(
        &self,
        body: ObjectId,
        is_named: impl Fn() -> Result<bool>,
    ) -> Result<bool> {
        let _removing = self.removing.lock().await;
        if self.is_pinned(body) {
            return Ok(false);
        }
        // A put in progress when the list was read may have been acknowledged since.
        if !is_named()? {
            return Ok(true);
        }
        self.uploaded().remove(&body);
        // The entry first: a body without an entry is named by nothing.
        let (store, root) = self.store().await?;
        for path in [entry_path(root, body), body_path(root, body)] {
            match store.delete(&path).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.unavailable(error)),
            }
        }
        Ok(true)
    }

    /// Returns everything in the tier, for a recovery; for an unreadable entry the reason.
    pub(crate) fn contents(&self) -> Result<Vec<Result<TierBody, String>>> {
        self.wait(async {
            // The empty mount point of an unmounted disk would look like an empty tier.
            if let Err(error) = self.confirm().await
                && self.owner_from_bodies().await? != Some(self.archive)
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
            let mut without_entry = Vec::new();
            if self.with_entries {
                let named: BTreeSet<&Path> = entries.iter().collect();
                let lacks_entry =
                    |body: &&Path| !named.contains(&Path::from(format!("{body}.entry")));
                for body in bytes.keys().filter(lacks_entry) {
                    let file = self.entry_attribute(body).await?;
                    let bytes = bytes.get(body).copied();
                    without_entry.extend(file.map(|file| Ok(TierBody { file, bytes })));
                }
            }
            let read = futures::stream::iter(entries).map(|path| async move {
                let found = store.get(&path).await.map_err(|e| self.unavailable(e))?;
                let found = found.bytes().await.map_err(|e| self.unavailable(e))?;
                Ok::<_, ArchiveError>(
                    EntryFile::decode(&found)
                        .map(|file| {
                            let bytes = bytes.get(&body_path(root, file.body)).copied();
                            TierBody { file, bytes }
                        })
                        .map_err(|reason| format!("{path} of tier \"{}\": {reason}", self.name)),
                )
            });
            let read = read.buffer_unordered(TIER_ENTRIES_AT_ONCE);
            let mut found: Vec<_> = read.try_collect().await?;
            found.extend(without_entry);
            Ok(found)
        })
    }
}

/// Returns length and checksum of the file at `path`.
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

/// A body of a tier, according to its entry.
#[derive(Debug)]
pub(crate) struct TierBody {
    pub(crate) file: EntryFile,
    /// Length of the stored body, if it exists.
    pub(crate) bytes: Option<u64>,
}

/// Options of a read by which the archive verifies its own writes.
fn read_back() -> GetOptions {
    let mut extensions = Extensions::new();
    extensions.insert(ReadBack);
    GetOptions { extensions, ..GetOptions::default() }
}

/// Returns hints for stores whose disks spin down; others ignore them.
fn extensions(affinity: AffinityGroup) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(affinity);
    extensions
}
