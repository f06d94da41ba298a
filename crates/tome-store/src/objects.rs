//! `object_store`'s trait over the index and the pieces.
//!
//! Requests about names alone (head, list, delete) are served by the index, without a spin-up. A
//! put may name the affinity group of an object, by a [`Kin`] among the extensions of its options.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use fulgurite_keyed::{
    Entry, From, Keys, Mode, attributes, generic, list, list_with_delimiter, mode, names,
    put_result, remove_all, told,
};
use fulgurite_units::{Kin, ReadBack};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use crate::StoreError;
use crate::index::ObjectRow;
use crate::pins::Pin;
use crate::reading::body;
use crate::store::{Inner, TomeStore};
use crate::upload::Upload;

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
            let object = self.0.named(location.as_ref(), names(&options.attributes))?;
            let kin = options.extensions.get::<Kin>().copied();
            self.0.put(object, payload.into(), (mode, kin)).await
        };
        put.await.map(put_result).map_err(|error| told(location, error))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        let begun = async {
            let object = self.0.named(location.as_ref(), names(&options.attributes))?;
            let kin = options.extensions.get::<Kin>().copied();
            Ok(Upload::new(Arc::clone(&self.0), self.0.begin(kin).await?, object))
        };
        let begun: crate::Result<Upload> = begun.await;
        Ok(Box::new(begun.map_err(|error| told(location, error))?))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Answer<GetResult> {
        let found = self.0.object_to_read(location.as_ref());
        let (row, pin) = found.map_err(|error| told(location, error))?;
        let meta = entry(location.to_string(), &row).meta()?;
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => {
                range.as_range(meta.size).map_err(|error| generic::<StoreError>(Box::new(error)))?
            }
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
            let first = body.next().await.transpose().map_err(|error| told(&of, error))?;
            let first = stream::iter(first.map(Ok));
            first.chain(body.map_err(move |error| told(&of, error))).boxed()
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
        list(self.clone(), prefix, From::Start)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Answer<ObjectMeta>> {
        list(self.clone(), prefix, From::After(offset.as_ref().to_owned()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Answer<ListResult> {
        list_with_delimiter(self, prefix)
    }

    /// Copies the bytes: a copy outlives its source.
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        let mode = Mode::from(options.mode);
        let found = self.0.object_to_read(from.as_ref());
        let found = found.map_err(|error| told(from, error))?;
        let copied = copy(&self.0, found, to.as_ref(), mode).await;
        copied.map_err(|error| told(to, error))
    }
}

/// Copies the bytes of an object to another key, piece by piece.
async fn copy(
    inner: &Arc<Inner>,
    (row, pin): (ObjectRow, Pin),
    to: &str,
    mode: Mode,
) -> crate::Result<()> {
    let object = inner.named(to, row.attributes)?;
    inner.refuse_early(to, mode)?;
    let length = row.pieces.length();
    let mut body = body(Arc::clone(inner), (&row.pieces, pin), &(0..length), false);
    if length <= inner.piece_bytes() {
        let mut all = BytesMut::new();
        while let Some(bytes) = body.try_next().await? {
            all.extend_from_slice(&bytes);
        }
        return inner.put(object, all.freeze(), (mode, None)).await.map(drop);
    }
    let begun = inner.begin(None).await?;
    let put = async {
        let mut parts = Vec::new();
        while let Some(bytes) = body.try_next().await? {
            let length = bytes.len() as u64;
            inner.put_part(begun, parts.len(), bytes).await?;
            parts.push(length);
        }
        inner.finish(begun, object, parts, Bytes::new(), mode).await
    };
    inner.ended(begun.id, put.await).await
}

impl Keys for TomeStore {
    type Failure = StoreError;

    fn page(&self, prefix: &str, from: &From) -> crate::Result<Vec<Entry>> {
        let page = self.0.index.objects(prefix, from)?;
        Ok(page.into_iter().map(|(key, row)| entry(key, &row)).collect())
    }
}

fn entry(key: String, row: &ObjectRow) -> Entry {
    let ObjectRow { sequence, modified_ms, .. } = *row;
    Entry { key, sequence, modified_ms, length: row.pieces.length() }
}
