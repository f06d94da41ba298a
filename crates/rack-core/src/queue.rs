//! A queue that batches operations of the same group, as far as others may be pushed back.
//!
//! ```text
//! for an operation r of cost c (Pelican, section 2.2.3, with c for 1):
//! l = the last operation of the same group; none: r goes to the end
//! if every i behind l may be pushed back by c, each is, and r goes behind l; else to the end
//! o_i - t_i, how far i was pushed back and did not overtake itself, never exceeds u
//! ```
//!
//! Stored as batches: consecutive operations of one group. A batch is pushed back as a whole, so
//! its slack is the minimum over its operations. An insertion examines batches rather than
//! operations, and allocates nothing once the queue has been as long before. Costs are counted in
//! bytes and in time, each with its own u.

use std::collections::VecDeque;

use fulgurite_units::{ByteCount, Duration, Instant};

use crate::Op;
use crate::limits::{OP_BYTES_MIN, OP_TIME_MIN};

/// Null index of a node.
const NONE: u32 = u32::MAX;
/// Stands for "no limit" on pushing back.
const ANY: u64 = u64::MAX >> 1;

/// The cost of an operation in bytes and in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    bytes: u64,
    ns: u64,
}

impl Cost {
    /// Creates the cost of an operation with this many bytes and this estimated time. Both have a
    /// minimum, or an operation of no bytes could overtake others forever.
    pub(crate) fn new(bytes: ByteCount, time: Duration) -> Self {
        Self {
            bytes: bytes.max(OP_BYTES_MIN).get().min(1 << 50),
            ns: time.max(OP_TIME_MIN).as_nanos().min(1 << 50),
        }
    }

    const fn fits(self, into: Self) -> bool {
        self.bytes <= into.bytes && self.ns <= into.ns
    }

    const fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), ns: self.ns.saturating_add(other.ns) }
    }

    const fn minus(self, other: Self) -> Self {
        Self { bytes: self.bytes - other.bytes, ns: self.ns - other.ns }
    }

    fn min(self, other: Self) -> Self {
        Self { bytes: self.bytes.min(other.bytes), ns: self.ns.min(other.ns) }
    }
}

/// The waiting operations of one side of one class.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// How far an operation may be pushed back (u).
    reach: Cost,
    batches: VecDeque<Batch>,
    /// Number of the first batch. Batches are numbered consecutively; those put in front count
    /// down.
    first: i64,
    /// For each group of the class, the number of its last batch.
    last_of: Vec<Option<i64>>,
    nodes: Vec<Node>,
    /// Head of the list of free nodes.
    free: u32,
    len: usize,
    bytes: u64,
}

/// Consecutive operations of one group.
#[derive(Clone, Copy, Debug)]
struct Batch {
    /// Index of its group in the class.
    group: usize,
    head: u32,
    tail: u32,
    cost: Cost,
    /// How far each of its operations may still be pushed back (minimum).
    slack: Cost,
    /// How far it has been pushed back since it was created.
    delay: Cost,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    waiting: Waiting,
    next: u32,
    cost: Cost,
    /// The cost of what it overtook when it arrived: t - o.
    advance: Cost,
    /// The delay of its batch when it arrived.
    delay: Cost,
}

/// A waiting operation, and when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) op: Op,
    pub(crate) since: Instant,
}

impl Default for Queue {
    fn default() -> Self {
        Self::new(0, None, None)
    }
}

impl Queue {
    /// Creates a queue for a class with this many groups.
    pub(crate) fn new(groups: usize, bytes: Option<ByteCount>, time: Option<Duration>) -> Self {
        Self {
            reach: Cost {
                bytes: bytes.map_or(ANY, |bytes| bytes.get().min(ANY)),
                ns: time.map_or(ANY, |time| time.as_nanos().min(ANY)),
            },
            batches: VecDeque::new(),
            first: 0,
            last_of: vec![None; groups],
            nodes: Vec::new(),
            free: NONE,
            len: 0,
            bytes: 0,
        }
    }

    /// Number of waiting operations.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of all waiting operations.
    pub(crate) const fn bytes(&self) -> ByteCount {
        ByteCount::new(self.bytes)
    }

    /// Returns the first operation, with the index of its group in the class.
    pub(crate) fn front(&self) -> Option<(usize, &Waiting)> {
        let batch = self.batches.front()?;
        Some((batch.group, &self.nodes[batch.head as usize].waiting))
    }

    /// Iterates over the waiting operations in order: the index of the group, the operation, and
    /// whether it was pushed back within its bound (o - t <= u).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Waiting, bool)> {
        self.batches.iter().flat_map(move |batch| {
            let mut at = batch.head;
            std::iter::from_fn(move || {
                let node = (at != NONE).then(|| &self.nodes[at as usize])?;
                at = node.next;
                let may = self.reach.plus(node.advance);
                let is_in_reach = batch.delay.minus(node.delay).fits(may);
                Some((batch.group, &node.waiting, is_in_reach))
            })
        })
    }

    /// Inserts an operation of a group. With `joins` it may go ahead of all others, since its group
    /// spins.
    pub(crate) fn insert(&mut self, waiting: Waiting, group: usize, cost: Cost, joins: bool) {
        self.len += 1;
        self.bytes += waiting.op.bytes.get();
        let Some(number) = self.last_of[group] else {
            match self.push_back_behind(0, cost).filter(|_| joins) {
                Some(advance) => {
                    self.delay(0, cost);
                    self.first -= 1;
                    let batch = self.batch(waiting, group, cost, advance);
                    self.batches.push_front(batch);
                    self.last_of[group] = Some(self.first);
                }
                None => self.append(waiting, group, cost),
            }
            return;
        };
        let at = self.position(number);
        let Some(advance) = self.push_back_behind(at + 1, cost) else {
            self.append(waiting, group, cost);
            return;
        };
        self.delay(at + 1, cost);
        let delay = self.batches[at].delay;
        let node = self.node(Node { waiting, next: NONE, cost, advance, delay });
        let batch = &mut self.batches[at];
        self.nodes[batch.tail as usize].next = node;
        batch.tail = node;
        batch.cost = batch.cost.plus(cost);
        batch.slack = batch.slack.min(self.reach.plus(advance));
    }

    /// Removes the first operation.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        (!self.batches.is_empty()).then(|| self.take_head(0))
    }

    /// Removes the first operation of a group from anywhere in the queue, if it is ready and all
    /// before it may be pushed back by it.
    pub(crate) fn pop_piggyback(
        &mut self,
        group: usize,
        is_ready: impl FnOnce(&Op) -> bool,
    ) -> Option<Waiting> {
        self.last_of[group]?;
        let at = self.batches.iter().position(|batch| batch.group == group)?;
        let Node { waiting, cost, .. } = &self.nodes[self.batches[at].head as usize];
        let cost = *cost;
        if !is_ready(&waiting.op)
            || !self.batches.iter().take(at).all(|batch| cost.fits(batch.slack))
        {
            return None;
        }
        self.batches.iter_mut().take(at).for_each(|batch| push_back(batch, cost));
        Some(self.take_head(at))
    }

    /// Removes all operations of a group for which `should_remove` holds, in order.
    pub(crate) fn remove(
        &mut self,
        group: usize,
        should_remove: impl Fn(&Op) -> bool,
        mut removed: impl FnMut(Waiting),
    ) {
        if self.last_of[group].is_none() {
            return;
        }
        let mut remaining = VecDeque::with_capacity(self.batches.len());
        for mut batch in std::mem::take(&mut self.batches) {
            if batch.group == group && !self.filter(&mut batch, &should_remove, &mut removed) {
                continue;
            }
            remaining.push_back(batch);
        }
        self.batches = remaining;
        self.last_of.iter_mut().for_each(|last| *last = None);
        for (number, batch) in (self.first..).zip(&self.batches) {
            self.last_of[batch.group] = Some(number);
        }
    }

    /// Removes the operations of a batch for which `should_remove` holds. Returns whether any are
    /// left.
    fn filter(
        &mut self,
        batch: &mut Batch,
        should_remove: impl Fn(&Op) -> bool,
        mut removed: impl FnMut(Waiting),
    ) -> bool {
        let (mut at, mut head, mut tail) = (batch.head, NONE, NONE);
        while at != NONE {
            let Node { waiting, next, cost, .. } = self.nodes[at as usize];
            if should_remove(&waiting.op) {
                batch.cost = batch.cost.minus(cost);
                self.release(at);
                removed(waiting);
            } else {
                match tail {
                    NONE => head = at,
                    last => self.nodes[last as usize].next = at,
                }
                tail = at;
            }
            at = next;
        }
        if tail != NONE {
            self.nodes[tail as usize].next = NONE;
        }
        (batch.head, batch.tail) = (head, tail);
        head != NONE
    }

    /// Returns the cost that an operation overtakes if all batches from a position on are pushed
    /// back by it; none if one of them may not be.
    fn push_back_behind(&self, from: usize, cost: Cost) -> Option<Cost> {
        // Backwards: batches at the end are youngest or have waited longest, so a refusal shows
        // early.
        let mut overtaken = Cost::default();
        for batch in self.batches.range(from..).rev() {
            if !cost.fits(batch.slack) {
                return None;
            }
            overtaken = overtaken.plus(batch.cost);
        }
        Some(overtaken)
    }

    fn delay(&mut self, from: usize, cost: Cost) {
        self.batches.range_mut(from..).for_each(|batch| push_back(batch, cost));
    }

    fn append(&mut self, waiting: Waiting, group: usize, cost: Cost) {
        let batch = self.batch(waiting, group, cost, Cost::default());
        self.batches.push_back(batch);
        // Queues are far shorter than half the range of numbers.
        let behind = i64::try_from(self.batches.len()).unwrap_or(i64::MAX);
        self.last_of[group] = Some(self.first + behind - 1);
    }

    /// Creates a batch of one operation.
    fn batch(&mut self, waiting: Waiting, group: usize, cost: Cost, advance: Cost) -> Batch {
        let delay = Cost::default();
        let node = self.node(Node { waiting, next: NONE, cost, advance, delay });
        let slack = self.reach.plus(advance);
        Batch { group, head: node, tail: node, cost, slack, delay }
    }

    fn position(&self, number: i64) -> usize {
        usize::try_from(number - self.first).unwrap_or_else(|_| panic!("batch {number} is gone"))
    }

    fn take_head(&mut self, at: usize) -> Waiting {
        let batch = &mut self.batches[at];
        let head = batch.head;
        let Node { waiting, next, cost, .. } = self.nodes[head as usize];
        batch.head = next;
        batch.cost = batch.cost.minus(cost);
        if next == NONE {
            self.drop_batch(at);
        }
        self.release(head);
        waiting
    }

    /// Removes an empty batch.
    fn drop_batch(&mut self, at: usize) {
        let group = self.batches[at].group;
        if at == 0 {
            self.batches.pop_front();
            if self.last_of[group] == Some(self.first) {
                self.last_of[group] = None;
            }
            self.first += 1;
            return;
        }
        self.batches.remove(at);
        self.last_of.iter_mut().for_each(|last| *last = None);
        for (number, batch) in (self.first..).zip(&self.batches) {
            self.last_of[batch.group] = Some(number);
        }
    }

    fn node(&mut self, node: Node) -> u32 {
        if self.free == NONE {
            self.nodes.push(node);
            let at = u32::try_from(self.nodes.len() - 1);
            return at.unwrap_or_else(|_| panic!("a queue has at most {NONE} operations"));
        }
        let at = self.free;
        self.free = self.nodes[at as usize].next;
        self.nodes[at as usize] = node;
        at
    }

    fn release(&mut self, at: u32) {
        let node = &mut self.nodes[at as usize];
        self.len -= 1;
        self.bytes -= node.waiting.op.bytes.get();
        node.next = self.free;
        self.free = at;
    }
}

const fn push_back(batch: &mut Batch, cost: Cost) {
    batch.slack = batch.slack.minus(cost);
    batch.delay = batch.delay.plus(cost);
}
