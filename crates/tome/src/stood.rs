//! The place of a region in its group, kept as one row and changed by rows.
//!
//! Not here: what standings mean ([`crate::standing`]).

use std::collections::BTreeSet;

use crate::awake::Row;
use crate::group::Group;
use crate::standing::Standing;
use crate::{Member, RegionId, TomeId, Version};

/// The place of a region in its group, with all that changes when seats move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stood {
    /// The group that it is in, or was.
    pub group: Group,
    /// Which member of that.
    pub member: Member,
    /// How it stands there.
    pub standing: Standing,
    /// The last version that its blocks had, those that were thrown away among them.
    pub latest: Version,
    /// Whether its blocks were made anew, and names of their objects may not be known here.
    pub is_rebuilt: bool,
    /// Tomes that are to be told that it took its seat.
    pub untold: BTreeSet<TomeId>,
}

impl Stood {
    /// That of a region that is a member and was never anything else; none when the group does not
    /// have it.
    #[must_use]
    pub fn new(group: Group, own: RegionId) -> Option<Self> {
        let member = group.member(own)?;
        Some(Self {
            group,
            member,
            standing: Standing::Member,
            latest: Version::NONE,
            is_rebuilt: false,
            untold: BTreeSet::new(),
        })
    }

    /// Whether it has data, and not parity.
    #[must_use]
    pub fn is_data(&self) -> bool {
        u32::from(self.member.get()) < self.group.split().data()
    }

    /// Whether a region can stand so, of a tome whose regions have so many segments.
    #[must_use]
    pub fn fits(&self, own: RegionId, segments: u32) -> bool {
        let is_seat = self.group.member(own) == Some(self.member);
        match &self.standing {
            Standing::Member | Standing::Frozen(_) => is_seat,
            Standing::Building(building) => is_seat && building.fits(own, &self.group, segments),
            Standing::Left => self.member.as_usize() < self.group.seats().len(),
        }
    }

    /// Changes as a row about seats says. Others change nothing.
    pub fn apply(&mut self, own: RegionId, row: &Row) {
        match row {
            Row::Frozen { planned, .. } => {
                self.standing = planned.map_or(Standing::Member, Standing::Frozen);
            }
            Row::Building { building, .. } => {
                // What its tome wrote before it was lost had versions up to there.
                let wrote = building.latest.get(self.member.as_usize());
                self.latest = self.latest.max(wrote.copied().unwrap_or_default());
                self.standing = Standing::Building(Box::new(building.clone()));
            }
            Row::Seated { .. } => {
                let Standing::Building(building) = std::mem::take(&mut self.standing) else {
                    return;
                };
                self.untold = building.to_tell(&self.group);
                self.is_rebuilt = self.is_data();
            }
            Row::Named { .. } => self.is_rebuilt = false,
            Row::Learned { tome, .. } => {
                self.untold.remove(tome);
            }
            Row::Regroup { group, .. } => {
                self.group = group.clone();
                let is_member = group.member(own).is_some();
                self.standing = if is_member { Standing::Member } else { Standing::Left };
                self.untold.retain(|tome| group.seats().iter().any(|seat| seat.tome == *tome));
            }
            Row::Seat { .. }
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
