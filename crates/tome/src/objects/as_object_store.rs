//! `object_store`'s trait over the index and the pieces.
//!
//! Requests about names alone (head, list, delete) are served by the index, without a spin-up. A
//! put may name the affinity group of an object, by a [`AffinityGroup`] among the extensions of its
//! options.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use fulgurite_tier::{
    Cursor, Entry, Keys, Mode, attribute_pairs, attributes, generic_error, list,
    list_with_delimiter, mode, put_result, remove_all, to_object_store_error,
};
use fulgurite_units::{AffinityGroup, ReadBack};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use crate::objects::StoreError;
use crate::objects::index::ObjectRow;
use crate::objects::object_stream::body;
use crate::objects::pins::Pin;
use crate::objects::store::{Inner, TomeStore};
use crate::objects::upload::Upload;

type Answer<T> = object_store::Result<T>;

impl fmt::Display for TomeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tomes({})", self.id())
    }
}

#[async_trait]
impl ObjectStore for TomeStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Answer<PutResult> {
        let mode = mode::<StoreError>(&options.mode)?;
        let put = async {
            let object =
                self.0.new_object(location.as_ref(), attribute_pairs(&options.attributes))?;
            let affinity = options.extensions.get::<AffinityGroup>().copied();
            self.0.put(object, payload.into(), (mode, affinity)).await
        };
        put.await.map(put_result).map_err(|error| to_object_store_error(location, error))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        let started = async {
            let object =
                self.0.new_object(location.as_ref(), attribute_pairs(&options.attributes))?;
            let affinity = options.extensions.get::<AffinityGroup>().copied();
            Ok(Upload::new(Arc::clone(&self.0), self.0.begin(affinity).await?, object))
        };
        let started: crate::objects::Result<Upload> = started.await;
        Ok(Box::new(started.map_err(|error| to_object_store_error(location, error))?))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Answer<GetResult> {
        let found = self.0.pin_object(location.as_ref());
        let (row, pin) = found.map_err(|error| to_object_store_error(location, error))?;
        let meta = entry(location.to_string(), &row).meta()?;
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| generic_error::<StoreError>(Box::new(error)))?,
            None => 0..meta.size,
        };
        let attributes = attributes(&row.attributes);
        let payload = if options.head || range.is_empty() {
            stream::empty().boxed()
        } else {
            let of = location.clone();
            let is_own = options.extensions.get::<ReadBack>().is_some();
            let mut body = body(Arc::clone(&self.0), (&row.pieces, pin), &range, is_own);
            // The first piece is read before the stream is returned, so that its errors are those
            // of the call.
            let first =
                body.next().await.transpose().map_err(|error| to_object_store_error(&of, error))?;
            let first = stream::iter(first.map(Ok));
            first.chain(body.map_err(move |error| to_object_store_error(&of, error))).boxed()
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
        list(self.clone(), prefix, Cursor::Start)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Answer<ObjectMeta>> {
        list(self.clone(), prefix, Cursor::After(offset.as_ref().to_owned()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Answer<ListResult> {
        list_with_delimiter(self, prefix)
    }

    /// Copies the bytes: a copy outlives its source.
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        let mode = Mode::from(options.mode);
        let found = self.0.pin_object(from.as_ref());
        let found = found.map_err(|error| to_object_store_error(from, error))?;
        let copied = copy(&self.0, found, to.as_ref(), mode).await;
        copied.map_err(|error| to_object_store_error(to, error))
    }
}

/// Copies the bytes of an object to another key, piece by piece.
async fn copy(
    inner: &Arc<Inner>,
    (row, pin): (ObjectRow, Pin),
    to: &str,
    mode: Mode,
) -> crate::objects::Result<()> {
    let object = inner.new_object(to, row.attributes)?;
    inner.check_mode(to, mode)?;
    let length = row.pieces.length();
    let mut body = body(Arc::clone(inner), (&row.pieces, pin), &(0..length), false);
    if length <= inner.piece_bytes() {
        let mut all = BytesMut::new();
        while let Some(bytes) = body.try_next().await? {
            all.extend_from_slice(&bytes);
        }
        return inner.put(object, all.freeze(), (mode, None)).await.map(drop);
    }
    let started = inner.begin(None).await?;
    let put = async {
        let mut parts = Vec::new();
        while let Some(bytes) = body.try_next().await? {
            let length = bytes.len() as u64;
            inner.put_part(started, parts.len(), bytes).await?;
            parts.push(length);
        }
        inner.finish(started, object, parts, Bytes::new(), mode).await
    };
    inner.ended(started.id, put.await).await
}

impl Keys for TomeStore {
    type ObjectStoreError = StoreError;

    fn page(&self, prefix: &str, from: &Cursor) -> crate::objects::Result<Vec<Entry>> {
        let page = self.0.index.objects(prefix, from)?;
        Ok(page.into_iter().map(|(key, row)| entry(key, &row)).collect())
    }
}

fn entry(key: String, row: &ObjectRow) -> Entry {
    let ObjectRow { sequence, modified_ms, .. } = *row;
    Entry { key, sequence, modified_ms, length: row.pieces.length() }
}
