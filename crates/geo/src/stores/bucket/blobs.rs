//! Blobs in a bucket or a directory.
//!
//! A directory that is not mounted is empty and would report every blob as absent. So a directory
//! has a marker file. Absence counts only if the marker exists before and after the read, because
//! the directory may be missing for a moment only. A missing bucket reports itself, but only to a
//! GET: the response to a HEAD has no body.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_units::{ByteCount, UnixTime};
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions, PutPayload,
};

use super::errors;
use crate::stores::blob::{Blob, BlobMeta};
use crate::stores::limits::BLOB_BYTES_MAX;
use crate::stores::{BlobError, Cause, Key};

/// Suffix of the object names of blobs, as of rows.
const SUFFIX: char = '!';
/// Name of the marker object, which shows that blobs are stored here.
const MARKER: &str = "fulgurite-blobs";
/// Error text if the marker is missing.
const NO_MARKER: &str = "the marker file of the blob directory is missing: is it mounted?";

/// Blobs in a bucket, or in any `object_store`.
#[derive(Clone, Debug)]
pub struct BucketBlobs {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Whether absence is only believed while the marker exists.
    has_marker: bool,
}

impl BucketBlobs {
    /// Creates a blob store below `prefix`. The store's own retries must be off.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { store, prefix, has_marker: false }
    }

    /// Requires a marker object, for a directory that may be empty by mistake. The marker is
    /// created if `may_create`.
    ///
    /// # Errors
    /// [`BlobError::NotFound`] if the marker is missing, and others.
    pub async fn with_marker(self, may_create: bool) -> Result<Self, BlobError> {
        if may_create {
            let options = PutOptions::from(PutMode::Create);
            let text = PutPayload::from_static(b"fulgurite blobs 1\n");
            match self.store.put_opts(&self.marker_path(), text, options).await {
                Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(errors::to_blob_error(&error)),
            }
        }
        self.store
            .head(&self.marker_path())
            .await
            .map_err(|error| errors::to_blob_read_error(&error))?;
        Ok(Self { has_marker: true, ..self })
    }

    fn marker_path(&self) -> Path {
        Path::from(format!("{}/{MARKER}", self.prefix))
    }

    fn path(&self, key: &Key) -> Path {
        Path::from(format!("{}/{key}{SUFFIX}", self.prefix))
    }

    /// Returns the metadata of an object, unless it is not a blob.
    fn meta(&self, meta: &ObjectMeta) -> Option<BlobMeta> {
        let path = meta.location.as_ref().strip_prefix(self.prefix.as_ref())?;
        let key = Key::new(path.trim_start_matches('/').strip_suffix(SUFFIX)?).ok()?;
        let written = u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0);
        let written = UnixTime::from_millis(written);
        Some(BlobMeta { key, bytes: ByteCount::new(meta.size), written })
    }

    async fn request(&self, key: &Key, options: GetOptions) -> Result<GetResult, BlobError> {
        let path = self.path(key);
        let get = async || {
            let answer = self.store.get_opts(&path, options.clone()).await;
            answer.map_err(|error| errors::to_blob_read_error(&error))
        };
        match get().await {
            Err(BlobError::NotFound) if self.has_marker => {}
            answer => return answer,
        }
        // The directory may have been missing just then: absence needs the marker before and after
        // the read.
        self.check_marker().await?;
        let retried = get().await;
        if matches!(retried, Err(BlobError::NotFound)) {
            self.check_marker().await?;
        }
        retried
    }

    /// Checks the marker, if one is required.
    async fn check_marker(&self) -> Result<(), BlobError> {
        if self.has_marker && self.store.head(&self.marker_path()).await.is_err() {
            return Err(BlobError::Unavailable(Cause::new(NO_MARKER)));
        }
        Ok(())
    }

    /// Checks that what was just written can be read back. If a directory disappears during a
    /// write, it is recreated next to the disk that is not mounted.
    async fn confirm_written(&self, key: &Key) -> Result<(), BlobError> {
        let confirmed = match self.check_marker().await {
            Ok(()) if self.has_marker => self.store.head(&self.path(key)).await.is_ok(),
            confirmed => confirmed.is_ok(),
        };
        let reason = "the directory was missing during the write";
        if confirmed { Ok(()) } else { Err(BlobError::Unknown(Cause::new(reason))) }
    }

    /// Refines the error of a range read: stores report a range past the end in different ways.
    async fn refine_range_error(
        &self,
        key: &Key,
        range: &Range<u64>,
        error: BlobError,
    ) -> BlobError {
        if !matches!(error, BlobError::Unavailable(_)) {
            return error;
        }
        match self.head(key).await {
            Ok(meta) if meta.bytes.get() < range.end => {
                let (have, end) = (meta.bytes.get(), range.end);
                BlobError::Corrupt(format!("it has {have} bytes, but was read up to byte {end}"))
            }
            _ => error,
        }
    }

    async fn has_same_bytes(&self, key: &Key, body: &Bytes) -> Result<bool, BlobError> {
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        if self.head(key).await?.bytes.get() != length {
            return Ok(false);
        }
        Ok(self.get(key, None).await? == *body)
    }
}

#[async_trait]
impl Blob for BucketBlobs {
    async fn create(&self, key: &Key, body: Bytes) -> Result<(), BlobError> {
        if body.len() > BLOB_BYTES_MAX {
            return Err(BlobError::TooLarge(body.len()));
        }
        self.check_marker().await?;
        let options = PutOptions::from(PutMode::Create);
        let path = self.path(key);
        let put = self.store.put_opts(&path, PutPayload::from(body.clone()), options);
        let error = match put.await {
            Ok(_) => return self.confirm_written(key).await,
            Err(error) => errors::to_blob_error(&error),
        };
        if error == BlobError::NotFound {
            // A put cannot miss its object, so the bucket itself is missing.
            return Err(BlobError::Unavailable(Cause::new("the bucket does not exist")));
        }
        if error != BlobError::Exists {
            return Err(error);
        }
        match self.has_same_bytes(key, &body).await {
            Ok(true) => self.confirm_written(key).await,
            Ok(false) => Err(BlobError::Exists),
            // Another write was in flight and was not applied, or the blob was removed since.
            Err(BlobError::NotFound) => {
                let reason = "it existed and is now missing: another write is in flight";
                Err(BlobError::Unavailable(Cause::new(reason)))
            }
            Err(error) => Err(error),
        }
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        if range.as_ref().is_some_and(|range| range.is_empty()) {
            return Ok(Bytes::new());
        }
        let options =
            GetOptions { range: range.clone().map(GetRange::Bounded), ..GetOptions::default() };
        let answer = match (self.request(key, options).await, &range) {
            (Ok(answer), _) => answer,
            (Err(error), None) => return Err(error),
            (Err(error), Some(range)) => {
                return Err(self.refine_range_error(key, range, error).await);
            }
        };
        let size = answer.meta.size;
        if range.is_none() && size > u64::try_from(BLOB_BYTES_MAX).unwrap_or(u64::MAX) {
            return Err(BlobError::Corrupt(format!("it has {size} bytes")));
        }
        let bytes = answer.bytes().await.map_err(|error| errors::to_blob_read_error(&error))?;
        let wanted = range.map_or(size, |range| range.end - range.start);
        if u64::try_from(bytes.len()) != Ok(wanted) {
            let reason = format!("received {} of {wanted} requested bytes", bytes.len());
            return Err(BlobError::Corrupt(reason));
        }
        Ok(bytes)
    }

    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let answer = match self.request(key, options).await {
            // Ask again with a GET, which can return a reason.
            Err(BlobError::NotFound) if !self.has_marker => {
                self.request(key, GetOptions::default()).await?
            }
            other => other?,
        };
        self.meta(&answer.meta)
            .ok_or_else(|| BlobError::Corrupt("the object has another key".to_owned()))
    }

    async fn delete(&self, key: &Key) -> Result<(), BlobError> {
        let path = self.path(key);
        let delete =
            async || self.store.delete(&path).await.map_err(|error| errors::to_blob_error(&error));
        match delete().await {
            Err(BlobError::NotFound) => {}
            done => return done,
        }
        // As for a read: the directory may have been missing.
        self.check_marker().await?;
        match delete().await {
            Err(BlobError::NotFound) => self.check_marker().await,
            done => done,
        }
    }

    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>> {
        let below = match prefix {
            None => self.prefix.clone(),
            Some(prefix) => Path::from(format!("{}/{prefix}", self.prefix)),
        };
        let listed =
            self.store.list(Some(&below)).map_err(|error| errors::to_blob_read_error(&error));
        let found = listed.try_filter_map(move |meta| {
            let meta = self.meta(&meta).filter(|meta| meta.written < before);
            futures::future::ready(Ok(meta))
        });
        found.boxed()
    }
}

#[cfg(test)]
mod tests;
