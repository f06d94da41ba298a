//! What tiers of objects hold, according to the entries beside their bodies.

use fulgurite_units::ObjectId;

use super::context::RecoveryContext;
use super::evidence::{Bodies, KnownEntry};
use super::{RecoverReport, rebuild};
use crate::Result;
use crate::bodies::entry::Entry;
use crate::model::classes::TierName;
use crate::rows::tiers::StoreRow;
use crate::rows::{self, META, REMOVALS};
use crate::tiers::TierBody;

/// What the new catalog records about tiers.
#[derive(Debug, Default)]
pub(super) struct TierScan {
    /// Tiers that belong to this archive, with the ids of their stores.
    claimed: Vec<(TierName, Option<String>)>,
    /// Bodies whose keys are destroyed, left over from an interrupted removal.
    leftovers: Vec<(TierName, ObjectId)>,
}

/// Reads the entries of every tier. A tier that does not answer ends the recovery: otherwise
/// objects would seem lost that are not.
pub(super) fn read(
    context: &RecoveryContext,
    bodies: &mut Bodies,
    report: &mut RecoverReport,
) -> Result<TierScan> {
    let mut read = TierScan::default();
    // The tier that acknowledges puts comes last: there a body is only a copy if another tier has
    // it.
    let mut tiers: Vec<_> = context.tiers.iter().collect();
    tiers.sort_by_key(|tier| context.config.acknowledged_at.as_ref() == Some(tier.name()));
    for tier in tiers {
        for found in tier.contents()? {
            match found {
                Ok(found) => {
                    take(context, tier.name(), &found, bodies, &mut read.leftovers, report)
                }
                Err(reason) => report.unusable.push(reason),
            }
        }
        read.claimed.push((tier.name().clone(), tier.store_id().cloned()));
    }
    Ok(read)
}

fn take(
    context: &RecoveryContext,
    tier: &TierName,
    TierBody { file, bytes }: &TierBody,
    bodies: &mut Bodies,
    leftovers: &mut Vec<(TierName, ObjectId)>,
    report: &mut RecoverReport,
) {
    let body = file.body;
    if file.archive != context.archive {
        let reason = format!("body {body} in tier \"{tier}\" is of archive {}", file.archive);
        return report.unusable.push(reason);
    }
    let Some(&slot) = context.slots.get(&body) else {
        report.shredded += 1;
        return leftovers.push((tier.clone(), body));
    };
    if *bytes != Some(file.bytes) {
        let there = bytes.map_or("is not there".to_owned(), |bytes| format!("has {bytes} bytes"));
        let reason =
            format!("body {body} in tier \"{tier}\" {there}, and had {} bytes", file.bytes);
        return report.unusable.push(reason);
    }
    let found = bodies.entry(body).or_default();
    if found.known.is_none() {
        let key = context.keys.load(slot.index, slot.body);
        match key.and_then(|key| Entry::open(&key, body, &file.sealed)) {
            Ok(entry) => {
                found.known = Some(KnownEntry { entry: Box::new(entry), slot, written: None });
            }
            Err(error) => {
                return report.unusable.push(format!("entry in tier \"{tier}\": {error}"));
            }
        }
    }
    found.tiers.push(tier.clone());
}

impl TierScan {
    /// Makes the next start use these tiers as they are, and remove the leftovers.
    pub(super) fn write(&self, writer: &mut rebuild::Writer<'_>) -> Result<()> {
        for (tier, store) in &self.claimed {
            writer.put(META, rows::tiers::claim_key(tier), &1u64)?;
            if let Some(id) = store.clone() {
                writer.put(META, rows::tiers::store_key(tier), &StoreRow { id })?;
            }
        }
        for (tier, body) in &self.leftovers {
            // Any slot number will do: the key is gone.
            writer.put(REMOVALS, rows::removal_key(tier, *body), &0u32)?;
        }
        Ok(())
    }
}
