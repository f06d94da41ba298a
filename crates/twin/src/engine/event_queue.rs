//! The event queue, ordered by (time, sequence): a total order, so that a run repeats.
//!
//! The heap holds only numbers: time, sequence and the slot of the payload. Most of its work is
//! moving entries up and down, and the payloads stay in place.
//!
//! ```text
//!   127        64 63            20 19     0
//!   |   time    |   sequence     |  slot   |   the smallest is next
//! ```
//!
//! An event nearly always schedules another, as the end of a command does with its successor. So
//! the entry of the current event stays at the top until then and is replaced. That costs half of
//! the sifting of a pop and a push.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fulgurite_units::Instant;

/// Bits of the slot: limits how many events can be pending at a time.
const SLOT_BITS: u32 = 20;
/// Bits of the sequence and the slot.
const LOW_BITS: u32 = 64;

/// A heap of pending events.
#[derive(Clone, Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Reverse<u128>>,
    /// Whether the event at the top of the heap has already been taken.
    is_top_taken: bool,
    payloads: Vec<T>,
    /// Free slots: their events have been taken.
    free_slots: Vec<u32>,
    sequence: u64,
}

impl<T: Copy> EventQueue<T> {
    pub(crate) fn new() -> Self {
        let heap = BinaryHeap::with_capacity(256);
        Self {
            heap,
            is_top_taken: false,
            payloads: Vec::new(),
            free_slots: Vec::new(),
            sequence: 0,
        }
    }

    /// Schedules an event.
    ///
    /// # Panics
    /// When a million events are pending already.
    pub fn push(&mut self, at: Instant, payload: T) {
        self.sequence += 1;
        let slot = self.put(payload);
        let low = self.sequence << SLOT_BITS | u64::from(slot);
        let entry = Reverse(u128::from(at.as_nanos()) << LOW_BITS | u128::from(low));
        if std::mem::take(&mut self.is_top_taken)
            && let Some(mut top) = self.heap.peek_mut()
        {
            *top = entry;
            return;
        }
        self.heap.push(entry);
    }

    /// Returns the time of the next event.
    pub(crate) fn next_at(&mut self) -> Option<Instant> {
        self.drop_taken();
        self.heap.peek().map(|Reverse(entry)| time_of(*entry))
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, T)> {
        self.drop_taken();
        let Reverse(entry) = *self.heap.peek()?;
        self.is_top_taken = true;
        let slot = u32::try_from(entry & ((1 << SLOT_BITS) - 1)).unwrap_or(0);
        self.free_slots.push(slot);
        Some((time_of(entry), self.payloads[slot as usize]))
    }

    fn drop_taken(&mut self) {
        if std::mem::take(&mut self.is_top_taken) {
            self.heap.pop();
        }
    }

    fn put(&mut self, payload: T) -> u32 {
        if let Some(slot) = self.free_slots.pop() {
            self.payloads[slot as usize] = payload;
            return slot;
        }
        assert!(self.payloads.len() < 1 << SLOT_BITS, "at most a million events can be pending");
        self.payloads.push(payload);
        u32::try_from(self.payloads.len() - 1).unwrap_or(u32::MAX)
    }
}

fn time_of(entry: u128) -> Instant {
    Instant::from_nanos(u64::try_from(entry >> LOW_BITS).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{Instant, Seed};

    use super::EventQueue;

    #[test]
    fn events_pop_by_time_then_by_insertion() {
        let mut random = Seed::new(1).stream();
        let mut event_queue = EventQueue::new();
        let mut expected: Vec<(Instant, u32)> = Vec::new();
        for number in 0..5_000 {
            let at = Instant::from_nanos(random.below(300) << random.below(56));
            event_queue.push(at, number);
            expected.push((at, number));
            if random.below(3) == 0 {
                // A stable order: among events at the same time, the one scheduled first.
                let first = expected.iter().enumerate().min_by_key(|(_, (at, _))| *at).unwrap().0;
                let first = expected.remove(first);
                assert_eq!(event_queue.next_at(), Some(first.0));
                assert_eq!(event_queue.pop(), Some(first));
            }
        }
        expected.sort_by_key(|(at, _)| *at);
        assert_eq!(std::iter::from_fn(|| event_queue.pop()).collect::<Vec<_>>(), expected);
        assert_eq!(event_queue.next_at(), None);
    }
}
