//! Objects over sites: puts, reads and deletes, each by one operation of `fulgurite_geo_core`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use bytes::Bytes;
use fulgurite_geo_core::{
    Change, Coded, Condition, Data, KnownVersions, Put, Read, ReadResult, ReadTarget, Value,
    Version, Write, WriteId, WriteResult,
};
use fulgurite_tier::{Mode, ObjectStoreError as _};
use fulgurite_units::{Clock, Duration, RandomStream, Seed};
use futures::stream::{Stream, TryStreamExt as _};
use object_store::GetRange;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::objects::cache::FragmentCache;
use crate::objects::chunk_writer::{discard, write_fragments};
use crate::objects::driver::{Context, Work, run};
use crate::objects::fragments::{self, EncodedFragments, Stripe};
use crate::objects::limits::{
    BATCHED_BYTES_MAX, CHUNKS_AT_ONCE, DISCARDS_AT_ONCE, KEY_BYTES_MAX, LATE_FRAGMENTS_MAX,
    OVERSIZED_ROW_BYTES, VERSION_BYTES,
};
use crate::objects::live_map::{LiveMap, OpenSites};
use crate::objects::map::SiteMap;
use crate::objects::notification_queue::is_tolerable;
use crate::objects::object::{Found, Object, SmallObject};
use crate::objects::tally::Tally;
use crate::objects::undecided_versions::{Open, Undecided};
use crate::objects::{GeoError, Result, names};
use crate::stores::{Backoff, Entropy, Guess, RuntimeBackoff, transact};

/// Options to open a namespace over sites.
pub struct GeoOptions {
    /// The map in its file.
    pub map: SiteMap,
    /// The file, which is written when the sites have a later map.
    pub file: Option<PathBuf>,
    /// The site that this program runs at, if any.
    pub near: Option<String>,
    /// The wall clock.
    pub clock: Clock,
    /// Source of ids and nonces.
    pub entropy: Entropy,
    /// Opens the stores.
    pub opener: Arc<dyn OpenSites>,
    /// Cache for fragments read from other sites, if any.
    pub cache: Option<FragmentCache>,
    /// Age from which a fragment of no version is an orphan: longer than any write takes.
    pub orphan_age: Duration,
}

impl std::fmt::Debug for GeoOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GeoOptions").field("map", &self.map).finish_non_exhaustive()
    }
}

/// An object store over sites. Clones share one store.
#[derive(Clone, Debug)]
pub struct GeoStore(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    live: RwLock<Arc<LiveMap>>,
    /// When enough sites last confirmed the map.
    pub(crate) confirmed: Mutex<tokio::time::Instant>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) near: Option<String>,
    pub(crate) clock: Clock,
    pub(crate) ctx: Arc<Context>,
    pub(crate) opener: Arc<dyn OpenSites>,
    pub(crate) cache: Option<FragmentCache>,
    pub(crate) orphan_age: Duration,
    pub(crate) tally: Tally,
    /// Queue of small objects that wait for a stripe.
    pub(crate) batches: OnceLock<mpsc::Sender<SmallObject>>,
    /// A reference to itself, for background tasks.
    pub(crate) own: Weak<Self>,
    /// Hints that this program wrote and has not processed.
    pub(crate) hints: AtomicU64,
    /// Becomes true when it is stopped.
    pub(crate) stops: watch::Sender<bool>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("live", &self.live).finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn new(live: LiveMap, options: &GeoOptions) -> Arc<Self> {
        Arc::new_cyclic(|own| Self::build(live, options, Weak::clone(own)))
    }

    fn build(mut live: LiveMap, options: &GeoOptions, own: Weak<Self>) -> Self {
        live.cache.clone_from(&options.cache);
        let entropy = options.entropy.clone();
        let backoff: Arc<dyn Backoff> = Arc::new(RuntimeBackoff::new(entropy.clone()));
        let since = tokio::time::Instant::now();
        let late = Semaphore::new(LATE_FRAGMENTS_MAX);
        let discards = Arc::new(Semaphore::new(DISCARDS_AT_ONCE));
        let undecided = Undecided::new(options.clock.clone());
        Self {
            live: RwLock::new(Arc::new(live)),
            confirmed: Mutex::new(since),
            file: options.file.clone(),
            near: options.near.clone(),
            clock: options.clock.clone(),
            ctx: Arc::new(Context { entropy, backoff, late, discards, undecided, since }),
            opener: Arc::clone(&options.opener),
            cache: options.cache.clone(),
            orphan_age: options.orphan_age,
            tally: Tally::default(),
            batches: OnceLock::new(),
            own,
            hints: AtomicU64::new(0),
            stops: watch::Sender::new(false),
        }
    }

    /// Returns the current map, confirmed or not.
    pub(crate) fn any_live(&self) -> Arc<LiveMap> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn adopt(&self, mut live: LiveMap) {
        live.cache.clone_from(&self.cache);
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
    }

    /// Returns the map, if it was confirmed within the lease, or can be now.
    pub(crate) async fn live(&self) -> Result<Arc<LiveMap>> {
        let live = self.any_live();
        let lease = std::time::Duration::from_nanos(live.map.lease.as_nanos());
        let age = || {
            let confirmed = *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
            confirmed.elapsed()
        };
        if age() <= lease {
            return Ok(live);
        }
        match self.confirm().await {
            Ok(()) => Ok(self.any_live()),
            Err(GeoError::Unavailable { .. }) => {
                Err(GeoError::Unconfirmed { seconds: age().as_secs() })
            }
            Err(error) => Err(error),
        }
    }

    /// Derives an independent random stream for an operation.
    pub(crate) fn random(&self) -> RandomStream {
        let drawn = u128::from_le_bytes(self.ctx.entropy.draw());
        // Use both halves: two operations must never draw the same ballots.
        let seed = Seed::new((drawn >> 64) as u64);
        seed.child(&drawn.to_le_bytes()).stream()
    }

    pub(crate) fn draw(&self) -> WriteId {
        WriteId(u128::from_le_bytes(self.ctx.entropy.draw()))
    }

    /// Checks a key and attributes for an object.
    pub(crate) fn new_object(key: &str, attributes: Vec<(String, String)>) -> Result<Object> {
        let bytes: usize = attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
        let limit = fulgurite_geo_core::limits::ATTRIBUTES_BYTES_MAX;
        if bytes > limit {
            let reason =
                format!("attributes of {bytes} bytes are too long; at most {limit} are allowed");
            return Err(GeoError::Invalid { reason });
        }
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            let reason = format!("a key of {} bytes; 1 to {KEY_BYTES_MAX} are allowed", key.len());
            return Err(GeoError::Invalid { reason });
        }
        names::row(key)?;
        Ok(Object { key: key.to_owned(), attributes })
    }

    pub(crate) fn value(&self, id: WriteId, change: Change) -> Value {
        Value::new(id, self.clock.now(), change)
    }

    /// Puts an object from bytes in memory.
    pub(crate) async fn put(&self, object: Object, bytes: Bytes, mode: Mode) -> Result<Version> {
        let live = self.live().await?;
        let size = bytes.len() as u64;
        if size > live.map.chunk.get() {
            let source = futures::stream::iter([Ok(bytes.clone())]);
            return self.put_stream(object, size, source, mode).await;
        }
        let batched = live.map.batch > Duration::ZERO && size <= BATCHED_BYTES_MAX;
        if batched && size > live.map.inline.get() {
            return self.put_batched(object, bytes, mode).await;
        }
        let (id, digest) = (self.draw(), blake3::hash(&bytes).into());
        let data = if size <= live.map.inline.get() {
            Data::Inline(bytes.to_vec())
        } else {
            Data::Coded(coded(&live, id, (Vec::new(), false)))
        };
        let put = Put { size, digest, data, attributes: object.attributes };
        let value = self.value(id, Change::Put(put));
        let work = self.encoded(&object.key, &value, &bytes)?;
        self.write(&live, work, value, mode).await
    }

    /// Puts an object from a stream of bytes.
    pub(crate) async fn put_stream(
        &self,
        object: Object,
        size: u64,
        source: impl Stream<Item = Result<Bytes>> + Send,
        mode: Mode,
    ) -> Result<Version> {
        let attributes = std::future::ready(Ok(object.attributes));
        self.put_described(&object.key, (size, source), attributes, mode).await
    }

    /// The same, with attributes that are awaited once all bytes have arrived. Each chunk is
    /// written before the next ones are read, and the version is agreed on when all are written.
    pub(crate) async fn put_described(
        &self,
        key: &str,
        (size, source): (u64, impl Stream<Item = Result<Bytes>> + Send),
        attributes: impl Future<Output = Result<Vec<(String, String)>>> + Send,
        mode: Mode,
    ) -> Result<Version> {
        let live = self.live().await?;
        let object = Self::new_object(key, Vec::new())?;
        let id = self.draw();
        let coded = coded(&live, id, (Vec::new(), true));
        let mut parts = Chunks::new(&live, self, &object, (id, coded.clone(), size));
        let mut source = std::pin::pin!(source);
        let mut digest = blake3::Hasher::new();
        while let Some(bytes) = source.try_next().await? {
            digest.update(&bytes);
            parts.add(bytes).await?;
        }
        let Object { key, attributes } = Self::new_object(key, attributes.await?)?;
        let missing = parts.finish().await?;
        let put =
            Put { size, digest: digest.finalize().into(), data: Data::Coded(coded), attributes };
        let value = self.value(id, Change::Put(put));
        let version = self.write(&live, Work::for_object(&key)?, value, mode).await?;
        if missing {
            self.hint(&live, &key).await;
        }
        Ok(version)
    }

    /// Gets a value decided, together with its bytes if it has any.
    pub(crate) async fn write(
        &self,
        live: &Arc<LiveMap>,
        work: Work,
        value: Value,
        mode: Mode,
    ) -> Result<Version> {
        let condition = match mode {
            Mode::Overwrite => Condition::Always,
            Mode::Create => Condition::Absent,
            Mode::Update(version) => Condition::Is(Version(version)),
            Mode::Never => return Err(GeoError::refused(mode, &work.object)),
        };
        match self.decide(live, &work, value.clone(), condition).await? {
            Some(version) => Ok(version),
            // The version in the way may be unreadable because it was never acknowledged.
            None if self.clear_unreadable(live, &work.object).await? => {
                let again = self.decide(live, &work, value, condition).await?;
                again.ok_or_else(|| GeoError::refused(mode, &work.object))
            }
            None => Err(GeoError::refused(mode, &work.object)),
        }
    }

    /// Gets a value decided; none if its condition is not met.
    pub(crate) async fn decide(
        &self,
        live: &Arc<LiveMap>,
        work: &Work,
        value: Value,
        condition: Condition,
    ) -> Result<Option<Version>> {
        work.record_stripe(&value);
        let needed = usize::from(live.map.needed());
        let (proposed, goal) = (value.time, (value, condition));
        let mut write = Write::new(live.terms(), goal, needed, None, self.random());
        let end = run(&mut write, work, live, &self.ctx).await;
        let key = || work.object.clone();
        self.tally.count_write(write.rounds(), &end);
        match end {
            WriteResult::Done { version, missing } => {
                if !missing.is_empty() || !is_tolerable(work.take_dropped(), live.quorums()) {
                    self.hint(live, &work.object).await;
                }
                if is_oversized(write.known()) {
                    self.make_room(live, &work.object).await;
                }
                Ok(Some(version))
            }
            WriteResult::Refused => Ok(None),
            WriteResult::Unavailable => Err(GeoError::Unavailable { key: key() }),
            // Some fragments may exist, or still arrive, though their writes were not answered:
            // then the version becomes readable once it is decided.
            WriteResult::Indeterminate(version) | WriteResult::Unwritten(Some(version)) => {
                let open = Open { version, time: proposed };
                self.ctx.undecided.record(&work.object, Some(open), write.known().last());
                self.hint(live, &work.object).await;
                Err(GeoError::Indeterminate { key: key(), version })
            }
            WriteResult::Unwritten(None) => Err(GeoError::Unwritten { key: key() }),
        }
    }

    /// Makes versions obsolete that were never acknowledged and are unreadable, if the object
    /// consists of those.
    async fn clear_unreadable(&self, live: &Arc<LiveMap>, object: &str) -> Result<bool> {
        let (_, unreadable) = self.lookup(live, object, (ReadTarget::Metadata, None)).await?;
        if !unreadable {
            return Ok(false);
        }
        let healed = self.heal_one(live, object).await?;
        Ok(!healed.obsoleted.is_empty())
    }

    /// Reads what is wanted of an object; none if there is no such object or version. Also returns
    /// whether it passed over versions that were never acknowledged and are unreadable.
    pub(crate) async fn lookup(
        &self,
        live: &Arc<LiveMap>,
        object: &str,
        (wanted, range): (ReadTarget, Option<GetRange>),
    ) -> Result<(Option<Found>, bool)> {
        let mut work = Work::for_object(object)?;
        work.wanted = range;
        let mut read = Read::new(live.terms(), wanted, self.random());
        let end = run(&mut read, &work, live, &self.ctx).await;
        self.tally.read(read.rounds(), &end);
        let unreadable = !read.unreadable().is_empty();
        let key = object.to_owned();
        match end {
            ReadResult::Found(version, value) => {
                let durable =
                    read.known().decided.get(&version).is_some_and(|decided| decided.durable);
                if unreadable || !durable {
                    // It needs a repair; the read does not wait for that.
                    self.tally.unsure();
                }
                let first = work.first(version).map(|first| first.bytes);
                Ok((Some(Found { version, value, durable, first }), unreadable))
            }
            ReadResult::Nothing => Ok((None, unreadable)),
            ReadResult::Unavailable => Err(GeoError::Unavailable { key }),
            ReadResult::Lost(version) => Err(GeoError::Lost { key, version }),
        }
    }

    /// Returns the error for a version that lost too many fragments since its read began: it may
    /// have been replaced and removed.
    pub(crate) async fn classify_loss(
        &self,
        live: &Arc<LiveMap>,
        key: String,
        version: Version,
    ) -> GeoError {
        match self.lookup(live, &key, (ReadTarget::Metadata, None)).await {
            Ok((Some(found), _)) if found.version == version => GeoError::Lost { key, version },
            Ok(_) => GeoError::Replaced { key, version },
            Err(error) => error,
        }
    }

    /// Puts bytes of one chunk as a stripe, under its own id.
    pub(crate) async fn put_as(&self, id: WriteId, bytes: Bytes) -> Result<Coded> {
        let live = self.live().await?;
        let coded = coded(&live, id, (Vec::new(), false));
        let (size, digest) = (bytes.len() as u64, blake3::hash(&bytes).into());
        let data = Data::Coded(coded.clone());
        let value = self.value(id, Change::Put(Put { size, digest, data, attributes: Vec::new() }));
        let work = self.encoded(&names::stripe(id), &value, &bytes)?;
        self.write(&live, work, value, Mode::Create).await?;
        Ok(coded)
    }

    /// Returns the work for an object, with its fragments encoded.
    fn encoded(&self, object: &str, value: &Value, bytes: &[u8]) -> Result<Work> {
        let mut work = Work::for_object(object)?;
        if let Some(stripe) = Stripe::from_value(object, value) {
            let chunks: Vec<_> = stripe.coded.chunks(stripe.size).collect();
            work.encoded = Arc::new(EncodedFragments::encode(&stripe, &chunks, bytes)?);
        }
        Ok(work)
    }

    /// Reads what is known of an object now.
    pub(crate) async fn known(&self, live: &Arc<LiveMap>, object: &str) -> Result<KnownVersions> {
        let work = Work::for_object(object)?;
        let mut read = Read::new(live.terms(), ReadTarget::Metadata, self.random());
        match run(&mut read, &work, live, &self.ctx).await {
            ReadResult::Unavailable => Err(GeoError::Unavailable { key: object.to_owned() }),
            ReadResult::Found(..) | ReadResult::Nothing | ReadResult::Lost(_) => {
                Ok(read.known().clone())
            }
        }
    }

    /// Deletes the object or stripe under a key: makes all its versions obsolete.
    pub(crate) async fn delete_row(&self, live: &Arc<LiveMap>, key: &str) -> Result<()> {
        let value = self.value(self.draw(), Change::Delete);
        let deleted = self.decide(live, &Work::for_object(key)?, value, Condition::Present).await?;
        deleted.map(drop).ok_or_else(|| GeoError::NotFound { key: key.to_owned() })
    }

    /// Deletes an object: makes all its versions obsolete.
    pub(crate) async fn delete(&self, object: &str) -> Result<()> {
        let live = self.live().await?;
        let object = Self::new_object(object, Vec::new())?;
        self.delete_row(&live, &object.key).await
    }

    /// Writes a hint that an object needs repair, which survives this program.
    pub(crate) async fn hint(&self, live: &Arc<LiveMap>, object: &str) {
        let Ok(key) = names::hint(u128::from_le_bytes(self.ctx.entropy.draw())) else { return };
        for site in live.voters() {
            let Some(site) = live.shared(site) else { continue };
            let Some(table) = site.current_table() else { continue };
            let bytes = Bytes::from(object.as_bytes().to_vec());
            let decide = |_: Option<&[u8]>| crate::stores::Decision::Write(bytes.clone(), ());
            let done = transact(table, &key, Guess::Absent, &*self.ctx.backoff, decide).await;
            if done.is_ok() {
                self.hints.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        tracing::warn!(
            object,
            "a hint could not be written for an incomplete object: heal all objects"
        );
    }
}

/// Whether dead versions may take so much of a row that it could become full.
fn is_oversized(known: &KnownVersions) -> bool {
    let stored_bytes = |put: &Put| {
        let attributes = put.attributes.iter().map(|(name, value)| name.len() + value.len());
        let own = if let Data::Inline(bytes) = &put.data { bytes.len() } else { 0 };
        own + attributes.sum::<usize>()
    };
    let all = known.decided.values();
    let bytes = all.map(|decided| VERSION_BYTES + decided.value.put().map_or(0, stored_bytes));
    known.decided.len() > 1 && bytes.sum::<usize>() > OVERSIZED_ROW_BYTES
}

/// Returns the code of a new write.
pub(crate) fn coded(
    live: &LiveMap,
    id: WriteId,
    (parts, written): (Vec<(u32, u64)>, bool),
) -> Coded {
    Coded {
        data: live.map.data,
        parity: live.map.parity,
        chunk: live.map.chunk.get(),
        parts,
        sites: fragments::place(live, id),
        written,
    }
}

/// Chunks of an object, written as their bytes arrive. If it is dropped before all are written,
/// they are erased: until then nothing of them is proposed.
pub(crate) struct Chunks<'a> {
    live: &'a Arc<LiveMap>,
    store: &'a Inner,
    stripe: Stripe,
    /// Chunks that are not written yet.
    chunks: std::collections::VecDeque<fulgurite_geo_core::Chunk>,
    buffer: fragments::PieceBuffer,
    failed: std::collections::BTreeSet<u8>,
    is_finished: bool,
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(
        live: &'a Arc<LiveMap>,
        store: &'a Inner,
        object: &Object,
        (write, coded, size): (WriteId, Coded, u64),
    ) -> Self {
        let chunks = coded.chunks(size).collect();
        let (object, time) = (object.key.clone(), store.clock.now());
        let stripe = Stripe { write, object, size, coded, time };
        let (buffer, failed) = Default::default();
        Self { live, store, stripe, chunks, buffer, failed, is_finished: false }
    }

    /// Takes bytes, and writes what chunks they complete.
    pub(crate) async fn add(&mut self, bytes: Bytes) -> Result<()> {
        self.buffer.push(bytes);
        loop {
            let mut ready = Vec::new();
            let mut length = 0;
            for chunk in self.chunks.iter().take(CHUNKS_AT_ONCE) {
                if length + chunk.length > self.buffer.length() {
                    break;
                }
                length += chunk.length;
                ready.push(*chunk);
            }
            let full = ready.len() == CHUNKS_AT_ONCE || ready.len() == self.chunks.len();
            if ready.is_empty() || !full {
                return Ok(());
            }
            self.chunks.drain(..ready.len());
            let bytes = self.buffer.take(length);
            self.write(&ready, &bytes).await?;
        }
    }

    async fn write(&mut self, chunks: &[fulgurite_geo_core::Chunk], bytes: &[u8]) -> Result<()> {
        let encoded = EncodedFragments::encode(&self.stripe, chunks, bytes)?;
        let failed = write_fragments(self.live, &self.stripe, &encoded, &self.failed).await;
        self.failed.extend(failed);
        let all = self.stripe.coded.sites.len();
        if all - self.failed.len() < usize::from(self.live.map.needed()) {
            return Err(GeoError::Unwritten { key: self.stripe.object.clone() });
        }
        Ok(())
    }

    /// Ends after all bytes. Returns whether fragments are missing.
    async fn finish(mut self) -> Result<bool> {
        if !self.chunks.is_empty() || self.buffer.length() > 0 {
            let reason = "the number of bytes differs from the stated size".to_owned();
            return Err(GeoError::Invalid { reason });
        }
        self.is_finished = true;
        Ok(!self.failed.is_empty())
    }
}

impl Drop for Chunks<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            let size = self.chunks.front().map_or(self.stripe.size, |next| next.at);
            discard(self.live, &self.store.ctx, Stripe { size, ..self.stripe.clone() });
        }
    }
}
