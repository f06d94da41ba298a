//! What is known of each group and class. Values, and questions about one of them alone.

use std::collections::VecDeque;

use fulgurite_units::Instant;

use crate::due::{Look, Visit};
use crate::event::{OpKind, Side};
use crate::fair::Fair;
use crate::line::Line;
use crate::pace::Measured;
use crate::queue::Waiting;
use crate::{GroupId, Members, Op, OpId, PlaceId};

/// A group of disks.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) class: usize,
    /// Its number among the groups of its class.
    pub(crate) number: usize,
    pub(crate) places: Vec<PlaceId>,
    /// Disks that spin and are mounted.
    pub(crate) up: Members,
    /// Disks that were told to spin up.
    pub(crate) rising: Members,
    /// Those of them that the group waits for: the first attempt of this turn.
    pub(crate) first: Members,
    /// Disks that were told to stop.
    pub(crate) sinking: Members,
    /// Disks that should rise and find a domain taken by one that does not obey.
    pub(crate) blocked: Members,
    /// Disks that are lost.
    pub(crate) lost: Members,
    /// Disks that did not spin up and rest.
    pub(crate) resting: Members,
    /// Disks that were asked for after the others in this turn.
    pub(crate) late: Members,
    /// When they last were.
    pub(crate) asked: Instant,
    /// When the bucket of spin-ups of each of its disks is full again, at the latest.
    pub(crate) full: Instant,
    /// The first look at its disks, if it is still to come.
    pub(crate) init: Option<Waiting>,
}

impl Group {
    pub(crate) fn new(class: usize, number: usize, places: &[PlaceId]) -> Self {
        Self {
            class,
            number,
            places: places.to_vec(),
            up: Members::NONE,
            rising: Members::NONE,
            first: Members::NONE,
            sinking: Members::NONE,
            blocked: Members::NONE,
            lost: Members::NONE,
            resting: Members::NONE,
            late: Members::NONE,
            asked: Instant::ZERO,
            full: Instant::ZERO,
            init: None,
        }
    }

    /// A disk is in no set of those that move.
    pub(crate) const fn still(&mut self, position: usize) {
        self.up = self.up.without(position);
        self.rising = self.rising.without(position);
        self.first = self.first.without(position);
        self.sinking = self.sinking.without(position);
        self.blocked = self.blocked.without(position);
    }
}

/// Which group of a class spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// None.
    Still,
    /// One comes up.
    Rising { group: GroupId, since: Instant },
    /// One is up.
    Up { group: GroupId, since: Instant },
    /// One goes down.
    Sinking { group: GroupId },
}

impl Phase {
    /// The group that spins or comes up.
    pub(crate) const fn group(self) -> Option<GroupId> {
        match self {
            Self::Rising { group, .. } | Self::Up { group, .. } => Some(group),
            Self::Still | Self::Sinking { .. } => None,
        }
    }
}

/// An operation that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) op: Op,
    pub(crate) since: Instant,
}

/// What its groups are for, and who waits for them.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) groups: Vec<GroupId>,
    /// Which of the units that groups lie in is its own; classes of one may have to take turns.
    pub(crate) half: u32,
    pub(crate) client: Line,
    pub(crate) background: Line,
    /// Groups whose first look is to come, the oldest first.
    pub(crate) inits: VecDeque<GroupId>,
    pub(crate) fair: Fair,
    pub(crate) measured: Measured,
    pub(crate) phase: Phase,
    /// For which operation the group came up.
    pub(crate) cause: (OpId, OpKind),
    /// When it was decided to have another group.
    pub(crate) switch_since: Instant,
    /// A group that has just come up serves first, whose turn it is meanwhile.
    pub(crate) is_fresh: bool,
    /// The last operation that was started was one of a client.
    pub(crate) has_ridden: bool,
    pub(crate) running: Vec<Running>,
    /// Since when nobody wants anything.
    pub(crate) idle_since: Option<Instant>,
    /// Whether it worked since it was looked at last.
    pub(crate) was_busy: bool,
    pub(crate) wake_at: Option<Instant>,
}

impl Class {
    pub(crate) const fn queue(&mut self, side: Side) -> &mut Line {
        match side {
            Side::Client => &mut self.client,
            Side::Background => &mut self.background,
        }
    }

    pub(crate) fn waits(&self, side: Side) -> bool {
        match side {
            Side::Client => self.client.len() > 0 || !self.inits.is_empty(),
            Side::Background => self.background.len() > 0,
        }
    }

    /// What its queues are looked at with; `number` is that of the group that is up.
    pub(crate) fn look(&self, now: Instant, number: impl FnOnce(GroupId) -> usize) -> Look {
        let spinning = match self.phase {
            Phase::Up { group, since } => {
                Some(Visit { number: number(group), since, is_fresh: self.is_fresh })
            }
            Phase::Still | Phase::Rising { .. } | Phase::Sinking { .. } => None,
        };
        Look { now, spinning, measured: self.measured }
    }

    /// Whether something of a side waits that is to be done now.
    pub(crate) fn wants(&self, side: Side, look: &Look) -> bool {
        match side {
            Side::Client => !self.inits.is_empty() || self.client.front(look).is_some(),
            Side::Background => self.background.front(look).is_some(),
        }
    }

    /// Decides whose turn it is.
    pub(crate) fn choose_turn(&mut self, look: &Look) -> Side {
        let [client, background] =
            [Side::Client, Side::Background].map(|side| self.wants(side, look));
        self.fair.choose(client, background);
        self.fair.turn()
    }

    pub(crate) fn is_busy(&self) -> bool {
        let is_moving = matches!(self.phase, Phase::Rising { .. } | Phase::Sinking { .. });
        is_moving || !self.running.is_empty()
    }
}
