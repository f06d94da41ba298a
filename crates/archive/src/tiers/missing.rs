//! Tiers that were removed from the configuration while bodies are in them, so that they could not
//! be read, and tiers whose stores were swapped.

use std::ops::ControlFlow;
use std::path::Path;

use fulgurite_catalog::{Direction, FjallStore, KeyRange, ReadView};

use crate::config::ArchiveConfig;
use crate::model::classes::TierName;
use crate::rows::{self, BODIES, BodyRow, META};
use crate::{ArchiveError, Result};

/// Refuses a configuration without a tier that has bodies of this archive.
///
/// # Errors
/// `Unusable` with the name of such a tier.
pub(crate) fn refuse_missing(config: &ArchiveConfig, view: &dyn ReadView) -> Result<()> {
    if !has_unknown_claim(config, view)? {
        return Ok(());
    }
    body_elsewhere(config, view)?.map_or(Ok(()), |tier| Err(missing(config, &tier)))
}

/// The same for a catalog that is not open, without changing it. What cannot be read of it is left
/// to its opening.
pub(crate) fn refuse_missing_unopened(config: &ArchiveConfig, catalog: &Path) -> Result<()> {
    let (mut has_unknown, mut found) = (false, None);
    FjallStore::salvage(catalog, &[META, BODIES], &mut |space, key, value| {
        if space == META {
            let claim = rows::tiers::parse_claim_key(key);
            has_unknown |= claim.is_some_and(|tier| !config.tiers.contains_key(&tier));
        } else if found.is_none()
            && let Ok(row) = rows::decode::<BodyRow>(space, value)
        {
            found = row.tier().filter(|tier| !config.tiers.contains_key(*tier)).cloned();
        }
    })?;
    found.filter(|_| has_unknown).map_or(Ok(()), |tier| Err(missing(config, &tier)))
}

fn missing(config: &ArchiveConfig, tier: &TierName) -> ArchiveError {
    ArchiveError::Unusable {
        path: config.data.display().to_string(),
        reason: format!(
            "objects are in tier \"{tier}\", which the configuration does not have: name it there"
        ),
    }
}

/// Refuses a configuration in which a tier has the store of another, as when two directories were
/// swapped.
///
/// # Errors
/// `Unusable` with the names of both.
pub(crate) fn refuse_swapped(config: &ArchiveConfig, view: &dyn ReadView) -> Result<()> {
    let known = rows::tiers::by_store(view)?;
    for (tier, options) in &config.tiers {
        let owner = options.store_id.as_ref().and_then(|id| Some((id, known.get(id)?)));
        let Some((id, owner)) = owner.filter(|(_, owner)| *owner != tier) else { continue };
        return Err(ArchiveError::Unusable {
            path: config.data.display().to_string(),
            reason: format!(
                "tier \"{tier}\" has the store of tier \"{owner}\" ({id}): were their directories \
                 swapped? Name the directory of each tier in its own table"
            ),
        });
    }
    Ok(())
}

/// Whether a tier that is not configured has ever belonged to this archive.
fn has_unknown_claim(config: &ArchiveConfig, view: &dyn ReadView) -> Result<bool> {
    let claims = rows::tiers::claims();
    let mut is_unknown = false;
    view.scan(META, &claims, Direction::Ascending, &mut |key, _| {
        is_unknown = !config.tiers.keys().any(|tier| rows::tiers::claim_key(tier) == key);
        if is_unknown { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(is_unknown)
}

/// Returns the tier of the first body in a tier that is not configured.
fn body_elsewhere(config: &ArchiveConfig, view: &dyn ReadView) -> Result<Option<TierName>> {
    let mut found = Ok(None);
    view.scan(BODIES, &KeyRange::prefix(b""), Direction::Ascending, &mut |_, value| {
        found = rows::decode::<BodyRow>(BODIES, value)
            .map(|row| row.tier().filter(|tier| !config.tiers.contains_key(*tier)).cloned());
        match &found {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(_)) | Err(_) => ControlFlow::Break(()),
        }
    })?;
    found
}
