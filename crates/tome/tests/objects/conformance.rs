//! The conformance suite of tiers, over eight tomes.

use async_trait::async_trait;
use fulgurite_tier::conformance::{Fault, TierFixture, store_suite, tier_suite};
use fulgurite_tome::InjectedFault;
use fulgurite_tome::objects::bench_support::TOMES;
use fulgurite_tome::objects::{PutGuarantee, TomeStore};
use fulgurite_tome_core::TomeId;

use crate::shelf::Shelf;

#[async_trait]
impl TierFixture for Shelf {
    type Tier = TomeStore;

    const OBJECT_BYTES: usize = 1000;
    const TARGET: Option<&'static str> = Some("1");
    const EVENTS_MAX: Option<u64> = Some(1024);

    async fn open_tier(&self) -> TomeStore {
        self.store(PutGuarantee::Local)
    }

    fn fail(&self, fault: Fault) -> bool {
        let fault = match fault {
            Fault::Full => InjectedFault::Room,
            Fault::Sync => InjectedFault::Sync,
        };
        (0..TOMES).for_each(|tome| self.faults.inject(TomeId::new(tome), fault));
        true
    }

    fn mend(&self) {
        (0..TOMES).for_each(|tome| self.faults.mend(TomeId::new(tome)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_passes_the_suite_of_stores() {
    store_suite(Shelf::new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_passes_the_suite_of_tiers() {
    tier_suite(Shelf::new).await;
}
