//! Detects a metadata store that was restored from a copy since the latest start, by what others
//! know of it.
//!
//! ```text
//! parity of its group      a later version of the tome's than its own latest
//! data of its group        a change that it applied, and does not know of
//! record of the set        an object that it does not have, where nothing of it is; unless that
//!                          is an older copy itself
//! ```
//!
//! Each of these was durable in the tome before it was sent, so a store that does not know it is an
//! older copy, and the tome is lost to this start: it would reuse versions. Nothing of it is
//! changed, and the right copy can be restored. Not here: copies from before the latest start
//! ([`crate::start_counts`]), and tomes in other processes.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::Signature;
use fulgurite_tome_core::metadata::{Region, Role, TomeMetadata};
use fulgurite_tome_core::{Member, Offset, RegionIndex, TomeId, Version};

use super::{LoadedTome, Startup};
use crate::Result;
use crate::piece_store::OpenedPieces;

impl Startup {
    /// Marks tomes whose metadata stores are older copies as lost to this start.
    ///
    /// The set's record of objects proves nothing when it is itself behind: it names objects that
    /// were removed since.
    ///
    /// # Errors
    /// When that record cannot be read.
    pub(super) fn reject_older_copies(
        &self,
        (pieces, is_behind): (&OpenedPieces, bool),
        loaded: &mut BTreeMap<TomeId, Result<LoadedTome, String>>,
    ) -> Result<()> {
        let mut older: BTreeMap<TomeId, String> = BTreeMap::new();
        let loaded_metadata = || loaded.values().flatten().map(|loaded| &loaded.metadata);
        for metadata in loaded_metadata() {
            let own = metadata
                .regions()
                .find_map(|(_, region)| self.missed_change(metadata, region, loaded));
            let own = match own {
                None if !is_behind => missing_object(metadata, pieces)?,
                own => own,
            };
            older.extend(own.map(|why| (metadata.id(), why)));
        }
        for (tome, why) in older {
            let why = format!("its metadata store is an older copy: {why}");
            tracing::error!(%tome, "not opened: {why}");
            loaded.insert(tome, Err(why));
        }
        Ok(())
    }

    /// Returns what another member of its group knows that a region does not.
    fn missed_change(
        &self,
        metadata: &TomeMetadata,
        region: &Region,
        loaded: &BTreeMap<TomeId, Result<LoadedTome, String>>,
    ) -> Option<String> {
        let group = region.group();
        let holds_slot = |region: &Region| region.is_member() || region.frozen().is_some();
        if !holds_slot(region) {
            return None;
        }
        for slot in group.slots().iter().filter(|slot| slot.tome != metadata.id()) {
            let other = loaded.get(&slot.tome).and_then(|loaded| loaded.as_ref().ok());
            let other = other.and_then(|other| other.metadata.region(slot.index));
            let is_same = |other: &&Region| other.group() == group && holds_slot(other);
            let Some(other) = other.filter(is_same) else { continue };
            let version = match (region.role(), other.role()) {
                (Role::Data(_), Role::Parity { .. }) => later_version(region, other),
                (Role::Parity { .. }, Role::Data(_)) => unknown_change(region, other),
                _ => None,
            };
            if let Some((member, version)) = version {
                let id = group.id();
                return Some(format!(
                    "tome {} knows of version {version} of member {member} of group {id}, and it \
                     does not",
                    slot.tome
                ));
            }
        }
        None
    }
}

/// Returns a version of a data region that a parity knows and the region does not.
fn later_version(region: &Region, parity: &Region) -> Option<(Member, Version)> {
    let own = region.member();
    let Role::Parity { applied, .. } = parity.role() else { return None };
    let summary = applied.get(own.as_usize())?.summary();
    let below = Version::new(summary.floor.get().saturating_sub(1));
    let above = summary.above.iter().map(|change| change.version);
    let stored =
        parity.stored().filter(|(member, ..)| *member == own).map(|(_, version, _)| version);
    let latest = above.chain(stored).chain([below]).max()?;
    (latest > region.latest()).then_some((own, latest))
}

/// Returns a change that a parity has confirmed and does not know of.
fn unknown_change(region: &Region, data: &Region) -> Option<(Member, Version)> {
    let (member, parity) = (data.member(), region.parity()?);
    let Role::Parity { applied, .. } = region.role() else { return None };
    let summary = applied.get(member.as_usize())?.summary();
    let mut changes = data.pending()?.iter();
    let unknown =
        changes.find(|(version, pending)| !pending.missing.has(parity) && !summary.has(*version));
    unknown.map(|(version, _)| (member, version))
}

/// Returns an object that was recorded and that a tome lacks, though nothing else is in its place.
/// A removed object whose record is stale still has its blocks there.
fn missing_object(metadata: &TomeMetadata, pieces: &OpenedPieces) -> Result<Option<String>> {
    let mut used: BTreeSet<(RegionIndex, Offset)> = BTreeSet::new();
    for (_, object) in metadata.objects() {
        used.extend(object.blocks.iter().copied());
    }
    let mut lacking = None;
    pieces.for_each(metadata.id(), |name, placed| {
        if lacking.is_some() || metadata.object(&name).is_some() {
            return;
        }
        let mut all = placed.object.blocks.iter().zip(&placed.signatures);
        let is_lacking = all.all(|((index, offset), signature)| {
            let region = metadata.region(*index).filter(|region| !region.is_rebuilt());
            let holds_slot = region.is_some_and(|r| r.is_member() || r.frozen().is_some());
            let is_other = |region: &Region| region.tree().block(*offset) != Signature(*signature);
            holds_slot && region.is_some_and(is_other) && !used.contains(&(*index, *offset))
        });
        if is_lacking {
            lacking = Some(format!("object \"{name}\" was put, and it does not know that object"));
        }
    })?;
    Ok(lacking)
}
