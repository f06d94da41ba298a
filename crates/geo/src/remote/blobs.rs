//! Blobs served by a node, in parts: no message is longer than a part.

use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use fulgurite_units::{ByteCount, UnixTime};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::time::timeout;
use tonic::Streaming;

use crate::remote::calls::{DELETE, GET, HEAD, LIST};
use crate::remote::limits::PART_BYTES;
use crate::remote::link::{CallError, Link, into_blob_read_error, to_blob_error};
use crate::remote::wire::{
    CreatePart, Done, Failure, GetPart, GetRequest, Keyed, ListRequest, Meta, MetasReply,
};
use crate::remote::wire_errors::decode_blob_error;
use crate::stores::limits::{ANSWER_TIMEOUT, BLOB_BYTES_MAX, BLOB_TIMEOUT};
use crate::stores::{Blob, BlobError, BlobMeta, Cause, Key};

/// Client of the blobs that a node serves.
pub(crate) struct NodeBlobs {
    pub(crate) link: Link,
}

fn check_failure(failure: Option<Failure>) -> Result<(), BlobError> {
    failure.map_or(Ok(()), |failure| Err(decode_blob_error(failure)))
}

/// Splits a blob into the parts that are sent.
pub(crate) fn parts(body: Bytes) -> impl Iterator<Item = Bytes> + Send {
    let starts = (0..body.len()).step_by(PART_BYTES);
    starts.map(move |start| body.slice(start..body.len().min(start + PART_BYTES)))
}

#[async_trait]
impl Blob for NodeBlobs {
    async fn create(&self, key: &Key, body: Bytes) -> Result<(), BlobError> {
        if body.len() > BLOB_BYTES_MAX {
            return Err(BlobError::TooLarge(body.len()));
        }
        let call = async {
            let (number, mut client) = self.link.client().await.map_err(CallError::NotSent)?;
            let (key, length) = (key.as_str().to_owned(), body.len() as u64);
            let first = CreatePart { key, length, bytes: Bytes::new() };
            let part = |bytes| CreatePart { bytes, ..CreatePart::default() };
            let all = stream::iter(std::iter::once(first).chain(parts(body).map(part)));
            let done = client.create(all, BLOB_TIMEOUT).await;
            done.map_err(|status| self.link.call_error(number, &status))
        };
        let timed_out = |_| Err(CallError::Lost(self.link.timeout_message(BLOB_TIMEOUT)));
        let done: Done =
            timeout(BLOB_TIMEOUT, call).await.unwrap_or_else(timed_out).map_err(to_blob_error)?;
        check_failure(done.failure)
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        let (start, end) = range.map_or((0, None), |range| (range.start, Some(range.end)));
        let request = GetRequest { key: key.as_str().to_owned(), start, end };
        let call = async {
            let (number, replies) = self.streaming(GET, request).await?;
            self.assemble(number, replies).await
        };
        let timed_out =
            |_| Err(BlobError::Unavailable(Cause::new(self.link.timeout_message(BLOB_TIMEOUT))));
        timeout(BLOB_TIMEOUT, call).await.unwrap_or_else(timed_out)
    }

    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError> {
        let request = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<_, MetasReply>(HEAD, request, ANSWER_TIMEOUT).await;
        let reply = reply.map_err(|call_error| into_blob_read_error(to_blob_error(call_error)))?;
        check_failure(reply.failure).map_err(into_blob_read_error)?;
        let one = reply.metas.into_iter().next();
        let none = || BlobError::Corrupt("the node returned no blob".to_owned());
        one.ok_or_else(none).and_then(decode_meta)
    }

    async fn delete(&self, key: &Key) -> Result<(), BlobError> {
        let request = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<_, Done>(DELETE, request, ANSWER_TIMEOUT).await;
        check_failure(reply.map_err(to_blob_error)?.failure)
    }

    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>> {
        let prefix = prefix.map(|prefix| prefix.as_str().to_owned());
        let request = ListRequest { prefix, before_ms: before.as_millis() };
        let listed = async move {
            match self.streaming(LIST, request).await {
                Ok((number, replies)) => self.metas(number, replies).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(listed).flatten().boxed()
    }
}

impl NodeBlobs {
    async fn streaming<Q, A>(
        &self,
        path: &'static str,
        request: Q,
    ) -> Result<(u64, Streaming<A>), BlobError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let call = async {
            let (number, mut client) = self.link.client().await.map_err(CallError::NotSent)?;
            let replies = client.streaming(path, request).await;
            Ok((number, replies.map_err(|status| self.link.call_error(number, &status))?))
        };
        let timed_out = |_| Err(CallError::Lost(self.link.timeout_message(BLOB_TIMEOUT)));
        let called = timeout(BLOB_TIMEOUT, call).await.unwrap_or_else(timed_out);
        called.map_err(|call_error| into_blob_read_error(to_blob_error(call_error)))
    }

    /// Assembles all parts of a blob, of the length that the first part states.
    async fn assemble(
        &self,
        number: u64,
        mut replies: Streaming<GetPart>,
    ) -> Result<Bytes, BlobError> {
        let mut body: Option<(usize, BytesMut)> = None;
        while let Some(part) = replies.next().await {
            let part = part.map_err(|status| {
                into_blob_read_error(to_blob_error(self.link.call_error(number, &status)))
            })?;
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

    /// Streams the blobs of all messages; after an error nothing more is known.
    fn metas(
        &self,
        number: u64,
        replies: Streaming<MetasReply>,
    ) -> impl futures::Stream<Item = Result<BlobMeta, BlobError>> + Send {
        let next = move |replies: Option<Streaming<MetasReply>>| async move {
            let mut replies = replies?;
            let metas = match timeout(BLOB_TIMEOUT, replies.next()).await {
                Ok(None) => return None,
                Ok(Some(Ok(MetasReply { metas, failure }))) => {
                    let mut metas: Vec<_> = metas.into_iter().map(decode_meta).collect();
                    let Some(failure) = failure else { return Some((metas, Some(replies))) };
                    metas.push(Err(into_blob_read_error(decode_blob_error(failure))));
                    metas
                }
                Ok(Some(Err(status))) => {
                    let call_error = self.link.call_error(number, &status);
                    vec![Err(into_blob_read_error(to_blob_error(call_error)))]
                }
                Err(_) => {
                    let why = self.link.timeout_message(BLOB_TIMEOUT);
                    vec![Err(BlobError::Unavailable(Cause::new(why)))]
                }
            };
            Some((metas, None))
        };
        stream::unfold(Some(replies), next).flat_map(stream::iter)
    }
}

fn decode_meta(meta: Meta) -> Result<BlobMeta, BlobError> {
    let key = Key::new(meta.key).map_err(|error| BlobError::Corrupt(error.to_string()))?;
    let written = UnixTime::from_millis(meta.written_ms);
    Ok(BlobMeta { key, bytes: ByteCount::new(meta.bytes), written })
}
