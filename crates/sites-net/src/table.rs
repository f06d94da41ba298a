//! A table served by a node, with transactions that the node executes next to it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_sites::limits::{ANSWER_WITHIN, ROW_BYTES_MAX};
use fulgurite_sites::{
    Asked, Beside, Cause, Certainty, Expect, Key, Rests, Row, Table, TableCaps, TableError, Tag,
    TransactError,
};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::time::timeout;
use tonic::Streaming;

use crate::calls::{CAS, ERASE, READ, REMOVE, SCAN, STEP};
use crate::limits::{REST_MIN, STEP_WITHIN, TRIES_MAX};
use crate::link::{Fault, Link, of_read, table_fault};
use crate::told::{row_of, table_error, transacted};
use crate::wire::{
    CasReply, CasRequest, Done, Failure, Keyed, KeyedRow, RemoveRequest, RowReply, RowsReply,
    ScanRequest, StepReply, StepRequest,
};

/// Minimum capabilities, assumed of a table until the node has stated them.
const LEAST: TableCaps = TableCaps {
    max_row: ROW_BYTES_MAX,
    cond_delete: false,
    reply_on_conflict: false,
    tag_reuse: true,
    scan_order: false,
};

/// Client of the table that a node serves.
pub(crate) struct NodeTable {
    pub(crate) link: Link,
    pub(crate) rests: Arc<dyn Rests>,
}

fn answered(failure: Option<Failure>) -> Result<(), TableError> {
    failure.map_or(Ok(()), |failure| Err(table_error(failure)))
}

fn tag_bytes(tag: &Tag) -> Bytes {
    Bytes::copy_from_slice(tag.as_bytes())
}

#[async_trait]
impl Table for NodeTable {
    fn caps(&self) -> TableCaps {
        self.link.caps().unwrap_or(LEAST)
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        let asked = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<_, RowReply>(READ, asked, ANSWER_WITHIN).await;
        let reply = reply.map_err(|fault| of_read(table_fault(fault)))?;
        answered(reply.failure).map_err(of_read)?;
        Ok(reply.row.map(row_of))
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        if new.len() > self.caps().max_row.min(ROW_BYTES_MAX) {
            return Err(TableError::TooLarge(new.len()));
        }
        let tag = match &expect {
            Expect::Absent => None,
            Expect::Is(tag) => Some(tag_bytes(tag)),
        };
        let asked = CasRequest { key: key.as_str().to_owned(), tag, bytes: new };
        let reply = self.link.unary::<_, CasReply>(CAS, asked, ANSWER_WITHIN).await;
        let reply = reply.map_err(table_fault)?;
        answered(reply.failure)?;
        Ok(Tag::new(reply.tag))
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        let asked = RemoveRequest { key: key.as_str().to_owned(), tag: tag_bytes(tag) };
        let reply = self.link.unary::<_, Done>(REMOVE, asked, ANSWER_WITHIN).await;
        answered(reply.map_err(table_fault)?.failure)
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        let asked = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<_, Done>(ERASE, asked, ANSWER_WITHIN).await;
        answered(reply.map_err(table_fault)?.failure)
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let text = |key: &Key| key.as_str().to_owned();
        let asked = ScanRequest { prefix: prefix.map(text), after: after.as_ref().map(text) };
        let rows = async move {
            match self.scanned(asked).await {
                Ok((number, replies)) => self.rows(number, replies).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(rows).flatten().boxed()
    }

    fn beside(&self) -> Option<&dyn Beside> {
        Some(self)
    }
}

impl NodeTable {
    async fn scanned(&self, asked: ScanRequest) -> Result<(u64, Streaming<RowsReply>), TableError> {
        let calling = async {
            let (number, mut client) = self.link.client().await.map_err(Fault::NotSent)?;
            let replies = client.answers(SCAN, asked).await;
            Ok((number, replies.map_err(|status| self.link.fault(number, &status))?))
        };
        let late = |_| Err(Fault::Lost(self.link.late(ANSWER_WITHIN)));
        let called = timeout(ANSWER_WITHIN, calling).await.unwrap_or_else(late);
        called.map_err(|fault| of_read(table_fault(fault)))
    }

    /// Streams the rows of all messages; after an error nothing more is known.
    fn rows(
        &self,
        number: u64,
        replies: Streaming<RowsReply>,
    ) -> impl futures::Stream<Item = Result<(Key, Row), TableError>> + Send {
        let next = move |replies: Option<Streaming<RowsReply>>| async move {
            let mut replies = replies?;
            let next = timeout(ANSWER_WITHIN, replies.next()).await;
            let rows = match next {
                Ok(None) => return None,
                Ok(Some(Ok(RowsReply { rows, failure }))) => {
                    let mut rows: Vec<_> = rows.into_iter().map(keyed).collect();
                    let Some(failure) = failure else { return Some((rows, Some(replies))) };
                    rows.push(Err(of_read(table_error(failure))));
                    rows
                }
                Ok(Some(Err(status))) => {
                    let fault = self.link.fault(number, &status);
                    vec![Err(of_read(table_fault(fault)))]
                }
                Err(_) => {
                    let why = self.link.late(ANSWER_WITHIN);
                    vec![Err(TableError::Unavailable(Cause::new(why)))]
                }
            };
            Some((rows, None))
        };
        stream::unfold(Some(replies), next).flat_map(stream::iter)
    }
}

fn keyed(keyed: KeyedRow) -> Result<(Key, Row), TableError> {
    let wrong = |what: String| TableError::Corrupt(what);
    let key = Key::new(keyed.key).map_err(|error| wrong(error.to_string()))?;
    let row = keyed.row.ok_or_else(|| wrong(format!("row \"{key}\" came without bytes")))?;
    Ok((key, row_of(row)))
}

#[async_trait]
impl Beside for NodeTable {
    /// Sends the query again if its answer was lost. The node then reads the row again, and a step
    /// recognizes its own effect, so the query is idempotent.
    async fn transact(&self, key: &Key, question: Bytes) -> Result<Asked, TransactError> {
        let mut tries = Tries { key, sent: None, trips: 0 };
        let late = self.link.late(STEP_WITHIN);
        let asked = timeout(STEP_WITHIN, self.tell(&mut tries, question)).await;
        match asked {
            Ok(Ok(answer)) => Ok(Asked { answer, trips: tries.trips }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(TransactError::Unknown { key: key.clone(), cause: Cause::new(late) }),
        }
    }
}

/// How often a query was sent, and what is known of tries with an unknown outcome.
struct Tries<'a> {
    key: &'a Key,
    sent: Option<String>,
    trips: u32,
}

impl Tries<'_> {
    /// Returns the final error after the last try failed with this one.
    fn ended(&self, error: TableError) -> TransactError {
        let key = self.key.clone();
        match (&self.sent, error.certainty()) {
            (Some(why), _) => {
                TransactError::Unknown { key, cause: Cause::new(format!("{why}; {error}")) }
            }
            (None, Certainty::Refused) => TransactError::Refused { key, source: error },
            (None, _) => TransactError::Unavailable { key, cause: Cause::new(error.to_string()) },
        }
    }
}

impl NodeTable {
    async fn tell(&self, tries: &mut Tries<'_>, question: Bytes) -> Result<Bytes, TransactError> {
        loop {
            let asked =
                StepRequest { key: tries.key.as_str().to_owned(), question: question.clone() };
            tries.trips += 1;
            let error = match self.link.unary::<_, StepReply>(STEP, asked, ANSWER_WITHIN).await {
                // This answer also covers an earlier try whose answer was lost.
                Ok(reply) => return self.judged(tries, reply),
                Err(Fault::Lost(why)) => {
                    let error = TableError::Unavailable(Cause::new(why.clone()));
                    tries.sent.get_or_insert(why);
                    error
                }
                Err(fault @ Fault::NotSent(_)) => table_fault(fault),
            };
            let is_over = error.certainty() == Certainty::Refused || tries.trips >= TRIES_MAX;
            if is_over {
                return Err(tries.ended(error));
            }
            self.rests.rest(REST_MIN.saturating_mul(1 << tries.trips)).await;
        }
    }

    fn judged(&self, tries: &Tries<'_>, reply: StepReply) -> Result<Bytes, TransactError> {
        let answer = transacted(tries.key, reply);
        let Some(lost) = &tries.sent else { return answer };
        // This try wrote nothing, but the outcome of the earlier one is unknown.
        answer.map_err(|error| TransactError::Unknown {
            key: tries.key.clone(),
            cause: Cause::new(format!("{lost}; and then {error}")),
        })
    }
}
