//! Records the last run that used a tier, which identifies older copies of a directory or bucket.
//!
//! ```text
//! <url>/fulgurite-tier-run     the number of the run, which the archive counts
//! meta/tier-run <name>         the same, in the catalog, after it
//! ```
//!
//! A tier whose number is below the catalog's is an older copy: it lacks bodies that were written
//! since. It counts as one until the newer copy is restored, or all bodies were verified (`admin
//! verify`). This is not used for stores that detect older copies themselves, as the rack, tomes
//! and sites do.

use fulgurite_catalog::Transaction;
use object_store::{Error, ObjectStoreExt as _, PutPayload};

use super::objects::ObjectTier;
use crate::Result;
use crate::rows;
use crate::state::ArchiveState;

/// Name of the file with the run.
const FILE: &str = "fulgurite-tier-run";

/// Records this run in a tier, once, unless the tier is an older copy.
pub(super) async fn count(state: &ArchiveState, tier: &ObjectTier) -> Result<()> {
    let known = rows::tiers::run(&*state.kv, tier.name())?;
    if read(tier).await? >= known {
        return settle(state, tier).await;
    }
    if tier.set_older(true) {
        tracing::error!(
            tier = %tier.name(),
            "tier \"{}\" is an older copy: bodies written to it since are missing. Stop the \
             archive and bring the newer copy back, or run `fulgurite archive verify`, which names \
             the lost objects; if it finds none, the tier is accepted as it is",
            tier.name()
        );
    }
    Ok(())
}

/// Records this run in a tier that has everything the catalog names, and is no older copy.
pub(super) async fn settle(state: &ArchiveState, tier: &ObjectTier) -> Result<()> {
    let (store, root) = tier.store().await?;
    let path = root.clone().join(FILE);
    let text = format!("{}\n", state.run);
    let put = store.put(&path, PutPayload::from(text.into_bytes())).await;
    put.map_err(|error| tier.unavailable(error))?;
    let (name, run) = (tier.name().clone(), state.run);
    let note = move |tx: &mut Transaction<'_>| rows::tiers::record_run(tx, &name, run);
    state.committer.commit(note).await?;
    if tier.set_older(false) {
        tracing::info!(tier = %tier.name(), "a tier that was an older copy has all bodies again");
    }
    Ok(())
}

/// Returns the run stored in the tier; 0 if there is none.
async fn read(tier: &ObjectTier) -> Result<u64> {
    let (store, root) = tier.store().await?;
    let found = match store.get(&root.clone().join(FILE)).await {
        Ok(found) => found.bytes().await,
        Err(Error::NotFound { .. }) => return Ok(0),
        Err(error) => Err(error),
    };
    let bytes = found.map_err(|error| tier.unavailable(error))?;
    // Invalid content counts as none.
    Ok(String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0))
}
