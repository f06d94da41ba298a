//! The waiting operations of one side of one class, in the order that the policy chooses.

use fulgurite_units::{ByteCount, Instant};

use crate::Op;
use crate::due::{ClassView, DueQueue, is_soon};
use crate::event::OpKind;
use crate::order::Order;
use crate::policy::Policy;
use crate::queue::{Cost, Queue, Waiting};
use crate::token_bucket::Allowance;

/// A queue, with the budget of its groups.
#[derive(Clone, Debug)]
pub(crate) enum SideQueue {
    /// The paper's order. A batch whose group has no budget for a spin-up blocks those behind it.
    Batches(Queue, Vec<Allowance>),
    /// By deadline.
    Due(DueQueue),
}

impl Default for SideQueue {
    fn default() -> Self {
        Self::Batches(Queue::default(), Vec::new())
    }
}

impl SideQueue {
    /// Creates a queue for a class with this many groups; at most `limit` operations wait.
    pub(crate) fn new(groups: usize, limit: usize, order: Order, policy: &Policy) -> Self {
        match order {
            Order::Batches => {
                let queue = Queue::new(groups, policy.reach_bytes, policy.reach_time);
                Self::Batches(queue, vec![Allowance::default(); groups])
            }
            Order::Due(order) => Self::Due(DueQueue::new(groups, limit, order)),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Batches(queue, _) => queue.len(),
            Self::Due(queue) => queue.len(),
        }
    }

    pub(crate) const fn bytes(&self) -> ByteCount {
        match self {
            Self::Batches(queue, _) => queue.bytes(),
            Self::Due(queue) => queue.bytes(),
        }
    }

    /// Sets when the disks of a group may be spun up.
    pub(crate) fn set_allowance(&mut self, group: usize, allowance: Allowance) {
        match self {
            Self::Batches(_, allowances) => allowances[group] = allowance,
            Self::Due(queue) => queue.set_allowance(group, allowance),
        }
    }

    /// Returns the group to serve next; none if nothing waits, or all that waits has to wait
    /// longer.
    pub(crate) fn front(&self, view: &ClassView) -> Option<usize> {
        match self {
            Self::Batches(queue, allowances) => {
                let (group, waiting) = queue.front()?;
                let spins = view.spinning.is_some_and(|of| of.number == group);
                (spins || eligible_at(waiting, allowances[group]) <= view.now).then_some(group)
            }
            Self::Due(queue) => queue.front(view),
        }
    }

    /// Returns when the queue has to be checked again if nothing happens.
    pub(crate) fn next_switch(&self, view: &ClassView) -> Option<Instant> {
        match self {
            Self::Batches(queue, allowances) => {
                let (group, waiting) = queue.front()?;
                Some(eligible_at(waiting, allowances[group]))
            }
            Self::Due(queue) => queue.next_switch(view),
        }
    }

    /// Returns the first operation of a group: with batches only of the front group, by deadline of
    /// any.
    pub(crate) fn head(&self, group: usize) -> Option<&Waiting> {
        match self {
            Self::Batches(queue, _) => {
                queue.front().filter(|(first, _)| *first == group).map(|(_, waiting)| waiting)
            }
            Self::Due(queue) => queue.head(group),
        }
    }

    /// Removes that operation.
    pub(crate) fn pop(&mut self, group: usize) -> Option<Waiting> {
        match self {
            Self::Batches(queue, _) => queue.pop(),
            Self::Due(queue) => queue.pop(group),
        }
    }

    pub(crate) fn insert(&mut self, waiting: Waiting, group: usize, cost: Cost, joins: bool) {
        match self {
            Self::Batches(queue, _) => queue.insert(waiting, group, cost, joins),
            Self::Due(queue) => queue.insert(waiting, group),
        }
    }

    /// Removes the first operation of a group if it is ready and overtaking pushes nobody back too
    /// far.
    pub(crate) fn pop_piggyback(
        &mut self,
        group: usize,
        is_ready: impl FnOnce(&Op) -> bool,
    ) -> Option<Waiting> {
        match self {
            Self::Batches(queue, _) => queue.pop_piggyback(group, is_ready),
            Self::Due(queue) => {
                if !is_ready(&queue.head(group)?.op) {
                    return None;
                }
                queue.pop(group)
            }
        }
    }

    /// Returns all operations of a group.
    pub(crate) fn operations(&self, group: usize) -> Box<dyn Iterator<Item = &Waiting> + '_> {
        match self {
            Self::Batches(queue, _) => {
                let all = queue.iter().filter(move |(number, ..)| *number == group);
                Box::new(all.map(|(_, waiting, _)| waiting))
            }
            Self::Due(queue) => Box::new(queue.operations(group)),
        }
    }

    /// Removes all operations of a group for which `should_remove` holds, in order.
    pub(crate) fn remove(
        &mut self,
        group: usize,
        should_remove: impl Fn(&Op) -> bool,
        removed: impl FnMut(Waiting),
    ) {
        match self {
            Self::Batches(queue, _) => queue.remove(group, should_remove, removed),
            Self::Due(queue) => queue.remove(group, should_remove, removed),
        }
    }
}

/// Returns when an operation may spin up its group.
fn eligible_at(waiting: &Waiting, allowance: Allowance) -> Instant {
    let is_endangered = allowance.in_danger || waiting.op.due.is_some();
    if waiting.op.kind == OpKind::Rebuild && is_endangered {
        Instant::ZERO
    } else if is_soon(waiting) {
        allowance.soon
    } else {
        allowance.plain
    }
}
