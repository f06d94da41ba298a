//! The state of a node, and what its answers about rows need.
//!
//! Not here: the calls ([`crate::remote::service`]), and blobs
//! ([`crate::remote::blob_handlers`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_geo_core::{Answer, Image, StepQuery, step_bytes};
use fulgurite_rpc::Replies;
use futures::stream::{self, StreamExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::remote::limits::{
    BUFFER_BYTES_MAX, BUFFER_UNIT_BYTES, CALLS_MAX, REPLY_QUEUE_LEN, ROWS_BYTES,
};
use crate::remote::stores::{LazyStores, Stores};
use crate::remote::wire::{Done, Failure, KeyedRow, RowsReply};
use crate::remote::wire_errors;
use crate::stores::{Backoff, Decision, Entropy, Key, KeyError, Table};

/// Maximum number of rows in one message of a scan.
const ROWS: usize = crate::stores::limits::PAGE_ROWS;

/// State of a node.
pub(crate) struct NodeState {
    pub(crate) stores: LazyStores,
    pub(crate) backoff: Arc<dyn Backoff>,
    entropy: Entropy,
    /// Limits concurrent calls.
    pub(crate) call_permits: Arc<Semaphore>,
    /// Limits the bytes of buffered blobs.
    pub(crate) buffer_permits: Arc<Semaphore>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

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
            call_permits: Arc::new(Semaphore::new(CALLS_MAX)),
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

    pub(crate) async fn table_and_key(
        &self,
        text: String,
    ) -> Result<(Arc<dyn Table>, Key), Failure> {
        let key = key(text)?;
        Ok((self.stores.table(false).await?, key))
    }

    pub(crate) fn decide(&self, bytes: Option<&[u8]>, query: &StepQuery) -> Decision<Answer> {
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
}

type Sender<T> = mpsc::Sender<Result<T, Status>>;
pub(crate) type SendError<T> = mpsc::error::SendError<Result<T, Status>>;

/// Returns the replies that `produce` sends. It is stopped when the caller is gone. If it panics,
/// the stream ends with an error: a scan or list cut short must not look complete.
pub(crate) fn replies_of<T, F>(produce: impl FnOnce(Sender<T>) -> F) -> Replies<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), SendError<T>>> + Send + 'static,
{
    let (send, replies) = mpsc::channel(REPLY_QUEUE_LEN);
    let caller = send.clone();
    let producing = produce(send);
    let task = tokio::spawn(async move {
        tokio::select! {
            // It fails only when the caller is gone.
            _ = producing => {}
            () = caller.closed() => {}
        }
    });
    let end = stream::once(task).filter_map(|ended| async move {
        let error = ended.err()?;
        Some(Err(Status::internal(format!("the reply is incomplete: {error}"))))
    });
    ReceiverStream::new(replies).chain(end).boxed()
}

/// Sends the rows of a scan, in messages of limited length.
pub(crate) async fn send_rows(
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
