//! Seats that have moved, of which the set did not hear before who has them was lost.
//!
//! Whoever takes a seat tells the others of its group, and the set asks it from time to time: if it
//! is lost in between, the others know and the set does not. Its plan would go on for ever, for a
//! seat that nobody has any more. At a start everybody is at rest, so what most have heard is made
//! what all know. Not here: seats whose tomes are here, which the set asks ([`crate::set`]), and
//! rows of those that come back (`super::seating`).

use std::collections::BTreeMap;

use fulgurite_tome::TomeId;
use fulgurite_tome::awake::Awake;
use fulgurite_tome::group::Move;

use super::{Loaded, Start};
use crate::Result;
use crate::piece_store::OpenedPieces;
use crate::set::moving::moved;
use crate::set_store::SetStore;

impl Start {
    /// Keeps that seats have moved to tomes that are lost, with their objects: from now on they are
    /// those of a lost tome as any others.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub(super) fn hear_of_seats(
        &mut self,
        store: &SetStore,
        pieces: &OpenedPieces,
        loaded: &BTreeMap<TomeId, Result<Loaded, String>>,
    ) -> Result<()> {
        for planned in store.moves()? {
            let is_lost = loaded.get(&planned.to.tome).is_some_and(Result::is_err);
            let awakes = loaded.values().flatten().map(|loaded| &loaded.awake);
            if !is_lost || !awakes.into_iter().any(|awake| knows(awake, &planned)) {
                continue;
            }
            let mut changes = Vec::new();
            pieces.each(planned.from.tome, |name, placed| {
                if let Some(there) = moved(&placed, planned.from.index, planned.to.index) {
                    changes.push((planned.from.tome, name.clone(), None));
                    changes.push((planned.to.tome, name, Some(there)));
                }
            })?;
            pieces.change(&changes)?;
            store.moved(&planned)?;
            let (group, to) = (planned.group, planned.to);
            tracing::warn!(%group, %to, "a seat has moved to a tome that is lost");
        }
        self.groups = store.groups()?;
        Ok(())
    }
}

/// Whether a tome has heard that a seat has moved.
fn knows(awake: &Awake, planned: &Move) -> bool {
    let known = awake.region_of(planned.group).filter(|(_, region)| region.building().is_none());
    known.is_some_and(|(_, region)| {
        region.group().seats().get(planned.member.as_usize()) == Some(&planned.to)
    })
}
