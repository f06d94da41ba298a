//! Chooses which disks of a group are spun up: all of them, or as few as the waiting operations
//! need.
//!
//! ```text
//! waiting: a needs 2 of {0 1 2}     --> spin up 1 2, and 3 only if one of them does not come up,
//!          b needs 2 of {1 2 3}         or another operation arrives meanwhile that needs it
//! ```
//!
//! Any k of the stacks of a blob are enough, so a read does not need all disks of its group
//! (Pelican, section 4.7, mentions this and leaves it open). The price: stacks on the other disks
//! are not checked, and a read that needs another disk waits until it comes up. Operations other
//! than reads take all disks there are. Ties go to the disks that were spun up least, so that all
//! wear evenly.

use fulgurite_units::{Instant, Outbox};

use crate::event::{Command, OpKind, Side};
use crate::limits::NEEDED_LOOK_MAX;
use crate::places::Motion;
use crate::rack::Rack;
use crate::{GroupId, Members, Op, Wakes};

/// Result of asking for the disks that an operation lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// None are lacking, or they were commanded to spin up.
    Told,
    /// They were spun up too often: not in this visit.
    Rests,
}

impl Rack {
    /// Returns the disks of a group to spin up for the operations waiting there.
    pub(crate) fn wanted(&self, id: GroupId) -> Members {
        let group = &self.groups[id.as_usize()];
        let all = Members::first(group.places.len());
        let class = &self.classes[group.class];
        let is_background = class.fair.turn() == Side::Background;
        let Some(spare) = self.policy.wakes.spare() else { return all };
        if group.init.is_some() || is_background {
            return all;
        }
        let mut reads = Vec::new();
        for waiting in class.client.of(group.number) {
            if takes_all(&waiting.op) || reads.len() == NEEDED_LOOK_MAX {
                return all;
            }
            reads.push((waiting.op.members, waiting.op.enough.saturating_add(spare)));
        }
        let may = all.positions().filter(|at| self.may_be_asked(id, *at)).collect();
        let woken = |at: usize| self.places.spot(group.places[at]).woken;
        fewest(&reads, may, woken)
    }

    /// Spins up the disks that an operation of the open group lacks.
    pub(crate) fn ask_for(&mut self, op: &Op, out: &mut Outbox<Command>) -> Asked {
        if self.policy.wakes == Wakes::All {
            return Asked::Told;
        }
        let mut asked = Asked::Told;
        for position in self.lacking(op) {
            let group = &self.groups[op.group.as_usize()];
            let coming = group.up.or(group.rising).and(op.members).count();
            if !takes_all(op) && coming >= op.enough {
                break;
            }
            if !self.has_room(op.group, position) {
                asked = Asked::Rests;
                continue;
            }
            self.raise(op.group, position, false, out);
            let group = &mut self.groups[op.group.as_usize()];
            group.asked = self.now;
            group.late = group.late.with(position);
        }
        let group = &self.groups[op.group.as_usize()];
        let coming = group.up.or(group.rising).and(op.members).count();
        if !takes_all(op) && coming >= op.enough { Asked::Told } else { asked }
    }

    /// Spins up the disks that a newly arrived read lacks, if its group is up or coming up and the
    /// read will be served in this visit. This overlaps with serving others.
    pub(crate) fn ask_ahead(&mut self, index: usize, op: &Op, out: &mut Outbox<Command>) {
        if self.policy.wakes == Wakes::All {
            return;
        }
        let class = &self.classes[index];
        let number = self.groups[op.group.as_usize()].number;
        let is_next = class.client.front(&self.look(index)) == Some(number);
        if !takes_all(op) && is_next && class.fair.turn() == Side::Client {
            self.ask_for(op, out);
        }
    }

    /// Returns the disks of an operation that do not spin and may be spun up, least used first.
    fn lacking(&self, op: &Op) -> Vec<usize> {
        let group = &self.groups[op.group.as_usize()];
        let moves = group.up.or(group.rising).or(group.blocked);
        let may = |at: &usize| !moves.contains(*at) && self.may_be_asked(op.group, *at);
        let mut lacking: Vec<usize> = op.members.positions().filter(may).collect();
        lacking.sort_by_key(|at| (self.places.spot(group.places[*at]).woken, *at));
        lacking
    }

    fn may_be_asked(&self, id: GroupId, position: usize) -> bool {
        let place = self.groups[id.as_usize()].places.get(position);
        place.is_some_and(|place| {
            let spot = self.places.spot(*place);
            spot.may_rise(self.now) && spot.motion != Motion::Sinking
        })
    }

    /// Whether disks that an operation takes are still coming up, and were commanded recently.
    pub(crate) fn still_takes(&self, op: &Op) -> bool {
        let group = &self.groups[op.group.as_usize()];
        let is_patient = self.now < group.asked + self.policy.rise_limit;
        self.policy.wakes != Wakes::All
            && takes_all(op)
            && is_patient
            && !group.rising.and(op.members).is_empty()
    }

    /// Whether a group that is coming up has enough disks for the first waiting operation, so that
    /// it need not wait for the slowest.
    pub(crate) fn is_enough(&self, index: usize, id: GroupId) -> bool {
        let (class, group) = (&self.classes[index], &self.groups[id.as_usize()]);
        let is_for_reads = self.policy.wakes != Wakes::All
            && group.init.is_none()
            && class.fair.turn() == Side::Client;
        let first = || class.client.head(group.number).map(|waiting| waiting.op);
        let has = |op: Op| !takes_all(&op) && group.up.and(op.members).count() >= op.enough;
        is_for_reads && first().is_some_and(has)
    }

    /// Whether a group must stay up because disks that were requested late are still coming up.
    pub(crate) fn is_awaited(&self, id: GroupId, since: Instant) -> bool {
        let group = &self.groups[id.as_usize()];
        !group.rising.and(group.late).is_empty()
            && self.now < since.max(group.asked) + self.patience()
    }

    /// Returns when a group stops staying up for disks requested late, or when operations that take
    /// all disks stop waiting for them.
    pub(crate) fn late_until(&self, id: GroupId) -> Option<Instant> {
        let group = &self.groups[id.as_usize()];
        let ends = [self.policy.rise_limit, self.patience()].map(|of| group.asked + of);
        ends.into_iter().filter(|at| !group.late.is_empty() && *at > self.now).min()
    }
}

/// Whether an operation takes all disks there are, rather than only as many as are enough.
pub(crate) const fn takes_all(op: &Op) -> bool {
    !matches!(op.kind, OpKind::Read | OpKind::Verify) || op.enough == 0
}

/// Greedily chooses few disks that give each read enough of its own: repeatedly the one that most
/// reads lack. Ties go to the disk that was spun up least.
fn fewest(reads: &[(Members, u32)], may: Members, woken: impl Fn(usize) -> u64) -> Members {
    let mut chosen = Members::NONE;
    loop {
        let lacks = |(members, enough): &&(Members, u32)| {
            chosen.and(*members).count() < *enough && chosen.and(*members) != may.and(*members)
        };
        let short: Vec<_> = reads.iter().filter(lacks).collect();
        let helps = |at: usize| short.iter().filter(|(members, _)| members.contains(at)).count();
        let open = may.positions().filter(|at| !chosen.contains(*at) && helps(*at) > 0);
        let next = open.min_by_key(|at| (std::cmp::Reverse(helps(*at)), woken(*at), *at));
        let Some(next) = next else { return chosen };
        chosen = chosen.with(next);
    }
}

#[cfg(test)]
mod tests;
