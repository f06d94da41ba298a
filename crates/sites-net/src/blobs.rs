//! Blobs served by a node, in parts: no message is longer than a part.

use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use fulgurite_sites::limits::{ANSWER_WITHIN, BLOB_BYTES_MAX, BLOB_WITHIN};
use fulgurite_sites::{Blob, BlobError, BlobMeta, Cause, Key};
use fulgurite_units::{ByteCount, UnixTime};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::time::timeout;
use tonic::Streaming;

use crate::calls::{DELETE, GET, HEAD, LIST};
use crate::limits::PART_BYTES;
use crate::link::{Fault, Link, blob_fault, of_blob_read};
use crate::told::blob_error;
use crate::wire::{
    CreatePart, Done, Failure, GetPart, GetRequest, Keyed, ListRequest, Meta, MetasReply,
};

/// Client of the blobs that a node serves.
pub(crate) struct NodeBlobs {
    pub(crate) link: Link,
}

fn answered(failure: Option<Failure>) -> Result<(), BlobError> {
    failure.map_or(Ok(()), |failure| Err(blob_error(failure)))
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
        let calling = async {
            let (number, mut client) = self.link.client().await.map_err(Fault::NotSent)?;
            let (key, length) = (key.as_str().to_owned(), body.len() as u64);
            let first = CreatePart { key, length, bytes: Bytes::new() };
            let part = |bytes| CreatePart { bytes, ..CreatePart::default() };
            let all = stream::iter(std::iter::once(first).chain(parts(body).map(part)));
            let done = client.create(all, BLOB_WITHIN).await;
            done.map_err(|status| self.link.fault(number, &status))
        };
        let late = |_| Err(Fault::Lost(self.link.late(BLOB_WITHIN)));
        let done: Done =
            timeout(BLOB_WITHIN, calling).await.unwrap_or_else(late).map_err(blob_fault)?;
        answered(done.failure)
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        let (start, end) = range.map_or((0, None), |range| (range.start, Some(range.end)));
        let asked = GetRequest { key: key.as_str().to_owned(), start, end };
        let calling = async {
            let (number, replies) = self.answers(GET, asked).await?;
            self.gathered(number, replies).await
        };
        let late = |_| Err(BlobError::Unavailable(Cause::new(self.link.late(BLOB_WITHIN))));
        timeout(BLOB_WITHIN, calling).await.unwrap_or_else(late)
    }

    async fn head(&self, key: &Key) -> Result<BlobMeta, BlobError> {
        let asked = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<_, MetasReply>(HEAD, asked, ANSWER_WITHIN).await;
        let reply = reply.map_err(|fault| of_blob_read(blob_fault(fault)))?;
        answered(reply.failure).map_err(of_blob_read)?;
        let one = reply.metas.into_iter().next();
        let none = || BlobError::Corrupt("the node told of no blob".to_owned());
        one.ok_or_else(none).and_then(known)
    }

    async fn delete(&self, key: &Key) -> Result<(), BlobError> {
        let asked = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<_, Done>(DELETE, asked, ANSWER_WITHIN).await;
        answered(reply.map_err(blob_fault)?.failure)
    }

    fn list(
        &self,
        prefix: Option<&Key>,
        before: UnixTime,
    ) -> BoxStream<'_, Result<BlobMeta, BlobError>> {
        let prefix = prefix.map(|prefix| prefix.as_str().to_owned());
        let asked = ListRequest { prefix, before_ms: before.as_millis() };
        let listed = async move {
            match self.answers(LIST, asked).await {
                Ok((number, replies)) => self.metas(number, replies).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(listed).flatten().boxed()
    }
}

impl NodeBlobs {
    async fn answers<Q, A>(
        &self,
        path: &'static str,
        asked: Q,
    ) -> Result<(u64, Streaming<A>), BlobError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let calling = async {
            let (number, mut client) = self.link.client().await.map_err(Fault::NotSent)?;
            let replies = client.answers(path, asked).await;
            Ok((number, replies.map_err(|status| self.link.fault(number, &status))?))
        };
        let late = |_| Err(Fault::Lost(self.link.late(BLOB_WITHIN)));
        let called = timeout(BLOB_WITHIN, calling).await.unwrap_or_else(late);
        called.map_err(|fault| of_blob_read(blob_fault(fault)))
    }

    /// Assembles all parts of a blob, of the length that the first part states.
    async fn gathered(
        &self,
        number: u64,
        mut replies: Streaming<GetPart>,
    ) -> Result<Bytes, BlobError> {
        let mut body: Option<(usize, BytesMut)> = None;
        while let Some(part) = replies.next().await {
            let part =
                part.map_err(|status| of_blob_read(blob_fault(self.link.fault(number, &status))))?;
            answered(part.failure).map_err(of_blob_read)?;
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
                Some(_) => return Err(BlobError::Corrupt("more bytes came than were said".into())),
            }
        }
        match body {
            Some((length, bytes)) if bytes.len() == length => Ok(bytes.freeze()),
            _ => {
                let why = "the node ended before all bytes came";
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
            let metas = match timeout(BLOB_WITHIN, replies.next()).await {
                Ok(None) => return None,
                Ok(Some(Ok(MetasReply { metas, failure }))) => {
                    let mut metas: Vec<_> = metas.into_iter().map(known).collect();
                    let Some(failure) = failure else { return Some((metas, Some(replies))) };
                    metas.push(Err(of_blob_read(blob_error(failure))));
                    metas
                }
                Ok(Some(Err(status))) => {
                    let fault = self.link.fault(number, &status);
                    vec![Err(of_blob_read(blob_fault(fault)))]
                }
                Err(_) => {
                    let why = self.link.late(BLOB_WITHIN);
                    vec![Err(BlobError::Unavailable(Cause::new(why)))]
                }
            };
            Some((metas, None))
        };
        stream::unfold(Some(replies), next).flat_map(stream::iter)
    }
}

fn known(meta: Meta) -> Result<BlobMeta, BlobError> {
    let key = Key::new(meta.key).map_err(|error| BlobError::Corrupt(error.to_string()))?;
    let written = UnixTime::from_millis(meta.written_ms);
    Ok(BlobMeta { key, bytes: ByteCount::new(meta.bytes), written })
}
