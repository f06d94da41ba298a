//! Bytes of objects: encoded into fragments at sites, and decoded again.
//!
//! ```text
//! write   chunk -> k + m payloads -> one blob each, at its site, created and never changed
//! fetch   from the k nearest sites; if one is slow or fails, another is read too (hedged read)
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulgurite_geo_core::{Chunk, Coded, FetchResult, Fragment, OpResult, Value, WriteId};
use fulgurite_units::{ByteCount, UnixTime};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use crate::objects::cache::FragmentCache;
use crate::objects::limits::{BLOB_BACKOFF, BLOB_TIMEOUT, BLOB_TRIES};
use crate::objects::live_map::LiveMap;
use crate::objects::site::{Counts, Site};
use crate::objects::{GeoError, Result, names};
use crate::stores::fragment::{ChunkCode, Header, PutId, decode, encode, payload, stored_range};
use crate::stores::{BlobError, Certainty, Key};

/// Start of the marker in place of a fenced fragment; the object's key follows.
pub(crate) const FENCE_MARK: &[u8] = b"fulgurite: this fragment must not be written\n";

/// A set of fragments: the write they belong to, and how many bytes they encode.
#[derive(Clone, Debug)]
pub(crate) struct Stripe {
    pub(crate) write: WriteId,
    pub(crate) object: String,
    pub(crate) size: u64,
    pub(crate) coded: Coded,
    pub(crate) time: UnixTime,
}

impl Stripe {
    /// Returns the fragments of a value, if it has any.
    pub(crate) fn from_value(object: &str, value: &Value) -> Option<Self> {
        let (write, size, coded) = value.put()?.coded(value.id)?;
        // A shared stripe is an object of its own.
        let object = if write == value.id { object.to_owned() } else { names::stripe(write) };
        Some(Self { write, object, size, coded: coded.clone(), time: value.time })
    }

    fn code(&self) -> Result<ChunkCode> {
        let code = ChunkCode::new(self.coded.data, self.coded.parity);
        code.map_err(|error| GeoError::Invalid { reason: error.to_string() })
    }

    /// Returns the header of a fragment of a chunk. For a multipart upload, the total size and the
    /// chunk's offset were not known when it was written.
    fn header(&self, chunk: &Chunk, index: u8) -> Header {
        let chunk_bytes = u32::try_from(chunk.length).unwrap_or(u32::MAX);
        let whole = self.coded.parts.is_empty();
        let (bytes, offset) = if whole { (self.size, chunk.at) } else { (u64::MAX, 0) };
        Header {
            put: PutId::new(self.write.0),
            object: self.object.clone().into_bytes(),
            object_bytes: ByteCount::new(bytes),
            chunk_offset: ByteCount::new(offset),
            chunk: chunk.number,
            chunk_bytes,
            fragment: index,
            data: self.coded.data,
            parity: self.coded.parity,
            payload_bytes: chunk_bytes.div_ceil(u32::from(self.coded.data.max(1))),
            time: self.time,
        }
    }

    fn fragment(&self, index: usize) -> Option<Fragment> {
        let site = *self.coded.sites.get(index)?;
        Some(Fragment { write: self.write, index: u8::try_from(index).ok()?, site })
    }
}

/// Encoded fragments of chunks, ready to be written.
#[derive(Debug, Default)]
pub(crate) struct EncodedFragments(BTreeMap<(u32, u8), Bytes>);

impl EncodedFragments {
    /// Encodes chunks of a stripe; `bytes` start at the first of them.
    pub(crate) fn encode(stripe: &Stripe, chunks: &[Chunk], bytes: &[u8]) -> Result<Self> {
        let code = stripe.code()?;
        let mut all = BTreeMap::new();
        let mut rest = bytes;
        for chunk in chunks {
            let length = usize::try_from(chunk.length).unwrap_or(usize::MAX);
            let Some((own, tail)) = rest.split_at_checked(length) else {
                let reason = format!("{} bytes are fewer than the chunks need", bytes.len());
                return Err(GeoError::Invalid { reason });
            };
            rest = tail;
            for (index, payload) in (0..).zip(code.encode(own)) {
                let header = stripe.header(chunk, index);
                let blob = encode(&header, &payload);
                let blob = blob.map_err(|error| GeoError::Invalid { reason: error.to_string() })?;
                all.insert((chunk.number, index), Bytes::from(blob));
            }
        }
        Ok(Self(all))
    }

    /// Returns the chunks of one fragment.
    fn fragment_blobs(&self, index: u8) -> impl Iterator<Item = (u32, &Bytes)> {
        self.0
            .iter()
            .filter(move |((_, other), _)| *other == index)
            .map(|((n, _), blob)| (*n, blob))
    }
}

/// Retries a blob call a few times with backoff, as long as it was not, or may not have been,
/// executed.
async fn with_retries<T, F>(site: &Site, call: impl Fn() -> F) -> Result<T, BlobError>
where
    F: Future<Output = Result<T, BlobError>>,
{
    let mut backoff = BLOB_BACKOFF;
    let mut tries = 0;
    let began = Instant::now();
    loop {
        let call_began = Instant::now();
        let left = BLOB_TIMEOUT.saturating_sub(began.elapsed());
        let done = tokio::time::timeout(left, call()).await;
        let out_of_time = || BlobError::Unknown(crate::stores::Cause::new("no answer in time"));
        let done = done.unwrap_or_else(|_| Err(out_of_time()));
        let refused = done.as_ref().is_err_and(|error| error.certainty() == Certainty::Refused);
        site.record_blob(call_began, &done);
        tries += 1;
        if done.is_ok()
            || refused
            || tries == BLOB_TRIES
            || began.elapsed() + backoff > BLOB_TIMEOUT
        {
            return done;
        }
        tokio::time::sleep(backoff).await;
        backoff *= 2;
    }
}

/// Writes all chunks of a fragment.
pub(crate) async fn write(
    live: &LiveMap,
    fragment: Fragment,
    encoded: &EncodedFragments,
) -> OpResult {
    let Some((site, blobs)) = live.blobs(fragment.site) else { return OpResult::Unknown };
    for (chunk, blob) in encoded.fragment_blobs(fragment.index) {
        let Ok(key) = names::blob(fragment, chunk) else { return OpResult::Unknown };
        match with_retries(site, || blobs.create(&key, blob.clone())).await {
            Ok(()) => Counts::add(&site.counts.written, blob.len() as u64),
            // The blob there is not ours: the fragment was fenced.
            Err(BlobError::Exists) => return OpResult::Absent,
            Err(error) => {
                tracing::warn!(site = %site.name, blob = %key, %error, "fragment not written");
                return OpResult::Unknown;
            }
        }
    }
    OpResult::Done
}

/// Checks whether all chunks of a fragment exist: by their lengths or, if `deep`, by all their
/// bytes.
pub(crate) async fn probe(
    live: &LiveMap,
    stripe: &Stripe,
    fragment: Fragment,
    deep: bool,
) -> OpResult {
    let Some((site, blobs)) = live.blobs(fragment.site) else { return OpResult::Unknown };
    for chunk in stripe.coded.chunks(stripe.size) {
        let Ok(key) = names::blob(fragment, chunk.number) else { return OpResult::Unknown };
        let exists = if deep {
            let whole = with_retries(site, || blobs.get(&key, None)).await;
            whole.map(|blob| stripe.is_fragment(&chunk, fragment.index, &blob))
        } else {
            let meta = with_retries(site, || blobs.head(&key)).await;
            meta.map(|meta| meta.bytes.get() == stripe.blob_bytes(&chunk))
        };
        match exists {
            Ok(true) => {}
            Ok(false) | Err(BlobError::NotFound | BlobError::Corrupt(_)) => {
                return OpResult::Absent;
            }
            Err(_) => return OpResult::Unknown,
        }
    }
    OpResult::Done
}

impl Stripe {
    /// Whether a blob is this fragment of a chunk, complete and undamaged.
    fn is_fragment(&self, chunk: &Chunk, index: u8, blob: &[u8]) -> bool {
        decode(blob).is_ok_and(|(header, _)| header == self.header(chunk, index))
    }

    /// Size in bytes of the blob of a fragment of a chunk.
    fn blob_bytes(&self, chunk: &Chunk) -> u64 {
        let header = self.header(chunk, 0);
        let blocks = crate::stores::fragment::stored_bytes(header.payload_bytes);
        header.bytes() as u64 + blocks
    }
}

/// Fences a missing fragment: writes a marker in its place, so that it can never be written.
pub(crate) async fn fence(live: &LiveMap, stripe: &Stripe, fragment: Fragment) -> OpResult {
    let Some((site, blobs)) = live.blobs(fragment.site) else { return OpResult::Unknown };
    // One chunk that can never exist is enough.
    for chunk in stripe.coded.chunks(stripe.size) {
        let Ok(key) = names::blob(fragment, chunk.number) else { return OpResult::Unknown };
        let mark = Bytes::from([FENCE_MARK, stripe.object.as_bytes()].concat());
        match with_retries(site, || blobs.create(&key, mark.clone())).await {
            Ok(()) => return OpResult::Done,
            Err(BlobError::Exists) => {}
            Err(_) => return OpResult::Unknown,
        }
    }
    OpResult::Unknown
}

/// Removes a fragment, or the marker in its place.
pub(crate) async fn erase(live: &LiveMap, stripe: &Stripe, fragment: Fragment) -> OpResult {
    let Some((site, blobs)) = live.blobs(fragment.site) else { return OpResult::Unknown };
    for chunk in stripe.coded.chunks(stripe.size) {
        let Ok(key) = names::blob(fragment, chunk.number) else { return OpResult::Unknown };
        if let Some(cache) = live.cache_of(fragment.site) {
            cache.evict(&key).await;
        }
        if with_retries(site, || blobs.delete(&key)).await.is_err() {
            return OpResult::Unknown;
        }
    }
    OpResult::Done
}

/// Removes one blob.
pub(crate) async fn erase_blob(
    live: &LiveMap,
    site: fulgurite_geo_core::SiteIndex,
    blob: &Key,
) -> OpResult {
    let Some((site, blobs)) = live.blobs(site) else { return OpResult::Unknown };
    let removed = with_retries(site, || blobs.delete(blob)).await;
    if removed.is_ok() { OpResult::Done } else { OpResult::Unknown }
}

/// Rebuilds a fragment from others and writes it in place of whatever is there.
pub(crate) async fn rebuild(live: &Arc<LiveMap>, stripe: &Stripe, fragment: Fragment) -> OpResult {
    let Some((site, blobs)) = live.blobs(fragment.site) else { return OpResult::Unknown };
    for chunk in stripe.coded.chunks(stripe.size) {
        let Ok(bytes) = fetch_chunk(live, (stripe, false), &chunk, None).await else {
            return OpResult::Unknown;
        };
        let Ok(encoded) = EncodedFragments::encode(stripe, &[chunk], &bytes) else {
            return OpResult::Unknown;
        };
        let Ok(key) = names::blob(fragment, chunk.number) else { return OpResult::Unknown };
        for (_, blob) in encoded.fragment_blobs(fragment.index) {
            let mut written = with_retries(site, || blobs.create(&key, blob.clone())).await;
            if matches!(written, Err(BlobError::Exists)) {
                // The blob there is damaged or truncated: replace it.
                if with_retries(site, || blobs.delete(&key)).await.is_err() {
                    return OpResult::Unknown;
                }
                written = with_retries(site, || blobs.create(&key, blob.clone())).await;
            }
            match written {
                Ok(()) => Counts::add(&site.counts.written, blob.len() as u64),
                Err(_) => return OpResult::Unknown,
            }
        }
    }
    OpResult::Done
}

/// Why bytes could not be read.
pub(crate) type TooFew = FetchResult;

/// Why a fragment could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FragmentError {
    /// It does not exist, or is not a valid fragment.
    Absent,
    /// Its state is unknown.
    Unknown,
}

/// Fetches a chunk, or a range of it, from the nearest sites that have it, and from others if these
/// fail or are slow. If it is `durable`, a cache may supply parts: other versions may be made
/// obsolete by programs that do not know of the cache.
pub(crate) async fn fetch_chunk(
    live: &Arc<LiveMap>,
    (stripe, durable): (&Stripe, bool),
    chunk: &Chunk,
    range: Option<Range<u64>>,
) -> Result<Bytes, TooFew> {
    let code = stripe.code().map_err(|_| FetchResult::TooFew { absent: u8::MAX, unknown: 0 })?;
    let range = range.unwrap_or(0..chunk.length);
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let length = narrow(chunk.length);
    let pieces = code.pieces(length, &(narrow(range.start)..narrow(range.end)));
    let payload_bytes = code.payload_bytes(length);
    if let [piece] = &*pieces {
        let part = piece.range.clone();
        let own = usize::from(piece.fragment);
        let available =
            fetch_payloads(live, (stripe, chunk, durable), &code, Some(own), &part).await?;
        if let Some((_, bytes)) = available.iter().find(|(index, _)| *index == own) {
            return Ok(bytes.clone());
        }
        let available: Vec<_> = available.iter().map(|(index, bytes)| (*index, &**bytes)).collect();
        let length = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
        let rebuilt = code.part(own, length, &available);
        return rebuilt
            .map(Bytes::from)
            .map_err(|_| FetchResult::TooFew { absent: u8::MAX, unknown: 0 });
    }
    let available =
        fetch_payloads(live, (stripe, chunk, durable), &code, None, &(0..payload_bytes)).await?;
    let available: Vec<_> = available.iter().map(|(index, bytes)| (*index, &**bytes)).collect();
    let whole = code.decode(length, &available);
    let whole = whole.map_err(|_| FetchResult::TooFew { absent: u8::MAX, unknown: 0 })?;
    let offset = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    Ok(Bytes::from(whole).slice(offset(range.start)..offset(range.end)))
}

/// Fetches the same part of the payloads of as many fragments as needed; with `own`, only that one
/// if it is available.
async fn fetch_payloads(
    live: &Arc<LiveMap>,
    (stripe, chunk, durable): (&Stripe, &Chunk, bool),
    code: &ChunkCode,
    own: Option<usize>,
    part: &Range<u32>,
) -> Result<Vec<(usize, Bytes)>, TooFew> {
    let mut order: Vec<usize> = (0..code.fragments()).collect();
    let distance = |index: &usize| {
        let site = stripe.fragment(*index).and_then(|fragment| live.site(fragment.site));
        let is_here = site.is_some_and(|site| live.is_near(site.index));
        let is_cached = durable && is_cached(live, stripe, chunk, *index);
        let down = !is_cached && site.is_none_or(|site| site.is_down());
        let distance = site.map_or(f64::MAX, Site::distance);
        (down, if is_here || is_cached { 0.0 } else { distance })
    };
    order.sort_by(|a, b| {
        let (a, b) = ((Some(*a) != own, distance(a)), (Some(*b) != own, distance(b)));
        a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut waiting = order.into_iter();
    let mut in_flight = FuturesUnordered::new();
    let (mut available, mut absent, mut unknown) = (Vec::new(), 0_u8, 0_u8);
    let mut wanted = if own.is_some() { 1 } else { code.data() };
    loop {
        while in_flight.len() + available.len() < wanted {
            let Some(index) = waiting.next() else { break };
            in_flight.push(payload_part(live, (stripe, chunk, durable), index, part.clone()));
        }
        let hedge = hedge_after(live, stripe);
        let next = tokio::time::timeout(hedge, in_flight.next()).await;
        match next {
            Ok(Some((index, Ok(bytes)))) => {
                available.push((index, bytes));
                if Some(index) == own || available.len() >= code.data() {
                    return Ok(available);
                }
            }
            Ok(Some((_, Err(FragmentError::Absent)))) => absent += 1,
            Ok(Some((_, Err(FragmentError::Unknown)))) => unknown += 1,
            Ok(None) => return Err(FetchResult::TooFew { absent, unknown }),
            // It is slow: ask one more.
            Err(_) => {
                let others = code.data() + usize::from(own.is_some());
                wanted = (wanted + 1).max(others);
            }
        }
        if own.is_some() && absent + unknown > 0 && wanted < code.data() {
            wanted = code.data();
        }
    }
}

/// Returns the time after which one more fragment is requested (hedged read).
fn hedge_after(live: &LiveMap, stripe: &Stripe) -> Duration {
    let sites = stripe.coded.sites.iter().filter_map(|site| live.site(*site));
    let latencies = sites.filter(|site| !site.is_down()).map(Site::hedge_after);
    latencies.max().unwrap_or(crate::objects::limits::HEDGE_MIN)
}

/// Whether a fragment of another site is in the local cache.
fn is_cached(live: &LiveMap, stripe: &Stripe, chunk: &Chunk, index: usize) -> bool {
    let Some(fragment) = stripe.fragment(index) else { return false };
    let Some(cache) = live.cache_of(fragment.site) else { return false };
    names::blob(fragment, chunk.number).is_ok_and(|key| cache.has(&key))
}

/// Reads part of a fragment's payload from the cache and verifies it; drops a damaged one.
async fn from_cache(
    cache: &FragmentCache,
    (key, header): (&Key, &Header),
    part: &Range<u32>,
) -> Option<Bytes> {
    // The cache does not store headers.
    let stored = cache.get(key, stored_range(0, header.payload_bytes, part)).await?;
    match payload(&header.place(), header.payload_bytes, part.clone(), &stored) {
        Ok(bytes) => Some(Bytes::from(bytes)),
        Err(error) => {
            tracing::warn!(blob = %key, %error, "a fragment in the cache is damaged");
            cache.evict(key).await;
            None
        }
    }
}

/// Reads part of the payload of one fragment and verifies it.
async fn payload_part(
    live: &Arc<LiveMap>,
    (stripe, chunk, durable): (&Stripe, &Chunk, bool),
    index: usize,
    part: Range<u32>,
) -> (usize, Result<Bytes, FragmentError>) {
    let got = async {
        let fragment = stripe.fragment(index).ok_or(FragmentError::Unknown)?;
        let key = names::blob(fragment, chunk.number).map_err(|_| FragmentError::Unknown)?;
        let header = stripe.header(chunk, fragment.index);
        let cache = live.cache_of(fragment.site).filter(|_| durable);
        if let Some(cache) = cache
            && let Some(bytes) = from_cache(cache, (&key, &header), &part).await
        {
            return Ok(bytes);
        }
        let (site, blobs) = live.blobs(fragment.site).ok_or(FragmentError::Unknown)?;
        let stored = stored_range(header.bytes(), header.payload_bytes, &part);
        let began = Instant::now();
        let got = blobs.get(&key, Some(stored)).await;
        site.record_blob(began, &got);
        let stored = match got {
            Ok(stored) => stored,
            // At a site that is being rebuilt, a missing fragment may exist soon.
            Err(BlobError::NotFound | BlobError::Corrupt(_)) if !site.state.rebuilding => {
                return Err(FragmentError::Absent);
            }
            Err(_) => return Err(FragmentError::Unknown),
        };
        Counts::add(&site.counts.read, stored.len() as u64);
        let bytes = payload(&header.place(), header.payload_bytes, part.clone(), &stored);
        let damaged = |error| {
            tracing::warn!(site = %site.name, blob = %key, %error, "a fragment is damaged");
            FragmentError::Absent
        };
        let bytes = bytes.map_err(damaged)?;
        if let Some(cache) = cache.filter(|_| part == (0..header.payload_bytes)) {
            cache.insert(&key, stored);
        }
        Ok(Bytes::from(bytes))
    };
    (index, got.await)
}

/// Returns the sites of the fragments of a write, data first: consecutive sites of those that hold
/// fragments, starting at a different one for each write.
pub(crate) fn place(live: &LiveMap, write: WriteId) -> Vec<fulgurite_geo_core::SiteIndex> {
    let holders = live.map.holders();
    let count = usize::from(live.map.data) + usize::from(live.map.parity);
    let first = usize::try_from(write.0 % holders.len() as u128).unwrap_or(0);
    (0..count).map(|index| holders[(first + index) % holders.len()]).collect()
}

/// Buffer of bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(crate) struct PieceBuffer {
    pieces: std::collections::VecDeque<Bytes>,
    length: u64,
}

impl PieceBuffer {
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.length += bytes.len() as u64;
        self.pieces.push_back(bytes);
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Takes this many bytes from the front, or as many as there are.
    pub(crate) fn take(&mut self, length: u64) -> Bytes {
        let mut left = usize::try_from(length.min(self.length)).unwrap_or(usize::MAX);
        self.length -= left as u64;
        let mut taken = Vec::new();
        while left > 0 {
            let Some(mut piece) = self.pieces.pop_front() else { break };
            let rest = piece.split_off(piece.len().min(left));
            left -= piece.len();
            if !rest.is_empty() {
                self.pieces.push_front(rest);
            }
            // Usually one piece is enough and is not copied.
            if left == 0 && taken.is_empty() {
                return piece;
            }
            taken.extend_from_slice(&piece);
        }
        Bytes::from(taken)
    }
}
