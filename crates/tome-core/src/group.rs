//! Redundancy groups: regions of different tomes that protect each other.
//!
//! ```text
//! group 13+3     member 0 .. 12: regions with data     13, 14, 15: regions with parity
//!                each on another tome; parity is stored like data and has segment parity too
//! ```
//!
//! (Pergamum (FAST 2008), section 4.2.) How groups are formed is open in the paper (section 6).
//! Here each takes the tomes with the most free regions, which makes as many groups as possible.
//! Parity is written more, so the tomes that hold it rotate from group to group. A new tome gets
//! groups with the free regions of others. One that leaves is replaced member slot by member slot,
//! never by a tome that is already in the group.
//!
//! Not here: bytes, and when a region is moved.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{CodeParams, Epoch, GroupId, Member, RegionId, RegionIndex, Result, TomeError, TomeId};

/// The members of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    id: GroupId,
    split: CodeParams,
    slots: Vec<RegionId>,
    /// How often a member slot moved.
    #[serde(default)]
    epoch: Epoch,
}

impl Group {
    /// Returns a group with these regions, data first.
    ///
    /// # Errors
    /// [`TomeError::Range`] and [`TomeError::Count`] when the regions cannot form such a group,
    /// [`TomeError::SameTome`] when two are on one tome.
    pub fn new(id: GroupId, split: CodeParams, slots: Vec<RegionId>) -> Result<Self> {
        let (have, need) = (slots.len(), split.for_group()?.total() as usize);
        if have != need {
            return Err(TomeError::Count { what: "regions of a group", have, need });
        }
        let mut tomes = BTreeSet::new();
        match slots.iter().find(|slot| !tomes.insert(slot.tome)) {
            Some(slot) => Err(TomeError::SameTome { group: id, tome: slot.tome }),
            None => Ok(Self { id, split, slots, epoch: Epoch::default() }),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> GroupId {
        self.id
    }

    /// Its code: how many members have data and how many parity.
    #[must_use]
    pub const fn split(&self) -> CodeParams {
        self.split
    }

    /// The regions, data first.
    #[must_use]
    pub fn slots(&self) -> &[RegionId] {
        &self.slots
    }

    /// How often a member slot moved: the higher epoch is the newer membership.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the group after a member slot moved.
    ///
    /// # Errors
    /// [`TomeError::ClaimedTwice`] when `from` does not have the member slot,
    /// [`TomeError::SameTome`] when the tome has another member slot of the group.
    pub fn after(&self, planned: &Move) -> Result<Self> {
        let Move { group, member, from, to } = *planned;
        if group != self.id || self.slots.get(member.as_usize()) != Some(&from) {
            return Err(TomeError::ClaimedTwice { region: from });
        }
        if self.has(to.tome) {
            return Err(TomeError::SameTome { group, tome: to.tome });
        }
        let mut after = self.clone();
        after.slots[member.as_usize()] = to;
        after.epoch = self.epoch.next();
        Ok(after)
    }

    /// Returns the member number of a region.
    #[must_use]
    pub fn member(&self, region: RegionId) -> Option<Member> {
        self.slots.iter().position(|slot| *slot == region).map(Member::at)
    }

    /// Returns the tome of parity number `parity`, from zero.
    ///
    /// # Panics
    /// When the group has no such parity.
    #[must_use]
    pub fn parity_tome(&self, parity: u8) -> TomeId {
        self.slots[self.split.data() as usize + usize::from(parity)].tome
    }

    fn has(&self, tome: TomeId) -> bool {
        self.slots.iter().any(|slot| slot.tome == tome)
    }
}

/// A member slot of a group that another region takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The group.
    pub group: GroupId,
    /// The member slot.
    pub member: Member,
    /// The region that had it.
    pub from: RegionId,
    /// The region that is to have it.
    pub to: RegionId,
}

/// What becomes of the member slots of a tome that leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retirement {
    /// The moves that start now, each to its own free region.
    pub moves: Vec<Move>,
    /// Groups for which no tome outside the group has a free region.
    pub unplaced: Vec<GroupId>,
    /// Number of moves to plan once another member slot of the same group has moved.
    pub later: usize,
}

/// All tomes and groups of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    split: CodeParams,
    free: BTreeMap<TomeId, BTreeSet<RegionIndex>>,
    groups: BTreeMap<GroupId, Group>,
    /// Tomes that are leaving: they take nothing new.
    leaving: BTreeSet<TomeId>,
}

impl Groups {
    /// Returns a set without tomes, whose groups use this code.
    ///
    /// # Errors
    /// [`TomeError::Range`] when the code does not suit a group.
    pub fn new(split: CodeParams) -> Result<Self> {
        let split = split.for_group()?;
        let (free, groups, leaving) = Default::default();
        Ok(Self { split, free, groups, leaving })
    }

    /// Adds a tome, all of whose regions are free.
    ///
    /// # Errors
    /// [`TomeError::DuplicateTome`] when there is one of this number.
    pub fn add_tome(&mut self, tome: TomeId, regions: u32) -> Result<()> {
        if self.free.contains_key(&tome) {
            return Err(TomeError::DuplicateTome { tome });
        }
        self.free.insert(tome, (0..regions).map(RegionIndex::new).collect());
        Ok(())
    }

    /// Adds an existing group, as its members report it.
    ///
    /// # Errors
    /// [`TomeError::DuplicateGroup`], [`TomeError::NoTome`], or [`TomeError::ClaimedTwice`] when
    /// one of its regions is not free: another group has it, or its tome has no such region. Then
    /// nothing is changed.
    pub fn claim(&mut self, group: Group) -> Result<()> {
        if self.groups.contains_key(&group.id) {
            return Err(TomeError::DuplicateGroup { group: group.id });
        }
        for &region in &group.slots {
            let tome = region.tome;
            let free = self.free.get(&tome).ok_or(TomeError::NoTome { tome })?;
            if !free.contains(&region.index) {
                return Err(TomeError::ClaimedTwice { region });
            }
        }
        group.slots.iter().for_each(|slot| self.take(*slot));
        self.groups.insert(group.id, group);
        Ok(())
    }

    /// Makes as many groups of free regions as possible, and returns them.
    ///
    /// # Panics
    /// When group numbers are used up.
    pub fn populate(&mut self) -> Vec<GroupId> {
        let mut made = Vec::new();
        while let Some(mut tomes) = self.emptiest(self.split.total() as usize) {
            let id = self.groups.last_key_value().map_or(0, |(id, _)| id.get() + 1);
            tomes.sort_unstable();
            let turn = id as usize % tomes.len();
            tomes.rotate_left(turn);
            let slots: Vec<RegionId> =
                tomes.into_iter().filter_map(|tome| self.first_free(tome)).collect();
            let group = Group::new(GroupId::new(id), self.split, slots);
            let group = group.expect("distinct tomes with room");
            group.slots.iter().for_each(|slot| self.take(*slot));
            made.push(group.id);
            self.groups.insert(group.id, group);
        }
        made
    }

    /// Returns a group by its number.
    ///
    /// # Errors
    /// [`TomeError::NoGroup`].
    pub fn get(&self, group: GroupId) -> Result<&Group> {
        self.groups.get(&group).ok_or(TomeError::NoGroup { group })
    }

    /// Returns all groups in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// Puts nothing new on a tome from now on: it was lost or is being retired.
    ///
    /// # Errors
    /// [`TomeError::NoTome`].
    pub fn leave(&mut self, tome: TomeId) -> Result<()> {
        self.free.get(&tome).ok_or(TomeError::NoTome { tome })?;
        self.leaving.insert(tome);
        Ok(())
    }

    /// Reserves the region of a move that was planned before.
    ///
    /// # Errors
    /// [`TomeError::ClaimedTwice`] when it is not free.
    pub fn plan(&mut self, planned: &Move) -> Result<()> {
        let to = planned.to;
        let is_free = self.free.get(&to.tome).is_some_and(|free| free.contains(&to.index));
        if !is_free {
            return Err(TomeError::ClaimedTwice { region: to });
        }
        self.take(to);
        Ok(())
    }

    /// Plans moves for all regions of a tome that was lost or is being retired: to the tomes with
    /// the most free regions that are not in the same group. Their regions are reserved at once;
    /// groups change when a move is done ([`Self::moved`]). Groups with a move in progress wait for
    /// its end, and those without room wait for more tomes: the next call plans them.
    ///
    /// # Errors
    /// [`TomeError::NoTome`].
    pub fn retire(&mut self, tome: TomeId, planned: &[Move]) -> Result<Retirement> {
        self.leave(tome)?;
        let is_planned = |group: &Group| planned.iter().any(|other| other.group == group.id);
        let of_tome = self.groups.values().filter(|group| group.has(tome));
        let (later, now): (Vec<&Group>, Vec<&Group>) = of_tome.partition(|g| is_planned(g));
        let mut retirement = Retirement::default();
        let is_own = |planned: &&Move| planned.from.tome == tome;
        let own = planned.iter().filter(is_own).count();
        retirement.later = later.len() - own.min(later.len());
        let slots: Vec<(GroupId, Member, RegionId)> =
            now.into_iter().filter_map(|group| slot_of(group, tome)).collect();
        for (group, member, from) in slots {
            match self.room_for(group) {
                Some(to) => {
                    self.take(to);
                    retirement.moves.push(Move { group, member, from, to });
                }
                None => retirement.unplaced.push(group),
            }
        }
        Ok(retirement)
    }

    /// Completes a move: the region was rebuilt and verified.
    ///
    /// # Errors
    /// [`TomeError::NoGroup`], [`TomeError::SameTome`], and [`TomeError::ClaimedTwice`] when `from`
    /// does not have the member slot.
    pub fn moved(&mut self, done: Move) -> Result<()> {
        let Move { group, from, .. } = done;
        let known = self.groups.get_mut(&group).ok_or(TomeError::NoGroup { group })?;
        *known = known.after(&done)?;
        self.give_back(from);
        Ok(())
    }

    /// Removes a tome that is in no group any more.
    ///
    /// # Errors
    /// [`TomeError::InUse`] while it is in a group.
    pub fn remove(&mut self, tome: TomeId) -> Result<()> {
        if let Some(group) = self.groups.values().find(|group| group.has(tome)) {
            return Err(TomeError::InUse { tome, group: group.id });
        }
        self.free.remove(&tome).ok_or(TomeError::NoTome { tome })?;
        self.leaving.remove(&tome);
        Ok(())
    }

    /// Number of free regions on all tomes that are not leaving.
    #[must_use]
    pub fn free_regions(&self) -> usize {
        self.staying().map(|(_, free)| free.len()).sum()
    }

    fn staying(&self) -> impl Iterator<Item = (TomeId, &BTreeSet<RegionIndex>)> {
        let stays = |tome: &TomeId| !self.leaving.contains(tome);
        self.free.iter().filter(move |(tome, _)| stays(tome)).map(|(tome, free)| (*tome, free))
    }

    /// Returns the `count` tomes with the most free regions; `None` if fewer have any.
    fn emptiest(&self, count: usize) -> Option<Vec<TomeId>> {
        let mut with_room: Vec<(std::cmp::Reverse<usize>, TomeId)> = self
            .staying()
            .filter(|(_, free)| !free.is_empty())
            .map(|(tome, free)| (std::cmp::Reverse(free.len()), tome))
            .collect();
        with_room.sort_unstable();
        let tomes = || with_room.iter().take(count).map(|(_, tome)| *tome).collect();
        (with_room.len() >= count).then(tomes)
    }

    fn room_for(&self, group: GroupId) -> Option<RegionId> {
        let group = self.groups.get(&group)?;
        let others = self.staying().filter(|(tome, free)| !group.has(*tome) && !free.is_empty());
        let emptiest = others.max_by_key(|(tome, free)| (free.len(), std::cmp::Reverse(*tome)))?;
        self.first_free(emptiest.0)
    }

    fn first_free(&self, tome: TomeId) -> Option<RegionId> {
        let index = *self.free.get(&tome)?.first()?;
        Some(RegionId { tome, index })
    }

    fn take(&mut self, region: RegionId) {
        let was_free = self.free.get_mut(&region.tome).is_some_and(|f| f.remove(&region.index));
        assert!(was_free, "region {region} is not free");
    }

    fn give_back(&mut self, region: RegionId) {
        if let Some(free) = self.free.get_mut(&region.tome) {
            free.insert(region.index);
        }
    }
}

fn slot_of(group: &Group, tome: TomeId) -> Option<(GroupId, Member, RegionId)> {
    let slots = group.slots.iter().enumerate();
    let mut of_tome = slots.filter(|(_, slot)| slot.tome == tome);
    of_tome.next().map(|(position, slot)| (group.id, Member::at(position), *slot))
}
