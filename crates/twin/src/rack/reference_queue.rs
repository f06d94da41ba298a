//! The paper's order of operations of one class (Pelican, OSDI 2014, section 2.2.3), implemented as
//! simply as possible: a linear scan of a list. It is the reference for the controller that serves
//! live, and used for the paper's figures.
//!
//! ```text
//!   insert r: behind the last operation l of its group, if none after l is then overtaken by more
//!             than u bytes: o_i + bytes(r) - t_i <= u for each i after l; else at the end
//! ```

use std::collections::VecDeque;

use super::share::Kind;
use super::transfers::OpIndex;

/// A waiting operation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Waiting {
    index: OpIndex,
    group: u32,
    bytes: f64,
    /// Its arrival, as the bytes that arrived up to then (t).
    arrived_bytes: f64,
    /// Its current position, in the same unit (o).
    position: f64,
}

/// Waiting operations, in the order of service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    /// Bytes of all operations that ever arrived.
    arrived_bytes: f64,
    /// Waiting operations per group, to see at once that there are none.
    of_group: Vec<u32>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the group of the next operation.
    pub(crate) fn head(&self) -> Option<u32> {
        self.waiting.front().map(|first| first.group)
    }

    /// Inserts an operation at its position; others may be overtaken by `reorder` bytes each.
    pub(crate) fn insert(&mut self, index: OpIndex, group: u32, bytes: f64, reorder: f64) {
        self.arrived_bytes += bytes;
        let arrived_bytes = self.arrived_bytes;
        let mut op = Waiting { index, group, bytes, arrived_bytes, position: arrived_bytes };
        let place = group as usize;
        if self.of_group.len() <= place {
            self.of_group.resize(place + 1, 0);
        }
        self.of_group[place] += 1;
        let mut at = self.waiting.len();
        if self.of_group[place] == 1 {
            self.waiting.push_back(op);
            return;
        }
        let mut overtaken = 0.0;
        while at > 0 && self.waiting[at - 1].group != group {
            let other = &self.waiting[at - 1];
            if other.position + bytes - other.arrived_bytes > reorder {
                self.waiting.push_back(op);
                return;
            }
            overtaken += other.bytes;
            at -= 1;
        }
        for other in self.waiting.range_mut(at..) {
            other.position += bytes;
        }
        op.position -= overtaken;
        self.waiting.insert(at, op);
    }

    /// Removes and returns the next operation.
    pub(crate) fn pop(&mut self) -> Option<OpIndex> {
        let first = self.waiting.pop_front()?;
        self.of_group[first.group as usize] -= 1;
        Some(first.index)
    }
}

/// Chooses which of two queues is served: weighted fair queuing in virtual time, in turns that are
/// long compared with a switch (section 2.2.3, rate limiting).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FairScheduler {
    /// Time used divided by the share, for clients and the rebuild, in seconds.
    used: [f64; 2],
    shares: [f64; 2],
    turn: Kind,
    /// How far one may be behind before it is its turn, in seconds.
    length: f64,
}

impl FairScheduler {
    pub(crate) fn new(rebuild_share: f64, length_s: f64) -> Self {
        let shares = [1.0 - rebuild_share, rebuild_share];
        Self { used: [0.0; 2], shares, turn: Kind::Read, length: length_s }
    }

    /// Adds time used by one of them.
    pub(crate) fn used(&mut self, kind: Kind, seconds: f64) {
        self.used[kind as usize] += seconds / self.shares[kind as usize];
    }

    /// Records that a queue is no longer empty. It gets no credit for idle time beyond one turn.
    pub(crate) fn activate(&mut self, kind: Kind) {
        let other = self.used[1 - kind as usize];
        let own = &mut self.used[kind as usize];
        *own = own.max(other - self.length);
    }

    /// Returns whose turn it is, given which queues are not empty.
    pub(crate) fn next(&mut self, has: [bool; 2]) -> Option<Kind> {
        let kinds = [Kind::Read, Kind::Rebuild];
        let other = kinds[1 - self.turn as usize];
        let behind = self.used[self.turn as usize] - self.used[other as usize];
        match (has[self.turn as usize], has[other as usize]) {
            (false, false) => return None,
            (false, true) => self.turn = other,
            (true, true) if behind >= self.length => self.turn = other,
            (true, true | false) => {}
        }
        Some(self.turn)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FairScheduler, Queue};
    use crate::rack::share::Kind;
    use crate::rack::transfers::OpIndex;

    fn order(groups: &[u32], reorder: f64) -> Vec<u32> {
        let mut queue = Queue::default();
        for (index, group) in (0..).zip(groups) {
            queue.insert(OpIndex(index), *group, 1.0, reorder);
        }
        std::iter::from_fn(|| queue.pop()).map(|index| index.0).collect()
    }

    #[test]
    fn reads_of_a_group_batch_within_the_reorder_limit() {
        let groups = [1, 2, 1, 1, 2, 1];
        assert_eq!(order(&groups, 0.0), [0, 1, 2, 3, 4, 5], "first come first served");
        assert_eq!(order(&groups, 2.0), [0, 2, 3, 1, 4, 5], "2 was overtaken twice");
        assert_eq!(order(&groups, 100.0), [0, 2, 3, 5, 1, 4]);
    }

    proptest! {
        /// No operation is overtaken by more than is allowed, each is served once, and those of one
        /// group keep their order.
        #[test]
        fn no_operation_is_overtaken_beyond_the_limit(
            groups in prop::collection::vec(0_u32..6, 1..80),
            reorder in 0_u32..30,
        ) {
            let order = order(&groups, f64::from(reorder));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.iter().map(|index| *index as usize).eq(0..groups.len()));
            for (place, index) in order.iter().enumerate() {
                let before = &order[..place];
                let overtaken = before.iter().filter(|other| *other > index).count();
                prop_assert!(overtaken <= reorder as usize, "{index}: {overtaken} times");
                let same = |other: &&u32| groups[**other as usize] == groups[*index as usize];
                prop_assert!(before.iter().filter(same).all(|other| other < index));
            }
        }
    }

    #[test]
    fn fair_queues_share_time_and_idle_credit_is_one_turn() {
        let mut fair_scheduler = FairScheduler::new(0.5, 100.0);
        let mut used = [0.0_f64; 2];
        let mut changes = 0;
        let mut last = Kind::Read;
        for _ in 0..10_000 {
            let kind = fair_scheduler.next([true, true]).unwrap();
            changes += u32::from(kind != last);
            last = kind;
            used[kind as usize] += 1.0;
            fair_scheduler.used(kind, 1.0);
        }
        assert!((used[0] - used[1]).abs() <= 100.0, "{used:?}");
        assert!((90..=110).contains(&changes), "{changes} turns of 100 s over 10,000 s");
        for _ in 0..10_000 {
            assert_eq!(fair_scheduler.next([false, true]), Some(Kind::Rebuild));
            fair_scheduler.used(Kind::Rebuild, 1.0);
        }
        fair_scheduler.activate(Kind::Read);
        assert_eq!(
            fair_scheduler.next([true, true]),
            Some(Kind::Read),
            "a client is served at once"
        );
        let mut long = 0;
        while fair_scheduler.next([true, true]) == Some(Kind::Read) {
            fair_scheduler.used(Kind::Read, 1.0);
            long += 1;
        }
        assert!((50..=101).contains(&long), "{long}");
        assert_eq!(fair_scheduler.next([false, false]), None);
    }
}
