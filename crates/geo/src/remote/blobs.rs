//! Blobs served by a node, in parts: no message is longer than a part.

use std::iter;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use fulgurite_rpc::chunks;
use fulgurite_units::{ByteCount, UnixTime};
use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use tokio::time::{Instant, timeout};

use crate::remote::limits::{BACKOFF_MIN, PART_BYTES, THROTTLED_BACKOFF_MAX};
use crate::remote::link::{CallError, Link, into_blob_read_error, to_blob_error};
use crate::remote::wire::{
    CreatePart, Failure, GetPart, GetRequest, Keyed, ListRequest, Meta, MetasReply, calls,
};
use crate::remote::wire_errors::decode_blob_error;
use crate::stores::limits::{ANSWER_TIMEOUT, BLOB_BYTES_MAX, BLOB_TIMEOUT};
use crate::stores::{Backoff, Blob, BlobError, BlobMeta, Cause, Key};

/// Client of the blobs that a node serves.
pub(crate) struct NodeBlobs {
    pub(crate) link: Link,
    pub(crate) backoff: Arc<dyn Backoff>,
}

impl NodeBlobs {
    async fn send(&self, key: &Key, body: Bytes) -> Result<(), BlobError> {
        let (key, length) = (key.as_str().to_owned(), body.len() as u64);
        let first = CreatePart { key, length, bytes: Bytes::new() };
        let part = |bytes| CreatePart { bytes, ..CreatePart::default() };
        let all = stream::iter(iter::once(first).chain(chunks(body, PART_BYTES).map(part)));
        let done = self.link.client_streaming::<calls::Create>(all, BLOB_TIMEOUT).await;
        let done = done.map_err(to_blob_error)?;
        check_failure(done.failure)
    }
}

fn check_failure(failure: Option<Failure>) -> Result<(), BlobError> {
    failure.map_or(Ok(()), |failure| Err(decode_blob_error(failure)))
}

#[async_trait]
impl Blob for NodeBlobs {
    async fn create(&self, key: &Key, body: Bytes) -> Result<(), BlobError> {
        if body.len() > BLOB_BYTES_MAX {
            return Err(BlobError::TooLarge(body.len()));
        }
        let (begun, mut max_wait) = (Instant::now(), BACKOFF_MIN);
        loop {
            match self.send(key, body.clone()).await {
                // Nothing was written: it is sent again for as long as one call may take.
                Err(BlobError::Throttled(_)) if begun.elapsed() < BLOB_TIMEOUT => {
                    self.backoff.wait(max_wait).await;
                    max_wait = (max_wait * 2).min(THROTTLED_BACKOFF_MAX);
                }
                created => return created,
            }
        }
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        let (start, end) = range.map_or((0, None), |range| (range.start, Some(range.end)));
        let request = GetRequest { key: key.as_str().to_owned(), start, end };
        let parts = self.link.server_streaming::<calls::Get>(request, BLOB_TIMEOUT);
        let timed_out =
            |_| Err(BlobError::Unavailable(Cause::new(self.link.timeout_message(BLOB_TIMEOUT))));
        timeout(BLOB_TIMEOUT, assemble(parts)).await.unwrap_or_else(timed_out)
    }

    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError> {
        let request = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<calls::Head>(request, ANSWER_TIMEOUT).await;
        let reply = reply.map_err(|call_error| into_blob_read_error(to_blob_error(call_error)))?;
        check_failure(reply.failure).map_err(into_blob_read_error)?;
        let one = reply.metas.into_iter().next();
        let none = || BlobError::Corrupt("the node returned no blob".to_owned());
        one.ok_or_else(none).and_then(decode_meta)
    }

    async fn delete(&self, key: &Key) -> Result<(), BlobError> {
        let request = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<calls::Delete>(request, ANSWER_TIMEOUT).await;
        check_failure(reply.map_err(to_blob_error)?.failure)
    }

    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>> {
        let prefix = prefix.map(|prefix| prefix.as_str().to_owned());
        let request = ListRequest { prefix, before_ms: before.as_millis() };
        let replies = self.link.server_streaming::<calls::List>(request, BLOB_TIMEOUT);
        replies.flat_map(|reply| stream::iter(decode_metas(reply))).boxed()
    }
}

/// Assembles all parts of a blob, of the length that the first part states.
async fn assemble(
    parts: impl Stream<Item = Result<GetPart, CallError>>,
) -> Result<Bytes, BlobError> {
    let mut parts = pin!(parts);
    let mut body: Option<(usize, BytesMut)> = None;
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| into_blob_read_error(to_blob_error(error)))?;
        check_failure(part.failure).map_err(into_blob_read_error)?;
        match &mut body {
            None => {
                let length = usize::try_from(part.length).unwrap_or(usize::MAX);
                if length > BLOB_BYTES_MAX {
                    return Err(BlobError::TooLarge(length));
                }
                body = Some((length, BytesMut::with_capacity(length)));
            }
            Some((length, bytes)) if bytes.len() + part.bytes.len() <= *length => {
                bytes.extend_from_slice(&part.bytes);
            }
            Some(_) => {
                return Err(BlobError::Corrupt("received more bytes than stated".into()));
            }
        }
    }
    match body {
        Some((length, bytes)) if bytes.len() == length => Ok(bytes.freeze()),
        _ => {
            let why = "the node ended the reply before all bytes arrived";
            Err(BlobError::Unavailable(Cause::new(why)))
        }
    }
}

/// Decodes a message of a list; after an error nothing more is known.
fn decode_metas(reply: Result<MetasReply, CallError>) -> Vec<Result<BlobMeta, BlobError>> {
    let decoded = |MetasReply { metas, failure }| {
        let failed = failure.map(|failure| Err(into_blob_read_error(decode_blob_error(failure))));
        metas.into_iter().map(decode_meta).chain(failed).collect()
    };
    reply.map_or_else(|error| vec![Err(into_blob_read_error(to_blob_error(error)))], decoded)
}

fn decode_meta(meta: Meta) -> Result<BlobMeta, BlobError> {
    let key = Key::new(meta.key).map_err(|error| BlobError::Corrupt(error.to_string()))?;
    let written = UnixTime::from_millis(meta.written_ms);
    Ok(BlobMeta { key, bytes: ByteCount::new(meta.bytes), written })
}
