//! Slots are counted, idle connections are evicted longest-idle first, busy ones never are.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Connections;

const PROTECTED: Duration = Duration::from_secs(1);

/// An instant at which every connection has been idle long enough.
fn later() -> Instant {
    Instant::now() + PROTECTED + Duration::from_secs(1)
}

#[tokio::test]
async fn slots_are_freed_by_their_last_holder() {
    let connections = Connections::new(2, PROTECTED);
    let (first, second) = (connections.slot().await, connections.slot().await);
    assert!(connections.try_slot().is_none());
    let busy = first.begin();
    drop(first);
    assert!(connections.try_slot().is_none(), "a request holds its connection");
    drop(busy);
    assert_eq!(connections.open(), 1);
    let third = connections.try_slot().unwrap();
    drop((second, third));
    connections.all_closed().await;
    assert_eq!((connections.open(), connections.table().idle.len()), (0, 0));
}

#[tokio::test]
async fn longest_idle_connection_is_evicted() {
    let connections = Connections::new(3, PROTECTED);
    let slots = [connections.slot().await, connections.slot().await, connections.slot().await];
    // The first has served a request and is idle again, so it is the most recently idle. The second
    // is busy.
    drop(slots[0].begin());
    let busy = slots[1].begin();
    connections.evict_oldest(Instant::now());
    assert_eq!(connections.evictions(), 0, "no connection has been idle long enough");
    connections.evict_oldest(later());
    slots[2].evicted().await;
    assert!(!slots[2].has_requested());
    connections.evict_oldest(later());
    slots[0].evicted().await;
    assert!(slots[0].has_requested());
    connections.evict_oldest(later());
    assert_eq!(connections.evictions(), 2, "a busy connection is never evicted");
    drop(busy);
    connections.evict_oldest(later());
    slots[1].evicted().await;
}

#[tokio::test]
async fn waiting_connection_evicts_an_idle_one() {
    let connections = Connections::new(1, PROTECTED);
    let idle = connections.slot().await;
    let eviction = tokio::spawn(async move {
        idle.evicted().await;
    });
    let slot = connections.slot().await;
    eviction.await.unwrap();
    assert_eq!((connections.open(), connections.evictions()), (1, 1));
    assert_eq!(Arc::strong_count(&slot), 1);
}
