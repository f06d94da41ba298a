//! State of each group and class: plain values, and queries on one of them.

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
    /// Its index in its class.
    pub(crate) number: usize,
    pub(crate) places: Vec<PlaceId>,
    /// Disks that spin and are mounted.
    pub(crate) up: Members,
    /// Disks that were commanded to spin up.
    pub(crate) rising: Members,
    /// Those of them that the group waits for: in the first attempt of this visit.
    pub(crate) first: Members,
    /// Disks that were commanded to spin down.
    pub(crate) sinking: Members,
    /// Disks that should spin up but lack capacity in a domain because of a disk that does not
    /// obey.
    pub(crate) blocked: Members,
    /// Disks that are lost.
    pub(crate) lost: Members,
    /// Disks in backoff after a failed spin-up.
    pub(crate) resting: Members,
    /// Disks that were requested late in this visit.
    pub(crate) late: Members,
    /// When the last of these was requested.
    pub(crate) asked: Instant,
    /// When the token buckets of all its disks are full again.
    pub(crate) full: Instant,
    /// Its initialization, if still pending.
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

    /// Removes a disk from all sets of moving disks.
    pub(crate) const fn still(&mut self, position: usize) {
        self.up = self.up.without(position);
        self.rising = self.rising.without(position);
        self.first = self.first.without(position);
        self.sinking = self.sinking.without(position);
        self.blocked = self.blocked.without(position);
    }
}

/// The phase of a class: which group spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No group spins.
    Still,
    /// A group is coming up.
    Rising { group: GroupId, since: Instant },
    /// A group is up.
    Up { group: GroupId, since: Instant },
    /// A group is going down.
    Sinking { group: GroupId },
}

impl Phase {
    /// Returns the group that spins or is coming up.
    pub(crate) const fn group(self) -> Option<GroupId> {
        match self {
            Self::Rising { group, .. } | Self::Up { group, .. } => Some(group),
            Self::Still | Self::Sinking { .. } => None,
        }
    }
}

/// A running operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) op: Op,
    pub(crate) since: Instant,
}

/// A class with its groups, queues and phase.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) groups: Vec<GroupId>,
    /// The unit (half) that its groups lie in; classes of the same half may have to spin up in
    /// turn.
    pub(crate) half: u32,
    pub(crate) client: Line,
    pub(crate) background: Line,
    /// Groups with a pending initialization, oldest first.
    pub(crate) inits: VecDeque<GroupId>,
    pub(crate) fair: Fair,
    pub(crate) measured: Measured,
    pub(crate) phase: Phase,
    /// The operation that the group came up for.
    pub(crate) cause: (OpId, OpKind),
    /// When the switch to another group was decided.
    pub(crate) switch_since: Instant,
    /// Whether the group has just come up; it serves first, regardless of the turn.
    pub(crate) is_fresh: bool,
    /// Whether the last operation started was a client's.
    pub(crate) has_ridden: bool,
    pub(crate) running: Vec<Running>,
    /// Since when the class has no work.
    pub(crate) idle_since: Option<Instant>,
    /// Whether it was busy since the last call.
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

    /// Returns the view for its queues; `number` gives the index of the group that is up.
    pub(crate) fn look(&self, now: Instant, number: impl FnOnce(GroupId) -> usize) -> Look {
        let spinning = match self.phase {
            Phase::Up { group, since } => {
                Some(Visit { number: number(group), since, is_fresh: self.is_fresh })
            }
            Phase::Still | Phase::Rising { .. } | Phase::Sinking { .. } => None,
        };
        Look { now, spinning, measured: self.measured }
    }

    /// Whether a side has something to do now.
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
