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
    Cursor, Entry, Keys, Mode, attribute_pairs, attributes, generic_error, list,
    list_with_delimiter, mode, put_result, remove_all, to_generic_error, to_object_store_error,
};
use fulgurite_units::{Deadline, ReadBack, UnixTime};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use super::body::Body;
use super::staging::Source;
use super::upload::Upload;
use super::{Inner, RackStore};
use crate::StacksError;
use crate::driver::Kind;
use crate::format::bytes;
use crate::index::{Content, ObjectRow};
use crate::limits::STAGED_PIECE_BYTES;

type Answer<T> = object_store::Result<T>;

impl fmt::Display for RackStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rack({})", self.inner().rack())
    }
}

#[async_trait]
impl ObjectStore for RackStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Answer<PutResult> {
        let mode = mode::<StacksError>(&options.mode)?;
        let length = bytes(payload.content_length());
        let source = Source::memory(payload);
        let put = self.inner().put(
            location.as_ref(),
            source,
            length,
            attribute_pairs(&options.attributes),
            mode,
        );
        put.await.map(put_result).map_err(|error| to_object_store_error(location, error))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        let upload = Upload::new(
            Arc::clone(self.inner()),
            location.clone(),
            attribute_pairs(&options.attributes),
        );
        Ok(Box::new(upload))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Answer<GetResult> {
        let row = self
            .inner()
            .object(location.as_ref())
            .map_err(|error| to_object_store_error(location, error))?;
        let meta = entry(location.to_string(), &row).meta()?;
        options.check_preconditions(&meta)?;
        let length = meta.size;
        let range = match &options.range {
            Some(range) => range
                .as_range(length)
                .map_err(|error| generic_error::<StacksError>(Box::new(error)))?,
            None => 0..length,
        };
        let attributes = attributes(&row.attributes);
        let payload = if options.head || range.is_empty() {
            stream::empty().boxed()
        } else {
            let due = options.extensions.get::<Deadline>().map(|due| due.0);
            let is_own = options.extensions.get::<ReadBack>().is_some();
            let kind = if is_own { Kind::Verify } else { Kind::Read };
            self.body(location, row, range.clone(), (kind, due)).await?
        };
        let payload = GetResultPayload::Stream(payload);
        Ok(GetResult { payload, meta, range, attributes, extensions: Default::default() })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Answer<Path>>,
    ) -> BoxStream<'static, Answer<Path>> {
        remove_all(
            Arc::clone(self.inner()),
            locations,
            |inner: Arc<Inner>, key: String| async move { inner.delete(&key).await },
        )
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

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        let mode = Mode::from(options.mode);
        let row = self
            .inner()
            .object(from.as_ref())
            .map_err(|error| to_object_store_error(from, error))?;
        let named = row.attributes.clone();
        let length = row.length.get();
        let source = match &row.content {
            Content::Inline(bytes) => Source::memory([Bytes::from(bytes.clone())]),
            // The copy gets a blob of its own: it outlives the original, and can be recovered from
            // the disks by its own name.
            Content::Blob { .. } => self.staged(from, row, length).await?,
        };
        let put = self.inner().put(to.as_ref(), source, length, named, mode);
        put.await.map(|_| ()).map_err(|error| to_object_store_error(to, error))
    }
}

impl RackStore {
    /// Returns the bytes `range` of an object.
    async fn body(
        &self,
        location: &Path,
        row: ObjectRow,
        range: Range<u64>,
        request: (Kind, Option<UnixTime>),
    ) -> Answer<BoxStream<'static, Answer<Bytes>>> {
        match row.content {
            Content::Inline(bytes) => {
                let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                let part = Bytes::from(bytes).slice(at(range.start)..at(range.end));
                Ok(stream::once(async move { Ok(part) }).boxed())
            }
            Content::Blob { group, blob } => {
                let (inner, key) = (Arc::clone(self.inner()), location.as_ref());
                let body = Body::begin(inner, key, group, blob, range, request);
                let owned_location = location.clone();
                let mut body =
                    body.map_err(|error| to_object_store_error(&owned_location, error))?;
                // An error at the start is returned before any bytes are.
                let first = body.next().await;
                let first = first
                    .transpose()
                    .map_err(|error| to_object_store_error(&owned_location, error))?;
                let first = stream::iter(first.map(Ok));
                let rest = body.map_err(move |error| to_object_store_error(&owned_location, error));
                Ok(first.chain(rest).boxed())
            }
        }
    }

    /// Reads a whole object into staged files.
    async fn staged(&self, location: &Path, row: ObjectRow, length: u64) -> Answer<Source> {
        let mut body = self.body(location, row, 0..length, (Kind::Read, None)).await?;
        let (mut waiting, mut held) = (Vec::new(), 0);
        let mut files = Vec::new();
        while let Some(piece) = body.try_next().await? {
            held += piece.len();
            waiting.push(piece);
            if held >= STAGED_PIECE_BYTES {
                files.push(
                    self.inner()
                        .stage(std::mem::take(&mut waiting))
                        .await
                        .map_err(to_generic_error)?,
                );
                held = 0;
            }
        }
        files.push(self.inner().stage(waiting).await.map_err(to_generic_error)?);
        Ok(Source::staged(files))
    }
}

impl Keys for RackStore {
    type ObjectStoreError = StacksError;

    fn page(&self, prefix: &str, from: &Cursor) -> crate::Result<Vec<Entry>> {
        let page = self.inner().index().objects(prefix, from)?;
        Ok(page.into_iter().map(|(key, row)| entry(key, &row)).collect())
    }
}

fn entry(key: String, row: &ObjectRow) -> Entry {
    let ObjectRow { sequence, modified_ms, length, .. } = *row;
    Entry { key, sequence, modified_ms, length: length.get() }
}
