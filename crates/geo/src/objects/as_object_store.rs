//! `object_store`'s trait over objects at sites.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo_core::{Data, ReadTarget, Version};
use fulgurite_tier::{
    Entry, Mode, attribute_pairs, attributes, generic_error, mode, remove_all, to_generic_error,
    to_object_store_error,
};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::{DELIMITER, Path};
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use crate::objects::driver::value_range;
use crate::objects::fragments::{Stripe, fetch_chunk};
use crate::objects::limits::{CHUNKS_AT_ONCE, OBJECTS_AT_ONCE};
use crate::objects::listing::{Listed, listed};
use crate::objects::live_map::LiveMap;
use crate::objects::object::{Found, answer};
use crate::objects::store::{GeoStore, Inner};
use crate::objects::upload::Upload;
use crate::objects::{GeoError, Result, names as keys};

type Answer<T> = object_store::Result<T>;

impl fmt::Display for GeoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Geo({})", self.map().name)
    }
}

#[async_trait]
impl ObjectStore for GeoStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Answer<PutResult> {
        let mode = mode::<GeoError>(&options.mode)?;
        let put = async {
            let object =
                Inner::new_object(location.as_ref(), attribute_pairs(&options.attributes))?;
            self.0.put(object, payload.into(), mode).await
        };
        put.await.map(answer).map_err(|error| to_object_store_error(location, error))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        let begun =
            Upload::begin(&self.0, location.as_ref(), attribute_pairs(&options.attributes)).await;
        Ok(Box::new(begun.map_err(|error| to_object_store_error(location, error))?))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Answer<GetResult> {
        let live = self.0.live().await.map_err(|error| to_object_store_error(location, error))?;
        let missing =
            || to_object_store_error(location, GeoError::NotFound { key: location.to_string() });
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
        let found = self.0.lookup(&live, location.as_ref(), (wanted, range)).await;
        let (found, _) = found.map_err(|error| to_object_store_error(location, error))?;
        let found = found.ok_or_else(missing)?;
        let meta = meta(location.to_string(), &found)?;
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| generic_error::<GeoError>(Box::new(error)))?,
            None => 0..meta.size,
        };
        let attributes = found.put().map(|put| attributes(&put.attributes)).unwrap_or_default();
        let payload = if options.head || range.is_empty() {
            stream::empty().boxed()
        } else {
            let of = location.clone();
            let body = body(&self.0, live, location.to_string(), found, range.clone());
            body.map_err(move |error| to_object_store_error(&of, error)).boxed()
        };
        let payload = GetResultPayload::Stream(payload);
        Ok(GetResult { payload, meta, range, attributes, extensions: Default::default() })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Answer<Path>>,
    ) -> BoxStream<'static, Answer<Path>> {
        remove_all(Arc::clone(&self.0), locations, |inner: Arc<Inner>, key: String| async move {
            inner.delete(&key).await
        })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Answer<ObjectMeta>> {
        list(Arc::clone(&self.0), prefix, None)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Answer<ObjectMeta>> {
        list(Arc::clone(&self.0), prefix, Some(offset.as_ref().to_owned()))
    }

    /// Scans all rows below the folder: tables have no folders.
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Answer<ListResult> {
        let folder = folder(prefix);
        let mut all = list(Arc::clone(&self.0), prefix, None);
        let (mut objects, mut folders) = (Vec::new(), BTreeSet::new());
        while let Some(meta) = all.try_next().await? {
            let rest = meta.location.as_ref().get(folder.len()..).unwrap_or_default().to_owned();
            match rest.split_once(DELIMITER) {
                Some((name, _)) => {
                    folders.insert(Path::parse(format!("{folder}{name}"))?);
                }
                None => objects.push(meta),
            }
        }
        let common_prefixes = folders.into_iter().collect();
        Ok(ListResult { objects, common_prefixes, extensions: Default::default() })
    }

    /// Copies the bytes: a copy outlives its source.
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        let copied = copy(&self.0, from, to, Mode::from(options.mode)).await;
        copied.map(drop).map_err(|error| {
            let missing = matches!(error, GeoError::NotFound { .. });
            to_object_store_error(if missing { from } else { to }, error)
        })
    }
}

fn meta(key: String, found: &Found) -> Answer<ObjectMeta> {
    let size = found.put().map_or(0, |put| put.size);
    let entry = Entry {
        key,
        sequence: found.version.0,
        modified_ms: found.value.time.as_millis(),
        length: size,
    };
    Ok(ObjectMeta { version: Some(found.version.to_string()), ..entry.meta()? })
}

async fn copy(inner: &Arc<Inner>, from: &Path, to: &Path, mode: Mode) -> Result<Version> {
    let live = inner.live().await?;
    let wanted = (ReadTarget::Latest, Some(GetRange::Offset(0)));
    let (found, _) = inner.lookup(&live, from.as_ref(), wanted).await?;
    let found = found.ok_or_else(|| GeoError::NotFound { key: from.to_string() })?;
    let Some(put) = found.put().cloned() else {
        return Err(GeoError::NotFound { key: from.to_string() });
    };
    let object = Inner::new_object(to.as_ref(), put.attributes)?;
    let body = body(inner, Arc::clone(&live), from.to_string(), found, 0..put.size);
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
    range: std::ops::Range<u64>,
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
    range: &std::ops::Range<u64>,
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

/// Returns the key prefix of a folder.
fn folder(prefix: Option<&Path>) -> String {
    match prefix.map(AsRef::as_ref) {
        None | Some("") => String::new(),
        Some(prefix) => format!("{prefix}{DELIMITER}"),
    }
}

fn list(
    inner: Arc<Inner>,
    prefix: Option<&Path>,
    after: Option<String>,
) -> BoxStream<'static, Answer<ObjectMeta>> {
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
