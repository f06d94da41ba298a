//! Blobs: bytes that are written once under a key, read whole or in part, and removed.
//!
//! That a blob is not there is a statement about data, and is believed only when the store made it:
//! a store that does not answer, or that is not the one it was, has said nothing.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_units::{ByteCount, UnixTime};
use futures::stream::BoxStream;

use crate::{BlobError, Key};

/// What is known of a blob without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobMeta {
    /// Its key.
    pub key: Key,
    /// How many bytes it has.
    pub bytes: ByteCount,
    /// When it was written, by the store's clock.
    pub written: UnixTime,
}

/// Blobs under keys.
#[async_trait]
pub trait Blob: Send + Sync {
    /// Writes a blob that is not there. That it is there already with the same bytes is no error: it
    /// is a write that is made again.
    ///
    /// # Errors
    /// [`BlobError::Exists`] when it is there with other bytes, and others.
    async fn create(&self, key: &Key, body: Bytes) -> Result<(), BlobError>;

    /// The blob, or these bytes of it.
    ///
    /// # Errors
    /// [`BlobError::NotFound`] when the store says that there is none, [`BlobError::Corrupt`] when it
    /// gives fewer bytes than were asked for, and others.
    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError>;

    /// What is known of it.
    ///
    /// # Errors
    /// As [`Self::get`].
    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError>;

    /// Removes it, or does nothing when there is none.
    ///
    /// # Errors
    /// When it may still be there.
    async fn delete(&self, key: &Key) -> Result<(), BlobError>;

    /// Blobs below `prefix`, or all, that were written before `before`, in no order.
    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>>;
}
