//! The conformance suite of tiers, over three sites and over five.

use fulgurite_geo::objects::{All, Versions};
use fulgurite_tier::conformance::{Abilities, keyed_store_suite, object_store_suite};
use object_store::integration as suite;

use crate::shelf::Shelf;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sites_pass_the_suite_of_object_store() {
    let shelves = std::sync::Mutex::new(Vec::new());
    for (sites, data, parity) in [(3, 2, 1), (5, 3, 2)] {
        let new = async || {
            let shelf = Shelf::new(sites, data, parity);
            let store = shelf.init().await;
            shelves.lock().unwrap().push(shelf);
            store
        };
        object_store_suite(new, Abilities { updates: true, attributes: true }).await;
    }
}

#[tokio::test]
async fn sites_pass_the_suite_of_tiers() {
    keyed_store_suite(&Shelf::new(3, 2, 1).init().await).await;
}

#[tokio::test]
async fn objects_are_read_by_version() {
    let mut shelf = Shelf::new(3, 2, 1);
    shelf.map.versions = Versions::All(All::All);
    let store = shelf.init().await;
    suite::get_opts(&store).await;
}
