//! A set of tomes with its index: how objects are put, removed, and recovered.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fulgurite_disks::make_folder;
use fulgurite_tier::{Mode, ObjectStoreError as _};
use fulgurite_units::{
    AffinityGroup, BlobId, Clock, Duration, ErrorKind, Instant, TomeSetId, error_chain,
};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::objects::header::Header;
pub use crate::objects::index::Totals;
use crate::objects::index::{Index, Object, ObjectRow};
use crate::objects::limits::{
    CONCURRENT_PIECES, GC_BACKOFF, GC_BATCH_MAX, KEY_BYTES_MAX, PROTECTION_TIMEOUT, REMOVAL_TIMEOUT,
};
use crate::objects::pieces::{self, Pieces};
use crate::objects::pins::{Pin, Pins};
use crate::objects::{Result, StoreError};
use crate::{Entropy, SetStatus, TomeSet, TomesError};

/// How often the clock is checked. Time itself is that of the clock.
const TICK: std::time::Duration = std::time::Duration::from_millis(250);

/// Folder of the index, beside the set's own stores.
const INDEX: &str = "index";

/// The reason reported for an index that is behind.
const INDEX_BEHIND: &str = "the index is missing or an older copy: objects put since then are \
     missing until you run `fulgurite tier recover NAME`";

/// What a put guarantees when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PutGuarantee {
    /// Each piece is on one disk with the parity of its segments; until its groups have applied it,
    /// it is lost with that tome.
    Local,
    /// Every parity of the groups has it: it survives as many lost tomes as those have parities,
    /// and bad blocks too.
    #[default]
    Protected,
}

/// Options of the store.
#[derive(Debug)]
pub struct StoreOptions {
    /// Folder of the index, on always-on storage.
    pub directory: PathBuf,
    /// The set's clock.
    pub clock: Clock,
    /// Source of ids.
    pub entropy: Entropy,
    /// What a put guarantees.
    pub promise: PutGuarantee,
}

/// Position of the garbage collection of unwanted pieces.
#[derive(Debug, Default)]
struct GcState {
    /// The last object processed. So objects that wait for a tome do not block others.
    after: Option<BlobId>,
    /// Time of the last failed removal.
    failed: Option<Instant>,
}

/// A put in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartedPut {
    pub(crate) id: BlobId,
    pub(crate) sequence: u64,
    /// Its affinity group.
    pub(crate) affinity: Option<AffinityGroup>,
}

/// A set of tomes as a store of objects. Clones are the same store.
#[derive(Clone, Debug)]
pub struct TomeStore(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    set: TomeSet,
    pub(crate) index: Index,
    /// Whether the index is an older copy, or was missing, so that objects may be missing in it.
    is_index_behind: AtomicBool,
    clock: Clock,
    entropy: Entropy,
    promise: PutGuarantee,
    gc_state: Mutex<GcState>,
    reading: Pins,
    /// Becomes true when nothing should wait for tomes any more.
    stops: watch::Sender<bool>,
}

impl TomeStore {
    /// Opens the store over a set; creates its index if there is none.
    ///
    /// # Errors
    /// When the index belongs to another set, or cannot be opened.
    pub fn open(set: TomeSet, options: StoreOptions) -> Result<Self> {
        let StoreOptions { directory, clock, entropy, promise } = options;
        let io = |source| TomesError::Io { action: "make", path: directory.clone(), source };
        make_folder(&directory).map_err(io)?;
        let is_older = |own| Ok(set.is_index_older(own)?);
        let (index, is_behind) =
            Index::open(&directory.join(INDEX), set.id(), clock.clone(), is_older)?;
        let (gc_state, reading) = Default::default();
        let (stops, _) = watch::channel(false);
        let is_index_behind = AtomicBool::new(is_behind);
        let inner = Inner {
            set,
            index,
            is_index_behind,
            clock,
            entropy,
            promise,
            gc_state,
            reading,
            stops,
        };
        if is_behind {
            tracing::error!("{INDEX_BEHIND}");
        } else {
            futures::executor::block_on(inner.count_index())?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Id of the set.
    #[must_use]
    pub fn id(&self) -> TomeSetId {
        self.0.set.id()
    }

    /// What a put guarantees.
    #[must_use]
    pub fn promise(&self) -> PutGuarantee {
        self.0.promise
    }

    /// The set below it.
    #[must_use]
    pub fn set(&self) -> &TomeSet {
        &self.0.set
    }

    /// Returns the status; needs no spin-up.
    pub async fn status(&self) -> SetStatus {
        let mut status = self.0.set.status().await;
        let is_behind = self.0.is_index_behind.load(Ordering::Acquire);
        status.reasons.extend(is_behind.then(|| INDEX_BEHIND.to_owned()));
        status
    }

    /// Returns the number of objects and bytes; needs no spin-up.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn totals(&self) -> Result<Totals> {
        self.0.index.totals()
    }

    /// Fails all waits for tomes, now and from now on, because the set is stopping. Puts in
    /// progress are dropped; waiting for parities could take an hour.
    pub fn stop_waiting(&self) {
        self.0.stops.send_replace(true);
    }

    /// Waits until nothing should wait for tomes any more.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stops = self.0.stops.subscribe();
        async move {
            // The store may be gone.
            let _ = stops.wait_for(|stops| *stops).await;
        }
    }

    /// Spins all disks down, and returns when they stand still.
    pub fn stop(&self) {
        self.stop_waiting();
        self.0.set.stop();
    }
}

impl Inner {
    /// Counts a start of the index, once it has all objects.
    pub(crate) async fn count_index(&self) -> Result<()> {
        self.index.record_start(self.set.begin_index()?).await?;
        self.set.index_begun()?;
        self.is_index_behind.store(false, Ordering::Release);
        Ok(())
    }

    /// Returns the object of a key.
    pub(crate) fn object(&self, key: &str) -> Result<ObjectRow> {
        let missing = || StoreError::NotFound { key: key.to_owned() };
        self.index.object(key)?.ok_or_else(missing)
    }

    /// Returns the object of a key for reading: its pieces stay while the pin is held.
    pub(crate) fn pin_object(&self, key: &str) -> Result<(ObjectRow, Pin)> {
        let mut row = self.object(key)?;
        loop {
            let pin = self.reading.pin(row.pieces.id);
            // A concurrent overwrite may have removed its pieces before it was pinned.
            let now = self.object(key)?;
            if now.pieces.id == row.pieces.id {
                return Ok((now, pin));
            }
            row = now;
        }
    }

    /// Fails if no tome has some piece of an object.
    pub(crate) fn check_all_pieces(&self, pieces: &Pieces) -> Result<()> {
        for piece in pieces.all() {
            self.set.tome_of(&piece.name)?;
        }
        Ok(())
    }

    /// Returns an object to be put now.
    pub(crate) fn new_object(
        &self,
        key: &str,
        attributes: Vec<(String, String)>,
    ) -> Result<Object> {
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            let what = format!("a key of {} bytes: 1 to {KEY_BYTES_MAX} are allowed", key.len());
            return Err(StoreError::Invalid { what });
        }
        Ok(Object { key: key.to_owned(), modified_ms: self.clock.now().as_millis(), attributes })
    }

    /// Fails early where the commit would fail now, before anything is written; the commit decides.
    pub(crate) fn check_mode(&self, key: &str, mode: Mode) -> Result<()> {
        if mode == Mode::Overwrite {
            return Ok(());
        }
        let sequence = self.index.object(key)?.map(|row| row.sequence);
        if mode.is_met(sequence) { Ok(()) } else { Err(StoreError::refused(mode, key)) }
    }

    /// Begins a put, after which its pieces may be put.
    pub(crate) async fn begin(&self, affinity: Option<AffinityGroup>) -> Result<StartedPut> {
        let id = BlobId::from_random(self.entropy.draw());
        Ok(StartedPut { id, sequence: self.index.begin(id).await?, affinity })
    }

    /// Puts the pieces of one part.
    pub(crate) async fn put_part(
        &self,
        begun: StartedPut,
        part: usize,
        bytes: Bytes,
    ) -> Result<()> {
        let size = usize::try_from(self.piece_bytes()).unwrap_or(usize::MAX);
        let cut = (0..bytes.len()).step_by(size).enumerate();
        let pieces: Vec<_> = cut
            .map(|(number, from)| {
                let piece = bytes.slice(from..(from + size).min(bytes.len()));
                (pieces::name(begun.id, part, number as u64), piece)
            })
            .collect();
        let put = |(name, piece): (String, Bytes)| async move {
            self.put_piece(&name, &piece, begun.affinity).await
        };
        stream::iter(pieces)
            .map(put)
            .buffer_unordered(CONCURRENT_PIECES)
            .try_collect::<()>()
            .await?;
        Ok(())
    }

    /// Puts a piece. If a tome lacks physical blocks until its parities have applied earlier puts,
    /// it waits some minutes. If that tome was chosen for the affinity group, another one is tried
    /// first.
    async fn put_piece(
        &self,
        name: &str,
        piece: &[u8],
        mut affinity: Option<AffinityGroup>,
    ) -> Result<()> {
        let begun = self.clock.passed();
        loop {
            match self
                .until_stopped(self.set.put_with_affinity(name, piece.to_vec(), affinity))
                .await
            {
                Err(error) if error.is_backlog() && affinity.is_some() => affinity = None,
                Err(error) if self.may_retry(&error, begun, PROTECTION_TIMEOUT) => {
                    tokio::time::sleep(TICK).await;
                }
                put => return Ok(put.map(drop)?),
            }
        }
    }

    /// Reads a piece. Retries while its tome is busy.
    pub(crate) async fn get_piece(&self, name: &str) -> Result<Bytes> {
        self.read_piece(name, false).await
    }

    /// The same; `is_own` marks a read-back by the writer.
    pub(crate) async fn read_piece(&self, name: &str, is_own: bool) -> Result<Bytes> {
        let begun = self.clock.passed();
        loop {
            let read = if is_own { self.set.read_back(name) } else { self.set.get(name) };
            match self.until_stopped(read).await {
                Err(error) if self.may_retry(&error, begun, PROTECTION_TIMEOUT) => {
                    tokio::time::sleep(TICK).await;
                }
                got => return Ok(Bytes::from(got?)),
            }
        }
    }

    /// Removes a piece. Retries while its tome is busy, but not for long: what is left is removed
    /// later.
    async fn remove_piece(&self, name: &str) -> Result<()> {
        let begun = self.clock.passed();
        loop {
            match self.set.delete(name).await {
                Err(error) if self.may_retry(&error, begun, REMOVAL_TIMEOUT) => {
                    tokio::time::sleep(TICK).await;
                }
                removed => return Ok(removed?),
            }
        }
    }

    /// Waits for a request to tomes, unless the store is stopping.
    async fn until_stopped<T>(
        &self,
        request: impl Future<Output = Result<T, TomesError>>,
    ) -> Result<T, TomesError> {
        let mut stops = self.stops.subscribe();
        tokio::select! {
            done = request => done,
            _ = stops.wait_for(|stops| *stops) => Err(TomesError::Stopped),
        }
    }

    /// Whether to retry a request, within a time limit.
    fn may_retry(&self, error: &TomesError, begun: Instant, within: Duration) -> bool {
        error.is_backlog() && self.clock.passed().since(begun) <= within
    }

    /// Size of a piece.
    pub(crate) fn piece_bytes(&self) -> u64 {
        self.set.object_bytes_max().get()
    }

    /// Puts an object that is in memory; returns its sequence number.
    pub(crate) async fn put(
        &self,
        object: Object,
        bytes: Bytes,
        (mode, affinity): (Mode, Option<AffinityGroup>),
    ) -> Result<u64> {
        self.check_mode(&object.key, mode)?;
        let begun = self.begin(affinity).await?;
        let StartedPut { id, sequence, .. } = begun;
        let put = async {
            let small = self.pieces(id, Vec::new(), bytes.len() as u64);
            let header = Header::new(&object, sequence, &small).encode()?;
            let (parts, tail) = if header.len() as u64 + small.tail <= small.piece_bytes {
                (Vec::new(), bytes)
            } else {
                let length = bytes.len() as u64;
                self.put_part(begun, 0, bytes).await?;
                (vec![length], Bytes::new())
            };
            self.finish(begun, object, parts, tail, mode).await
        };
        self.ended(id, put.await).await?;
        Ok(sequence)
    }

    fn pieces(&self, id: BlobId, parts: Vec<u64>, tail: u64) -> Pieces {
        Pieces { id, piece_bytes: self.piece_bytes(), parts, tail, head: 0 }
    }

    /// Puts the head of an object whose parts are put, and makes its key refer to it once the
    /// promise holds.
    pub(crate) async fn finish(
        &self,
        StartedPut { id, sequence, affinity }: StartedPut,
        object: Object,
        parts: Vec<u64>,
        tail: Bytes,
        mode: Mode,
    ) -> Result<()> {
        let mut pieces = self.pieces(id, parts, tail.len() as u64);
        let mut head = Header::new(&object, sequence, &pieces).encode()?;
        pieces.head = u32::try_from(head.len()).unwrap_or(u32::MAX);
        head.extend_from_slice(&tail);
        if head.len() as u64 > self.piece_bytes() {
            let what = format!(
                "{} bytes of key, attributes and parts do not fit in a piece of {}",
                head.len(),
                self.piece_bytes()
            );
            return Err(StoreError::Invalid { what });
        }
        self.put_piece(&pieces::head_name(id), &head, affinity).await?;
        if self.promise == PutGuarantee::Protected {
            self.protected(&pieces).await?;
        }
        let Object { key, modified_ms, attributes } = object;
        self.index.put(key, ObjectRow { sequence, modified_ms, attributes, pieces }, mode).await
    }

    /// Waits until every parity has every piece.
    async fn protected(&self, pieces: &Pieces) -> Result<()> {
        let begun = self.clock.passed();
        for piece in pieces.all() {
            let mut waits = std::pin::pin!(self.set.protected(&piece.name));
            loop {
                match tokio::time::timeout(TICK, self.until_stopped(&mut waits)).await {
                    Ok(Err(error)) if error.is_backlog() => {
                        tokio::time::sleep(TICK).await;
                        waits.set(self.set.protected(&piece.name));
                    }
                    Ok(done) => break done?,
                    // A tome of its group was lost meanwhile: other groups protect it sooner.
                    Err(_) if self.set.is_stranded(&piece.name)? => {
                        self.replace_piece(&piece.name).await?;
                        waits.set(self.set.protected(&piece.name));
                    }
                    Err(_) => {}
                }
                if self.clock.passed().since(begun) > PROTECTION_TIMEOUT {
                    return Err(self.unprotected(&piece.name));
                }
            }
        }
        Ok(())
    }

    /// Moves a piece of an object without a key to a group that can protect it. If the process ends
    /// in between, the object is unwanted at the next start.
    async fn replace_piece(&self, name: &str) -> Result<()> {
        let bytes = self.get_piece(name).await?;
        self.remove_piece(name).await?;
        tracing::info!(name, "put into another group: a tome of its group was lost");
        self.put_piece(name, &bytes, None).await
    }

    fn unprotected(&self, name: &str) -> StoreError {
        let tome = self.set.tome_of(name).map_or_else(|_| "?".to_owned(), |tome| tome.to_string());
        let what = format!(
            "a piece on tome {tome} is not in every parity of its group after {} s: see the status \
             of the set for tomes that do not answer",
            PROTECTION_TIMEOUT.as_secs_f64()
        );
        StoreError::Unprotected { what }
    }

    /// Ends a put: removes its pieces if it failed, and those of the object that it replaced.
    pub(crate) async fn ended(&self, id: BlobId, put: Result<()>) -> Result<()> {
        if put.is_err()
            && let Err(error) = self.index.give_up(id).await
        {
            // It is unwanted at the next start.
            tracing::warn!(%id, "pieces stay until the next start: {}", error_chain(&error));
        }
        // Otherwise unwanted pieces are removed after the next start.
        if !*self.stops.borrow() {
            self.collect_garbage().await;
        }
        put
    }

    /// Removes an object. Idempotent.
    pub(crate) async fn delete(&self, key: &str) -> Result<()> {
        if self.index.delete(key).await? {
            self.collect_garbage().await;
        }
        Ok(())
    }

    /// Removes unwanted pieces. A tome that does not answer keeps them until it does.
    async fn collect_garbage(&self) {
        let now = self.clock.passed();
        let failed = self.gc_state().failed;
        if failed.is_some_and(|at| now.since(at) < GC_BACKOFF) {
            return;
        }
        if let Err(error) = self.collect_batch().await {
            self.gc_state().failed = Some(now);
            tracing::warn!("unwanted pieces are not removed yet: {}", error_chain(&error));
        }
    }

    fn gc_state(&self) -> MutexGuard<'_, GcState> {
        self.gc_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn collect_batch(&self) -> Result<()> {
        let after = self.gc_state().after;
        let ids = self.index.garbage(after, GC_BATCH_MAX)?;
        // Starts over after the last one.
        self.gc_state().after = ids.last().copied().filter(|_| ids.len() == GC_BATCH_MAX);
        // A tome whose objects are unknown may have some of the pieces, and come back with them.
        let is_known = self.set.unknown().is_empty();
        let (mut gone, mut failed) = (Vec::new(), Ok(()));
        for id in ids.into_iter().filter(|id| !self.reading.has(*id)) {
            let prefix = pieces::prefix(id);
            for name in self.set.list_prefix(&prefix) {
                match self.remove_piece(&name).await {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => failed = Err(error),
                }
            }
            // A piece that is still being sent to a tome is listed already.
            if is_known && self.set.list_prefix(&prefix).is_empty() {
                gone.push(id);
            }
        }
        if !gone.is_empty() {
            self.index.clear_garbage(gone).await?;
        }
        failed
    }
}
