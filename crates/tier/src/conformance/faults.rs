//! Full storage, and storage that makes nothing durable: puts are refused for as long as it lasts,
//! and nothing else.

use futures::TryStreamExt as _;
use object_store::ObjectStore as _;

use super::fixture::{Fault, RETRY, TierFixture, health, put, read, stop_tier, within};

const BEFORE: &str = "faults/before";
const REFUSED: &str = "faults/refused";
const AFTER: &str = "faults/after";

#[expect(clippy::print_stderr, reason = "a test says what it leaves out")]
pub(super) async fn suite<F: TierFixture>(fixture: &F, fault: Fault) {
    let tier = fixture.open_tier().await;
    put::<F>(&tier, BEFORE).await.unwrap();
    if !fixture.fail(fault) {
        eprintln!("{fault:?}: skipped, it cannot be injected");
        return stop_tier(tier).await;
    }
    let refused = within("a put", put::<F>(&tier, REFUSED)).await.unwrap_err();
    assert!(!refused.to_string().is_empty(), "{fault:?}");
    assert!(within("a read", read::<F>(&tier, BEFORE)).await.unwrap(), "{fault:?}");
    health(&tier).await;
    fixture.mend();
    within("a put after the failure", async {
        while put::<F>(&tier, AFTER).await.is_err() {
            tokio::time::sleep(RETRY).await;
        }
    })
    .await;
    within("health", async {
        while !health(&tier).await.is_empty() {
            tokio::time::sleep(RETRY).await;
        }
    })
    .await;
    check::<F>(&tier, fault).await;
    stop_tier(tier).await;
    let tier = fixture.open_tier().await;
    check::<F>(&tier, fault).await;
    stop_tier(tier).await;
}

/// Checks that what was acknowledged is there, and nothing else.
async fn check<F: TierFixture>(tier: &F::Tier, fault: Fault) {
    for (key, is_there) in [(BEFORE, true), (REFUSED, false), (AFTER, true)] {
        assert_eq!(read::<F>(tier, key).await.unwrap(), is_there, "{fault:?}: {key}");
    }
    let listed: Vec<_> = tier.list(None).try_collect().await.unwrap();
    let listed: Vec<String> = listed
        .into_iter()
        .map(|meta: object_store::ObjectMeta| meta.location.to_string())
        .collect();
    assert_eq!(listed, [AFTER, BEFORE], "{fault:?}");
}
