//! Which tome takes what is put: one whose groups are whole, while any of those has room.
//!
//! ```text
//! no tome is lost      the one with the most room of those that turn, or of all
//! some are             the same of those with a region whose group has none of the lost; which
//!                      regions those are its tome sees to, for it is told which are lost
//! none such has room   any, and the status of the set says so: what is put there is protected
//!                      when the seats of the lost tomes have moved
//! ```
//!
//! A tome that is to take an object may refuse it, since no region has room by itself; then the
//! next one is asked. Of those that may, what lately took an object of the same kin comes first, so
//! that what is read together wakes few disks (`fulgurite_tome::placement`). Not here: who is kin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_tome::group::{Group, Move};
use fulgurite_tome::{RegionId, TomeError, TomeId};
use fulgurite_units::{Clock, Kin};

use super::operated::is_lost;
use super::{TomeSet, lock};
use crate::{Result, TomesError};

/// What is known of groups, to choose a tome by.
#[derive(Debug)]
pub(super) struct Choice {
    groups: Mutex<Known>,
    /// The latest object found no room in groups that are whole.
    is_crowded: AtomicBool,
    /// Held while an object's seat moves, or its removal is put off.
    pub(super) still: tokio::sync::Mutex<()>,
    pub(super) clock: Clock,
}

#[derive(Debug)]
struct Known {
    groups: Vec<Group>,
    seated: BTreeSet<TomeId>,
    /// Tomes with data in groups that have none of some lost ones, since they were asked for last.
    able: Option<(BTreeSet<TomeId>, Arc<BTreeSet<TomeId>>)>,
}

/// Who was asked to take an object, and why it did not.
#[derive(Debug, Default)]
pub(super) struct Passed {
    whole: BTreeMap<TomeId, TomesError>,
    any: BTreeMap<TomeId, TomesError>,
}

/// The tome that is asked to take an object.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) tome: TomeId,
    /// Lost tomes, whose groups it is not put to; none when any may take it.
    pub(super) avoided: BTreeSet<TomeId>,
    /// Whether a tome is lost, so that the one that is asked may refuse.
    pub(super) is_careful: bool,
}

impl Passed {
    /// A tome has no room for it where it was asked to put it.
    pub(super) fn note(&mut self, chosen: &Chosen, error: TomesError) {
        let of = if chosen.avoided.is_empty() { &mut self.any } else { &mut self.whole };
        of.insert(chosen.tome, error);
    }

    /// What is said in the end: what those say that were asked is worth more than that there is no
    /// other.
    fn told(self, none: TomesError) -> TomesError {
        self.any.into_values().next_back().unwrap_or(none)
    }
}

impl Choice {
    pub(super) fn new(groups: Vec<Group>, clock: Clock) -> Self {
        let groups = Mutex::new(Known::new(groups));
        let (is_crowded, still) = Default::default();
        Self { groups, is_crowded, still, clock }
    }

    /// A seat has moved.
    pub(super) fn seat_moved(&self, planned: &Move) {
        let mut known = self.known();
        let mut groups = std::mem::take(&mut known.groups);
        for group in groups.iter_mut().filter(|group| group.id() == planned.group) {
            // Done already where it is the same.
            *group = group.after(planned).unwrap_or_else(|_| group.clone());
        }
        *known = Known::new(groups);
    }

    /// Tomes with seats of groups that are lost.
    fn lost(&self, is_lost: impl Fn(TomeId) -> bool) -> BTreeSet<TomeId> {
        self.known().seated.iter().copied().filter(|tome| is_lost(*tome)).collect()
    }

    /// Tomes that have data in a group without any of these.
    fn able(&self, lost: &BTreeSet<TomeId>) -> Arc<BTreeSet<TomeId>> {
        let mut known = self.known();
        if let Some((of, able)) = &known.able
            && of == lost
        {
            return Arc::clone(able);
        }
        let is_whole = |group: &&Group| !group.seats().iter().any(|seat| lost.contains(&seat.tome));
        let data = |group: &Group| group.seats()[..group.split().data() as usize].to_vec();
        let seats = known.groups.iter().filter(is_whole).flat_map(data);
        let able = Arc::new(seats.map(|seat| seat.tome).collect());
        known.able = Some((lost.clone(), Arc::clone(&able)));
        able
    }

    /// The groups of some regions.
    fn groups_of(&self, regions: &BTreeSet<RegionId>) -> Vec<Group> {
        let known = self.known();
        let has = |group: &&Group| group.seats().iter().any(|seat| regions.contains(seat));
        known.groups.iter().filter(has).cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn new(groups: Vec<Group>) -> Self {
        let seats = groups.iter().flat_map(Group::seats);
        let seated = seats.map(|seat| seat.tome).collect();
        Self { groups, seated, able: None }
    }
}

impl TomeSet {
    /// Takes a name for a tome that may have room.
    pub(super) fn choose(
        &self,
        object: (&str, u64),
        kin: Option<Kin>,
        passed: &mut Passed,
    ) -> Result<Chosen> {
        let lost = self.lost_tomes();
        let is_careful = !lost.is_empty();
        if is_careful {
            let able = self.choice.able(&lost);
            let may = |tome: TomeId| able.contains(&tome) && !passed.whole.contains_key(&tome);
            match self.reserve(object, kin, may) {
                Err(TomesError::Tome(TomeError::Full { .. })) => {}
                tome => return Ok(Chosen { tome: tome?, avoided: lost, is_careful }),
            }
            // One that has too much on its way has room when its parities have more of it.
            let backlog = passed.whole.extract_if(.., |_, why| why.is_backlog()).next();
            if let Some((_, backlog)) = backlog {
                return Err(backlog);
            }
        }
        match self.reserve(object, kin, |tome| !passed.any.contains_key(&tome)) {
            Ok(tome) => Ok(Chosen { tome, avoided: BTreeSet::new(), is_careful }),
            Err(none) => Err(std::mem::take(passed).told(none)),
        }
    }

    /// An object was put: whether groups that are whole had room for it.
    pub(super) fn chosen(&self, chosen: &Chosen) {
        let is_crowded = chosen.is_careful && chosen.avoided.is_empty();
        self.choice.is_crowded.store(is_crowded, Ordering::Relaxed);
    }

    /// Of tomes that are here the one with the last of its kin, or with the most room, those first
    /// that turn.
    fn reserve(
        &self,
        object: (&str, u64),
        kin: Option<Kin>,
        may: impl Fn(TomeId) -> bool,
    ) -> Result<TomeId> {
        let is_live = |tome: TomeId| may(tome) && self.takes(tome);
        let now = self.choice.clock.passed();
        Ok(lock(&self.names).reserve(object, (kin, now), is_live, |tome| self.turns(tome))?)
    }

    /// Whether a tome takes new objects.
    fn takes(&self, tome: TomeId) -> bool {
        !self.closed.has(tome) && self.tomes.get(&tome).is_some_and(|seat| !is_lost(seat))
    }

    /// Tomes that have seats of groups and cannot be asked for what they have.
    fn lost_tomes(&self) -> BTreeSet<TomeId> {
        self.choice.lost(|tome| self.tomes.get(&tome).is_none_or(is_lost))
    }

    /// The groups that protect an object, or are to; no disk is woken.
    ///
    /// # Errors
    /// As [`Self::tome_of`]; none are told while it is being put.
    pub fn groups_of(&self, name: &str) -> Result<Vec<Group>> {
        let tome = self.tome_of(name)?;
        let Some(placed) = self.pieces.get(tome, name)? else { return Ok(Vec::new()) };
        let indexes = placed.object.blocks.iter().map(|(index, _)| *index);
        let regions = indexes.map(|index| RegionId { tome, index }).collect();
        Ok(self.choice.groups_of(&regions))
    }

    /// Whether an object lies where a tome of its group is lost, though other groups are whole and
    /// take objects. Put again, one that is not protected yet would be sooner.
    ///
    /// # Errors
    /// As [`Self::groups_of`].
    pub fn is_stranded(&self, name: &str) -> Result<bool> {
        let lost = self.lost_tomes();
        if lost.is_empty() || self.choice.is_crowded.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let is_broken = |group: &Group| group.seats().iter().any(|seat| lost.contains(&seat.tome));
        let is_any_able = self.choice.able(&lost).iter().any(|tome| self.takes(*tome));
        Ok(is_any_able && self.groups_of(name)?.iter().any(is_broken))
    }

    /// Why what is put is not protected soon, if so.
    pub(super) fn crowded(&self) -> Option<String> {
        let lost = self.lost_tomes();
        if lost.is_empty() {
            return None;
        }
        let is_any_able = self.choice.able(&lost).iter().any(|tome| self.takes(*tome));
        if is_any_able && !self.choice.is_crowded.load(Ordering::Relaxed) {
            return None;
        }
        let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
        Some(format!(
            "every group with room has a lost tome ({}): what is put there is not protected before \
             its seats have moved",
            lost.join(", ")
        ))
    }

    /// Whether a tome that has room may have none in one region.
    pub(super) fn may_be_narrow(&self, tome: TomeId, blocks: u64) -> bool {
        let regions = u64::from(self.layout.parts().regions);
        let free = lock(&self.names).free_of(tome) + blocks;
        free <= regions * (blocks - 1) || !self.mover.moves().leaving.is_empty()
    }
}

/// Whether a tome that is asked for something in vain is lost, or does not answer.
pub(super) const fn is_of_lost(error: &TomesError) -> bool {
    matches!(
        error,
        TomesError::GivenUp { .. } | TomesError::Away { .. } | TomesError::Unanswered { .. }
    )
}
