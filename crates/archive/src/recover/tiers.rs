//! What tiers of objects hold, according to the entries beside their bodies.

use fulgurite_units::ObjectId;

use super::found::{Bodies, Known};
use super::opened::Opened;
use super::{RecoverReport, rebuild};
use crate::Result;
use crate::bodies::entry::Entry;
use crate::objects::classes::TierName;
use crate::rows::{self, META, REMOVALS};
use crate::tiers::InTier;

/// What the new catalog records about tiers.
#[derive(Debug, Default)]
pub(super) struct ReadTiers {
    /// Tiers that belong to this archive.
    taken: Vec<TierName>,
    /// Bodies whose keys are destroyed, left over from an interrupted removal.
    scrap: Vec<(TierName, ObjectId)>,
}

/// Reads the entries of every tier. A tier that does not answer ends the recovery: otherwise
/// objects would seem lost that are not.
pub(super) fn read(
    opened: &Opened,
    bodies: &mut Bodies,
    report: &mut RecoverReport,
) -> Result<ReadTiers> {
    let mut read = ReadTiers::default();
    // The tier that acknowledges puts comes last: there a body is only a copy if another tier has
    // it.
    let mut tiers: Vec<_> = opened.tiers.iter().collect();
    tiers.sort_by_key(|tier| opened.config.acknowledged_at.as_ref() == Some(tier.name()));
    for tier in tiers {
        for found in tier.contents()? {
            match found {
                Ok(found) => take(opened, tier.name(), &found, bodies, &mut read.scrap, report),
                Err(why) => report.unusable.push(why),
            }
        }
        read.taken.push(tier.name().clone());
    }
    Ok(read)
}

fn take(
    opened: &Opened,
    tier: &TierName,
    InTier { file, bytes }: &InTier,
    bodies: &mut Bodies,
    scrap: &mut Vec<(TierName, ObjectId)>,
    report: &mut RecoverReport,
) {
    let body = file.body;
    if file.archive != opened.archive {
        let why = format!("body {body} in tier \"{tier}\" is of archive {}", file.archive);
        return report.unusable.push(why);
    }
    let Some(&slot) = opened.slots.get(&body) else {
        report.shredded += 1;
        return scrap.push((tier.clone(), body));
    };
    if *bytes != Some(file.bytes) {
        let there = bytes.map_or("is not there".to_owned(), |bytes| format!("has {bytes} bytes"));
        let why = format!("body {body} in tier \"{tier}\" {there}, and had {} bytes", file.bytes);
        return report.unusable.push(why);
    }
    let found = bodies.entry(body).or_default();
    if found.known.is_none() {
        let key = opened.keys.load(slot.index, slot.body);
        match key.and_then(|key| Entry::open(&key, body, &file.sealed)) {
            Ok(entry) => {
                found.known = Some(Known { entry: Box::new(entry), slot, written: None });
            }
            Err(error) => {
                return report.unusable.push(format!("entry in tier \"{tier}\": {error}"));
            }
        }
    }
    found.tiers.push(tier.clone());
}

impl ReadTiers {
    /// Makes the next start use these tiers as they are, and remove the leftovers.
    pub(super) fn write(&self, writer: &mut rebuild::Writer<'_>) -> Result<()> {
        for tier in &self.taken {
            writer.put(META, rows::tier_key(tier), &1u64)?;
        }
        for (tier, body) in &self.scrap {
            // Any slot number will do: the key is gone.
            writer.put(REMOVALS, rows::removal_key(tier, *body), &0u32)?;
        }
        Ok(())
    }
}
