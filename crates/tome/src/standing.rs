//! How a region stands in its group while a seat of it moves.
//!
//! ```text
//! member ----> frozen for a move ----> member of the group with the seat moved
//!                  '---> member again, when the move is dropped
//! building ----> member               '---> left, if it had the seat
//! ```
//!
//! A frozen region is not written, and its parities take no more changes once they are quiet; so
//! what sources tell at different times belongs together. Not here: messages.

use std::collections::BTreeSet;

use fulgurite_units::{Instant, Ratio};
use serde::{Deserialize, Serialize};

use crate::awake::Row;
use crate::group::{Group, Move};
use crate::rebuild::Rebuild;
use crate::{Member, RegionId, TomeId, Version};

/// How a region stands in its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It is a member.
    #[default]
    Member,
    /// It is a member that is not written, while the seat of another one is made anew.
    Frozen(Move),
    /// It is being made anew.
    Building(Box<Building>),
    /// Another region has its seat now.
    Left,
}

/// How far a region is that is made anew: the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Building {
    /// The seat that it takes.
    pub planned: Move,
    /// When it began.
    pub since: Instant,
    /// Sources and factors, when those are known.
    pub plan: Option<Rebuild>,
    /// Segments of the source whose turn it is that are in the sum.
    pub segment: u32,
    /// Members that were there when sources were chosen.
    pub available: BTreeSet<Member>,
    /// The last version that each data member wrote, as far as is known.
    pub latest: Vec<Version>,
}

impl Building {
    /// A region that is to take a seat.
    #[must_use]
    pub const fn new(planned: Move, since: Instant) -> Self {
        Self {
            planned,
            since,
            plan: None,
            segment: 0,
            available: BTreeSet::new(),
            latest: Vec::new(),
        }
    }

    /// The tomes that have to know when it has the seat: all others, and the one that had it.
    pub fn to_tell(&self, group: &Group) -> BTreeSet<TomeId> {
        let own = self.planned.to.tome;
        let others = group.seats().iter().map(|seat| seat.tome).filter(|tome| *tome != own);
        others.chain([self.planned.from.tome]).collect()
    }

    /// How much of the blocks that are to be read of sources was.
    #[must_use]
    pub fn done(&self, segments: u32) -> Ratio {
        let Some(plan) = &self.plan else { return Ratio::ZERO };
        let (folded, sources) = plan.progress();
        let (segments, segment) = (f64::from(segments), f64::from(self.segment));
        let done = (folded as f64 * segments + segment) / (sources as f64 * segments);
        Ratio::new(done.min(1.0)).unwrap_or_default()
    }

    /// Below these versions a parity that was made anew has everything of each data member.
    pub fn floors(&self) -> impl Iterator<Item = Version> {
        self.latest.iter().map(|latest| latest.next().unwrap_or_default())
    }

    /// Whether it can be the checkpoint of a region that takes a seat of a group.
    fn fits(&self, own: RegionId, group: &Group, segments: u32) -> bool {
        let seats = group.seats().len();
        let of_plan = |plan: &Rebuild| plan.sources().all(|source| source.as_usize() < seats);
        let data = group.split().data() as usize;
        self.planned.to == own
            && self.segment < segments
            && self.plan.as_ref().is_none_or(of_plan)
            && (self.plan.is_none() || self.latest.len() == data)
    }
}

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
