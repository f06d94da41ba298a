//! What a node's answers about blobs need. Blobs are buffered whole while they are written or read,
//! as the stores' interface requires. The total of all buffers is limited. Further reads wait;
//! further writes are throttled, since bytes that wait would fill the window of their connection,
//! and nothing else could pass it.

use std::sync::Arc;

use bytes::Bytes;
use fulgurite_units::UnixTime;
use futures::StreamExt as _;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::Status;

use crate::remote::limits::{BUFFER_UNIT_BYTES, METAS_PER_MESSAGE};
use crate::remote::node_state::{NodeState, SendError, key};
use crate::remote::wire::{Failure, GetRequest, Meta, MetasReply};
use crate::remote::wire_errors;
use crate::stores::limits::BLOB_BYTES_MAX;
use crate::stores::{Blob, BlobError, BlobMeta, Cause, Key};

impl NodeState {
    pub(crate) async fn blob(&self, text: String) -> Result<(Arc<dyn Blob>, Key), Failure> {
        let key = key(text)?;
        Ok((self.stores.blobs(false).await?, key))
    }

    /// Reserves buffer space for this many bytes of a blob that is read.
    async fn buffer_space(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Failure> {
        let units = buffer_units(bytes)?;
        let buffer_space = Arc::clone(&self.buffer_permits).acquire_many_owned(units).await;
        buffer_space.map_err(|_| wire_errors::unavailable("the node is being stopped"))
    }

    /// Reserves buffer space for this many bytes of a blob that is written, without waiting.
    pub(crate) fn free_buffer_space(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Failure> {
        let units = buffer_units(bytes)?;
        let buffer_space = Arc::clone(&self.buffer_permits).try_acquire_many_owned(units);
        buffer_space.map_err(|_| wire_errors::encode_blob_error(BlobError::Throttled(None)))
    }

    /// Reads a blob, or bytes of it, with the buffer space that it takes.
    pub(crate) async fn buffered_blob(
        &self,
        GetRequest { key, start, end }: GetRequest,
    ) -> Result<(Bytes, OwnedSemaphorePermit), Failure> {
        let (blobs, key) = self.blob(key).await?;
        let range = end.map(|end| start..end);
        let bytes = match &range {
            Some(range) => range.end.saturating_sub(range.start),
            None => blobs.head(&key).await.map_err(wire_errors::encode_blob_error)?.bytes.get(),
        };
        let buffer_space = self.buffer_space(bytes).await?;
        let body = blobs.get(&key, range).await.map_err(wire_errors::encode_blob_error)?;
        if body.len() as u64 > bytes {
            // Blobs are immutable: this one was removed and written again meanwhile.
            let cause = Cause::new("the blob was replaced while it was read");
            return Err(wire_errors::encode_blob_error(BlobError::Unavailable(cause)));
        }
        Ok((body, buffer_space))
    }
}

fn buffer_units(bytes: u64) -> Result<u32, Failure> {
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    if length > BLOB_BYTES_MAX {
        return Err(wire_errors::encode_blob_error(BlobError::TooLarge(length)));
    }
    Ok(u32::try_from(length.div_ceil(BUFFER_UNIT_BYTES)).unwrap_or(u32::MAX))
}

/// Sends metadata of blobs, in messages of limited length.
pub(crate) async fn send_metas(
    blobs: &dyn Blob,
    prefix: Option<&Key>,
    before: UnixTime,
    send: &mpsc::Sender<Result<MetasReply, Status>>,
) -> Result<(), SendError<MetasReply>> {
    let mut list = blobs.list(prefix, before);
    let mut metas = Vec::new();
    while let Some(next) = list.next().await {
        match next {
            Ok(known) => metas.push(meta(known)),
            Err(error) => {
                let failure = Some(wire_errors::encode_blob_error(error));
                return send.send(Ok(MetasReply { metas, failure })).await;
            }
        }
        if metas.len() >= METAS_PER_MESSAGE {
            let metas = std::mem::take(&mut metas);
            send.send(Ok(MetasReply { metas, failure: None })).await?;
        }
    }
    if metas.is_empty() {
        return Ok(());
    }
    send.send(Ok(MetasReply { metas, failure: None })).await
}

pub(crate) fn meta(known: BlobMeta) -> Meta {
    Meta {
        key: String::from(known.key),
        bytes: known.bytes.get(),
        written_ms: known.written.as_millis(),
    }
}
