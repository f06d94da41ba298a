//! Choice of the tome for a put: one in groups without a lost tome, while any of those has room.
//!
//! ```text
//! no tome is lost      the one with the most room among spinning ones, or among all
//! some are             the same among those with a region whose group has none of the lost; the
//!                      request names the lost tomes, so the tome selects such a region
//! none such has room   any, and the status of the set says so: what is put there is protected
//!                      when the member slots of the lost tomes have moved
//! ```
//!
//! The chosen tome may refuse an object because no single region has room; then the next one is
//! tried. Among the candidates, the one that lately took an object of the same affinity group comes
//! first, so that what is read together needs few spin-ups (`fulgurite_tome_core::placement`). Not
//! here: affinity groups themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_tome_core::group::{Group, Move};
use fulgurite_tome_core::{RegionId, TomeError, TomeId};
use fulgurite_units::{AffinityGroup, Clock};

use super::operator::is_lost;
use super::{TomeSet, lock};
use crate::{Result, TomesError};

/// State of groups for the choice of a tome.
#[derive(Debug)]
pub(super) struct Choice {
    groups: Mutex<GroupState>,
    /// The latest object found no room in groups without a lost tome.
    is_degraded: AtomicBool,
    /// Held while an object's member slot moves, or its removal is deferred.
    pub(super) move_lock: tokio::sync::Mutex<()>,
    pub(super) clock: Clock,
}

#[derive(Debug)]
struct GroupState {
    groups: Vec<Group>,
    slot_holders: BTreeSet<TomeId>,
    /// Cached: tomes with data in groups without any of these lost tomes.
    healthy_tomes: Option<(BTreeSet<TomeId>, Arc<BTreeSet<TomeId>>)>,
}

/// Tomes that refused an object, and why.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    healthy: BTreeMap<TomeId, TomesError>,
    any: BTreeMap<TomeId, TomesError>,
}

/// The tome to which an object is put.
#[derive(Debug)]
pub(super) struct PutTarget {
    pub(super) tome: TomeId,
    /// Lost tomes, whose groups are avoided; empty when any group will do.
    pub(super) avoided: BTreeSet<TomeId>,
    /// Whether a tome is lost, so that the chosen one may refuse.
    pub(super) is_careful: bool,
}

impl Refusals {
    /// Records that a tome has no room for the object under these conditions.
    pub(super) fn record(&mut self, chosen: &PutTarget, error: TomesError) {
        let refusals = if chosen.avoided.is_empty() { &mut self.any } else { &mut self.healthy };
        refusals.insert(chosen.tome, error);
    }

    /// Returns the final error: a refusal says more than that there is no other tome.
    fn final_error(self, none: TomesError) -> TomesError {
        self.any.into_values().next_back().unwrap_or(none)
    }
}

impl Choice {
    pub(super) fn new(groups: Vec<Group>, clock: Clock) -> Self {
        let groups = Mutex::new(GroupState::new(groups));
        let (is_degraded, move_lock) = Default::default();
        Self { groups, is_degraded, move_lock, clock }
    }

    /// Updates a group after a member slot moved.
    pub(super) fn member_slot_moved(&self, planned: &Move) {
        let mut known = self.lock();
        let mut groups = std::mem::take(&mut known.groups);
        for group in groups.iter_mut().filter(|group| group.id() == planned.group) {
            // Idempotent: a repeated move changes nothing.
            *group = group.after(planned).unwrap_or_else(|_| group.clone());
        }
        *known = GroupState::new(groups);
    }

    /// Returns the lost tomes that have member slots.
    fn lost(&self, is_lost: impl Fn(TomeId) -> bool) -> BTreeSet<TomeId> {
        self.lock().slot_holders.iter().copied().filter(|tome| is_lost(*tome)).collect()
    }

    /// Returns the tomes with data in a group without any of these.
    fn healthy_tomes(&self, lost: &BTreeSet<TomeId>) -> Arc<BTreeSet<TomeId>> {
        let mut known = self.lock();
        if let Some((known_lost, healthy_tomes)) = &known.healthy_tomes
            && known_lost == lost
        {
            return Arc::clone(healthy_tomes);
        }
        let is_healthy =
            |group: &&Group| !group.slots().iter().any(|slot| lost.contains(&slot.tome));
        let data = |group: &Group| group.slots()[..group.split().data() as usize].to_vec();
        let slots = known.groups.iter().filter(is_healthy).flat_map(data);
        let healthy_tomes = Arc::new(slots.map(|slot| slot.tome).collect());
        known.healthy_tomes = Some((lost.clone(), Arc::clone(&healthy_tomes)));
        healthy_tomes
    }

    /// Returns the groups of some regions.
    fn groups_of(&self, regions: &BTreeSet<RegionId>) -> Vec<Group> {
        let known = self.lock();
        let has = |group: &&Group| group.slots().iter().any(|slot| regions.contains(slot));
        known.groups.iter().filter(has).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GroupState {
    fn new(groups: Vec<Group>) -> Self {
        let slots = groups.iter().flat_map(Group::slots);
        let slot_holders = slots.map(|slot| slot.tome).collect();
        Self { groups, slot_holders, healthy_tomes: None }
    }
}

impl TomeSet {
    /// Chooses a tome that may have room, and reserves the name for it.
    pub(super) fn choose(
        &self,
        object: (&str, u64),
        affinity: Option<AffinityGroup>,
        refusals: &mut Refusals,
    ) -> Result<PutTarget> {
        let lost = self.lost_tomes();
        let is_careful = !lost.is_empty();
        if is_careful {
            let healthy_tomes = self.choice.healthy_tomes(&lost);
            let is_allowed = |tome: TomeId| {
                healthy_tomes.contains(&tome) && !refusals.healthy.contains_key(&tome)
            };
            match self.reserve(object, affinity, is_allowed) {
                Err(TomesError::Tome(TomeError::Full { .. })) => {}
                tome => return Ok(PutTarget { tome: tome?, avoided: lost, is_careful }),
            }
            // A tome with too many deltas in flight has room once its parities have applied more of
            // them.
            let backlog = refusals.healthy.extract_if(.., |_, why| why.is_backlog()).next();
            if let Some((_, backlog)) = backlog {
                return Err(backlog);
            }
        }
        match self.reserve(object, affinity, |tome| !refusals.any.contains_key(&tome)) {
            Ok(tome) => Ok(PutTarget { tome, avoided: BTreeSet::new(), is_careful }),
            Err(none) => Err(std::mem::take(refusals).final_error(none)),
        }
    }

    /// Records whether groups without a lost tome had room for an object.
    pub(super) fn record_choice(&self, chosen: &PutTarget) {
        let is_degraded = chosen.is_careful && chosen.avoided.is_empty();
        self.choice.is_degraded.store(is_degraded, Ordering::Relaxed);
    }

    /// Reserves a name for one of these tomes: the one with the last object of its affinity group,
    /// or the one with the most room, spinning ones first.
    fn reserve(
        &self,
        object: (&str, u64),
        affinity: Option<AffinityGroup>,
        is_allowed: impl Fn(TomeId) -> bool,
    ) -> Result<TomeId> {
        let is_live = |tome: TomeId| is_allowed(tome) && self.accepts_objects(tome);
        let now = self.choice.clock.passed();
        Ok(lock(&self.names)
            .reserve(object, (affinity, now), is_live, |tome| self.is_spinning(tome))?)
    }

    /// Whether a tome accepts new objects.
    fn accepts_objects(&self, tome: TomeId) -> bool {
        !self.closed.has(tome) && self.tomes.get(&tome).is_some_and(|handle| !is_lost(handle))
    }

    /// Returns the tomes with member slots that do not answer.
    fn lost_tomes(&self) -> BTreeSet<TomeId> {
        self.choice.lost(|tome| self.tomes.get(&tome).is_none_or(is_lost))
    }

    /// Returns the groups that protect an object, or are to; needs no spin-up.
    ///
    /// # Errors
    /// As [`Self::tome_of`]; no groups are returned while it is being put.
    pub fn groups_of(&self, name: &str) -> Result<Vec<Group>> {
        let tome = self.tome_of(name)?;
        let Some(placed) = self.pieces.get(tome, name)? else { return Ok(Vec::new()) };
        let indexes = placed.object.blocks.iter().map(|(index, _)| *index);
        let regions = indexes.map(|index| RegionId { tome, index }).collect();
        Ok(self.choice.groups_of(&regions))
    }

    /// Whether an object is in a group with a lost tome, though other groups have none and accept
    /// objects. If it is not protected yet, putting it again is faster.
    ///
    /// # Errors
    /// As [`Self::groups_of`].
    pub fn is_stranded(&self, name: &str) -> Result<bool> {
        let lost = self.lost_tomes();
        if lost.is_empty() || self.choice.is_degraded.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let is_broken = |group: &Group| group.slots().iter().any(|slot| lost.contains(&slot.tome));
        let has_healthy_room =
            self.choice.healthy_tomes(&lost).iter().any(|tome| self.accepts_objects(*tome));
        Ok(has_healthy_room && self.groups_of(name)?.iter().any(is_broken))
    }

    /// Returns why new objects are not protected soon, if so.
    pub(super) fn degraded_placement(&self) -> Option<String> {
        let lost = self.lost_tomes();
        if lost.is_empty() {
            return None;
        }
        let has_healthy_room =
            self.choice.healthy_tomes(&lost).iter().any(|tome| self.accepts_objects(*tome));
        if has_healthy_room && !self.choice.is_degraded.load(Ordering::Relaxed) {
            return None;
        }
        let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
        Some(format!(
            "every group with room has a lost tome ({}): new objects are not protected \
             until its member slots have moved",
            lost.join(", ")
        ))
    }

    /// Whether a tome with room may have none in a single region.
    pub(super) fn may_not_fit_region(&self, tome: TomeId, blocks: u64) -> bool {
        let regions = u64::from(self.layout.parts().regions);
        let free = lock(&self.names).free_of(tome) + blocks;
        free <= regions * (blocks - 1) || !self.mover.moves().leaving.is_empty()
    }
}

/// Whether an error means that a tome is lost, or does not answer.
pub(super) const fn is_tome_unavailable(error: &TomesError) -> bool {
    matches!(
        error,
        TomesError::GivenUp { .. } | TomesError::Away { .. } | TomesError::Unanswered { .. }
    )
}
