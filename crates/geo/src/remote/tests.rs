//! Tests without sockets: messages, versions, errors over the wire.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use expect_test::expect;
use fulgurite_geo_core::{
    Command, Epoch, KnownVersions, Request as GeoRequest, SiteState, StepQuery,
};
use fulgurite_rpc::prost::Message as _;
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::sync::mpsc;
use tokio::sync::oneshot::error::TryRecvError;
use tonic::{Code, Request, Status, TimeoutExpired};

use crate::remote::limits::VERSION;
use crate::remote::link::{LinkError, check_opened, is_timeout};
use crate::remote::node_state::{NodeState, replies_of};
use crate::remote::stores::Stores;
use crate::remote::wire::{Keyed, Node as _, OpenReply, OpenRequest, StepReply, StepRequest};
use crate::remote::wire_errors;
use crate::stores::limits::BLOB_BYTES_MAX;
use crate::stores::{
    Blob, BlobError, Cause, Entropy, Key, MemoryTable, NoBackoff, OpenError, Row, Table,
    TableError, Tag, TransactError,
};

/// A table in memory, without blobs.
struct Rows(MemoryTable);

#[async_trait]
impl Stores for Rows {
    async fn table(&self, _: bool) -> Option<Result<Arc<dyn Table>, OpenError>> {
        Some(Ok(Arc::new(self.0.clone())))
    }

    async fn blobs(&self, _: bool) -> Option<Result<Arc<dyn Blob>, OpenError>> {
        None
    }
}

fn node() -> Arc<NodeState> {
    Arc::new(NodeState::new(
        Arc::new(Rows(MemoryTable::new())),
        Arc::new(NoBackoff),
        Entropy::new(|| [7; 16]),
    ))
}

fn new_key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn query() -> StepQuery {
    let epoch = Epoch(1);
    let request = GeoRequest { epoch, known: KnownVersions::default(), command: Command::Read };
    StepQuery { request, standing: SiteState { epoch, rebuilding: false }, is_likely_new: false }
}

#[test]
fn message_encoding_v1_is_stable() {
    let request = StepRequest { key: "o/key".into(), question: Bytes::from(query().encode()) };
    let text: String = request.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
    expect!["0a056f2f6b65791209010100000000010000"].assert_eq(&text);
}

#[tokio::test]
async fn open_rejects_other_protocol_versions() {
    let node = node();
    let request = |version, part| Request::new(OpenRequest { version, part, may_create: true });
    let reply = node.open(request(VERSION + 1, 1)).await.unwrap();
    assert_eq!((reply.version, reply.failure.is_none(), reply.max_row), (VERSION, true, 0));
    let reply = node.open(request(VERSION, 1)).await.unwrap();
    assert!(check_opened("oslo:1", &reply).unwrap().cond_delete);
    let newer = OpenReply { version: 2, program: "9.9.9".to_owned(), ..OpenReply::default() };
    let LinkError::Dial(refused) = check_opened("oslo:1", &newer).unwrap_err() else {
        panic!("refused")
    };
    let message = format!("{refused:?}");
    assert!(message.contains("speaks version 2 (release 9.9.9)"), "{message}");
    assert!(message.contains("run the same release at both ends"), "{message}");
    // It reports what it does not serve.
    let reply = node.open(request(VERSION, 2)).await.unwrap();
    let failure = reply.failure.unwrap();
    assert!(
        wire_errors::is_not_served(&failure) && failure.what.contains("no blobs"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn invalid_queries_are_rejected_without_a_write() {
    let node = node();
    let newer = [&[9], &query().encode()[1..]].concat();
    for (key, query_bytes) in
        [("o/key", newer), ("o/key", Vec::new()), ("not a key", query().encode())]
    {
        let request = StepRequest { key: key.to_owned(), question: Bytes::from(query_bytes) };
        let reply = node.step(Request::new(request)).await.unwrap();
        let error = wire_errors::decode_step_reply(&new_key("o/key"), reply).unwrap_err();
        let TransactError::Refused { source, .. } = error else { panic!("{error}") };
        assert!(matches!(source, TableError::Denied(_)), "{source}");
    }
    let read = node.read(Request::new(Keyed { key: "o/key".to_owned() })).await.unwrap();
    assert_eq!((read.row, read.failure), (None, None));
}

#[tokio::test]
async fn replies_of_a_failed_task_end_with_an_error() {
    let replies: Vec<_> = replies_of(|send| async move {
        send.send(Ok(1)).await?;
        panic!("the store has a bug")
    })
    .map_err(|status| status.code())
    .collect()
    .await;
    assert_eq!(replies, [Ok(1), Err(Code::Internal)]);
    let complete: Vec<_> =
        replies_of(|send| async move { send.send(Ok(1)).await }).try_collect().await.unwrap();
    assert_eq!(complete, [1]);
    // Nothing runs on for a caller that is gone.
    let (held, mut dropped) = tokio::sync::oneshot::channel::<()>();
    let replies = replies_of(|_send: mpsc::Sender<Result<u8, _>>| async move {
        let _held = held;
        std::future::pending().await
    });
    tokio::task::yield_now().await;
    assert_eq!(dropped.try_recv(), Err(TryRecvError::Empty));
    drop(replies);
    assert!(dropped.await.is_err());
}

#[test]
fn write_without_buffer_space_is_throttled() {
    let node = node();
    let all = node.free_buffer_space(BLOB_BYTES_MAX as u64);
    let more = node.free_buffer_space(BLOB_BYTES_MAX as u64);
    assert!(all.is_ok() && more.is_ok());
    let full = wire_errors::decode_blob_error(node.free_buffer_space(1).unwrap_err());
    assert!(matches!(full, BlobError::Throttled(_)), "{full}");
    drop(all);
    assert!(node.free_buffer_space(1).is_ok());
}

#[test]
fn timeout_does_not_close_a_connection() {
    assert!(is_timeout(&Status::deadline_exceeded("")));
    assert!(is_timeout(&Status::from_error(Box::new(TimeoutExpired(())))));
    assert!(!is_timeout(&Status::cancelled("the connection was reset")));
    assert!(!is_timeout(&Status::unavailable("Timeout expired")));
}

#[test]
fn store_errors_round_trip() {
    let row = Row { bytes: Bytes::from_static(b"\x00there"), tag: Tag::new(&b"7"[..]) };
    let cause = || Cause::new("why");
    for error in [
        TableError::Conflict(None),
        TableError::Conflict(Some(row)),
        TableError::Unknown(cause()),
        TableError::Unavailable(cause()),
        TableError::Throttled(None),
        TableError::Throttled(Some(Duration::from_millis(1500))),
        TableError::TooLarge(7),
        TableError::Denied(cause()),
        TableError::Corrupt("why".to_owned()),
    ] {
        assert_eq!(
            wire_errors::decode_table_error(wire_errors::encode_table_error(error.clone())),
            error
        );
        let (key, source) = (new_key("a"), error);
        let refused = TransactError::Refused { key, source };
        if !matches!(refused, TransactError::Refused { source: TableError::Unavailable(_), .. }) {
            let back = wire_errors::decode_step_reply(
                &new_key("a"),
                wire_errors::encode_transact_error(refused.clone()),
            );
            assert_eq!(back, Err(refused));
        }
    }
    let unsupported = wire_errors::decode_table_error(wire_errors::encode_table_error(
        TableError::Unsupported("dance"),
    ));
    assert!(matches!(unsupported, TableError::Unsupported(_)));
    for error in [
        BlobError::NotFound,
        BlobError::Exists,
        BlobError::Unavailable(cause()),
        BlobError::Unknown(cause()),
        BlobError::Corrupt("why".to_owned()),
        BlobError::Throttled(Some(Duration::from_millis(1))),
        BlobError::Denied(cause()),
        BlobError::TooLarge(7),
    ] {
        assert_eq!(
            wire_errors::decode_blob_error(wire_errors::encode_blob_error(error.clone())),
            error
        );
    }
    let key = || new_key("a");
    for error in [
        TransactError::Unknown { key: key(), cause: cause() },
        TransactError::Unavailable { key: key(), cause: cause() },
        TransactError::Contended { key: key(), tries: 40 },
    ] {
        assert_eq!(
            wire_errors::decode_step_reply(
                &key(),
                wire_errors::encode_transact_error(error.clone())
            ),
            Err(error)
        );
    }
    // An outcome that this program does not know counts as unknown.
    let newer = StepReply { ended: 77, ..StepReply::default() };
    let error = wire_errors::decode_step_reply(&key(), newer).unwrap_err();
    assert!(matches!(error, TransactError::Unknown { .. }), "{error}");
}
