//! Chooses what runs next in a spinning group, and which group is next.
//!
//! Whose turn it is selects the queue, and the first operation of the queue selects the group. The
//! initialization of a group precedes everything else in it. Other groups are initialized when
//! clients want nothing, or when they have waited long enough (Pelican, section 3). During a turn
//! of rebuilds, clients of the same group are served as they arrive, since it spins anyway.

use fulgurite_units::{Instant, Outbox};

use crate::disk_choice::{RequestResult, needs_all};
use crate::due::ClassView;
use crate::event::{Command, OpKind, Refusal, Side};
use crate::limits::SPIN_UP_BACKOFF;
use crate::queue::Waiting;
use crate::rack::Rack;
use crate::state::Running;
use crate::{GroupId, Members, Op, OpId, SpinUps};

/// Whether an operation can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// Disks that it needs are still coming up.
    Waits,
    /// Only this many of its disks spin, and no more will in this visit.
    TooFew(u32),
}

/// What comes next in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The initialization of a group.
    Init(GroupId),
    /// The first operation of a side, in its group.
    Front(Side, GroupId),
    Nothing,
}

impl Rack {
    /// Starts what can be started in the spinning group, or spins it down for another. Returns
    /// whether there is more to do.
    pub(crate) fn serve(
        &mut self,
        index: usize,
        id: GroupId,
        since: Instant,
        out: &mut Outbox<Command>,
    ) -> bool {
        let group = &self.groups[id.as_usize()];
        if !group.in_backoff.union(group.blocked).is_empty() {
            self.spin_up_missing(id, out);
        }
        let class = &self.classes[index];
        if class.running.len() >= self.policy.at_once {
            return false;
        }
        if self.groups[id.as_usize()].init.is_some() {
            return self.start_init(index, id, out);
        }
        if class.running.iter().any(|running| running.op.kind == OpKind::Init) {
            return false;
        }
        let view = self.view(index);
        if !class.is_fresh || !class.wants(class.fair_share.turn(), &view) {
            self.classes[index].choose_turn(&view);
        }
        let next = self.next(index, &view);
        let is_rebuilt = next == Next::Front(Side::Background, id);
        if is_rebuilt && self.start_piggyback(index, id, out) {
            return true;
        }
        match next {
            Next::Front(side, group) if group == id => {
                self.start_front(index, side, (id, since), out)
            }
            Next::Front(..) | Next::Init(_) if self.is_awaited(id, since) => false,
            Next::Front(..) | Next::Init(_) => self.leave(index, id, out),
            Next::Nothing => self.handle_idle(index, id, out),
        }
    }

    /// Returns the next group, with the operation it is brought up for.
    pub(crate) fn next_target(
        &mut self,
        index: usize,
        out: &mut Outbox<Command>,
    ) -> Option<(GroupId, (OpId, OpKind))> {
        loop {
            let view = self.view(index);
            self.classes[index].choose_turn(&view);
            match self.next(index, &view) {
                Next::Init(group) => {
                    let init = self.groups[group.as_usize()].init?;
                    return Some((group, (init.op.id, OpKind::Init)));
                }
                Next::Front(side, group) => {
                    let number = self.groups[group.as_usize()].number;
                    let queue = self.classes[index].queue(side);
                    let op = queue.head(number)?.op;
                    let Some(refusal) = self.too_few(&op) else {
                        return Some((group, (op.id, op.kind)));
                    };
                    self.classes[index].queue(side).pop(number);
                    self.refuse(op.id, refusal, out);
                }
                Next::Nothing => return None,
            }
        }
    }

    /// Returns the view of a class for its queues.
    pub(crate) fn view(&self, index: usize) -> ClassView {
        self.classes[index].view(self.now, |group| self.groups[group.as_usize()].number)
    }

    fn next(&self, index: usize, view: &ClassView) -> Next {
        let class = &self.classes[index];
        let group = |number: usize| class.groups[number];
        match class.fair_share.turn() {
            Side::Background => class
                .background
                .front(view)
                .map_or(Next::Nothing, |number| Next::Front(Side::Background, group(number))),
            Side::Client => {
                let oldest = class.inits.front().copied();
                let is_due = |id: GroupId| {
                    let init = self.groups[id.as_usize()].init;
                    init.is_some_and(|init| init.since + self.policy.init_patience <= self.now)
                };
                match (class.client.front(view), oldest) {
                    (_, Some(oldest)) if is_due(oldest) => Next::Init(oldest),
                    (Some(number), _) => Next::Front(Side::Client, group(number)),
                    (None, Some(oldest)) => Next::Init(oldest),
                    (None, None) => Next::Nothing,
                }
            }
        }
    }

    fn start_init(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        if !self.classes[index].running.is_empty() {
            return false;
        }
        let Some(init) = self.groups[id.as_usize()].init else { return false };
        if self.request_disks(&init.op, out) == RequestResult::OverBudget {
            return self.leave(index, id, out);
        }
        if self.is_waiting_for_disks(&init.op) || self.init_waits_until(id).is_some() {
            return false;
        }
        self.groups[id.as_usize()].init = None;
        self.classes[index].inits.retain(|group| *group != id);
        self.start(index, id, init, out);
        true
    }

    /// Returns until when the initialization of a group waits for disks that are coming up, such as
    /// one that was just inserted: without them it would be useless.
    pub(crate) fn init_waits_until(&self, id: GroupId) -> Option<Instant> {
        let group = &self.groups[id.as_usize()];
        let until = group.init?.since + self.patience();
        (!group.spinning_up.is_empty() && self.now < until).then_some(until)
    }

    /// Starts a client operation during a turn of rebuilds: one after each rebuild, so that
    /// rebuilds progress however many clients arrive.
    fn start_piggyback(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        if self.classes[index].has_piggybacked {
            return false;
        }
        let (number, up) = (self.groups[id.as_usize()].number, self.groups[id.as_usize()].up);
        let all = self.policy.spin_ups == SpinUps::All;
        let is_ready =
            |op: &Op| up.intersection(op.members).count() >= op.enough && (all || !needs_all(op));
        let Some(waiting) = self.classes[index].client.pop_piggyback(number, is_ready) else {
            return false;
        };
        self.start(index, id, waiting, out);
        true
    }

    fn start_front(
        &mut self,
        index: usize,
        side: Side,
        (id, since): (GroupId, Instant),
        out: &mut Outbox<Command>,
    ) -> bool {
        let number = self.groups[id.as_usize()].number;
        let Some(waiting) = self.classes[index].queue(side).head(number) else { return false };
        let op = waiting.op;
        if self.request_disks(&op, out) == RequestResult::OverBudget {
            return self.leave(index, id, out);
        }
        match self.readiness(&op, since) {
            Readiness::Waits => false,
            Readiness::Ready => {
                if let Some(waiting) = self.classes[index].queue(side).pop(number) {
                    self.start(index, op.group, waiting, out);
                }
                true
            }
            Readiness::TooFew(usable) => {
                self.classes[index].queue(side).pop(number);
                let retry_after = Some(SPIN_UP_BACKOFF);
                self.refuse(op.id, Refusal::TooFew { usable, retry_after }, out);
                true
            }
        }
    }

    fn readiness(&self, op: &Op, since: Instant) -> Readiness {
        let group = &self.groups[op.group.as_usize()];
        let up = group.up.intersection(op.members).count();
        if self.is_waiting_for_disks(op) {
            return Readiness::Waits;
        }
        if up >= op.enough {
            return Readiness::Ready;
        }
        let is_patient = self.now < since.max(group.requested) + self.patience();
        let spinning_up = if is_patient { group.spinning_up } else { Members::NONE };
        if group.up.union(spinning_up).intersection(op.members).count() >= op.enough {
            Readiness::Waits
        } else {
            Readiness::TooFew(up)
        }
    }

    fn start(&mut self, index: usize, id: GroupId, waiting: Waiting, out: &mut Outbox<Command>) {
        let class = &mut self.classes[index];
        class.is_fresh = false;
        class.has_piggybacked = waiting.op.kind.side() == Side::Client;
        class.idle_since = None;
        class.running.push(Running { op: waiting.op, since: self.now });
        self.counters.runs += 1;
        out.push(Command::Run { op: waiting.op.id, up: self.groups[id.as_usize()].up });
    }

    /// Spins a group down for another once nothing runs in it any more.
    fn leave(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        let class = &mut self.classes[index];
        class.is_fresh = false;
        if !class.running.is_empty() {
            return false;
        }
        self.spin_down_group(index, id, out);
        true
    }

    /// Handles an idle group: it keeps spinning, or is spun down after its idle time.
    fn handle_idle(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        let class = &mut self.classes[index];
        if !class.running.is_empty() {
            return false;
        }
        let since = *class.idle_since.get_or_insert(self.now);
        let is_expired = self.policy.idle.is_some_and(|idle| since + idle <= self.now);
        if is_expired {
            self.spin_down_group(index, id, out);
        }
        is_expired
    }
}
