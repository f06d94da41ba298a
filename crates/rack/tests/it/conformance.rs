//! The conformance suite of tiers, over 48 directories.

use async_trait::async_trait;
use fulgurite_rack::RackStore;
use fulgurite_rack::work::Failing;
use fulgurite_tier::conformance::{Fault, TierFixture, store_suite, tier_suite};

use crate::shelf::{Shelf, shape};

#[async_trait]
impl TierFixture for Shelf {
    type Tier = RackStore;

    // More than fits in the index.
    const OBJECT_BYTES: usize = 5000;
    const TARGET: Option<&'static str> = Some("1");
    const EVENTS_MAX: Option<u64> = Some(1024);

    async fn open_tier(&self) -> RackStore {
        self.init().await
    }

    fn fail(&self, fault: Fault) -> bool {
        let failing = match fault {
            Fault::Full => Failing::Full { after: 0 },
            Fault::Sync => Failing::Sync,
        };
        shape().places().for_each(|place| self.injected.fail(place, failing));
        true
    }

    fn mend(&self) {
        shape().places().for_each(|place| self.injected.repair(place));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rack_passes_the_suite_of_stores() {
    store_suite(Shelf::new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rack_passes_the_suite_of_tiers() {
    tier_suite(Shelf::new).await;
}
