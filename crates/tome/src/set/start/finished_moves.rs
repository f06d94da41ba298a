//! Moves that were completed just before the target was lost, so that the set does not know of
//! them.
//!
//! The target of a move notifies the others of its group, and the set polls it from time to time.
//! If it is lost in between, the others know and the set does not. Then the plan would never end,
//! for a member slot that no present tome has. At a start all tomes are quiescent, so the set
//! adopts a move that another member knows of. Not here: member slots whose tomes are here, which
//! the set polls ([`crate::set`]), and rows of those that come back (`super::membership_sync`).

use std::collections::BTreeMap;

use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::group::Move;
use fulgurite_tome_core::metadata::TomeMetadata;

use super::{LoadedTome, Startup};
use crate::Result;
use crate::piece_store::OpenedPieces;
use crate::set::slot_mover::moved;
use crate::set_store::SetStore;

impl Startup {
    /// Records that member slots have moved to tomes that are lost, with their objects: from now on
    /// they belong to a lost tome like any other.
    ///
    /// # Errors
    /// When it cannot be persisted.
    pub(super) fn adopt_finished_moves(
        &mut self,
        store: &SetStore,
        pieces: &OpenedPieces,
        loaded: &BTreeMap<TomeId, Result<LoadedTome, String>>,
    ) -> Result<()> {
        for planned in store.moves()? {
            let is_lost = loaded.get(&planned.to.tome).is_some_and(Result::is_err);
            let loaded_metadata = loaded.values().flatten().map(|loaded| &loaded.metadata);
            if !is_lost || !loaded_metadata.into_iter().any(|metadata| knows(metadata, &planned)) {
                continue;
            }
            let mut changes = Vec::new();
            pieces.for_each(planned.from.tome, |name, placed| {
                if let Some(there) = moved(&placed, planned.from.index, planned.to.index) {
                    changes.push((planned.from.tome, name.clone(), None));
                    changes.push((planned.to.tome, name, Some(there)));
                }
            })?;
            pieces.change(&changes)?;
            store.complete_move(&planned)?;
            let (group, to) = (planned.group, planned.to);
            tracing::warn!(%group, %to, "a member slot had moved to a tome that is lost");
        }
        self.groups = store.groups()?;
        Ok(())
    }
}

/// Whether a tome knows that a member slot has moved.
fn knows(metadata: &TomeMetadata, planned: &Move) -> bool {
    let known = metadata.region_of(planned.group).filter(|(_, region)| region.building().is_none());
    known.is_some_and(|(_, region)| {
        region.group().slots().get(planned.member.as_usize()) == Some(&planned.to)
    })
}
