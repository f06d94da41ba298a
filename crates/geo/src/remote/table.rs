//! A table served by a node, with transactions that the node executes next to it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::time::timeout;

use crate::remote::limits::{BACKOFF_MIN, STEP_TIMEOUT, TRIES_MAX};
use crate::remote::link::{CallError, Link, into_read_error, to_table_error};
use crate::remote::wire::{
    CasRequest, Failure, Keyed, KeyedRow, RemoveRequest, RowsReply, ScanRequest, StepReply,
    StepRequest, calls,
};
use crate::remote::wire_errors::{decode_row, decode_step_reply, decode_table_error};
use crate::stores::limits::{ANSWER_TIMEOUT, ROW_BYTES_MAX};
use crate::stores::{
    Backoff, Cause, Certainty, Expect, Key, RemoteExecutor, Row, Table, TableCaps, TableError, Tag,
    TransactError, TransactReply,
};

/// Minimum capabilities, assumed of a table until the node has stated them.
const MIN_CAPS: TableCaps = TableCaps {
    max_row: ROW_BYTES_MAX,
    cond_delete: false,
    reply_on_conflict: false,
    tag_reuse: true,
    scan_order: false,
};

/// Client of the table that a node serves.
pub(crate) struct NodeTable {
    pub(crate) link: Link,
    pub(crate) backoff: Arc<dyn Backoff>,
}

fn check_failure(failure: Option<Failure>) -> Result<(), TableError> {
    failure.map_or(Ok(()), |failure| Err(decode_table_error(failure)))
}

fn tag_bytes(tag: &Tag) -> Bytes {
    Bytes::copy_from_slice(tag.as_bytes())
}

#[async_trait]
impl Table for NodeTable {
    fn caps(&self) -> TableCaps {
        self.link.caps().unwrap_or(MIN_CAPS)
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        let request = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<calls::Read>(request, ANSWER_TIMEOUT).await;
        let reply = reply.map_err(|call_error| into_read_error(to_table_error(call_error)))?;
        check_failure(reply.failure).map_err(into_read_error)?;
        Ok(reply.row.map(decode_row))
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        if new.len() > self.caps().max_row.min(ROW_BYTES_MAX) {
            return Err(TableError::TooLarge(new.len()));
        }
        let tag = match &expect {
            Expect::Absent => None,
            Expect::Is(tag) => Some(tag_bytes(tag)),
        };
        let request = CasRequest { key: key.as_str().to_owned(), tag, bytes: new };
        let reply = self.link.unary::<calls::Cas>(request, ANSWER_TIMEOUT).await;
        let reply = reply.map_err(to_table_error)?;
        check_failure(reply.failure)?;
        Ok(Tag::new(reply.tag))
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        let request = RemoveRequest { key: key.as_str().to_owned(), tag: tag_bytes(tag) };
        let reply = self.link.unary::<calls::Remove>(request, ANSWER_TIMEOUT).await;
        check_failure(reply.map_err(to_table_error)?.failure)
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        let request = Keyed { key: key.as_str().to_owned() };
        let reply = self.link.unary::<calls::Erase>(request, ANSWER_TIMEOUT).await;
        check_failure(reply.map_err(to_table_error)?.failure)
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let text = |key: &Key| key.as_str().to_owned();
        let request = ScanRequest { prefix: prefix.map(text), after: after.as_ref().map(text) };
        let replies = self.link.server_streaming::<calls::Scan>(request, ANSWER_TIMEOUT);
        replies.flat_map(|reply| stream::iter(decode_rows(reply))).boxed()
    }

    fn remote_executor(&self) -> Option<&dyn RemoteExecutor> {
        Some(self)
    }
}

/// Decodes a message of a scan; after an error nothing more is known.
fn decode_rows(reply: Result<RowsReply, CallError>) -> Vec<Result<(Key, Row), TableError>> {
    let decoded = |RowsReply { rows, failure }| {
        let failed = failure.map(|failure| Err(into_read_error(decode_table_error(failure))));
        rows.into_iter().map(decode_keyed_row).chain(failed).collect()
    };
    reply.map_or_else(|error| vec![Err(into_read_error(to_table_error(error)))], decoded)
}

fn decode_keyed_row(keyed: KeyedRow) -> Result<(Key, Row), TableError> {
    let corrupt = |what: String| TableError::Corrupt(what);
    let key = Key::new(keyed.key).map_err(|error| corrupt(error.to_string()))?;
    let row = keyed.row.ok_or_else(|| corrupt(format!("row \"{key}\" came without bytes")))?;
    Ok((key, decode_row(row)))
}

#[async_trait]
impl RemoteExecutor for NodeTable {
    /// Sends the query again if its answer was lost. The node then reads the row again, and a step
    /// recognizes its own effect, so the query is idempotent.
    async fn transact(&self, key: &Key, query: Bytes) -> Result<TransactReply, TransactError> {
        let mut attempts = Attempts { key, lost: None, trips: 0 };
        let timeout_message = self.link.timeout_message(STEP_TIMEOUT);
        let result = timeout(STEP_TIMEOUT, self.send_query(&mut attempts, query)).await;
        match result {
            Ok(Ok(answer)) => Ok(TransactReply { answer, trips: attempts.trips }),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                Err(TransactError::Unknown { key: key.clone(), cause: Cause::new(timeout_message) })
            }
        }
    }
}

/// How often a query was sent, and what is known of tries with an unknown outcome.
struct Attempts<'a> {
    key: &'a Key,
    lost: Option<String>,
    trips: u32,
}

impl Attempts<'_> {
    /// Returns the final error after the last try failed with this one.
    fn final_error(&self, error: TableError) -> TransactError {
        let key = self.key.clone();
        match (&self.lost, error.certainty()) {
            (Some(why), _) => {
                TransactError::Unknown { key, cause: Cause::new(format!("{why}; {error}")) }
            }
            (None, Certainty::Refused) => TransactError::Refused { key, source: error },
            (None, _) => TransactError::Unavailable { key, cause: Cause::new(error.to_string()) },
        }
    }
}

impl NodeTable {
    async fn send_query(
        &self,
        attempts: &mut Attempts<'_>,
        query: Bytes,
    ) -> Result<Bytes, TransactError> {
        loop {
            let request =
                StepRequest { key: attempts.key.as_str().to_owned(), question: query.clone() };
            attempts.trips += 1;
            let error = match self.link.unary::<calls::Step>(request, ANSWER_TIMEOUT).await {
                // This answer also covers an earlier try whose answer was lost.
                Ok(reply) => return self.resolve_reply(attempts, reply),
                Err(CallError::Lost(why)) => {
                    let error = TableError::Unavailable(Cause::new(why.clone()));
                    attempts.lost.get_or_insert(why);
                    error
                }
                Err(call_error @ CallError::NotSent(_)) => to_table_error(call_error),
            };
            let is_over = error.certainty() == Certainty::Refused || attempts.trips >= TRIES_MAX;
            if is_over {
                return Err(attempts.final_error(error));
            }
            self.backoff.wait(BACKOFF_MIN.saturating_mul(1 << attempts.trips)).await;
        }
    }

    fn resolve_reply(
        &self,
        attempts: &Attempts<'_>,
        reply: StepReply,
    ) -> Result<Bytes, TransactError> {
        let answer = decode_step_reply(attempts.key, reply);
        let Some(lost) = &attempts.lost else { return answer };
        // This try wrote nothing, but the outcome of the earlier one is unknown.
        answer.map_err(|error| TransactError::Unknown {
            key: attempts.key.clone(),
            cause: Cause::new(format!("{lost}; and then {error}")),
        })
    }
}
