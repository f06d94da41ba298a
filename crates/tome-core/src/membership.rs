//! The membership of a region in its group, persisted as one row and changed by rows.
//!
//! Not here: the meaning of membership states ([`crate::membership_state`]).

use std::collections::BTreeSet;

use crate::group::Group;
use crate::membership_state::MembershipState;
use crate::metadata::Row;
use crate::{Member, RegionId, TomeId, Version};

/// The membership of a region, with all that changes when member slots move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The group that it is or was in.
    pub group: Group,
    /// Its member number there.
    pub member: Member,
    /// Its membership state.
    pub state: MembershipState,
    /// The last version that its blocks had, including discarded ones.
    pub latest: Version,
    /// Whether its blocks were rebuilt, so that names of their objects may be unknown here.
    pub is_rebuilt: bool,
    /// Tomes that have yet to learn that it took its member slot.
    pub unnotified: BTreeSet<TomeId>,
}

impl Membership {
    /// Returns the membership of a region that has always been a member; `None` when it is not in
    /// the group.
    #[must_use]
    pub fn new(group: Group, own: RegionId) -> Option<Self> {
        let member = group.member(own)?;
        Some(Self {
            group,
            member,
            state: MembershipState::Member,
            latest: Version::NONE,
            is_rebuilt: false,
            unnotified: BTreeSet::new(),
        })
    }

    /// Whether it has data, not parity.
    #[must_use]
    pub fn is_data(&self) -> bool {
        u32::from(self.member.get()) < self.group.split().data()
    }

    /// Whether this membership is possible for a region of a tome whose regions have this many
    /// segments.
    #[must_use]
    pub fn fits(&self, own: RegionId, segments: u32) -> bool {
        let is_slot = self.group.member(own) == Some(self.member);
        match &self.state {
            MembershipState::Member | MembershipState::Frozen(_) => is_slot,
            MembershipState::Building(building) => {
                is_slot && building.fits(own, &self.group, segments)
            }
            MembershipState::Left => self.member.as_usize() < self.group.slots().len(),
        }
    }

    /// Applies a row about membership. Other rows change nothing.
    pub fn apply(&mut self, own: RegionId, row: &Row) {
        match row {
            Row::Frozen { planned, .. } => {
                self.state = planned.map_or(MembershipState::Member, MembershipState::Frozen);
            }
            Row::Building { building, .. } => {
                // Its tome wrote versions up to here before it was lost.
                let wrote = building.latest.get(self.member.as_usize());
                self.latest = self.latest.max(wrote.copied().unwrap_or_default());
                self.state = MembershipState::Building(Box::new(building.clone()));
            }
            Row::SlotBuilt { .. } => {
                let MembershipState::Building(building) = std::mem::take(&mut self.state) else {
                    return;
                };
                self.unnotified = building.tomes_to_notify(&self.group);
                self.is_rebuilt = self.is_data();
            }
            Row::Named { .. } => self.is_rebuilt = false,
            Row::Learned { tome, .. } => {
                self.unnotified.remove(tome);
            }
            Row::Regroup { group, .. } => {
                self.group = group.clone();
                let is_member = group.member(own).is_some();
                self.state =
                    if is_member { MembershipState::Member } else { MembershipState::Left };
                self.unnotified.retain(|tome| group.slots().iter().any(|slot| slot.tome == *tome));
            }
            Row::MemberSlot { .. }
            | Row::Block { .. }
            | Row::Pending { .. }
            | Row::Sent { .. }
            | Row::Confirmed { .. }
            | Row::Stored { .. }
            | Row::Folded { .. }
            | Row::Floor { .. }
            | Row::Cleared { .. }
            | Row::Dropped { .. }
            | Row::Object { .. }
            | Row::Removed { .. }
            | Row::Scrubbed(_) => {}
        }
    }
}
