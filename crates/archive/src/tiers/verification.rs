//! Verifies bodies in tiers by reading them whole: a part of `archive verify`.
//!
//! Damage is reported and left as it is. Nothing else has these bytes, so they cannot be repaired
//! here; an operator may restore the store's own backup.

use std::collections::BTreeMap;
use std::sync::Arc;

use fulgurite_catalog::keys::KeyReader;
use fulgurite_catalog::{KeyRange, KeyValue as _};
use fulgurite_tier::Progress;
use fulgurite_units::error_chain;

use super::runs;
use crate::bodies::cipher::cipher_bytes;
use crate::limits::{ROWS_PER_TRANSACTION_MAX, TIER_DAMAGED_MAX};
use crate::model::classes::{Home, TierName};
use crate::rows::lookup::{bodies, rows_in};
use crate::rows::{self, BODIES, BodyRow, OBJECTS, ObjectRow, Place};
use crate::state::ArchiveState;
use crate::status::{DamagedInTier, VerifiedTier};
use crate::{ArchiveError, Result};

/// A body in a tier, with its object.
struct StoredBody {
    tier: TierName,
    bucket: String,
    key: String,
    row_key: Vec<u8>,
    body: BodyRow,
}

/// Verifies every body that was moved to a tier. A tier that does not answer is skipped from then
/// on. Blocks.
pub(crate) fn verify_all(
    state: &ArchiveState,
    progress: &Arc<Progress>,
) -> Result<Vec<VerifiedTier>> {
    let mut part = progress.part();
    let mut before = 0;
    let mut tiers: BTreeMap<TierName, VerifiedTier> = BTreeMap::new();
    each_body(state, |found| {
        let report = tiers.entry(found.tier.clone()).or_insert_with(|| VerifiedTier {
            tier: found.tier.to_string(),
            ..VerifiedTier::default()
        });
        let bytes = cipher_bytes(found.body.bytes);
        if report.error.is_none() {
            verify(state, found, report)?;
        }
        before += bytes;
        part.set(before);
        Ok(())
    })?;
    let tiers: Vec<VerifiedTier> = tiers.into_values().collect();
    for tier in state.tiers.iter().filter(|tier| tier.is_older()) {
        let is_of_tier = |report: &&VerifiedTier| report.tier == tier.name().as_str();
        let is_whole = |report: &VerifiedTier| report.bodies_damaged == 0 && report.error.is_none();
        if tiers.iter().find(is_of_tier).is_none_or(is_whole) {
            tier.wait(runs::settle(state, tier))?;
        }
    }
    Ok(tiers)
}

fn verify(state: &ArchiveState, found: StoredBody, report: &mut VerifiedTier) -> Result<()> {
    let StoredBody { tier, bucket, key, row_key, body } = found;
    let read = state.tiers.get(&tier).and_then(|tier| {
        // The pin keeps a body that is deleted meanwhile until it was read.
        let _pin = tier.pin(body.body_id);
        if rows::get::<BodyRow>(&*state.kv, BODIES, &row_key)?.is_none() {
            return Ok(false);
        }
        let bytes = cipher_bytes(body.bytes);
        tier.wait(tier.verify(body.body_id, bytes, body.digest)).map(|()| true)
    });
    match read {
        Ok(false) => return Ok(()),
        Ok(true) => {}
        Err(ArchiveError::Corrupt { what: error }) => {
            report.bodies_damaged += 1;
            if report.damaged.len() < TIER_DAMAGED_MAX {
                report.damaged.push(DamagedInTier { bucket, key, error });
            }
        }
        Err(error @ ArchiveError::TierUnavailable { .. }) => {
            report.error = Some(error_chain(&error));
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    report.bodies += 1;
    report.bytes += cipher_bytes(body.bytes);
    Ok(())
}

/// Returns the bytes of all bodies in tiers; `None` if tiers have no objects.
pub(crate) fn bytes_of_all(state: &ArchiveState) -> Result<Option<u64>> {
    if rows::totals(&*state.kv)?.objects_in_tiers == 0 {
        return Ok(None);
    }
    let mut bytes = 0;
    each_body(state, |found| {
        bytes += cipher_bytes(found.body.bytes);
        Ok(())
    })?;
    Ok(Some(bytes))
}

/// Calls `each` for every body that was moved to a tier, reading a page of rows at a time.
fn each_body(state: &ArchiveState, mut each: impl FnMut(StoredBody) -> Result<()>) -> Result<()> {
    let mut range = KeyRange::prefix(b"");
    loop {
        let view = state.kv.snapshot();
        let page: Vec<(Vec<u8>, ObjectRow)> =
            rows_in(&*view, OBJECTS, &range, ROWS_PER_TRANSACTION_MAX)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        range = range.after(last);
        for (key, object) in page {
            state.check_stopping()?;
            let Home::Tier(_) = &object.home else { continue };
            let mut name = KeyReader::new(&key);
            let (bucket, key) = (name.string()?, name.string()?);
            for (index, body) in (0..).zip(bodies(&*view, &object)?) {
                let Place::Tier(tier) = &body.place else { continue };
                let row_key = rows::body_key(object.object_id, index);
                let (tier, bucket, key) = (tier.clone(), bucket.clone(), key.clone());
                each(StoredBody { tier, bucket, key, row_key, body })?;
            }
        }
    }
}
