//! What is going to happen, in the order (time, sequence): a total order, so that a run repeats.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fulgurite_units::Instant;

/// A heap of things to come.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Entry<T>>,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    at: Instant,
    sequence: u64,
    what: T,
}

impl<T> Entry<T> {
    /// Time and sequence as one number: compared without a branch.
    fn order(&self) -> u128 {
        u128::from(self.at.as_nanos()) << 64 | u128::from(self.sequence)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// The heap gives its greatest first, so the soonest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::with_capacity(256), sequence: 0 }
    }

    pub(crate) fn push(&mut self, at: Instant, what: T) {
        self.sequence += 1;
        self.heap.push(Entry { at, sequence: self.sequence, what });
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, T)> {
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }
}
