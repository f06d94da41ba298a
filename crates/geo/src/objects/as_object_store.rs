//! `object_store`'s trait over objects at sites.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo_core::{Data, ReadTarget, Version};
use fulgurite_tier::{Entry, KeyedStore, Mode, NewObject, ReadOptions, to_generic_error};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, PutPayload, PutResult};

use crate::objects::driver::value_range;
use crate::objects::fragments::{Stripe, fetch_chunk};
use crate::objects::limits::{CHUNKS_AT_ONCE, OBJECTS_AT_ONCE};
use crate::objects::listing::{Listed, listed};
use crate::objects::live_map::LiveMap;
use crate::objects::object::{Found, answer};
use crate::objects::store::{GeoStore, Inner};
use crate::objects::upload::Upload;
use crate::objects::{GeoError, Result, names as keys};

impl fmt::Display for GeoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Geo({})", self.map().name)
    }
}

/// The store as `object_store!` needs it.
#[derive(Clone, Debug)]
struct Keyed(GeoStore);

fulgurite_tier::object_store!(GeoStore, Keyed);

#[async_trait]
impl KeyedStore for Keyed {
    type Error = GeoError;
    type Found = (Arc<LiveMap>, Found);
    type Upload = Upload;

    async fn put(&self, new: NewObject, payload: PutPayload) -> Result<PutResult> {
        let object = Inner::new_object(&new.key, new.attributes)?;
        self.0.0.put(object, payload.into(), new.mode).await.map(answer)
    }

    async fn begin_upload(&self, new: NewObject) -> Result<Upload> {
        Upload::begin(&self.0.0, &new.key, new.attributes).await
    }

    async fn find(&self, key: &str, options: &GetOptions) -> Result<(Arc<LiveMap>, Found)> {
        let live = self.0.0.live().await?;
        let missing = || GeoError::NotFound { key: key.to_owned() };
        let wanted = match &options.version {
            Some(version) => ReadTarget::Version(Version(version.parse().map_err(|_| missing())?)),
            None if options.head => ReadTarget::Metadata,
            None => ReadTarget::Latest,
        };
        let range = if options.head {
            None
        } else {
            Some(options.range.clone().unwrap_or(GetRange::Offset(0)))
        };
        let (found, _) = self.0.0.lookup(&live, key, (wanted, range)).await?;
        Ok((live, found.ok_or_else(missing)?))
    }

    fn meta(
        &self,
        key: &str,
        (_, found): &(Arc<LiveMap>, Found),
    ) -> object_store::Result<(ObjectMeta, Vec<(String, String)>)> {
        let attributes = found.put().map(|put| put.attributes.clone()).unwrap_or_default();
        Ok((meta(key.to_owned(), found)?, attributes))
    }

    async fn body(
        &self,
        key: &str,
        (live, found): (Arc<LiveMap>, Found),
        range: Range<u64>,
        _: ReadOptions,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        Ok(body(&self.0.0, live, key.to_owned(), found, range))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.0.0.delete(key).await.map(drop)
    }

    async fn copy(&self, from: &str, to: &str, mode: Mode) -> Result<()> {
        copy(&self.0.0, from, to, mode).await.map(drop)
    }

    /// Scans all rows below the folder: tables have no folders.
    fn list(
        &self,
        folder: Option<&Path>,
        after: Option<String>,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        list(Arc::clone(&self.0.0), folder, after)
    }
}

fn meta(key: String, found: &Found) -> object_store::Result<ObjectMeta> {
    let size = found.put().map_or(0, |put| put.size);
    let entry = Entry {
        key,
        sequence: found.version.0,
        modified_ms: found.value.time.as_millis(),
        length: size,
    };
    Ok(ObjectMeta { version: Some(found.version.to_string()), ..entry.meta()? })
}

async fn copy(inner: &Arc<Inner>, from: &str, to: &str, mode: Mode) -> Result<Version> {
    let live = inner.live().await?;
    let wanted = (ReadTarget::Latest, Some(GetRange::Offset(0)));
    let (found, _) = inner.lookup(&live, from, wanted).await?;
    let found = found.ok_or_else(|| GeoError::NotFound { key: from.to_owned() })?;
    let Some(put) = found.put().cloned() else {
        return Err(GeoError::NotFound { key: from.to_owned() });
    };
    let object = Inner::new_object(to, put.attributes)?;
    let body = body(inner, Arc::clone(&live), from.to_owned(), found, 0..put.size);
    if put.size <= live.map.chunk.get() {
        let bytes: Vec<Bytes> = body.try_collect().await?;
        return inner.put(object, bytes.concat().into(), mode).await;
    }
    inner.put_stream(object, put.size, body, mode).await
}

/// Streams the bytes of a version chunk by chunk, with read-ahead. For a whole object it checks at
/// the end that the digest is that of the put.
pub(crate) fn body(
    inner: &Arc<Inner>,
    live: Arc<LiveMap>,
    key: String,
    found: Found,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes>> {
    let Some(put) = found.put().cloned() else { return stream::empty().boxed() };
    // A multipart upload has digests of its parts only.
    let in_parts = matches!(&put.data, Data::Coded(coded) if !coded.parts.is_empty());
    let whole = range == (0..put.size) && !in_parts;
    let bytes = match &put.data {
        Data::Inline(bytes) => {
            let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            let bytes = Bytes::copy_from_slice(&bytes[at(range.start)..at(range.end)]);
            stream::iter([Ok(bytes)]).boxed()
        }
        Data::Coded(_) | Data::Shared { .. } => {
            coded((Arc::clone(inner), live), key.clone(), found, &range)
        }
    };
    if !whole {
        return bytes;
    }
    let state = (bytes, blake3::Hasher::new(), false);
    let checked = stream::try_unfold(state, move |(mut bytes, mut hasher, ended)| {
        let key = key.clone();
        async move {
            if ended {
                return Ok(None);
            }
            match bytes.try_next().await? {
                Some(next) => {
                    hasher.update(&next);
                    Ok(Some((next, (bytes, hasher, false))))
                }
                None if *hasher.finalize().as_bytes() == put.digest => Ok(None),
                None => Err(GeoError::Corrupt { key }),
            }
        }
    });
    checked.boxed()
}

fn coded(
    (inner, live): (Arc<Inner>, Arc<LiveMap>),
    key: String,
    found: Found,
    range: &Range<u64>,
) -> BoxStream<'static, Result<Bytes>> {
    let Some(stripe) = Stripe::from_value(&key, &found.value) else {
        return stream::empty().boxed();
    };
    let stripe = Arc::new(stripe);
    let (start, length) = value_range(&found.value, range);
    let end = start + length;
    let chunks = stripe.coded.chunks(stripe.size);
    let chunks = chunks.filter(|chunk| chunk.at < end && chunk.at + chunk.length > start);
    let chunks: Vec<_> = chunks.collect();
    let (version, durable) = (found.version, found.durable);
    // The read that found the version also fetched its first bytes.
    let mut first = found.first;
    let parts = stream::iter(chunks).map(move |chunk| {
        let (live, stripe, key) = (Arc::clone(&live), Arc::clone(&stripe), key.clone());
        let inner = Arc::clone(&inner);
        let within = start.max(chunk.at) - chunk.at..end.min(chunk.at + chunk.length) - chunk.at;
        let at_hand = first.take();
        async move {
            if let Some(bytes) = at_hand
                && bytes.len() as u64 == within.end - within.start
            {
                return Ok(bytes);
            }
            match fetch_chunk(&live, (&stripe, durable), &chunk, Some(within)).await {
                Ok(bytes) => Ok(bytes),
                Err(fulgurite_geo_core::FetchResult::TooFew { absent, .. })
                    if absent > stripe.coded.parity =>
                {
                    Err(inner.classify_loss(&live, key, version).await)
                }
                Err(_) => Err(GeoError::Unavailable { key }),
            }
        }
    });
    parts.buffered(CHUNKS_AT_ONCE).boxed()
}

fn list(
    inner: Arc<Inner>,
    prefix: Option<&Path>,
    after: Option<String>,
) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
    let folder = prefix.map(|prefix| prefix.as_ref().to_owned());
    let begin = async move {
        let live = inner.live().await?;
        let below = keys::rows(folder.as_deref())?;
        let rows = listed(&live, (below, None), (live.map.listing, None));
        let rows = rows.try_filter(move |row| {
            let behind = after.as_ref().is_none_or(|after| row.key > *after);
            std::future::ready(behind)
        });
        let found = rows.map(move |row| {
            let (inner, live) = (Arc::clone(&inner), Arc::clone(&live));
            async move { found(&inner, &live, row?).await }
        });
        Ok::<_, GeoError>(found.buffered(OBJECTS_AT_ONCE))
    };
    let all = stream::once(begin).try_flatten().map_err(to_generic_error);
    let metas = all.try_filter_map(|found| async move {
        found.map(|(key, found)| meta(key, &found)).transpose()
    });
    metas.boxed()
}

/// Returns the object under a key of a listing, if any.
pub(crate) async fn found(
    inner: &Inner,
    live: &Arc<LiveMap>,
    row: Listed,
) -> Result<Option<(String, Found)>> {
    inner.ctx.undecided.record(&row.key, row.open, row.known.last());
    if !row.certain {
        let (found, _) = inner.lookup(live, &row.key, (ReadTarget::Metadata, None)).await?;
        return Ok(found.map(|found| (row.key, found)));
    }
    let latest = row.known.latest().ok().flatten();
    let found = latest.map(|(version, decided)| Found {
        version,
        value: decided.value.clone(),
        durable: decided.durable,
        first: None,
    });
    Ok(found.map(|found| (row.key, found)))
}
