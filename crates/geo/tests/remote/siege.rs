//! A thousand unauthenticated clients at a node: existing sessions go on, and new ones can start.

use std::time::Duration;

use fulgurite_geo::stores::Key;
use tokio::time::Instant;

use crate::strangers::{HELLO, besiege};
use crate::world::{World, table};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_strangers_shut_out_no_peer() {
    let world = World::new();
    let node = world.serve("oslo.records", world.directory("oslo")).await;
    let address = world.address(node.address(), "oslo.records");
    let standing = table(&address, true).await.unwrap();
    let key = Key::new("a").unwrap();
    let _strangers = besiege(node.address(), HELLO).await;
    for _ in 0..6 {
        assert_eq!(standing.read(&key).await, Ok(None), "a session that stands");
        let began = Instant::now();
        let new = table(&address, false).await.unwrap();
        assert_eq!(new.read(&key).await, Ok(None), "a session that begins");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
