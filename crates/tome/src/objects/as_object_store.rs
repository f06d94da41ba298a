//! `object_store`'s trait over the index and the pieces.
//!
//! Requests about names alone (head, list, delete) are served by the index, without a spin-up. A
//! put may name the affinity group of an object, by a
//! [`AffinityGroup`](fulgurite_units::AffinityGroup) among the extensions of its options.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use fulgurite_tier::{
    Cursor, Entry, KeyedStore, Keys, Mode, NewObject, ReadOptions, list, list_with_delimiter,
    put_result,
};
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{GetOptions, ListResult, ObjectMeta, PutPayload, PutResult};

use crate::objects::index::ObjectRow;
use crate::objects::object_stream::body;
use crate::objects::pins::Pin;
use crate::objects::store::{Inner, TomeStore};
use crate::objects::upload::Upload;
use crate::objects::{Result, StoreError};

impl fmt::Display for TomeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tomes({})", self.id())
    }
}

/// The store as `object_store!` needs it.
#[derive(Clone, Debug)]
struct Keyed(TomeStore);

fulgurite_tier::object_store!(TomeStore, Keyed);

#[async_trait]
impl KeyedStore for Keyed {
    type Error = StoreError;
    type Found = (ObjectRow, Pin);
    type Upload = Upload;

    async fn put(&self, new: NewObject, payload: PutPayload) -> Result<PutResult> {
        let object = self.0.0.new_object(&new.key, new.attributes)?;
        self.0.0.put(object, payload.into(), (new.mode, new.affinity)).await.map(put_result)
    }

    async fn begin_upload(&self, new: NewObject) -> Result<Upload> {
        let object = self.0.0.new_object(&new.key, new.attributes)?;
        let started = self.0.0.begin(new.affinity).await?;
        Ok(Upload::new(Arc::clone(&self.0.0), started, object))
    }

    async fn find(&self, key: &str, _: &GetOptions) -> Result<(ObjectRow, Pin)> {
        self.0.0.pin_object(key)
    }

    fn meta(
        &self,
        key: &str,
        (row, _): &(ObjectRow, Pin),
    ) -> object_store::Result<(ObjectMeta, Vec<(String, String)>)> {
        Ok((entry(key.to_owned(), row).meta()?, row.attributes.clone()))
    }

    async fn body(
        &self,
        _: &str,
        (row, pin): (ObjectRow, Pin),
        range: Range<u64>,
        options: ReadOptions,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let inner = Arc::clone(&self.0.0);
        Ok(body(inner, (&row.pieces, pin), &range, options.is_read_back).boxed())
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.0.0.delete(key).await
    }

    async fn copy(&self, from: &str, to: &str, mode: Mode) -> Result<()> {
        copy(&self.0.0, self.0.0.pin_object(from)?, to, mode).await
    }

    fn list(
        &self,
        folder: Option<&Path>,
        after: Option<String>,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        list(self.clone(), folder, after)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        list_with_delimiter(self, prefix)
    }
}

/// Copies the bytes of an object to another key, piece by piece.
async fn copy(
    inner: &Arc<Inner>,
    (row, pin): (ObjectRow, Pin),
    to: &str,
    mode: Mode,
) -> Result<()> {
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

impl Keys for Keyed {
    type ObjectStoreError = StoreError;

    fn page(&self, prefix: &str, from: &Cursor) -> Result<Vec<Entry>> {
        let page = self.0.0.index.objects(prefix, from)?;
        Ok(page.into_iter().map(|(key, row)| entry(key, &row)).collect())
    }
}

fn entry(key: String, row: &ObjectRow) -> Entry {
    let ObjectRow { sequence, modified_ms, .. } = *row;
    Entry { key, sequence, modified_ms, length: row.pieces.length() }
}
