//! A thousand unauthenticated clients at a node: existing sessions go on, and new ones can start.

use std::time::Duration;

use fulgurite_geo::stores::Key;
use tokio::time::Instant;

use crate::strangers::{HELLO, flood};
use crate::world::{World, table};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unauthenticated_clients_do_not_block_peers() {
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let address = world.address(node.address(), "oslo.records");
    let established = table(&address, true).await.unwrap();
    let key = Key::new("a").unwrap();
    let _strangers = flood(node.address(), HELLO).await;
    for _ in 0..6 {
        assert_eq!(established.read(&key).await, Ok(None), "an established session");
        let began = Instant::now();
        let new = table(&address, false).await.unwrap();
        assert_eq!(new.read(&key).await, Ok(None), "a new session");
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
}
