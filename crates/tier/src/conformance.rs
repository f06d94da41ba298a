//! The suite that a tier passes, over what its fixture makes of it.
//!
//! ```text
//! bytes        the suite of `object_store`, and what that leaves open
//! operator     what an operator sees and does of it: `Tier`
//! subscribers  its events
//! stop         stops while objects are put and read
//! faults       full storage, and storage that fails
//! crash        processes that are killed at its fail points
//! ```
//!
//! Not here: what only one kind of tier has. docs/design/adding-a-tier.md.

// It is a test, though other crates run it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bytes;
mod crash;
mod faults;
mod fixture;
mod operator;
mod stop;
mod subscribers;

pub use bytes::{keyed_store_suite, object_store_suite};
pub use crash::{CrashSuite, Output, Victim};
pub use fixture::{Abilities, Fault, TierFixture};
pub use operator::operator_suite;

use fixture::stop_tier;

/// Runs the tests of the bytes: those of `object_store`, and those of what the tiers share.
///
/// # Panics
/// When one fails.
pub async fn store_suite<F: TierFixture>(make: impl Fn() -> F) {
    let opened = std::sync::Mutex::new(Vec::new());
    let new = async || {
        let fixture = make();
        let tier = fixture.open_tier().await;
        opened.lock().unwrap().push((tier.clone(), fixture));
        tier
    };
    object_store_suite(&new, F::ABILITIES).await;
    keyed_store_suite(&new().await).await;
    let all = std::mem::take(&mut *opened.lock().unwrap());
    for (tier, fixture) in all {
        stop_tier(tier).await;
        drop(fixture);
    }
}

/// Runs the tests of all else, each on a new tier.
///
/// # Panics
/// When one fails.
pub async fn tier_suite<F: TierFixture>(make: impl Fn() -> F) {
    operator::suite(&make()).await;
    subscribers::suite(&make()).await;
    stop::suite(&make()).await;
    for fault in [Fault::Full, Fault::Sync] {
        faults::suite(&make(), fault).await;
    }
}
