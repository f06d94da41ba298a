//! State of each group and class: plain values, and queries on one of them.

use std::collections::VecDeque;

use fulgurite_units::Instant;

use crate::due::{ClassView, Visit};
use crate::event::{OpKind, Side};
use crate::fair_share::FairShare;
use crate::pace::Measured;
use crate::queue::Waiting;
use crate::side_queue::SideQueue;
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
    pub(crate) spinning_up: Members,
    /// Those of them that the group waits for: in the first attempt of this visit.
    pub(crate) first: Members,
    /// Disks that were commanded to spin down.
    pub(crate) spinning_down: Members,
    /// Disks that should spin up but lack capacity in a domain because of a disk that does not
    /// obey.
    pub(crate) blocked: Members,
    /// Disks that are lost.
    pub(crate) lost: Members,
    /// Disks in backoff after a failed spin-up.
    pub(crate) in_backoff: Members,
    /// Disks that were requested late in this visit.
    pub(crate) late: Members,
    /// When the last of these was requested.
    pub(crate) requested: Instant,
    /// When the token buckets of all its disks are full again.
    pub(crate) full_at: Instant,
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
            spinning_up: Members::NONE,
            first: Members::NONE,
            spinning_down: Members::NONE,
            blocked: Members::NONE,
            lost: Members::NONE,
            in_backoff: Members::NONE,
            late: Members::NONE,
            requested: Instant::ZERO,
            full_at: Instant::ZERO,
            init: None,
        }
    }

    /// Removes a disk from all sets of moving disks.
    pub(crate) const fn mark_stopped(&mut self, position: usize) {
        self.up = self.up.without(position);
        self.spinning_up = self.spinning_up.without(position);
        self.first = self.first.without(position);
        self.spinning_down = self.spinning_down.without(position);
        self.blocked = self.blocked.without(position);
    }
}

/// The phase of a class: which group spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No group spins.
    Stopped,
    /// A group is coming up.
    SpinningUp { group: GroupId, since: Instant },
    /// A group is up.
    Up { group: GroupId, since: Instant },
    /// A group is going down.
    SpinningDown { group: GroupId },
}

impl Phase {
    /// Returns the group that spins or is coming up.
    pub(crate) const fn group(self) -> Option<GroupId> {
        match self {
            Self::SpinningUp { group, .. } | Self::Up { group, .. } => Some(group),
            Self::Stopped | Self::SpinningDown { .. } => None,
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
    pub(crate) within_unit: u32,
    pub(crate) client: SideQueue,
    pub(crate) background: SideQueue,
    /// Groups with a pending initialization, oldest first.
    pub(crate) inits: VecDeque<GroupId>,
    pub(crate) fair_share: FairShare,
    pub(crate) measured: Measured,
    pub(crate) phase: Phase,
    /// The operation that the group came up for.
    pub(crate) cause: (OpId, OpKind),
    /// When the switch to another group was decided.
    pub(crate) switch_since: Instant,
    /// Whether the group has just come up; it serves first, regardless of the turn.
    pub(crate) is_fresh: bool,
    /// Whether the last operation started was a client's.
    pub(crate) has_piggybacked: bool,
    pub(crate) running: Vec<Running>,
    /// Since when the class has no work.
    pub(crate) idle_since: Option<Instant>,
    /// Whether it was busy since the last call.
    pub(crate) was_busy: bool,
    pub(crate) timer_at: Option<Instant>,
}

impl Class {
    pub(crate) const fn queue(&mut self, side: Side) -> &mut SideQueue {
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
    pub(crate) fn view(&self, now: Instant, number: impl FnOnce(GroupId) -> usize) -> ClassView {
        let spinning = match self.phase {
            Phase::Up { group, since } => {
                Some(Visit { number: number(group), since, is_fresh: self.is_fresh })
            }
            Phase::Stopped | Phase::SpinningUp { .. } | Phase::SpinningDown { .. } => None,
        };
        ClassView { now, spinning, measured: self.measured }
    }

    /// Whether a side has something to do now.
    pub(crate) fn wants(&self, side: Side, view: &ClassView) -> bool {
        match side {
            Side::Client => !self.inits.is_empty() || self.client.front(view).is_some(),
            Side::Background => self.background.front(view).is_some(),
        }
    }

    /// Decides whose turn it is.
    pub(crate) fn choose_turn(&mut self, view: &ClassView) -> Side {
        let [client, background] =
            [Side::Client, Side::Background].map(|side| self.wants(side, view));
        self.fair_share.choose(client, background);
        self.fair_share.turn()
    }

    pub(crate) fn is_busy(&self) -> bool {
        let is_moving = matches!(self.phase, Phase::SpinningUp { .. } | Phase::SpinningDown { .. });
        is_moving || !self.running.is_empty()
    }
}
