//! What runs next in a group that spins, and which group is wanted next.
//!
//! Whose turn it is decides which queue is looked at, and its first operation which group. The
//! first look at a group comes before all else in it; other groups have theirs when clients want
//! nothing, or have waited long enough (Pelican, section 3). In a turn of rebuilds, clients of the
//! same group are served as they come: it spins anyway.

use fulgurite_units::{Instant, Outbox};

use crate::due::Look;
use crate::event::{Command, OpKind, Refusal, Side};
use crate::limits::RISE_REST;
use crate::needed::{Asked, takes_all};
use crate::queue::Waiting;
use crate::rack::Rack;
use crate::state::Running;
use crate::{GroupId, Members, Op, OpId, Wakes};

/// Whether an operation can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// Disks that it needs still come up.
    Waits,
    /// So many of its disks spin, and no more will in this turn.
    TooFew(u32),
}

/// What is next in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The first look at a group.
    Init(GroupId),
    /// The first operation of a side, in its group.
    Front(Side, GroupId),
    Nothing,
}

impl Rack {
    /// Starts what can be started in the spinning group, or puts it down for another; whether there
    /// is more to do.
    pub(crate) fn serve(
        &mut self,
        index: usize,
        id: GroupId,
        since: Instant,
        out: &mut Outbox<Command>,
    ) -> bool {
        let group = &self.groups[id.as_usize()];
        if !group.resting.or(group.blocked).is_empty() {
            self.fill(id, out);
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
        let look = self.look(index);
        if !class.is_fresh || !class.wants(class.fair.turn(), &look) {
            self.classes[index].choose_turn(&look);
        }
        let next = self.next(index, &look);
        let is_rebuilt = next == Next::Front(Side::Background, id);
        if is_rebuilt && self.start_rider(index, id, out) {
            return true;
        }
        match next {
            Next::Front(side, group) if group == id => {
                self.start_front(index, side, (id, since), out)
            }
            Next::Front(..) | Next::Init(_) if self.is_awaited(id, since) => false,
            Next::Front(..) | Next::Init(_) => self.leave(index, id, out),
            Next::Nothing => self.rest_idle(index, id, out),
        }
    }

    /// The group that is wanted next, with the operation it is wanted for.
    pub(crate) fn next_target(
        &mut self,
        index: usize,
        out: &mut Outbox<Command>,
    ) -> Option<(GroupId, (OpId, OpKind))> {
        loop {
            let look = self.look(index);
            self.classes[index].choose_turn(&look);
            match self.next(index, &look) {
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

    /// What the queues of a class are looked at with.
    pub(crate) fn look(&self, index: usize) -> Look {
        self.classes[index].look(self.now, |group| self.groups[group.as_usize()].number)
    }

    fn next(&self, index: usize, look: &Look) -> Next {
        let class = &self.classes[index];
        let group = |number: usize| class.groups[number];
        match class.fair.turn() {
            Side::Background => class
                .background
                .front(look)
                .map_or(Next::Nothing, |number| Next::Front(Side::Background, group(number))),
            Side::Client => {
                let oldest = class.inits.front().copied();
                let is_due = |of: GroupId| {
                    let init = self.groups[of.as_usize()].init;
                    init.is_some_and(|init| init.since + self.policy.init_patience <= self.now)
                };
                match (class.client.front(look), oldest) {
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
        if self.ask_for(&init.op, out) == Asked::Rests {
            return self.leave(index, id, out);
        }
        if self.still_takes(&init.op) || self.looks_on(id).is_some() {
            return false;
        }
        self.groups[id.as_usize()].init = None;
        self.classes[index].inits.retain(|group| *group != id);
        self.start(index, id, init, out);
        true
    }

    /// Until when the first look at a group waits for disks of it that come up while it spins, as
    /// one does that was just put in: without them it would be none.
    pub(crate) fn looks_on(&self, id: GroupId) -> Option<Instant> {
        let group = &self.groups[id.as_usize()];
        let until = group.init?.since + self.patience();
        (!group.rising.is_empty() && self.now < until).then_some(until)
    }

    /// Starts an operation of a client in a turn of rebuilds: after each rebuild one, so that
    /// rebuilds go on however many clients come.
    fn start_rider(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        if self.classes[index].has_ridden {
            return false;
        }
        let (number, up) = (self.groups[id.as_usize()].number, self.groups[id.as_usize()].up);
        let all = self.policy.wakes == Wakes::All;
        let is_ready = |op: &Op| up.and(op.members).count() >= op.enough && (all || !takes_all(op));
        let Some(waiting) = self.classes[index].client.ride(number, is_ready) else {
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
        if self.ask_for(&op, out) == Asked::Rests {
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
                let retry_after = Some(RISE_REST);
                self.refuse(op.id, Refusal::TooFew { usable, retry_after }, out);
                true
            }
        }
    }

    fn readiness(&self, op: &Op, since: Instant) -> Readiness {
        let group = &self.groups[op.group.as_usize()];
        let up = group.up.and(op.members).count();
        if self.still_takes(op) {
            return Readiness::Waits;
        }
        if up >= op.enough {
            return Readiness::Ready;
        }
        let is_patient = self.now < since.max(group.asked) + self.patience();
        let rising = if is_patient { group.rising } else { Members::NONE };
        if group.up.or(rising).and(op.members).count() >= op.enough {
            Readiness::Waits
        } else {
            Readiness::TooFew(up)
        }
    }

    fn start(&mut self, index: usize, id: GroupId, waiting: Waiting, out: &mut Outbox<Command>) {
        let class = &mut self.classes[index];
        class.is_fresh = false;
        class.has_ridden = waiting.op.kind.side() == Side::Client;
        class.idle_since = None;
        class.running.push(Running { op: waiting.op, since: self.now });
        self.counters.runs += 1;
        out.push(Command::Run { op: waiting.op.id, up: self.groups[id.as_usize()].up });
    }

    /// Puts a group down for another when nothing runs in it any more.
    fn leave(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        let class = &mut self.classes[index];
        class.is_fresh = false;
        if !class.running.is_empty() {
            return false;
        }
        self.sink(index, id, out);
        true
    }

    /// Nobody wants anything: the group spins on, or not for long.
    fn rest_idle(&mut self, index: usize, id: GroupId, out: &mut Outbox<Command>) -> bool {
        let class = &mut self.classes[index];
        if !class.running.is_empty() {
            return false;
        }
        let since = *class.idle_since.get_or_insert(self.now);
        let is_over = self.policy.idle.is_some_and(|idle| since + idle <= self.now);
        if is_over {
            self.sink(index, id, out);
        }
        is_over
    }
}
