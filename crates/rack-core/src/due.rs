//! A queue ordered by deadline (earliest deadline first), in which groups may be made to wait so
//! that more operations are batched.
//!
//! ```text
//! the spinning group serves all it has; then the group with the earliest deadline is next, from
//! the last moment at which all that waits can still have its first byte within `patience`:
//!
//!   min over k of (wanted_k - sum over j <= k of (switch + bytes_j / pace)), in that order
//!
//! it is left earlier for an operation that was promised at most half the time and would miss it,
//! at the last moment, if leaving helps or the visit was worth its switch; or if it stayed too long
//! ```
//!
//! An operation past its deadline is late. From then on, the one that has waited the largest
//! multiple of its promised time comes first, so that nobody starves, however much is due. A group
//! whose disks were spun up too often waits for its budget ([`crate::token_bucket`]), except for
//! rebuilds of endangered data.

use std::collections::BTreeMap;

use fulgurite_units::{ByteCount, Duration, Instant};

use crate::Op;
use crate::event::OpKind;
use crate::limits::SOON;
use crate::order::Due;
use crate::pace::Measured;
use crate::queue::Waiting;
use crate::token_bucket::Allowance;

/// A view of a class for its queues: the time, the spinning group, and the measured pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassView {
    pub(crate) now: Instant,
    pub(crate) spinning: Option<Visit>,
    pub(crate) measured: Measured,
}

/// A group that is up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    /// Its index in the class.
    pub(crate) number: usize,
    /// Since when it is up.
    pub(crate) since: Instant,
    /// Whether nothing has run in it yet.
    pub(crate) is_fresh: bool,
}

/// The waiting operations of one side of one class.
#[derive(Clone, Debug)]
pub(crate) struct DueQueue {
    order: Due,
    /// Half of the queue limit. If this many wait, no operation is delayed for batching.
    half: usize,
    queues: Vec<GroupQueue>,
    len: usize,
    bytes: u64,
    /// Number of operations with an explicit deadline.
    with_deadline: usize,
    next: u64,
}

/// The waiting operations of one group.
#[derive(Clone, Debug, Default)]
struct GroupQueue {
    /// By deadline, then by arrival.
    waiting: BTreeMap<(Instant, u64), Waiting>,
    bytes: u64,
    /// Number of operations due soon, of rebuilds, and of rebuilds with a deadline.
    soon: usize,
    rebuilds: usize,
    rebuilds_with_deadline: usize,
    allowance: Allowance,
}

/// Whether an operation may use the reserve of a budget.
pub(crate) fn is_soon(waiting: &Waiting) -> bool {
    waiting.op.due.is_some_and(|due| due.since(waiting.since) <= SOON)
}

impl GroupQueue {
    fn head(&self) -> Option<(Instant, &Waiting)> {
        self.waiting.first_key_value().map(|((due, _), waiting)| (*due, waiting))
    }

    /// Returns when the group may be spun up.
    fn eligible_from(&self) -> Instant {
        if self.rebuilds_with_deadline > 0 || (self.allowance.in_danger && self.rebuilds > 0) {
            Instant::ZERO
        } else if self.soon > 0 {
            self.allowance.soon
        } else {
            self.allowance.plain
        }
    }

    fn count(&mut self, waiting: &Waiting, update: impl Fn(&mut usize)) {
        let is_rebuild = waiting.op.kind == OpKind::Rebuild;
        if is_soon(waiting) {
            update(&mut self.soon);
        }
        if is_rebuild {
            update(&mut self.rebuilds);
        }
        if is_rebuild && waiting.op.due.is_some() {
            update(&mut self.rebuilds_with_deadline);
        }
    }
}

impl DueQueue {
    /// Creates a queue for a class with this many groups, in which at most `limit` operations wait.
    pub(crate) fn new(groups: usize, limit: usize, order: Due) -> Self {
        let (half, queues) = (limit / 2, vec![GroupQueue::default(); groups]);
        Self { order, half, queues, len: 0, bytes: 0, with_deadline: 0, next: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn bytes(&self) -> ByteCount {
        ByteCount::new(self.bytes)
    }

    pub(crate) fn set_allowance(&mut self, group: usize, allowance: Allowance) {
        self.queues[group].allowance = allowance;
    }

    /// Iterates over all waiting operations, group by group, with the index of the group.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Waiting)> {
        let queues = self.queues.iter().enumerate();
        queues.flat_map(|(number, queue)| {
            queue.waiting.values().map(move |waiting| (number, waiting))
        })
    }

    pub(crate) fn insert(&mut self, waiting: Waiting, group: usize) {
        let key = (self.due(&waiting), self.next);
        self.next += 1;
        self.len += 1;
        self.bytes += waiting.op.bytes.get();
        self.with_deadline += usize::from(waiting.op.due.is_some());
        let queue = &mut self.queues[group];
        queue.bytes += waiting.op.bytes.get();
        queue.count(&waiting, |count| *count += 1);
        queue.waiting.insert(key, waiting);
    }

    /// Returns the operation of a group with the earliest deadline.
    pub(crate) fn head(&self, group: usize) -> Option<&Waiting> {
        self.queues[group].head().map(|(_, waiting)| waiting)
    }

    /// Returns all operations of a group, by deadline.
    pub(crate) fn operations(&self, group: usize) -> impl Iterator<Item = &Waiting> {
        self.queues[group].waiting.values()
    }

    /// Removes the operation of a group with the earliest deadline.
    pub(crate) fn pop(&mut self, group: usize) -> Option<Waiting> {
        let key = *self.queues[group].waiting.first_key_value()?.0;
        self.take(group, key)
    }

    fn take(&mut self, group: usize, key: (Instant, u64)) -> Option<Waiting> {
        let queue = &mut self.queues[group];
        let waiting = queue.waiting.remove(&key)?;
        queue.bytes -= waiting.op.bytes.get();
        queue.count(&waiting, |count| *count -= 1);
        self.len -= 1;
        self.bytes -= waiting.op.bytes.get();
        self.with_deadline -= usize::from(waiting.op.due.is_some());
        Some(waiting)
    }

    /// Removes all operations of a group for which `should_remove` holds, in order.
    pub(crate) fn remove(
        &mut self,
        group: usize,
        should_remove: impl Fn(&Op) -> bool,
        mut removed: impl FnMut(Waiting),
    ) {
        let matching =
            self.queues[group].waiting.iter().filter(|(_, waiting)| should_remove(&waiting.op));
        let matching: Vec<_> = matching.map(|(key, _)| *key).collect();
        matching.into_iter().filter_map(|key| self.take(group, key)).for_each(&mut removed);
    }

    /// Returns the group to serve next; none if all that waits can wait longer.
    pub(crate) fn front(&self, view: &ClassView) -> Option<usize> {
        let Some(visit) = view.spinning.filter(|visit| self.head(visit.number).is_some()) else {
            let is_time = self.next_switch(view).is_some_and(|at| at <= view.now);
            return is_time.then(|| self.choose(view)).flatten();
        };
        let is_long = view.now >= visit.since + self.order.stay;
        if visit.is_fresh || !(is_long || self.with_deadline > 0) {
            return Some(visit.number);
        }
        let other =
            self.choose(view).filter(|other| self.should_leave(&visit, *other, is_long, view));
        Some(other.unwrap_or(visit.number))
    }

    /// Returns when the next switch must begin for groups that do not spin.
    pub(crate) fn next_switch(&self, view: &ClassView) -> Option<Instant> {
        let spinning = view.spinning.map(|visit| visit.number);
        let others = self
            .queues
            .iter()
            .enumerate()
            .filter(|(number, queue)| Some(*number) != spinning && !queue.waiting.is_empty());
        let is_patient = self.order.patience > Duration::ZERO && self.len < self.half.max(1);
        let (mut next, mut wanted) = (None::<Instant>, Vec::new());
        for (_, queue) in others {
            let from = queue.eligible_from();
            if from > view.now || !is_patient {
                next = Some(next.map_or(from, |next| next.min(from)));
            } else if let Some((due, head)) = queue.head() {
                wanted.push((self.wanted(due, head), queue.bytes));
            }
        }
        wanted.sort_unstable();
        let (mut work, switch) = (0u64, view.measured.switch().as_nanos());
        for (at, bytes) in wanted {
            work = work.saturating_add(switch);
            let begin = Instant::from_nanos(at.as_nanos().saturating_sub(work));
            next = Some(next.map_or(begin, |next| next.min(begin)));
            work = work.saturating_add(view.measured.op_time(ByteCount::new(bytes)).as_nanos());
        }
        next
    }

    /// Returns when its first byte is wanted.
    fn wanted(&self, due: Instant, waiting: &Waiting) -> Instant {
        let patient = waiting.since + self.order.patience;
        if due < patient { waiting.since } else { patient }
    }

    /// Returns the next group among those that may be spun up or are spinning.
    fn choose(&self, view: &ClassView) -> Option<usize> {
        let spinning = view.spinning.map(|visit| visit.number);
        let heads = self.queues.iter().enumerate().filter_map(|(number, queue)| {
            let is_allowed = Some(number) == spinning || queue.eligible_from() <= view.now;
            is_allowed.then(|| queue.head().map(|(due, waiting)| (number, due, waiting.since)))?
        });
        let (number, due, _) = heads.clone().min_by_key(|(number, due, _)| (*due, *number))?;
        if due >= view.now {
            return Some(number);
        }
        let share = |due: Instant, since: Instant| {
            let promised = due.since(since).as_nanos().max(1);
            (u128::from(view.now.since(since).as_nanos()) << 32) / u128::from(promised)
        };
        // Ties go to the lowest index, as above.
        let most = heads.rev().max_by_key(|(_, due, since)| share(*due, *since));
        most.map(|(number, _, _)| number)
    }

    /// Whether a group is left for another although it has more to do.
    fn should_leave(&self, visit: &Visit, other: usize, is_long: bool, view: &ClassView) -> bool {
        let (queue, other_queue) = (&self.queues[visit.number], &self.queues[other]);
        let (Some((own_due, own)), Some((due, next))) = (queue.head(), other_queue.head()) else {
            return false;
        };
        if other == visit.number || due >= own_due {
            return false;
        }
        if is_long && self.wanted(due, next) <= view.now {
            return true;
        }
        let promised = due.since(next.since).as_nanos();
        let is_tighter =
            next.op.due.is_some() && promised <= own_due.since(own.since).as_nanos() / 2;
        let switch = view.measured.switch();
        let remaining = view.measured.op_time(ByteCount::new(queue.bytes));
        let is_late = view.now + switch + remaining > due;
        // Not earlier than necessary: whatever is done meanwhile needs no second visit.
        let one_each = view.measured.op_time(own.op.bytes) + view.measured.op_time(next.op.bytes);
        let is_time = view.now + switch + switch + one_each > due;
        let helps = view.now + switch <= due || view.now >= visit.since + switch;
        is_tighter && is_late && is_time && helps
    }

    /// Returns the deadline of an operation.
    fn due(&self, waiting: &Waiting) -> Instant {
        waiting.op.due.unwrap_or_else(|| waiting.since + self.order.usual)
    }

    /// Recounts everything and asserts the counters.
    pub(crate) fn check(&self) {
        let (mut len, mut bytes, mut with_deadline) = (0, 0, 0);
        for queue in &self.queues {
            let mut recounted = GroupQueue { allowance: queue.allowance, ..GroupQueue::default() };
            for ((due, _), waiting) in &queue.waiting {
                assert_eq!(*due, self.due(waiting), "each operation is at its deadline");
                recounted.count(waiting, |count| *count += 1);
                recounted.bytes += waiting.op.bytes.get();
                with_deadline += usize::from(waiting.op.due.is_some());
            }
            let counts = |queue: &GroupQueue| {
                (queue.bytes, queue.soon, queue.rebuilds, queue.rebuilds_with_deadline)
            };
            assert_eq!(
                counts(queue),
                counts(&recounted),
                "the group's counters match its operations"
            );
            (len, bytes) = (len + queue.waiting.len(), bytes + queue.bytes);
        }
        assert_eq!(
            (self.len, self.bytes, self.with_deadline),
            (len, bytes, with_deadline),
            "the queue's counters match its operations"
        );
    }
}
