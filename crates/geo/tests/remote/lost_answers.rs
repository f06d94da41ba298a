//! Answers that are lost after the node has acted, and nodes that stop in the middle of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo::remote::Stores;
use fulgurite_geo::stores::{
    Blob, Decision, Expect, Guess, Key, MemoryTable, OpenError, RemoteExecutor, Row,
    RuntimeBackoff, Table, TableCaps, TableError, Tag, TransactError, transact,
};
use fulgurite_geo_core::{
    Change, Command, Epoch, KnownVersions, Request, Row as GeoRow, SiteState, StepQuery, Value,
    Verdict, Version, WriteId, decode_answer,
};
use fulgurite_units::UnixTime;
use futures::stream::BoxStream;
use tokio::sync::{Notify, watch};

use crate::world::{Proxy, World, entropy, table};

fn new_key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// A table that cuts the client's connections after a write and before its answer.
#[derive(Clone)]
struct CuttingTable {
    inner: MemoryTable,
    cuts: Arc<watch::Sender<u64>>,
    is_armed: Arc<AtomicBool>,
    writes: Arc<AtomicU64>,
    /// Holds writes before anything is written, if it is shut.
    gate: Arc<Gate>,
}

/// Holds writes, and records what became of them.
#[derive(Debug, Default)]
struct Gate {
    is_shut: AtomicBool,
    opened: Notify,
    arrived: Notify,
    abandoned: Notify,
}

/// Signals when a held write is abandoned.
struct HeldWrite<'a>(&'a Gate);

impl Drop for HeldWrite<'_> {
    fn drop(&mut self) {
        if self.0.is_shut.load(Ordering::SeqCst) {
            self.0.abandoned.notify_one();
        }
    }
}

impl Gate {
    async fn pass(&self) {
        if self.is_shut.load(Ordering::SeqCst) {
            let _held_write = HeldWrite(self);
            self.arrived.notify_one();
            self.opened.notified().await;
        }
    }
}

impl CuttingTable {
    async fn cut(&self) {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.cuts.send_modify(|cuts| *cuts += 1);
            // The answer cannot be delivered; the call is abandoned.
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Table for CuttingTable {
    fn caps(&self) -> TableCaps {
        self.inner.caps()
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        self.inner.read(key).await
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        self.gate.pass().await;
        let tag = self.inner.cas(key, expect, new).await?;
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.cut().await;
        Ok(tag)
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        self.inner.remove(key, tag).await
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        self.inner.erase(key).await
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        self.inner.scan(prefix, after)
    }
}

#[async_trait]
impl Stores for CuttingTable {
    async fn table(&self, _: bool) -> Option<Result<Arc<dyn Table>, OpenError>> {
        Some(Ok(Arc::new(self.clone())))
    }

    async fn blobs(&self, _: bool) -> Option<Result<Arc<dyn Blob>, OpenError>> {
        None
    }
}

/// Starts a node behind a proxy, and returns them with the table that it serves.
async fn start_cutting_node(
    world: &World,
) -> (fulgurite_geo::remote::Node, Proxy, CuttingTable, Arc<dyn Table>) {
    let proxy = Proxy::new().await;
    let stores = CuttingTable {
        inner: MemoryTable::new(),
        cuts: proxy.cut_sender(),
        is_armed: Arc::default(),
        writes: Arc::default(),
        gate: Arc::default(),
    };
    let node = world.serve("oslo.records", Arc::new(stores.clone())).await;
    proxy.aim(Some(node.address()));
    let address = world.address(proxy.address, "oslo.records");
    let client = table(&address, false).await.unwrap();
    (node, proxy, stores, client)
}

fn query(write: u128, version: u64) -> StepQuery {
    let epoch = Epoch(1);
    let value = Value {
        id: WriteId(write),
        time: UnixTime::from_millis(7),
        change: Arc::new(Change::Delete),
    };
    let command = Command::PreAccept { version: Version(version), value };
    let request = Request { epoch, known: KnownVersions::default(), command };
    StepQuery { request, standing: SiteState { epoch, rebuilding: false }, is_likely_new: false }
}

async fn execute(
    remote_executor: &dyn RemoteExecutor,
    key: &Key,
    query: &StepQuery,
) -> (Verdict, GeoRow, u32) {
    let reply = remote_executor.transact(key, Bytes::from(query.encode())).await.unwrap();
    let (verdict, row) = decode_answer(&reply.answer).unwrap().unwrap();
    (verdict, row, reply.trips)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn step_with_a_lost_answer_is_applied_once() {
    let world = World::new();
    let (node, _proxy, stores, client) = start_cutting_node(&world).await;
    let key = new_key("o/key");
    for version in 1..=5 {
        stores.is_armed.store(true, Ordering::SeqCst);
        let remote_executor = client.remote_executor().unwrap();
        let (verdict, row, trips) =
            execute(remote_executor, &key, &query(version.into(), version)).await;
        assert_eq!((verdict, trips), (Verdict::Ok, 2), "version {version}");
        assert!(!stores.is_armed.load(Ordering::SeqCst), "the answer was lost");
        let accepted = row.accepted(Version(version)).unwrap();
        assert_eq!(accepted.value.id, WriteId(version.into()));
        // The answer has the row that was written before the first answer was lost.
        let stored = stores.inner.read(&key).await.unwrap().unwrap();
        assert_eq!(GeoRow::decode(&stored.bytes).unwrap(), row);
        assert_eq!(stores.writes.load(Ordering::SeqCst), version);
    }
    assert_eq!(node.calls()["Step"], 10);
    // Another value comes too late, and is rejected in one round trip.
    let (verdict, _, trips) = execute(client.remote_executor().unwrap(), &key, &query(99, 5)).await;
    assert_eq!((verdict, trips), (Verdict::Rejected, 1));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_with_a_lost_answer_is_read_back() {
    let world = World::new();
    let (node, _proxy, stores, client) = start_cutting_node(&world).await;
    let key = new_key("h/key");
    stores.is_armed.store(true, Ordering::SeqCst);
    let error = client.cas(&key, Expect::Absent, "one".into()).await.unwrap_err();
    assert!(matches!(error, TableError::Unknown(_)), "{error}");
    assert_eq!(client.read(&key).await.unwrap().unwrap().bytes, "one");
    // By the loop that recognizes its own bytes.
    let backoff = RuntimeBackoff::new(entropy());
    stores.is_armed.store(true, Ordering::SeqCst);
    let write = |_: Option<&[u8]>| Decision::Write(Bytes::from_static(b"two and a nonce"), ());
    let done = transact(&*client, &key, Guess::Nothing, &backoff, write).await.unwrap();
    assert_eq!(done.row.unwrap().bytes, "two and a nonce");
    assert_eq!(stores.writes.load(Ordering::SeqCst), 2, "it was not written again");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_node_leaves_sent_steps_unknown() {
    let world = World::new();
    let (node, proxy, stores, client) = start_cutting_node(&world).await;
    let (key, remote_executor) = (new_key("o/key"), client.remote_executor().unwrap());
    stores.is_armed.store(true, Ordering::SeqCst);
    proxy.aim(None);
    let bytes = Bytes::from(query(1, 1).encode());
    let error = remote_executor.transact(&key, bytes.clone()).await.unwrap_err();
    assert!(matches!(error, TransactError::Unknown { .. }), "{error}");
    assert_eq!(stores.writes.load(Ordering::SeqCst), 1);
    // A query that could not be sent was not executed.
    let error = remote_executor.transact(&new_key("o/another"), bytes.clone()).await.unwrap_err();
    assert!(matches!(error, TransactError::Unavailable { .. }), "{error}");
    assert_eq!(stores.inner.read(&new_key("o/another")).await, Ok(None));
    proxy.aim(Some(node.address()));
    let (verdict, row, _) = execute(remote_executor, &key, &query(1, 1)).await;
    assert_eq!((verdict, row.open.len()), (Verdict::Ok, 1));
    assert_eq!(stores.writes.load(Ordering::SeqCst), 1);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_cancels_abandoned_calls() {
    let world = World::new();
    let (node, _proxy, stores, client) = start_cutting_node(&world).await;
    let key = new_key("o/key");
    stores.gate.is_shut.store(true, Ordering::SeqCst);
    let bytes = Bytes::from(query(1, 1).encode());
    tokio::select! {
        reply = client.remote_executor().unwrap().transact(&key, bytes) => panic!("{reply:?}"),
        () = stores.gate.arrived.notified() => {}
    }
    stores.gate.abandoned.notified().await;
    stores.gate.is_shut.store(false, Ordering::SeqCst);
    // The connection is still the same.
    let (verdict, _, trips) = execute(client.remote_executor().unwrap(), &key, &query(2, 1)).await;
    assert_eq!((verdict, trips), (Verdict::Ok, 1));
    assert_eq!((stores.writes.load(Ordering::SeqCst), node.calls()["Open"]), (1, 1));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_node_finishes_running_calls() {
    let world = World::new();
    let (node, _proxy, stores, client) = start_cutting_node(&world).await;
    let key = new_key("o/key");
    stores.gate.is_shut.store(true, Ordering::SeqCst);
    let query = query(1, 1);
    let step = execute(client.remote_executor().unwrap(), &key, &query);
    let stop = async {
        stores.gate.arrived.notified().await;
        let stopping = tokio::spawn(node.stop());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert!(!stopping.is_finished(), "a call is running");
        stores.gate.is_shut.store(false, Ordering::SeqCst);
        stores.gate.opened.notify_one();
        stopping.await.unwrap();
    };
    let ((verdict, _, trips), ()) = tokio::join!(step, stop);
    assert_eq!((verdict, trips), (Verdict::Ok, 1));
}

/// Several programs execute steps while the node stops and restarts, and connections are cut: each
/// version has one value, and every program whose value was reported as accepted is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_survive_node_restarts() {
    const PROGRAMS: u128 = 4;
    const VERSIONS: u64 = 40;
    let world = World::new();
    let (mut node, proxy, stores, _) = start_cutting_node(&world).await;
    let address = world.address(proxy.address, "oslo.records");
    let key = new_key("o/key");
    let mut programs = Vec::new();
    for program in 1..=PROGRAMS {
        let (client, key) = (table(&address, false).await.unwrap(), key.clone());
        programs.push(tokio::spawn(async move {
            let mut won = Vec::new();
            for version in 1..=VERSIONS {
                let query = query(program, version);
                loop {
                    let bytes = Bytes::from(query.encode());
                    // After an unknown outcome, ask again: the row shows whether it was accepted.
                    let Ok(reply) = client.remote_executor().unwrap().transact(&key, bytes).await
                    else {
                        continue;
                    };
                    let (verdict, _) = decode_answer(&reply.answer).unwrap().unwrap();
                    if verdict == Verdict::Ok {
                        won.push(version);
                    }
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            won
        }));
    }
    for round in 0..6 {
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        stores.is_armed.store(true, Ordering::SeqCst);
        if round % 2 == 0 {
            proxy.cut();
            continue;
        }
        proxy.aim(None);
        proxy.cut();
        node.stop().await;
        node = world.serve("oslo.records", Arc::new(stores.clone())).await;
        proxy.aim(Some(node.address()));
    }
    let mut reported = Vec::new();
    for (program, won) in (1..=PROGRAMS).zip(programs) {
        reported.extend(won.await.unwrap().into_iter().map(|version| (version, program)));
    }
    reported.sort_unstable();
    let row = stores.inner.read(&key).await.unwrap().unwrap();
    let row = GeoRow::decode(&row.bytes).unwrap();
    let accepted = |version| row.accepted(Version(version)).unwrap().value.id.0;
    let stored: Vec<_> = (1..=VERSIONS).map(|version| (version, accepted(version))).collect();
    assert_eq!(reported, stored);
    assert_eq!(stores.writes.load(Ordering::SeqCst), VERSIONS, "each was written once");
    node.stop().await;
}
