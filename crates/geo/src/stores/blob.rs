//! Blobs: bytes that are written once under a key, read in whole or in part, and removed.
//!
//! Absence of a blob is a statement about data, and is only believed if the store itself makes it.
//! A store that does not answer, or that has been swapped for another, states nothing.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_units::{ByteCount, UnixTime};
use futures::stream::BoxStream;

use crate::stores::{BlobError, Key};

/// Metadata of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobMeta {
    /// Its key.
    pub key: Key,
    /// Its size in bytes.
    pub bytes: ByteCount,
    /// When it was written, by the store's clock.
    pub written: UnixTime,
}

/// Blobs under keys.
#[async_trait]
pub trait Blob: Send + Sync {
    /// Writes a new blob. If it exists with the same bytes, that is no error, so a retry is
    /// idempotent.
    ///
    /// # Errors
    /// [`BlobError::Exists`] if it exists with other bytes, and others.
    async fn create(&self, key: &Key, body: Bytes) -> Result<(), BlobError>;

    /// Reads the blob, or these bytes of it.
    ///
    /// # Errors
    /// [`BlobError::NotFound`] if the store states that it does not exist, [`BlobError::Corrupt`]
    /// if the store returns fewer bytes than requested, and others.
    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError>;

    /// Reads its metadata.
    ///
    /// # Errors
    /// As [`Self::get`].
    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError>;

    /// Removes it, or does nothing if it does not exist.
    ///
    /// # Errors
    /// If it may still exist.
    async fn delete(&self, key: &Key) -> Result<(), BlobError>;

    /// Lists blobs below `prefix`, or all, that were written before `before`, in no order.
    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>>;
}
