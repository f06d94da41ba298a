//! A node's answers about blobs. Blobs are buffered whole while they are written or read, as the
//! stores' interface requires. The total of all buffers is limited; further calls wait
//! (back-pressure).

use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fulgurite_units::UnixTime;
use futures::StreamExt as _;
use futures::stream::{self, Stream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::{Request, Status, Streaming};

use crate::remote::blobs::parts;
use crate::remote::limits::{BUFFER_UNIT_BYTES, METAS_PER_MESSAGE, REPLY_QUEUE_LEN};
use crate::remote::node_state::{NodeState, Replies, done, key, maybe_key};
use crate::remote::wire::{
    CreatePart, Done, Failure, GetPart, GetRequest, Keyed, ListRequest, Meta, MetasReply,
};
use crate::remote::wire_errors;
use crate::stores::limits::BLOB_BYTES_MAX;
use crate::stores::{Blob, BlobError, BlobMeta, Cause, Key};

/// Parts of a blob; the first one states the length.
pub(crate) type Parts = Pin<Box<dyn Stream<Item = Result<GetPart, Status>> + Send>>;

impl NodeState {
    async fn blob(&self, text: String) -> Result<(Arc<dyn Blob>, Key), Failure> {
        let key = key(text)?;
        Ok((self.stores.blobs(false).await?, key))
    }

    /// Reserves buffer space for this many bytes of a blob.
    async fn buffer_space(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Failure> {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        if length > BLOB_BYTES_MAX {
            return Err(wire_errors::encode_blob_error(BlobError::TooLarge(length)));
        }
        let units = u32::try_from(length.div_ceil(BUFFER_UNIT_BYTES)).unwrap_or(u32::MAX);
        let buffer_space = Arc::clone(&self.buffer_permits).acquire_many_owned(units).await;
        buffer_space.map_err(|_| wire_errors::unavailable("the node is being stopped"))
    }

    pub(crate) async fn create(
        &self,
        request: Request<Streaming<CreatePart>>,
    ) -> Result<Done, Status> {
        let mut request = request.into_inner();
        let first = request.message().await?.unwrap_or_default();
        let length = first.length;
        let started = async { Ok((self.blob(first.key).await?, self.buffer_space(length).await?)) };
        let ((blobs, key), _buffer_space) = match started.await {
            Ok(started) => started,
            Err(failure) => return Ok(done(Some(failure))),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut body = BytesMut::with_capacity(length);
        while let Some(part) = request.message().await? {
            if body.len() + part.bytes.len() > length {
                return Err(Status::invalid_argument("received more bytes than stated"));
            }
            body.extend_from_slice(&part.bytes);
        }
        if body.len() < length {
            // The writer is gone: half a blob is not written.
            return Err(Status::invalid_argument("received fewer bytes than stated"));
        }
        let created = blobs.create(&key, body.freeze()).await;
        Ok(done(created.err().map(wire_errors::encode_blob_error)))
    }

    pub(crate) async fn get(&self, request: Request<GetRequest>) -> Result<Parts, Status> {
        Ok(match self.buffered_blob(request.into_inner()).await {
            Ok((body, buffer_space)) => {
                let length = body.len() as u64;
                let first = GetPart { length, ..GetPart::default() };
                let rest = parts(body).map(move |bytes| {
                    // The buffer space is held until the last part.
                    let _buffer_space = &buffer_space;
                    Ok(GetPart { bytes, ..GetPart::default() })
                });
                stream::iter(std::iter::once(Ok(first)).chain(rest)).boxed()
            }
            Err(failure) => {
                let failed = GetPart { failure: Some(failure), ..GetPart::default() };
                stream::iter([Ok(failed)]).boxed()
            }
        })
    }

    /// Reads a blob, or bytes of it, with the buffer space that it takes.
    async fn buffered_blob(
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

    pub(crate) async fn head(&self, request: Request<Keyed>) -> Result<MetasReply, Status> {
        let known = async {
            let (blobs, key) = self.blob(request.into_inner().key).await?;
            blobs.head(&key).await.map_err(wire_errors::encode_blob_error)
        };
        Ok(match known.await {
            Ok(known) => MetasReply { metas: vec![meta(known)], failure: None },
            Err(failure) => MetasReply { metas: Vec::new(), failure: Some(failure) },
        })
    }

    pub(crate) async fn delete(&self, request: Request<Keyed>) -> Result<Done, Status> {
        let deleted = async {
            let (blobs, key) = self.blob(request.into_inner().key).await?;
            blobs.delete(&key).await.map_err(wire_errors::encode_blob_error)
        };
        Ok(done(deleted.await.err()))
    }

    pub(crate) async fn list(
        &self,
        request: Request<ListRequest>,
    ) -> Result<Replies<MetasReply>, Status> {
        let ListRequest { prefix, before_ms } = request.into_inner();
        let (send, replies) = mpsc::channel(REPLY_QUEUE_LEN);
        let started = async {
            let prefix = maybe_key(prefix)?;
            Ok((self.stores.blobs(false).await?, prefix))
        };
        match started.await {
            Ok((blobs, prefix)) => {
                let before = UnixTime::from_millis(before_ms);
                tokio::spawn(async move {
                    // It ends when the receiver is gone.
                    let _ = send_metas(&*blobs, prefix.as_ref(), before, &send).await;
                });
            }
            Err(failure) => {
                let reply = MetasReply { metas: Vec::new(), failure: Some(failure) };
                // The channel has room for one.
                let _ = send.try_send(Ok(reply));
            }
        }
        Ok(replies)
    }
}

type SendError = mpsc::error::SendError<Result<MetasReply, Status>>;

/// Sends metadata of blobs, in messages of limited length.
async fn send_metas(
    blobs: &dyn Blob,
    prefix: Option<&Key>,
    before: UnixTime,
    send: &mpsc::Sender<Result<MetasReply, Status>>,
) -> Result<(), SendError> {
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

fn meta(known: BlobMeta) -> Meta {
    Meta {
        key: String::from(known.key),
        bytes: known.bytes.get(),
        written_ms: known.written.as_millis(),
    }
}
