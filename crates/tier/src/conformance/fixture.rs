//! What the suite has to know of a tier, and what its parts share.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_units::Seed;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::time::timeout;

use crate::Tier;

/// How long anything may take, on a slow machine that does something else as well.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two tries.
pub(super) const RETRY: Duration = Duration::from_millis(5);

/// What a store can do beyond what a tier needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Abilities {
    /// A put may name the entity tag that it expects.
    pub updates: bool,
    /// Attributes of a put are kept.
    pub attributes: bool,
}

/// How the storage of a tier fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no room.
    Full,
    /// It cannot make anything durable.
    Sync,
}

/// The storage of a tier under test, which is empty at first.
#[async_trait]
pub trait TierFixture: Send + Sync {
    /// The tier. It is also the store of its objects.
    type Tier: Tier + ObjectStore + Clone + 'static;

    /// What the store can do beyond what a tier needs.
    const ABILITIES: Abilities = Abilities { updates: true, attributes: true };

    /// Size of an object whose bytes are not only in an index.
    const OBJECT_BYTES: usize;

    /// A unit of hardware that operations can be run on, if there are any.
    const TARGET: Option<&'static str> = None;

    /// How many events wait for a slow subscriber; none if it polls, and so misses none.
    const EVENTS_MAX: Option<u64> = None;

    /// Opens the tier, which is made if it is not there yet.
    async fn open_tier(&self) -> Self::Tier;

    /// Called before each put that is to cause an event, if more than a put is needed.
    fn disturb(&self, _round: u64) {}

    /// Makes the storage fail for puts, not for reads. Returns whether it can.
    fn fail(&self, fault: Fault) -> bool;

    /// Ends the failure.
    fn mend(&self);
}

/// Returns the bytes of the object of a key; no other key has the same.
pub(super) fn bytes_of(key: &str, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    Seed::new(0).child(key.as_bytes()).stream().fill(&mut bytes);
    bytes.into()
}

/// Puts the object of a key.
pub(super) async fn put<F: TierFixture>(tier: &F::Tier, key: &str) -> object_store::Result<()> {
    let payload = bytes_of(key, F::OBJECT_BYTES).into();
    tier.put(&Path::from(key), payload).await.map(|_| ())
}

/// Reads the object of a key. Returns whether it is there; its bytes are checked.
pub(super) async fn read<F: TierFixture>(tier: &F::Tier, key: &str) -> object_store::Result<bool> {
    let found = match tier.get(&Path::from(key)).await {
        Ok(found) => found.bytes().await?,
        Err(object_store::Error::NotFound { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    assert!(found == bytes_of(key, F::OBJECT_BYTES), "{key} is not as it was put");
    Ok(true)
}

/// Returns what a future does, in bounded time.
pub(super) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what}: it does not end"))
}

/// Stops a tier.
pub(super) async fn stop_tier<T: Tier + 'static>(tier: T) {
    within("stop", tokio::task::spawn_blocking(move || tier.stop())).await.unwrap();
}

/// Checks that operators and clients learn alike that something is wrong, or that nothing is.
/// Returns why something is.
pub(super) async fn health(tier: &dyn Tier) -> Vec<String> {
    // It may change between the two calls, but not each time.
    for _ in 0..50 {
        let (reasons, kinds) =
            (tier.reasons().await.unwrap(), tier.degraded_kinds().await.unwrap());
        if reasons.is_empty() == kinds.is_empty() {
            return reasons;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("reasons and kinds of failures do not agree");
}
