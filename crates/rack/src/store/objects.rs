//! The rack as an object store: implements the trait of `object_store` over the index and the
//! blobs.
//!
//! Head, list, delete and small objects need only the index, and spin up no disk.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_tier::{
    Cursor, Entry, KeyedStore, Keys, Mode, NewObject, ReadOptions, list, list_with_delimiter,
    put_result,
};
use fulgurite_units::UnixTime;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{GetOptions, ListResult, ObjectMeta, PutPayload, PutResult};

use super::RackStore;
use super::body::Body;
use super::staging::Source;
use super::upload::Upload;
use crate::driver::Kind;
use crate::format::bytes;
use crate::index::{Content, ObjectRow};
use crate::limits::STAGED_PIECE_BYTES;
use crate::{RackError, Result};

impl fmt::Display for RackStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rack({})", self.inner().rack())
    }
}

/// The store as `object_store!` needs it.
#[derive(Clone, Debug)]
struct Keyed(RackStore);

fulgurite_tier::object_store!(RackStore, Keyed);

#[async_trait]
impl KeyedStore for Keyed {
    type Error = RackError;
    type Found = ObjectRow;
    type Upload = Upload;

    async fn put(&self, object: NewObject, payload: PutPayload) -> Result<PutResult> {
        let length = bytes(payload.content_length());
        self.0.inner().put(object, Source::memory(payload), length).await.map(put_result)
    }

    async fn begin_upload(&self, object: NewObject) -> Result<Upload> {
        Ok(Upload::new(Arc::clone(self.0.inner()), object))
    }

    async fn find(&self, key: &str, _: &GetOptions) -> Result<ObjectRow> {
        self.0.inner().object(key)
    }

    fn meta(
        &self,
        key: &str,
        row: &ObjectRow,
    ) -> object_store::Result<(ObjectMeta, Vec<(String, String)>)> {
        Ok((entry(key.to_owned(), row).meta()?, row.attributes.clone()))
    }

    async fn body(
        &self,
        key: &str,
        row: ObjectRow,
        range: Range<u64>,
        options: ReadOptions,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let kind = if options.is_read_back { Kind::Verify } else { Kind::Read };
        self.0.stream(key, row, range, (kind, options.due))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.0.inner().delete(key).await
    }

    async fn copy(&self, from: &str, to: &str, mode: Mode) -> Result<()> {
        let row = self.0.inner().object(from)?;
        let (attributes, length) = (row.attributes.clone(), row.length.get());
        let source = match &row.content {
            Content::Inline(bytes) => Source::memory([Bytes::from(bytes.clone())]),
            // The copy gets a blob of its own: it outlives the original, and can be recovered from
            // the disks by its own name.
            Content::Blob { .. } => self.0.staged(from, row, length).await?,
        };
        let object = NewObject { key: to.to_owned(), attributes, mode, affinity: None };
        self.0.inner().put(object, source, length).await.map(drop)
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

impl RackStore {
    /// Streams bytes of an object.
    fn stream(
        &self,
        key: &str,
        row: ObjectRow,
        range: Range<u64>,
        request: (Kind, Option<UnixTime>),
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        match row.content {
            Content::Inline(bytes) => {
                let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                let part = Bytes::from(bytes).slice(at(range.start)..at(range.end));
                Ok(stream::iter([Ok(part)]).boxed())
            }
            Content::Blob { group, blob } => {
                let inner = Arc::clone(self.inner());
                Ok(Body::begin(inner, key, group, blob, range, request)?.boxed())
            }
        }
    }

    /// Reads a whole object into staged files.
    async fn staged(&self, key: &str, row: ObjectRow, length: u64) -> Result<Source> {
        let mut body = self.stream(key, row, 0..length, (Kind::Read, None))?;
        let (mut waiting, mut held) = (Vec::new(), 0);
        let mut files = Vec::new();
        while let Some(piece) = body.try_next().await? {
            held += piece.len();
            waiting.push(piece);
            if held >= STAGED_PIECE_BYTES {
                files.push(self.inner().stage(std::mem::take(&mut waiting)).await?);
                held = 0;
            }
        }
        files.push(self.inner().stage(waiting).await?);
        Ok(Source::staged(files))
    }
}

impl Keys for Keyed {
    type ObjectStoreError = RackError;

    fn page(&self, prefix: &str, from: &Cursor) -> Result<Vec<Entry>> {
        let page = self.0.inner().index().objects(prefix, from)?;
        Ok(page.into_iter().map(|(key, row)| entry(key, &row)).collect())
    }
}

fn entry(key: String, row: &ObjectRow) -> Entry {
    let ObjectRow { sequence, modified_ms, length, .. } = *row;
    Entry { key, sequence, modified_ms, length: length.get() }
}
