//! Membership states of a region while a member slot of its group moves.
//!
//! ```text
//! member ----> frozen for a move ----> member of the group after the move
//!                  '---> member again, when the move is dropped
//! building ----> member               '---> left, if it had the member slot
//! ```
//!
//! A frozen region is not written, and its parities take no more changes once they are quiet; so
//! sources read at different times are consistent. Not here: messages.

use std::collections::BTreeSet;

use fulgurite_units::{Instant, Ratio};
use serde::{Deserialize, Serialize};

use crate::group::{Group, Move};
use crate::rebuild::Rebuild;
use crate::{Member, RegionId, TomeId, Version};

/// The membership state of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembershipState {
    /// It is a member.
    #[default]
    Member,
    /// A member that is not written, while another member slot is rebuilt.
    Frozen(Move),
    /// It is being rebuilt.
    Building(Box<Building>),
    /// Another region has taken over its member slot.
    Left,
}

/// Progress of a region's rebuild: the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Building {
    /// The member slot that it takes over.
    pub planned: Move,
    /// When the rebuild began.
    pub since: Instant,
    /// Sources and factors, once chosen.
    pub plan: Option<Rebuild>,
    /// Segments of the current source that are in the sum.
    pub segment: u32,
    /// Members that were available when sources were chosen.
    pub available: BTreeSet<Member>,
    /// The last version that each data member wrote, as far as known.
    pub latest: Vec<Version>,
}

impl Building {
    /// Returns the checkpoint of a region that starts to take over a member slot.
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

    /// Returns the tomes to notify once it has the member slot: all other members, and the previous
    /// one.
    pub fn tomes_to_notify(&self, group: &Group) -> BTreeSet<TomeId> {
        let own = self.planned.to.tome;
        let others = group.slots().iter().map(|slot| slot.tome).filter(|tome| *tome != own);
        others.chain([self.planned.from.tome]).collect()
    }

    /// Returns the fraction of source blocks that was read.
    #[must_use]
    pub fn done(&self, segments: u32) -> Ratio {
        let Some(plan) = &self.plan else { return Ratio::ZERO };
        let (folded, sources) = plan.progress();
        let (segments, segment) = (f64::from(segments), f64::from(self.segment));
        let done = (folded as f64 * segments + segment) / (sources as f64 * segments);
        Ratio::new(done.min(1.0)).unwrap_or_default()
    }

    /// Returns the versions below which a rebuilt parity has every change of each data member.
    pub fn floors(&self) -> impl Iterator<Item = Version> {
        self.latest.iter().map(|latest| latest.next().unwrap_or_default())
    }

    /// Returns whether it can be the checkpoint of a region that takes over a member slot of a
    /// group.
    pub(crate) fn fits(&self, own: RegionId, group: &Group, segments: u32) -> bool {
        let slots = group.slots().len();
        let of_plan = |plan: &Rebuild| plan.sources().all(|source| source.as_usize() < slots);
        let data = group.split().data() as usize;
        self.planned.to == own
            && self.segment < segments
            && self.plan.as_ref().is_none_or(of_plan)
            && (self.plan.is_none() || self.latest.len() == data)
    }
}
