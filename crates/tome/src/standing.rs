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
    pub(crate) fn fits(&self, own: RegionId, group: &Group, segments: u32) -> bool {
        let seats = group.seats().len();
        let of_plan = |plan: &Rebuild| plan.sources().all(|source| source.as_usize() < seats);
        let data = group.split().data() as usize;
        self.planned.to == own
            && self.segment < segments
            && self.plan.as_ref().is_none_or(of_plan)
            && (self.plan.is_none() || self.latest.len() == data)
    }
}
