//! Tables and blobs in any bucket that `object_store` supports: S3, Azure, Google, memory.
//!
//! A row is an object, its tag is the store's `ETag` or generation, and a write is a conditional
//! put. Retries of `object_store` are off: a repeated put may be refused because the first one was
//! applied. A store that accepts conditions but ignores them is detected by the doctor, not here.

mod blobs;
mod errors;
mod http_status;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use crate::stores::limits::{ROW_BYTES_MAX, ROWS_AT_ONCE};
use crate::stores::table::{TableCaps, check_length};
use crate::stores::{Expect, Key, Row, Table, TableError, Tag};
pub use blobs::BucketBlobs;
pub use http_status::StatusConnector;

/// Suffix of the object names of rows. It sorts before all characters of keys, so that rows are
/// listed in the order of keys, and no row has the name of a folder in a bucket that is backed by
/// files.
const SUFFIX: char = '!';

/// A table in a bucket.
#[derive(Clone, Debug)]
pub struct BucketTable {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl BucketTable {
    /// Creates a table of the rows below `prefix`. The store's own retries must be off, and
    /// conditional puts by `ETag` or generation on.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { store, prefix }
    }

    fn path(&self, key: &Key) -> Path {
        Path::from(format!("{}/{key}{SUFFIX}", self.prefix))
    }

    /// Returns the key of an object, unless it is not a row.
    fn key(&self, path: &Path) -> Option<Key> {
        let path = path.as_ref().strip_prefix(self.prefix.as_ref())?;
        Key::new(path.trim_start_matches('/').strip_suffix(SUFFIX)?).ok()
    }

    async fn fetch(&self, key: &Key) -> Result<Option<Row>, TableError> {
        let answer = match self.store.get(&self.path(key)).await {
            Ok(answer) => answer,
            Err(error) => return errors::check_absent(&error).map(|()| None),
        };
        let tag = tag(answer.meta.e_tag.clone(), answer.meta.version.clone());
        if answer.meta.size > u64::try_from(ROW_BYTES_MAX).unwrap_or(u64::MAX) {
            let reason = format!("row \"{key}\" has {} bytes", answer.meta.size);
            return Err(TableError::Corrupt(reason));
        }
        let bytes = answer.bytes().await.map_err(|error| errors::into_read_error(&error))?;
        Ok(Some(Row { bytes, tag }))
    }
}

#[async_trait]
impl Table for BucketTable {
    fn caps(&self) -> TableCaps {
        TableCaps {
            cond_delete: false,
            reply_on_conflict: false,
            tag_reuse: true,
            ..TableCaps::FULL
        }
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        self.fetch(key).await
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        check_length(self.caps(), &new)?;
        let mode = match expect {
            Expect::Absent => PutMode::Create,
            Expect::Is(tag) => PutMode::Update(version(&tag)),
        };
        let options = PutOptions::from(mode);
        let path = self.path(key);
        let put = self.store.put_opts(&path, PutPayload::from(new), options);
        let done = put.await.map_err(|error| errors::to_write_error(&error))?;
        Ok(tag(done.e_tag, done.version))
    }

    async fn remove(&self, _: &Key, _: &Tag) -> Result<(), TableError> {
        Err(TableError::Unsupported("remove a row conditionally"))
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(errors::to_write_error(&error)),
        }
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let below = match prefix {
            None => self.prefix.clone(),
            Some(prefix) => Path::from(format!("{}/{prefix}", self.prefix)),
        };
        let listed = match &after {
            None => self.store.list(Some(&below)),
            Some(after) => self.store.list_with_offset(Some(&below), &self.path(after)),
        };
        let keys = listed.map_err(|error| errors::into_read_error(&error)).try_filter_map(
            move |meta: ObjectMeta| {
                let key = self.key(&meta.location);
                let key = key.filter(|key| after.as_ref().is_none_or(|after| key > after));
                futures::future::ready(Ok(key))
            },
        );
        let rows = keys.map_ok(move |key| async move {
            // If it is missing, it was removed after the listing.
            Ok(self.fetch(&key).await?.map(|row| (key, row)))
        });
        let rows = rows.try_buffered(ROWS_AT_ONCE);
        rows.try_filter_map(|found| futures::future::ready(Ok(found))).boxed()
    }
}

/// Returns the tag of an image of a row. Google's conditions use the version, the others the
/// `ETag`; a byte that neither contains separates the two.
fn tag(e_tag: Option<String>, version: Option<String>) -> Tag {
    Tag::new(format!("{}\n{}", e_tag.unwrap_or_default(), version.unwrap_or_default()))
}

fn version(tag: &Tag) -> UpdateVersion {
    let text = String::from_utf8_lossy(tag.as_bytes());
    let (e_tag, version) = text.split_once('\n').unwrap_or((&text, ""));
    let some = |part: &str| (!part.is_empty()).then(|| part.to_owned());
    UpdateVersion { e_tag: some(e_tag), version: some(version) }
}

#[cfg(test)]
mod tests;
