//! Reads an object of a shared bucket and authenticates every frame.

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;

use super::buckets::SharedBucket;
use super::note::{SharedObject, key_of};
use super::{SharedBytes, SharedObjectMeta};
use crate::bodies::cipher::{BodyCipher, FRAME_CIPHER_BYTES};
use crate::limits::{CHUNK_BYTES, FRAME_BYTES, INLINE_BYTES_MAX, SHARED_TRIES_MAX};
use crate::model::names::ObjectKey;
use crate::model::object::{ByteRange, ObjectInfo, ObjectPart};
use crate::{ArchiveError, Result};

/// Plaintext bytes of a frame.
const FRAME: u64 = FRAME_BYTES as u64;
/// Stored bytes of a frame.
const SEALED_FRAME: u64 = FRAME_CIPHER_BYTES as u64;

/// Reads the bytes of an object of a shared bucket.
pub(crate) struct SharedReader {
    pub(crate) info: ObjectInfo,
    pub(crate) first: u64,
    pub(crate) bytes: u64,
    /// The selected part, if one was requested.
    pub(crate) part: Option<ObjectPart>,
    bucket: SharedBucket,
    source: SharedBytes,
    cipher: Option<Box<BodyCipher>>,
    /// Encrypted bytes received and not returned yet.
    sealed: BytesMut,
    /// The next frame, and the number of frames.
    frame: u64,
    frames: u64,
    /// Plaintext bytes left to return.
    left: u64,
}

impl std::fmt::Debug for SharedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedReader").field("info", &self.info).finish_non_exhaustive()
    }
}

/// Returns the encrypted bytes that contain a range, as far as possible without the object's
/// length.
fn sealed_range(first: u64, last: Option<u64>) -> std::ops::Range<u64> {
    let end = last.map_or(u64::MAX, |last| (last / FRAME + 1).saturating_mul(SEALED_FRAME));
    (first / FRAME).saturating_mul(SEALED_FRAME)..end
}

impl SharedBucket {
    /// Opens an object for reading.
    ///
    /// # Errors
    /// `NoSuchKey`, `InvalidRange`, or when the store fails.
    pub(crate) async fn get(
        &self,
        key: &ObjectKey,
        range: Option<ByteRange>,
    ) -> Result<SharedReader> {
        match range {
            Some(range @ ByteRange::Suffix { .. }) => {
                // A suffix range starts at an offset that depends on the object's length.
                self.get_found(key, |found| Ok((range.resolve(found.info.bytes)?, None))).await
            }
            Some(range @ ByteRange::From { first, last }) => {
                let (found, source) = self.fetch(key, sealed_range(first, last)).await?;
                let found = self.describe(&found, key.as_str())?;
                let part = range.resolve(found.info.bytes)?;
                self.reader(found, source, part)
            }
            None => {
                let (found, source) = self.fetch(key, sealed_range(0, None)).await?;
                let found = self.describe(&found, key.as_str())?;
                let bytes = found.info.bytes;
                self.reader(found, source, (0, bytes))
            }
        }
    }

    /// Opens a part of an object for reading.
    ///
    /// # Errors
    /// `InvalidPartNumber`, `PartsNotKept`, and as for the object.
    pub(crate) async fn get_part(&self, key: &ObjectKey, number: u32) -> Result<SharedReader> {
        self.get_found(key, |found| {
            let part = found.part(number)?;
            Ok(((part.first, part.bytes), Some(part)))
        })
        .await
    }

    /// Opens a range that depends on the object's metadata.
    async fn get_found(
        &self,
        key: &ObjectKey,
        wanted: impl Fn(&SharedObject) -> Result<((u64, u64), Option<ObjectPart>)>,
    ) -> Result<SharedReader> {
        for _ in 0..SHARED_TRIES_MAX {
            let current = self.find(key).await?.ok_or_else(|| self.no_such_key_error(key))?;
            let ((first, bytes), part) = wanted(&current)?;
            let last = (first + bytes).saturating_sub(1);
            let (found, source) = self.fetch(key, sealed_range(first, Some(last))).await?;
            if found.version == current.version {
                let reader = self.reader(current, source, (first, bytes))?;
                return Ok(SharedReader { part, ..reader });
            }
        }
        Err(ArchiveError::Busy { what: format!("object \"{key}\" keeps changing") })
    }

    async fn fetch(
        &self,
        key: &ObjectKey,
        range: std::ops::Range<u64>,
    ) -> Result<(SharedObjectMeta, SharedBytes)> {
        let found = self.store().get(&self.object(key)?, range).await;
        let found = found.map_err(|error| self.to_archive_error(key.as_str(), error))?;
        found.ok_or_else(|| self.no_such_key_error(key))
    }

    fn reader(
        &self,
        found: SharedObject,
        source: SharedBytes,
        (first, bytes): (u64, u64),
    ) -> Result<SharedReader> {
        let cipher = BodyCipher::new(&key_of(self.key(), found.object_id), found.object_id);
        Ok(SharedReader {
            first,
            bytes,
            part: None,
            bucket: self.clone(),
            source,
            cipher: Some(Box::new(cipher)),
            sealed: BytesMut::new(),
            frame: first / FRAME,
            frames: found.info.bytes.div_ceil(FRAME),
            left: bytes,
            info: found.info,
        })
    }
}

impl SharedReader {
    /// Returns the next bytes, verified; `None` at the end. An error ends the body.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.left == 0 {
            return None;
        }
        let next = self.read().await;
        if next.is_err() {
            self.left = 0;
        }
        Some(next)
    }

    async fn read(&mut self) -> Result<Bytes> {
        // The start of the first frame may lie outside the range.
        let plain = self.first + self.bytes - self.left;
        let skip = plain - self.frame * FRAME;
        let count = (skip + self.left).div_ceil(FRAME).min((CHUNK_BYTES / FRAME_BYTES) as u64);
        let sealed = self.gather(count).await?;
        let lost =
            || ArchiveError::Internal { what: "the cipher of a reader is missing".to_owned() };
        let cipher = self.cipher.take().ok_or_else(lost)?;
        let (frame, frames) = (self.frame, self.frames);
        let (cipher, opened) = if sealed.len() <= INLINE_BYTES_MAX {
            let opened = open(&cipher, (frame, frames), sealed);
            (cipher, opened)
        } else {
            let task = tokio::task::spawn_blocking(move || {
                let opened = open(&cipher, (frame, frames), sealed);
                (cipher, opened)
            });
            task.await.map_err(|error| ArchiveError::Internal {
                what: format!("a reader panicked: {error}"),
            })?
        };
        self.cipher = Some(cipher);
        let opened = opened?;
        let start = usize::try_from(skip).unwrap_or(usize::MAX);
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(opened.len() - start);
        self.frame += count;
        self.left -= length as u64;
        Ok(opened.slice(start..start + length))
    }

    /// Collects the next `count` encrypted frames.
    async fn gather(&mut self, count: u64) -> Result<BytesMut> {
        let end = (self.frame + count).min(self.frames);
        let mut wanted = (end - self.frame) * SEALED_FRAME;
        if end == self.frames {
            // The last frame is as long as the remainder of the object.
            wanted -= self.frames * FRAME - self.info.bytes;
        }
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        while self.sealed.len() < wanted {
            match self.source.next().await {
                Some(Ok(bytes)) => self.sealed.extend_from_slice(&bytes),
                Some(Err(error)) => {
                    return Err(self.bucket.to_archive_error(&self.info.key, error));
                }
                None => {
                    let what = format!(
                        "object \"{}\" of shared bucket \"{}\" ends too early in the store",
                        self.info.key, self.bucket.name
                    );
                    return Err(ArchiveError::Corrupt { what });
                }
            }
        }
        Ok(self.sealed.split_to(wanted))
    }
}

fn open(cipher: &BodyCipher, (frame, frames): (u64, u64), mut sealed: BytesMut) -> Result<Bytes> {
    let length = cipher.decrypt(frame, frames, &mut sealed)?.len();
    sealed.truncate(length);
    Ok(sealed.freeze())
}
