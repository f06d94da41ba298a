//! Which run a tier was used by last: by that an older copy of a directory or bucket is known.
//!
//! ```text
//! <url>/fulgurite-tier-run     the number of the run, which the archive counts
//! meta/tier-run <name>         the same, in the catalog, after it
//! ```
//!
//! A tier that says less than the catalog is an older copy: bodies that were brought since are not
//! in it. It stays one until the newer copy is back, or all bodies were read whole
//! (`admin verify`). Not of stores that know of older copies of themselves, as the rack, tomes and
//! sites do.

use fulgurite_catalog::Transaction;
use object_store::{Error, ObjectStoreExt as _, PutPayload};

use super::objects::ObjectTier;
use crate::Result;
use crate::ground::Ground;
use crate::rows;

/// Name of the file that says it.
const FILE: &str = "fulgurite-tier-run";

/// Counts this run in a tier, once, unless it is an older copy.
pub(super) async fn count(ground: &Ground, tier: &ObjectTier) -> Result<()> {
    let known = rows::tier_run(&*ground.kv, tier.name())?;
    if read(tier).await? >= known {
        return settle(ground, tier).await;
    }
    if tier.set_older(true) {
        tracing::error!(
            tier = %tier.name(),
            "tier \"{}\" is an older copy: what was brought to it since is not there. Bring the \
             newer copy back while nobody serves the archive, or run `fulgurite admin verify`, \
             which names the objects that are lost; when it finds none the tier is taken as it is",
            tier.name()
        );
    }
    Ok(())
}

/// The tier has all that the catalog says: it is no older copy, and knows of this run.
pub(super) async fn settle(ground: &Ground, tier: &ObjectTier) -> Result<()> {
    let (store, root) = tier.store().await?;
    let path = root.clone().join(FILE);
    let text = format!("{}\n", ground.run);
    let put = store.put(&path, PutPayload::from(text.into_bytes())).await;
    put.map_err(|error| tier.unavailable(error))?;
    let (name, run) = (tier.name().clone(), ground.run);
    let note = move |tx: &mut Transaction<'_>| rows::note_tier_run(tx, &name, run);
    ground.committer.commit(note).await?;
    if tier.set_older(false) {
        tracing::info!(tier = %tier.name(), "a tier that was an older copy has all its bodies");
    }
    Ok(())
}

/// The run that the tier says; 0 when it says none.
async fn read(tier: &ObjectTier) -> Result<u64> {
    let (store, root) = tier.store().await?;
    let found = match store.get(&root.clone().join(FILE)).await {
        Ok(found) => found.bytes().await,
        Err(Error::NotFound { .. }) => return Ok(0),
        Err(error) => Err(error),
    };
    let bytes = found.map_err(|error| tier.unavailable(error))?;
    // What is none says nothing.
    Ok(String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0))
}
