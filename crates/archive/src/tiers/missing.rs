//! Tiers that were removed from the configuration while bodies are in them: they could not be read.

use std::ops::ControlFlow;

use fulgurite_catalog::keys::KeyWriter;
use fulgurite_catalog::{Direction, KeyRange, ReadView};

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
    let Some(tier) = body_elsewhere(config, view)? else { return Ok(()) };
    Err(ArchiveError::Unusable {
        path: config.data.display().to_string(),
        reason: format!(
            "objects are in tier \"{tier}\", which the configuration does not have: name it there"
        ),
    })
}

/// Whether a tier that is not configured has ever belonged to this archive.
fn has_unknown_claim(config: &ArchiveConfig, view: &dyn ReadView) -> Result<bool> {
    let claims = KeyRange::prefix(&KeyWriter::new().string("tier").finish());
    let mut is_unknown = false;
    view.scan(META, &claims, Direction::Ascending, &mut |key, _| {
        is_unknown = !config.tiers.keys().any(|tier| rows::tier_key(tier) == key);
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
