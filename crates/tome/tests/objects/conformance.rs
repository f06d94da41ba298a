//! The conformance suite of tiers, over eight tomes.

use fulgurite_tier::conformance::{Abilities, keyed_store_suite, object_store_suite};
use fulgurite_tome::objects::PutGuarantee;

use crate::shelf::Shelf;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_passes_the_suite_of_object_store() {
    let opened = std::sync::Mutex::new(Vec::new());
    let new = async || {
        let shelf = Shelf::new();
        let store = shelf.store(PutGuarantee::Local);
        opened.lock().unwrap().push((shelf, store.clone()));
        store
    };
    object_store_suite(new, Abilities { updates: true, attributes: true }).await;
    for (_, store) in opened.into_inner().unwrap() {
        store.stop();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_passes_the_suite_of_tiers() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    keyed_store_suite(&store).await;
    store.stop();
}
