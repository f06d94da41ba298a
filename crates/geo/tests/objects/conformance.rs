//! The conformance suite of tiers, over three sites and over five.

use async_trait::async_trait;
use fulgurite_geo::objects::{All, GeoStore, Versions};
use fulgurite_tier::conformance::{Fault, TierFixture, store_suite, tier_suite};
use object_store::integration as suite;

use crate::shelf::Shelf;

#[async_trait]
impl TierFixture for Shelf {
    type Tier = GeoStore;

    const OBJECT_BYTES: usize = 100_000;

    async fn open_tier(&self) -> GeoStore {
        self.init().await
    }

    /// A site is down every other time.
    fn disturb(&self, round: u64) {
        if round.is_multiple_of(2) { self.fail("site-0") } else { self.repair("site-0") }
    }

    fn fail(&self, fault: Fault) -> bool {
        match fault {
            Fault::Full => self.refuse_fragments(true),
            Fault::Sync => self.refuse_rows(true),
        }
        true
    }

    fn mend(&self) {
        self.repair("site-0");
        self.refuse_fragments(false);
        self.refuse_rows(false);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sites_pass_the_suite_of_stores() {
    store_suite(|| Shelf::new(3, 2, 1)).await;
    store_suite(|| Shelf::new(5, 3, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sites_pass_the_suite_of_tiers() {
    tier_suite(|| Shelf::new(3, 2, 1)).await;
}

#[tokio::test]
async fn objects_are_read_by_version() {
    let mut shelf = Shelf::new(3, 2, 1);
    shelf.map.versions = Versions::All(All::All);
    let store = shelf.init().await;
    suite::get_opts(&store).await;
}
