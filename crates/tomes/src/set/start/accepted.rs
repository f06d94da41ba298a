//! A set whose own store is an older copy, and there is no other: opened because an operator says
//! so, by what its tomes know.
//!
//! ```text
//! seats      the latest that any tome has heard of; one that moves is followed to its end
//! tokens     nobody's, with epochs beyond all that were given
//! starts     as each store says of itself
//! ```
//!
//! All tomes have to be here, for what is not asked of all may be that of the copy. Objects are in
//! the awake stores and are not lost by it. What is lost: that a tome was taken out, or was to be.
//! Everything is kept before anything else is done, and may be done twice. Not here: sets that are
//! not older.

use std::collections::BTreeMap;

use fulgurite_tome::awake::{Awake, Region};
use fulgurite_tome::group::{Group, Move};
use fulgurite_tome::token::Kept;
use fulgurite_tome::{Epoch, GroupId, TomeId};

use super::{Loaded, Start};
use crate::piece_store::OpenedPieces;
use crate::set_store::SetStore;
use crate::starts::{Counted, StartsRow};
use crate::{Result, TomesError};

/// Epochs of tokens that an older copy may not know of are fewer.
const EPOCHS_SKIPPED: u64 = 1 << 32;

impl Start {
    /// Has the store of a set know what its tomes know; says what was not as it had it.
    ///
    /// # Errors
    /// Kind `Invalid` when it is no older copy, or cannot be told from what is here how it was.
    pub(super) fn accept(
        &mut self,
        store: &SetStore,
        pieces: &OpenedPieces,
        loaded: &BTreeMap<TomeId, Result<Loaded, String>>,
    ) -> Result<Vec<String>> {
        if !self.accepts {
            return Ok(Vec::new());
        }
        let refused = |what: String| Err(TomesError::Invalid { what });
        let out = store.out()?;
        let lost = loaded.iter().find(|(tome, own)| own.is_err() && !out.contains(tome));
        if let Some((tome, _)) = lost {
            return refused(format!(
                "an older copy of a set is gone on with by what all of its tomes know, and tome \
                 {tome} is lost"
            ));
        }
        if self.remotes.seats().next().is_some() {
            let what = "an older copy of a set is not gone on with that has tomes in other \
                        processes";
            return refused(what.to_owned());
        }
        let awakes: BTreeMap<TomeId, &Awake> =
            loaded.iter().filter_map(|(t, own)| Some((*t, &own.as_ref().ok()?.awake))).collect();
        let mut told = Vec::new();
        for (id, latest) in self.latest(&awakes) {
            let Some(known) = self.groups.iter().find(|group| group.id() == id) else {
                return refused(format!("it knows nothing of group {id}, of which its tomes are"));
            };
            if latest.epoch() > known.epoch() {
                told.push(self.catch_up(store, known, &latest, &awakes)?);
            }
        }
        for region in awakes.values().flat_map(|awake| awake.regions()).map(|(_, region)| region) {
            let Some(planned) = region.building().map(|building| building.planned) else {
                continue;
            };
            if !store.moves()?.contains(&planned) {
                store.plan(&planned)?;
                told.push(format!("a seat of group {} moves to {}", planned.group, planned.to));
            }
        }
        for (token, Kept { epoch, .. }) in store.tokens()? {
            let epoch = Epoch::new(epoch.get() + EPOCHS_SKIPPED);
            store.keep(token, Kept { epoch, holder: None })?;
        }
        let of_tome = |(tome, own): (&TomeId, &Result<Loaded, String>)| {
            let own = own.as_ref().ok()?.opened.store.start_number();
            Some(own.map(|own| (Counted::Tome(*tome), own.0)))
        };
        let own: Vec<(Counted, u64)> =
            loaded.iter().filter_map(of_tome).collect::<Result<Vec<_>>>()?;
        let pieces = (Counted::Pieces, pieces.start_number()?.0);
        let mut starts = BTreeMap::new();
        for (of, number) in own.into_iter().chain([pieces]) {
            starts.insert(of, StartsRow { begun: number, done: number });
        }
        store.note_starts(&starts)?;
        self.groups = store.groups()?;
        told.iter().for_each(|what| tracing::warn!("of an older copy of a set: {what}"));
        Ok(told)
    }

    /// Each group as the tome has it that knows best.
    fn latest(&self, awakes: &BTreeMap<TomeId, &Awake>) -> BTreeMap<GroupId, Group> {
        let mut latest: BTreeMap<GroupId, Group> = BTreeMap::new();
        let regions = awakes.values().flat_map(|awake| awake.regions()).map(|(_, region)| region);
        for region in regions.filter(|region| region.building().is_none()) {
            let group = region.group();
            let known = latest.entry(group.id()).or_insert_with(|| group.clone());
            if group.epoch() > known.epoch() {
                *known = group.clone();
            }
        }
        latest
    }

    /// Has the set know of seats that have moved since.
    fn catch_up(
        &self,
        store: &SetStore,
        known: &Group,
        latest: &Group,
        awakes: &BTreeMap<TomeId, &Awake>,
    ) -> Result<String> {
        let id = latest.id();
        let seats = known.seats().iter().zip(latest.seats()).enumerate();
        let moved = seats.filter(|(_, (before, after))| before != after);
        let mut unnamed = Vec::new();
        for (at, (from, to)) in moved {
            let member = fulgurite_tome::Member::at(at);
            let there = awakes.get(&to.tome).and_then(|awake| awake.region(to.index));
            if there.is_some_and(Region::is_rebuilt) {
                unnamed.push(Move { group: id, member, from: *from, to: *to });
            }
        }
        match unnamed.as_slice() {
            [] => store.caught_up(latest)?,
            // It is told its objects as ever.
            [planned] if latest.epoch() == known.epoch().next() => store.plan(planned)?,
            _ => {
                let what = format!(
                    "seats of group {id} have moved since more than once, and which objects went \
                     with them is not known"
                );
                return Err(TomesError::Invalid { what });
            }
        }
        Ok(format!("seats of group {id} have moved since"))
    }
}
