//! Ownership of a tier. Two archives in one place would mistake each other's objects for their own.

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};
use serde::{Deserialize, Serialize};

use fulgurite_units::ArchiveId;

use super::objects::error_text;

/// Name of the file that states the owner.
pub(super) const FILE: &str = "fulgurite-tier.json";
const FORMAT: &str = "fulgurite-tier-1";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    format: String,
    archive: ArchiveId,
    tier: String,
}

/// Claims the place for this archive, or verifies that this archive claimed it before. The first
/// claim is a conditional write, so a store that ignores preconditions is detected.
pub(super) async fn take(
    store: &dyn ObjectStore,
    root: &Path,
    archive: ArchiveId,
    tier: &str,
    is_first: bool,
) -> Result<(), String> {
    let path = root.clone().join(FILE);
    let own_claim = Claim { format: FORMAT.to_owned(), archive, tier: tier.to_owned() };
    match store.get(&path).await {
        Ok(found) => {
            let bytes = found.bytes().await.map_err(|error| error_text(&error))?;
            compare(&own_claim, &bytes)?;
            if !is_first {
                return Ok(());
            }
            // Left by an interrupted attempt that had not verified the store's preconditions yet.
        }
        Err(Error::NotFound { .. }) if is_first => {}
        Err(Error::NotFound { .. }) => return Err(missing_claim_message()),
        Err(error) => return Err(error_text(&error)),
    }
    let bytes = serde_json::to_vec_pretty(&own_claim).map_err(|error| error.to_string())?;
    let create = || PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    match store.put_opts(&path, PutPayload::from(bytes.clone()), create()).await {
        Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
        Err(error) => return Err(error_text(&error)),
    }
    // If two archives come at once, both read what one of them wrote.
    let found = store.get(&path).await.map_err(|error| error_text(&error))?;
    compare(&own_claim, &found.bytes().await.map_err(|error| error_text(&error))?)?;
    match store.put_opts(&path, PutPayload::from(bytes), create()).await {
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(()),
        Ok(_) => Err("the store ignores `If-None-Match: *`: it overwrote an existing file, so it \
                      cannot keep two archives apart"
            .to_owned()),
        Err(error) => Err(error_text(&error)),
    }
}

/// Verifies that the place still belongs to this archive, which claimed it.
pub(super) async fn confirm(
    store: &dyn ObjectStore,
    root: &Path,
    archive: ArchiveId,
    tier: &str,
) -> Result<(), String> {
    let own_claim = Claim { format: FORMAT.to_owned(), archive, tier: tier.to_owned() };
    let found = match store.get(&root.clone().join(FILE)).await {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return Err(missing_claim_message()),
        Err(error) => return Err(error_text(&error)),
    };
    compare(&own_claim, &found.bytes().await.map_err(|error| error_text(&error))?)
}

/// Returns the error when the file of a claimed tier is missing.
pub(super) fn missing_claim_message() -> String {
    format!(
        "{FILE} is not there any more: bring the tier back as it was (is its disk mounted?), \
         or configure a new tier under another name"
    )
}

fn compare(own_claim: &Claim, bytes: &[u8]) -> Result<(), String> {
    let found: Claim = serde_json::from_slice(bytes)
        .map_err(|error| format!("{FILE}, which names the owner, is damaged: {error}"))?;
    if found == *own_claim {
        return Ok(());
    }
    Err(format!(
        "it is tier \"{}\" of archive {} (format {}), not tier \"{}\" of this one, {}",
        found.tier, found.archive, found.format, own_claim.tier, own_claim.archive
    ))
}

#[cfg(test)]
mod tests;
