//! The conformance suite of tiers, over 48 directories.

use fulgurite_tier::conformance::{Abilities, keyed_store_suite, object_store_suite};

use crate::shelf::Shelf;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rack_passes_the_suite_of_object_store() {
    let shelves = std::sync::Mutex::new(Vec::new());
    let new = async || {
        let shelf = Shelf::new();
        let rack = shelf.init().await;
        shelves.lock().unwrap().push(shelf);
        rack
    };
    object_store_suite(new, Abilities { updates: true, attributes: true }).await;
}

#[tokio::test]
async fn rack_passes_the_suite_of_tiers() {
    keyed_store_suite(&Shelf::new().init().await).await;
}
