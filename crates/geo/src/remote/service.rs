//! The calls that a node answers.
//!
//! Not here: authentication, and connections ([`crate::remote::server`]).

use std::sync::Arc;

use bytes::Bytes;
use fulgurite_geo_core::{StepQuery, encode_answer};
use fulgurite_rpc::{Replies, chunks, collect_exactly};
use fulgurite_units::UnixTime;
use futures::stream::{self, StreamExt as _};
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Request, Status, Streaming};

use crate::remote::blob_handlers::{meta, send_metas};
use crate::remote::limits::{PART_BYTES, VERSION};
use crate::remote::node_state::{NodeState, done, maybe_key, replies_of, send_rows};
use crate::remote::wire::{
    CasReply, CasRequest, CreatePart, Done, GetPart, GetRequest, Keyed, ListRequest, MetasReply,
    Node, OpenReply, OpenRequest, RemoveRequest, RowReply, RowsReply, ScanRequest, StepReply,
    StepRequest,
};
use crate::remote::wire_errors;
use crate::stores::{Expect, Guess, Tag, transact};

impl Node for NodeState {
    async fn admit(self: &Arc<Self>, call: &'static str) -> Option<OwnedSemaphorePermit> {
        self.count(call);
        // The semaphore is never closed.
        Arc::clone(&self.call_permits).acquire_owned().await.ok()
    }

    async fn open(self: &Arc<Self>, request: Request<OpenRequest>) -> Result<OpenReply, Status> {
        let OpenRequest { version, part, may_create } = request.into_inner();
        let reply = OpenReply {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            ..OpenReply::default()
        };
        if version != VERSION {
            return Ok(reply);
        }
        let opened = match part {
            1 => self.stores.table(may_create).await.map(|table| Some(table.caps())),
            2 => self.stores.blobs(may_create).await.map(|_| None),
            _ => Err(wire_errors::not_served("a node serves only a table and blobs")),
        };
        Ok(match opened {
            Err(failure) => OpenReply { failure: Some(failure), ..reply },
            Ok(None) => reply,
            Ok(Some(caps)) => OpenReply {
                max_row: caps.max_row as u64,
                cond_delete: caps.cond_delete,
                reply_on_conflict: caps.reply_on_conflict,
                tag_reuse: caps.tag_reuse,
                scan_order: caps.scan_order,
                ..reply
            },
        })
    }

    async fn step(self: &Arc<Self>, request: Request<StepRequest>) -> Result<StepReply, Status> {
        let StepRequest { key, question: query } = request.into_inner();
        let started = self.table_and_key(key).await.and_then(|(table, key)| {
            let query =
                StepQuery::decode(&query).map_err(|error| wire_errors::invalid_request(&error))?;
            Ok((table, key, query))
        });
        let (table, key, query) = match started {
            Ok(started) => started,
            Err(failure) => return Ok(wire_errors::not_started(failure)),
        };
        let guess = if query.is_likely_new { Guess::Absent } else { Guess::Nothing };
        let decide = |bytes: Option<&[u8]>| self.decide(bytes, &query);
        match transact(&*table, &key, guess, &*self.backoff, decide).await {
            Ok(done) => {
                let answer = encode_answer(&done.result);
                let answer = answer.map_err(|error| Status::internal(error.to_string()))?;
                Ok(StepReply { ended: 0, answer: Bytes::from(answer), failure: None })
            }
            Err(error) => Ok(wire_errors::encode_transact_error(error)),
        }
    }

    async fn read(self: &Arc<Self>, request: Request<Keyed>) -> Result<RowReply, Status> {
        let read = async {
            let (table, key) = self.table_and_key(request.into_inner().key).await?;
            table.read(&key).await.map_err(wire_errors::encode_table_error)
        };
        Ok(match read.await {
            Ok(row) => RowReply { row: row.map(wire_errors::row), failure: None },
            Err(failure) => RowReply { row: None, failure: Some(failure) },
        })
    }

    async fn cas(self: &Arc<Self>, request: Request<CasRequest>) -> Result<CasReply, Status> {
        let CasRequest { key, tag, bytes } = request.into_inner();
        let expect = tag.map_or(Expect::Absent, |tag| Expect::Is(Tag::new(tag)));
        let written = async {
            let (table, key) = self.table_and_key(key).await?;
            table.cas(&key, expect, bytes).await.map_err(wire_errors::encode_table_error)
        };
        Ok(match written.await {
            Ok(tag) => CasReply { tag: Bytes::copy_from_slice(tag.as_bytes()), failure: None },
            Err(failure) => CasReply { tag: Bytes::new(), failure: Some(failure) },
        })
    }

    async fn remove(self: &Arc<Self>, request: Request<RemoveRequest>) -> Result<Done, Status> {
        let RemoveRequest { key, tag } = request.into_inner();
        let removed = async {
            let (table, key) = self.table_and_key(key).await?;
            table.remove(&key, &Tag::new(tag)).await.map_err(wire_errors::encode_table_error)
        };
        Ok(done(removed.await.err()))
    }

    async fn erase(self: &Arc<Self>, request: Request<Keyed>) -> Result<Done, Status> {
        let erased = async {
            let (table, key) = self.table_and_key(request.into_inner().key).await?;
            table.erase(&key).await.map_err(wire_errors::encode_table_error)
        };
        Ok(done(erased.await.err()))
    }

    async fn scan(
        self: &Arc<Self>,
        request: Request<ScanRequest>,
    ) -> Result<Replies<RowsReply>, Status> {
        let ScanRequest { prefix, after } = request.into_inner();
        let started = async {
            let (prefix, after) = (maybe_key(prefix)?, maybe_key(after)?);
            Ok((self.stores.table(false).await?, prefix, after))
        };
        Ok(match started.await {
            Ok((table, prefix, after)) => {
                replies_of(
                    |send| async move { send_rows(&*table, prefix.as_ref(), after, &send).await },
                )
            }
            Err(failure) => {
                let reply = RowsReply { rows: Vec::new(), failure: Some(failure) };
                stream::iter([Ok(reply)]).boxed()
            }
        })
    }

    async fn create(
        self: &Arc<Self>,
        request: Request<Streaming<CreatePart>>,
    ) -> Result<Done, Status> {
        let mut request = request.into_inner();
        let first = request.message().await?.unwrap_or_default();
        let length = first.length;
        let started = async { Ok((self.blob(first.key).await?, self.free_buffer_space(length)?)) };
        let ((blobs, key), _buffer_space) = match started.await {
            Ok(started) => started,
            Err(failure) => return Ok(done(Some(failure))),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let body = collect_exactly(&mut request, length, |part| part.bytes).await?;
        let created = blobs.create(&key, body.freeze()).await;
        Ok(done(created.err().map(wire_errors::encode_blob_error)))
    }

    async fn get(
        self: &Arc<Self>,
        request: Request<GetRequest>,
    ) -> Result<Replies<GetPart>, Status> {
        Ok(match self.buffered_blob(request.into_inner()).await {
            Ok((body, buffer_space)) => {
                let length = body.len() as u64;
                let first = GetPart { length, ..GetPart::default() };
                let rest = chunks(body, PART_BYTES).map(move |bytes| {
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

    async fn head(self: &Arc<Self>, request: Request<Keyed>) -> Result<MetasReply, Status> {
        let known = async {
            let (blobs, key) = self.blob(request.into_inner().key).await?;
            blobs.head(&key).await.map_err(wire_errors::encode_blob_error)
        };
        Ok(match known.await {
            Ok(known) => MetasReply { metas: vec![meta(known)], failure: None },
            Err(failure) => MetasReply { metas: Vec::new(), failure: Some(failure) },
        })
    }

    async fn delete(self: &Arc<Self>, request: Request<Keyed>) -> Result<Done, Status> {
        let deleted = async {
            let (blobs, key) = self.blob(request.into_inner().key).await?;
            blobs.delete(&key).await.map_err(wire_errors::encode_blob_error)
        };
        Ok(done(deleted.await.err()))
    }

    async fn list(
        self: &Arc<Self>,
        request: Request<ListRequest>,
    ) -> Result<Replies<MetasReply>, Status> {
        let ListRequest { prefix, before_ms } = request.into_inner();
        let started = async {
            let prefix = maybe_key(prefix)?;
            Ok((self.stores.blobs(false).await?, prefix))
        };
        Ok(match started.await {
            Ok((blobs, prefix)) => {
                let before = UnixTime::from_millis(before_ms);
                replies_of(|send| async move {
                    send_metas(&*blobs, prefix.as_ref(), before, &send).await
                })
            }
            Err(failure) => {
                let reply = MetasReply { metas: Vec::new(), failure: Some(failure) };
                stream::iter([Ok(reply)]).boxed()
            }
        })
    }
}
