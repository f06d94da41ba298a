//! Conformance of stores behind a node, and the number of calls of a namespace over nodes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_geo::objects::{GeoOptions, GeoStore, SiteMap};
use fulgurite_geo::remote::limits::KEEP_ALIVE;
use fulgurite_geo::remote::{AddressedStores, Node, NodeError, Stores};
use fulgurite_geo::stores::doctor::{Outcome, examine, examine_blobs};
use fulgurite_geo::stores::{
    Address, Blob, BlobError, BlobMeta, Expect, Key, OpenError, Opener, Table, TableError,
};
use fulgurite_units::{Clock, Instant, UnixTime};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::world::{Proxy, World, blobs, entropy, opener, table};
use crate::{chance, conformance};

fn new_key(text: &str) -> Key {
    Key::new(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_passes_store_conformance() {
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let address = world.address(node.address(), "oslo.records");
    // Nothing is created without permission.
    let missing = table(&address, false).await.err().unwrap();
    assert!(matches!(missing, OpenError::Missing { what: "table", .. }), "{missing}");
    assert!(matches!(blobs(&address, false).await.err(), Some(OpenError::Missing { .. })));
    let (one, two) = (table(&address, true).await.unwrap(), table(&address, false).await.unwrap());
    assert!(one.caps().cond_delete && one.caps().scan_order && !one.caps().tag_reuse);
    conformance::suite(&one, &two).await;
    let report =
        examine(&address, &*one, &*two, &new_key("doctor"), &chance::entropy(3)).await.unwrap();
    report.accept().unwrap();
    assert!(report.checks.iter().all(|check| check.outcome == Outcome::Passed), "{report:#?}");
    let (one, two) = (blobs(&address, true).await.unwrap(), blobs(&address, false).await.unwrap());
    let report =
        examine_blobs(&address, &*one, &*two, &new_key("doctor"), &chance::entropy(6)).await;
    report.unwrap().accept().unwrap();
    conformance::blobs(&*one, &*two).await;
    node.stop().await;
    let gone = one.get(&new_key("a"), None).await.unwrap_err();
    assert!(matches!(gone, BlobError::Unavailable(_)), "{gone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_blobs_are_sent_in_parts_concurrently() {
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let address = world.address(node.address(), "oslo.records");
    let blobs = blobs(&address, true).await.unwrap();
    // Longer than a window, and not a multiple of a part.
    let body: Bytes = (0..5_500_001_u32).flat_map(u32::to_le_bytes).collect();
    let put = (0..6).map(|number| {
        let (blobs, body) = (Arc::clone(&blobs), body.clone());
        async move { blobs.create(&new_key(&format!("f/{number}")), body).await.unwrap() }
    });
    futures::future::join_all(put).await;
    let got = (0..6).map(|number| {
        let (blobs, body) = (Arc::clone(&blobs), body.clone());
        async move {
            let key = new_key(&format!("f/{number}"));
            assert!(blobs.get(&key, None).await.unwrap() == body);
            let part = blobs.get(&key, Some(999_999..9_000_000)).await.unwrap();
            assert!(part == body.slice(999_999..9_000_000));
        }
    });
    futures::future::join_all(got).await;
    // Many blobs are listed in several messages.
    for number in 0..300 {
        blobs.create(&new_key(&format!("g/{number}")), Bytes::from_static(b"x")).await.unwrap();
    }
    let later = UnixTime::from_millis(u64::MAX / 2);
    assert_eq!(blobs.list(Some(&new_key("g")), later).count().await, 300);
    let too_large = Bytes::from(vec![0; (256 << 20) + 1]);
    let refused = blobs.create(&new_key("h"), too_large).await.unwrap_err();
    assert!(matches!(refused, BlobError::TooLarge(_)), "{refused}");
    node.stop().await;
}

/// Refuses the first writes, as when it is overloaded.
#[derive(Clone, Default)]
struct ThrottlingBlobs(Arc<AtomicU64>);

#[async_trait]
impl Blob for ThrottlingBlobs {
    async fn create(&self, _: &Key, _: Bytes) -> Result<(), BlobError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        if number < 2 { Err(BlobError::Throttled(None)) } else { Ok(()) }
    }

    async fn get(&self, _: &Key, _: Option<Range<u64>>) -> Result<Bytes, BlobError> {
        Err(BlobError::NotFound)
    }

    async fn head(&self, _: &Key) -> Result<BlobMeta, BlobError> {
        Err(BlobError::NotFound)
    }

    async fn delete(&self, _: &Key) -> Result<(), BlobError> {
        Err(BlobError::NotFound)
    }

    fn list(&self, _: Option<&Key>, _: UnixTime) -> BoxStream<'_, Result<BlobMeta, BlobError>> {
        futures::stream::empty().boxed()
    }
}

#[async_trait]
impl Stores for ThrottlingBlobs {
    async fn table(&self, _: bool) -> Option<Result<Arc<dyn Table>, OpenError>> {
        None
    }

    async fn blobs(&self, _: bool) -> Option<Result<Arc<dyn Blob>, OpenError>> {
        Some(Ok(Arc::new(self.clone())))
    }
}

#[tokio::test]
async fn throttled_write_is_sent_again() {
    let (world, stores) = (World::new(), ThrottlingBlobs::default());
    let node = world.serve("oslo.records", Arc::new(stores.clone())).await;
    let blobs = blobs(&world.address(node.address(), "oslo.records"), false).await.unwrap();
    blobs.create(&new_key("f/1"), Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(stores.0.load(Ordering::Relaxed), 3);
    node.stop().await;
}

/// A heartbeat queues behind bytes that wait to be sent, for longer than an idle connection may be
/// silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_connection_is_not_closed() {
    const LINE: usize = 150_000;
    let seconds = 1 + usize::try_from(3 * KEEP_ALIVE.as_secs()).unwrap();
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let line = Proxy::slow(node.address(), LINE).await;
    let blobs = blobs(&world.address(line.address, "oslo.records"), true).await.unwrap();
    let body = Bytes::from(vec![7; seconds * LINE]);
    blobs.create(&new_key("f/1"), body.clone()).await.unwrap();
    assert!(blobs.get(&new_key("f/1"), None).await.unwrap() == body);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_of_long_rows_span_several_messages() {
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let table = table(&world.address(node.address(), "oslo.records"), true).await.unwrap();
    let long = Bytes::from(vec![7; table.caps().max_row]);
    for number in 0..9 {
        let key = new_key(&format!("rows/{number}"));
        table.cas(&key, Expect::Absent, long.clone()).await.unwrap();
    }
    let rows: Vec<_> = table.scan(Some(&new_key("rows")), None).try_collect().await.unwrap();
    assert_eq!(rows.len(), 9);
    assert!(rows.iter().all(|(_, row)| row.bytes == long));
    // A conflict with the longest row returns the current row.
    let error = table.cas(&new_key("rows/1"), Expect::Absent, long.clone()).await.unwrap_err();
    assert!(matches!(&error, TableError::Conflict(Some(row)) if row.bytes == long), "{error}");
    node.stop().await;
}

#[tokio::test]
async fn node_reports_stores_it_does_not_serve() {
    let world = World::new();
    let place = Address::from_directory(&world.folder.path().join("rows")).unwrap();
    let stores = AddressedStores::new(opener(), Some(place), None).unwrap();
    let node = world.serve("oslo.records", Arc::new(stores)).await;
    let address = world.address(node.address(), "oslo.records");
    table(&address, true).await.unwrap();
    let refused = blobs(&address, true).await.err().unwrap();
    assert!(matches!(refused, OpenError::NotServed { what: "blobs", .. }), "{refused}");
    // A node in front of a node would add a round trip.
    let nodes = AddressedStores::new(opener(), Some(address.parse().unwrap()), None);
    assert!(matches!(nodes, Err(NodeError::Stores { .. })));
    assert!(AddressedStores::new(opener(), None, None).is_err());
    // An opener without support for nodes reports that.
    let plain = Opener::new(entropy(), []).table(&address.parse().unwrap(), true).await;
    assert!(plain.err().unwrap().to_string().contains("does not support nodes"));
    node.stop().await;
}

/// Three sites, each behind a node.
struct Sites {
    nodes: Vec<Node>,
    store: GeoStore,
}

impl Sites {
    async fn new(world: &World) -> Self {
        let mut nodes = Vec::new();
        let mut text = "name = 'records'\ndata = 2\nparity = 1\nround = '20s'\n".to_owned();
        for name in ["lisbon", "oslo", "turin"] {
            let node = world.serve(name, world.directory(name)).await;
            let place = world.address(node.address(), name);
            text += &format!("[[sites]]\nname = '{name}'\ntable = '{place}'\nblobs = '{place}'\n");
            nodes.push(node);
        }
        let wall = || UnixTime::from_millis(1_800_000_000_000);
        let store = GeoStore::init(GeoOptions {
            map: SiteMap::parse(&text).unwrap(),
            file: None,
            near: None,
            clock: Clock::new(wall, || Instant::from_nanos(0)),
            entropy: entropy(),
            opener: Arc::new(opener()),
            cache: None,
            orphan_age: fulgurite_units::Duration::from_secs(86_400),
        });
        Self { nodes, store: store.await.unwrap() }
    }

    /// Returns the number of calls of a kind at each node.
    fn calls(&self, call: &str) -> Vec<u64> {
        let count = |node: &Node| node.calls().get(call).copied().unwrap_or_default();
        self.nodes.iter().map(count).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn step_takes_one_round_trip() {
    let world = World::new();
    let sites = Sites::new(&world).await;
    let key = Path::from("an/object");
    let calls = || [sites.calls("Step"), sites.calls("Read"), sites.calls("Cas")];
    let quiet = async || {
        // Nobody waits for the notifications that follow.
        let mut before = calls();
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            let now = calls();
            if now == before {
                return now;
            }
            before = now;
        }
    };
    let before = quiet().await;
    sites.store.put(&key, "as small as can be".into()).await.unwrap();
    let after = quiet().await;
    let more = |which: usize| -> Vec<u64> {
        after[which].iter().zip(&before[which]).map(|(after, before)| after - before).collect()
    };
    // A step to accept it and one to learn that it is decided, at each site, and a read of the
    // nearest row first; no table call from here.
    assert_eq!(more(0).iter().sum::<u64>(), 7, "{:?}", more(0));
    assert!(more(0).iter().all(|count| (2..=3).contains(count)), "{:?}", more(0));
    assert_eq!((more(1), more(2)), (vec![0; 3], vec![0; 3]));
    let got = sites.store.get(&key).await.unwrap().bytes().await.unwrap();
    assert_eq!(got, "as small as can be");
    let read = quiet().await;
    let more: Vec<u64> = read[0].iter().zip(&after[0]).map(|(now, before)| now - before).collect();
    assert!(more.iter().all(|count| *count <= 1) && more.iter().sum::<u64>() >= 2, "{more:?}");
    // The row requests that the program counts are steps, one round trip each.
    let snapshot = sites.store.snapshot();
    let requests: Vec<u64> = snapshot.sites.iter().map(|site| site.row_requests).collect();
    assert_eq!(requests, sites.calls("Step"));
    assert!(snapshot.sites.iter().all(|site| site.row_calls == site.row_requests), "{snapshot:?}");
    for node in sites.nodes {
        node.stop().await;
    }
}
