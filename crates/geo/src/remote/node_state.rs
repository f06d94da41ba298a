//! A node's answers about rows: each call to its table, and whole transactions.
//!
//! Not here: authentication, and blobs ([`crate::remote::blob_handlers`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_geo_core::{Answer, Image, StepQuery, encode_answer, step_bytes};
use futures::StreamExt as _;
use tokio::sync::{Semaphore, mpsc};
use tonic::{Request, Status};

use crate::remote::limits::{
    BUFFER_BYTES_MAX, BUFFER_UNIT_BYTES, CALLS_MAX, REPLY_QUEUE_LEN, ROWS_BYTES, VERSION,
};
use crate::remote::stores::{LazyStores, Stores};
use crate::remote::wire::{
    CasReply, CasRequest, Done, Failure, Keyed, KeyedRow, OpenReply, OpenRequest, RemoveRequest,
    RowReply, RowsReply, ScanRequest, StepReply, StepRequest,
};
use crate::remote::wire_errors;
use crate::stores::{
    Backoff, Decision, Entropy, Expect, Guess, Key, KeyError, Table, Tag, transact,
};

/// Maximum number of rows in one message of a scan.
const ROWS: usize = crate::stores::limits::PAGE_ROWS;

/// State of a node.
pub(crate) struct NodeState {
    pub(crate) stores: LazyStores,
    backoff: Arc<dyn Backoff>,
    entropy: Entropy,
    /// Limits concurrent calls.
    pub(crate) call_permits: Semaphore,
    /// Limits the bytes of buffered blobs.
    pub(crate) buffer_permits: Arc<Semaphore>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

pub(crate) type Replies<T> = mpsc::Receiver<Result<T, Status>>;

pub(crate) fn done(failure: Option<Failure>) -> Done {
    Done { failure }
}

pub(crate) fn key(text: String) -> Result<Key, Failure> {
    Key::new(text).map_err(|error: KeyError| wire_errors::invalid_request(&error))
}

pub(crate) fn maybe_key(text: Option<String>) -> Result<Option<Key>, Failure> {
    text.map(key).transpose()
}

impl NodeState {
    pub(crate) fn new(
        stores: Arc<dyn Stores>,
        backoff: Arc<dyn Backoff>,
        entropy: Entropy,
    ) -> Self {
        Self {
            stores: LazyStores::new(stores),
            backoff,
            entropy,
            call_permits: Semaphore::new(CALLS_MAX),
            buffer_permits: Arc::new(Semaphore::new(BUFFER_BYTES_MAX / BUFFER_UNIT_BYTES)),
            counts: Mutex::default(),
        }
    }

    /// Counts a call.
    pub(crate) fn count(&self, call: &'static str) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(call).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn open(&self, request: Request<OpenRequest>) -> Result<OpenReply, Status> {
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

    async fn table_and_key(&self, text: String) -> Result<(Arc<dyn Table>, Key), Failure> {
        let key = key(text)?;
        Ok((self.stores.table(false).await?, key))
    }

    pub(crate) async fn step(&self, request: Request<StepRequest>) -> Result<StepReply, Status> {
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

    fn decide(&self, bytes: Option<&[u8]>, query: &StepQuery) -> Decision<Answer> {
        let nonce = || u128::from_le_bytes(self.entropy.draw());
        match step_bytes(bytes, &query.request, query.standing, nonce) {
            Ok(Image { stepped, bytes: Some(bytes) }) => {
                Decision::Write(Bytes::from(bytes), Ok((stepped.verdict, stepped.row)))
            }
            Ok(Image { stepped, bytes: None }) => {
                Decision::Leave(Ok((stepped.verdict, stepped.row)))
            }
            Err(error) => Decision::Leave(Err(error)),
        }
    }

    pub(crate) async fn read(&self, request: Request<Keyed>) -> Result<RowReply, Status> {
        let read = async {
            let (table, key) = self.table_and_key(request.into_inner().key).await?;
            table.read(&key).await.map_err(wire_errors::encode_table_error)
        };
        Ok(match read.await {
            Ok(row) => RowReply { row: row.map(wire_errors::row), failure: None },
            Err(failure) => RowReply { row: None, failure: Some(failure) },
        })
    }

    pub(crate) async fn cas(&self, request: Request<CasRequest>) -> Result<CasReply, Status> {
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

    pub(crate) async fn remove(&self, request: Request<RemoveRequest>) -> Result<Done, Status> {
        let RemoveRequest { key, tag } = request.into_inner();
        let removed = async {
            let (table, key) = self.table_and_key(key).await?;
            table.remove(&key, &Tag::new(tag)).await.map_err(wire_errors::encode_table_error)
        };
        Ok(done(removed.await.err()))
    }

    pub(crate) async fn erase(&self, request: Request<Keyed>) -> Result<Done, Status> {
        let erased = async {
            let (table, key) = self.table_and_key(request.into_inner().key).await?;
            table.erase(&key).await.map_err(wire_errors::encode_table_error)
        };
        Ok(done(erased.await.err()))
    }

    pub(crate) async fn scan(
        &self,
        request: Request<ScanRequest>,
    ) -> Result<Replies<RowsReply>, Status> {
        let ScanRequest { prefix, after } = request.into_inner();
        let (send, replies) = mpsc::channel(REPLY_QUEUE_LEN);
        let started = async {
            let (prefix, after) = (maybe_key(prefix)?, maybe_key(after)?);
            Ok((self.stores.table(false).await?, prefix, after))
        };
        match started.await {
            Ok((table, prefix, after)) => {
                tokio::spawn(async move {
                    // It ends when the receiver is gone.
                    let _ = send_rows(&*table, prefix.as_ref(), after, &send).await;
                });
            }
            Err(failure) => {
                let reply = RowsReply { rows: Vec::new(), failure: Some(failure) };
                // The channel has room for one.
                let _ = send.try_send(Ok(reply));
            }
        }
        Ok(replies)
    }
}

type Sender<T> = mpsc::Sender<Result<T, Status>>;
type SendError<T> = mpsc::error::SendError<Result<T, Status>>;

/// Sends the rows of a scan, in messages of limited length.
async fn send_rows(
    table: &dyn Table,
    prefix: Option<&Key>,
    after: Option<Key>,
    send: &Sender<RowsReply>,
) -> Result<(), SendError<RowsReply>> {
    let mut scan = table.scan(prefix, after);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(next) = scan.next().await {
        match next {
            Ok((key, row)) => {
                bytes += key.as_str().len() + row.bytes.len() + row.tag.as_bytes().len();
                let key = String::from(key);
                rows.push(KeyedRow { key, row: Some(wire_errors::row(row)) });
            }
            Err(error) => {
                let failure = Some(wire_errors::encode_table_error(error));
                return send.send(Ok(RowsReply { rows, failure })).await;
            }
        }
        if rows.len() >= ROWS || bytes >= ROWS_BYTES {
            let rows = std::mem::take(&mut rows);
            bytes = 0;
            send.send(Ok(RowsReply { rows, failure: None })).await?;
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    send.send(Ok(RowsReply { rows, failure: None })).await
}
