//! The event queue, ordered by (time, sequence): a total order, so that a run repeats.
//!
//! The heap holds only numbers: time, sequence and the slot of the payload. Most of its work is
//! moving entries up and down, and the payloads stay in place.
//!
//! ```text
//!   127        64 63            20 19     0
//!   |   time    |   sequence     |  place  |   the smallest is next
//! ```
//!
//! An event nearly always schedules another, as the end of a command does with its successor. So
//! the entry of the current event stays at the top until then and is replaced. That costs half of
//! the sifting of a pop and a push.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fulgurite_units::Instant;

/// Bits of the slot: limits how many events can be pending at a time.
const PLACE_BITS: u32 = 20;
/// Bits of the sequence and the slot.
const LOW_BITS: u32 = 64;

/// A heap of pending events.
#[derive(Clone, Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Reverse<u128>>,
    /// Whether the event at the top of the heap has already been taken.
    has_happened: bool,
    things: Vec<T>,
    /// Free slots: their events have been taken.
    unused: Vec<u32>,
    sequence: u64,
}

impl<T: Copy> Agenda<T> {
    pub(crate) fn new() -> Self {
        let heap = BinaryHeap::with_capacity(256);
        Self { heap, has_happened: false, things: Vec::new(), unused: Vec::new(), sequence: 0 }
    }

    /// Schedules an event.
    ///
    /// # Panics
    /// When a million events are pending already.
    pub fn push(&mut self, at: Instant, what: T) {
        self.sequence += 1;
        let place = self.put(what);
        let low = self.sequence << PLACE_BITS | u64::from(place);
        let entry = Reverse(u128::from(at.as_nanos()) << LOW_BITS | u128::from(low));
        if std::mem::take(&mut self.has_happened)
            && let Some(mut top) = self.heap.peek_mut()
        {
            *top = entry;
            return;
        }
        self.heap.push(entry);
    }

    /// Returns the time of the next event.
    pub(crate) fn next_at(&mut self) -> Option<Instant> {
        self.drop_happened();
        self.heap.peek().map(|Reverse(entry)| time_of(*entry))
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, T)> {
        self.drop_happened();
        let Reverse(entry) = *self.heap.peek()?;
        self.has_happened = true;
        let place = u32::try_from(entry & ((1 << PLACE_BITS) - 1)).unwrap_or(0);
        self.unused.push(place);
        Some((time_of(entry), self.things[place as usize]))
    }

    fn drop_happened(&mut self) {
        if std::mem::take(&mut self.has_happened) {
            self.heap.pop();
        }
    }

    fn put(&mut self, what: T) -> u32 {
        if let Some(place) = self.unused.pop() {
            self.things[place as usize] = what;
            return place;
        }
        assert!(self.things.len() < 1 << PLACE_BITS, "a million things to come at a time");
        self.things.push(what);
        u32::try_from(self.things.len() - 1).unwrap_or(u32::MAX)
    }
}

fn time_of(entry: u128) -> Instant {
    Instant::from_nanos(u64::try_from(entry >> LOW_BITS).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{Instant, Seed};

    use super::Agenda;

    #[test]
    fn things_happen_in_the_order_of_time_and_then_of_coming() {
        let mut random = Seed::new(1).stream();
        let mut agenda = Agenda::new();
        let mut expected: Vec<(Instant, u32)> = Vec::new();
        for number in 0..5_000 {
            let at = Instant::from_nanos(random.below(300) << random.below(56));
            agenda.push(at, number);
            expected.push((at, number));
            if random.below(3) == 0 {
                // A stable order: among events at the same time, the one scheduled first.
                let first = expected.iter().enumerate().min_by_key(|(_, (at, _))| *at).unwrap().0;
                let first = expected.remove(first);
                assert_eq!(agenda.next_at(), Some(first.0));
                assert_eq!(agenda.pop(), Some(first));
            }
        }
        expected.sort_by_key(|(at, _)| *at);
        assert_eq!(std::iter::from_fn(|| agenda.pop()).collect::<Vec<_>>(), expected);
        assert_eq!(agenda.next_at(), None);
    }
}
