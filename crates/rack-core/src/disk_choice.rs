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
use crate::limits::NEEDED_READS_MAX;
use crate::places::SpinState;
use crate::rack::Rack;
use crate::{GroupId, Members, Op, SpinUps};

/// Result of requesting the disks that an operation lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestResult {
    /// None are lacking, or they were commanded to spin up.
    Requested,
    /// They were spun up too often: not in this visit.
    OverBudget,
}

impl Rack {
    /// Returns the disks of a group to spin up for the operations waiting there.
    pub(crate) fn disks_to_spin_up(&self, id: GroupId) -> Members {
        let group = &self.groups[id.as_usize()];
        let all = Members::first(group.places.len());
        let class = &self.classes[group.class];
        let is_background = class.fair_share.turn() == Side::Background;
        let Some(spare) = self.policy.spin_ups.spare() else { return all };
        if group.init.is_some() || is_background {
            return all;
        }
        let mut reads = Vec::new();
        for waiting in class.client.operations(group.number) {
            if needs_all(&waiting.op) || reads.len() == NEEDED_READS_MAX {
                return all;
            }
            reads.push((waiting.op.members, waiting.op.enough.saturating_add(spare)));
        }
        let may = all.positions().filter(|at| self.can_be_requested(id, *at)).collect();
        let spun_up = |at: usize| self.places.disk(group.places[at]).spun_up;
        fewest_disks(&reads, may, spun_up)
    }

    /// Spins up the disks that an operation of the open group lacks.
    pub(crate) fn request_disks(&mut self, op: &Op, out: &mut Outbox<Command>) -> RequestResult {
        if self.policy.spin_ups == SpinUps::All {
            return RequestResult::Requested;
        }
        let mut requested = RequestResult::Requested;
        for position in self.lacking(op) {
            let group = &self.groups[op.group.as_usize()];
            let coming = group.up.union(group.spinning_up).intersection(op.members).count();
            if !needs_all(op) && coming >= op.enough {
                break;
            }
            if !self.has_spin_up_budget(op.group, position) {
                requested = RequestResult::OverBudget;
                continue;
            }
            self.spin_up_disk(op.group, position, false, out);
            let group = &mut self.groups[op.group.as_usize()];
            group.requested = self.now;
            group.late = group.late.with(position);
        }
        let group = &self.groups[op.group.as_usize()];
        let coming = group.up.union(group.spinning_up).intersection(op.members).count();
        if !needs_all(op) && coming >= op.enough { RequestResult::Requested } else { requested }
    }

    /// Spins up the disks that a newly arrived read lacks, if its group is up or coming up and the
    /// read will be served in this visit. This overlaps with serving others.
    pub(crate) fn request_early(&mut self, index: usize, op: &Op, out: &mut Outbox<Command>) {
        if self.policy.spin_ups == SpinUps::All {
            return;
        }
        let class = &self.classes[index];
        let number = self.groups[op.group.as_usize()].number;
        let is_next = class.client.front(&self.view(index)) == Some(number);
        if !needs_all(op) && is_next && class.fair_share.turn() == Side::Client {
            self.request_disks(op, out);
        }
    }

    /// Returns the disks of an operation that do not spin and may be spun up, least used first.
    fn lacking(&self, op: &Op) -> Vec<usize> {
        let group = &self.groups[op.group.as_usize()];
        let moves = group.up.union(group.spinning_up).union(group.blocked);
        let may = |at: &usize| !moves.contains(*at) && self.can_be_requested(op.group, *at);
        let mut lacking: Vec<usize> = op.members.positions().filter(may).collect();
        lacking.sort_by_key(|at| (self.places.disk(group.places[*at]).spun_up, *at));
        lacking
    }

    fn can_be_requested(&self, id: GroupId, position: usize) -> bool {
        let place = self.groups[id.as_usize()].places.get(position);
        place.is_some_and(|place| {
            let disk = self.places.disk(*place);
            disk.can_spin_up(self.now) && disk.spin_state != SpinState::SpinningDown
        })
    }

    /// Whether disks that an operation takes are still coming up, and were commanded recently.
    pub(crate) fn is_waiting_for_disks(&self, op: &Op) -> bool {
        let group = &self.groups[op.group.as_usize()];
        let is_patient = self.now < group.requested + self.policy.rise_limit;
        self.policy.spin_ups != SpinUps::All
            && needs_all(op)
            && is_patient
            && !group.spinning_up.intersection(op.members).is_empty()
    }

    /// Whether a group that is coming up has enough disks for the first waiting operation, so that
    /// it need not wait for the slowest.
    pub(crate) fn is_enough(&self, index: usize, id: GroupId) -> bool {
        let (class, group) = (&self.classes[index], &self.groups[id.as_usize()]);
        let is_for_reads = self.policy.spin_ups != SpinUps::All
            && group.init.is_none()
            && class.fair_share.turn() == Side::Client;
        let first = || class.client.head(group.number).map(|waiting| waiting.op);
        let has =
            |op: Op| !needs_all(&op) && group.up.intersection(op.members).count() >= op.enough;
        is_for_reads && first().is_some_and(has)
    }

    /// Whether a group must stay up because disks that were requested late are still coming up.
    pub(crate) fn is_awaited(&self, id: GroupId, since: Instant) -> bool {
        let group = &self.groups[id.as_usize()];
        !group.spinning_up.intersection(group.late).is_empty()
            && self.now < since.max(group.requested) + self.patience()
    }

    /// Returns when a group stops staying up for disks requested late, or when operations that take
    /// all disks stop waiting for them.
    pub(crate) fn late_until(&self, id: GroupId) -> Option<Instant> {
        let group = &self.groups[id.as_usize()];
        let ends = [self.policy.rise_limit, self.patience()].map(|of| group.requested + of);
        ends.into_iter().filter(|at| !group.late.is_empty() && *at > self.now).min()
    }
}

/// Whether an operation takes all disks there are, rather than only as many as are enough.
pub(crate) const fn needs_all(op: &Op) -> bool {
    !matches!(op.kind, OpKind::Read | OpKind::Verify) || op.enough == 0
}

/// Greedily chooses few disks that give each read enough of its own: repeatedly the one that most
/// reads lack. Ties go to the disk that was spun up least.
fn fewest_disks(reads: &[(Members, u32)], may: Members, spun_up: impl Fn(usize) -> u64) -> Members {
    let mut chosen = Members::NONE;
    loop {
        let lacks = |(members, enough): &&(Members, u32)| {
            chosen.intersection(*members).count() < *enough
                && chosen.intersection(*members) != may.intersection(*members)
        };
        let short: Vec<_> = reads.iter().filter(lacks).collect();
        let helps = |at: usize| short.iter().filter(|(members, _)| members.contains(at)).count();
        let open = may.positions().filter(|at| !chosen.contains(*at) && helps(*at) > 0);
        let next = open.min_by_key(|at| (std::cmp::Reverse(helps(*at)), spun_up(*at), *at));
        let Some(next) = next else { return chosen };
        chosen = chosen.with(next);
    }
}

#[cfg(test)]
mod tests;
