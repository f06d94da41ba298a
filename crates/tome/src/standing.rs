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

use fulgurite_units::Instant;
use serde::{Deserialize, Serialize};

use crate::group::{Group, Move};
use crate::rebuild::Rebuild;
use crate::{Member, TomeId, Version};

/// How a region stands in its group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
}
