//! Multipart puts of bytes that are read as they are sent.

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Attributes, Extensions, PutMultipartOptions, PutOptions, PutPayload, WriteMultipart,
};

use super::ObjectTier;
use crate::Result;
use crate::limits::{TIER_PART_BYTES, TIER_PARTS_AT_ONCE};

/// The source of a put.
pub(super) trait UploadSource: Send {
    /// Fills `buffer` from byte `at`. Called in order, each byte once. May block.
    fn read(&mut self, at: u64, buffer: &mut [u8]) -> Result<()>;

    /// Verifies everything that was read. Called after the last byte, before any of it becomes
    /// visible in the store.
    fn check(&self) -> Result<()>;
}

impl ObjectTier {
    /// Puts `bytes` bytes at `path`, all or nothing.
    pub(super) async fn put_source(
        &self,
        path: &Path,
        bytes: u64,
        (attributes, extensions): (Attributes, Extensions),
        upload_source: &mut dyn UploadSource,
    ) -> Result<()> {
        let (store, _) = self.store().await?;
        if bytes <= TIER_PART_BYTES as u64 {
            let whole = read_part(upload_source, 0, bytes).await?;
            upload_source.check()?;
            let options = PutOptions { attributes, extensions, ..PutOptions::default() };
            let put = store.put_opts(path, PutPayload::from(whole), options).await;
            return put.map(drop).map_err(|error| self.unavailable(error));
        }
        let options =
            PutMultipartOptions { attributes, extensions, ..PutMultipartOptions::default() };
        let begun = store.put_multipart_opts(path, options).await;
        let begun = begun.map_err(|error| self.unavailable(error))?;
        let mut upload = WriteMultipart::new_with_chunk_size(begun, TIER_PART_BYTES);
        match self.put_parts(&mut upload, bytes, upload_source).await {
            Ok(()) => upload.finish().await.map(drop).map_err(|error| self.unavailable(error)),
            Err(error) => {
                give_up(upload).await;
                Err(error)
            }
        }
    }

    async fn put_parts(
        &self,
        upload: &mut WriteMultipart,
        bytes: u64,
        upload_source: &mut dyn UploadSource,
    ) -> Result<()> {
        let mut done = 0;
        while done < bytes {
            let part = read_part(upload_source, done, bytes - done).await?;
            done += part.len() as u64;
            let room = upload.wait_for_capacity(TIER_PARTS_AT_ONCE).await;
            room.map_err(|error| self.unavailable(error))?;
            upload.put(part);
        }
        upload_source.check()
    }
}

async fn read_part(upload_source: &mut dyn UploadSource, at: u64, left: u64) -> Result<Bytes> {
    let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(TIER_PART_BYTES);
    let mut buffer = vec![0; bytes];
    tokio::task::block_in_place(|| upload_source.read(at, &mut buffer))?;
    Ok(Bytes::from(buffer))
}

/// Aborts an incomplete upload. An error of the abort is only logged, because it would hide the
/// cause.
async fn give_up(upload: WriteMultipart) {
    if let Err(error) = upload.abort().await {
        tracing::warn!(%error, "cannot abort an upload to a tier; the store keeps its parts");
    }
}
