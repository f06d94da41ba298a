//! Live events for subscribers: a first item, mostly a snapshot, then each event.
//!
//! ```text
//! Publisher::publish --> ring --> Watch::next: first item, event, event, missed 7, event, ...
//! ```
//!
//! The publisher waits for nobody: events go into a bounded ring, and a subscriber that is too slow
//! learns how many were overwritten before it read them. Without subscribers no event is made.
//!
//! Not here: what an event says, and its encoding.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Publishes events. Clones share the ring and the step count.
#[derive(Clone, Debug)]
pub struct Publisher<T> {
    ring: broadcast::Sender<T>,
    steps: Arc<AtomicU64>,
}

impl<T: Clone> Publisher<T> {
    /// Creates a publisher whose ring holds this many events.
    #[must_use]
    pub fn new(events_max: usize) -> Self {
        Self { ring: broadcast::Sender::new(events_max), steps: Arc::default() }
    }

    /// Returns the number of steps so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Counts a step, and publishes the event that is made of its number.
    pub fn step(&self, event: impl FnOnce(u64) -> T) {
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        self.publish(|| event(step));
    }

    /// Publishes an event without counting a step.
    pub fn publish(&self, event: impl FnOnce() -> T) {
        if self.has_subscribers() {
            // The last subscriber may be gone by now.
            let _ = self.ring.send(event());
        }
    }

    /// Whether there are subscribers.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        self.ring.receiver_count() > 0
    }

    /// Adds a subscriber to the events from now on.
    #[must_use]
    pub fn watch(&self) -> Watch<T> {
        Watch { first: None, events: self.ring.subscribe() }
    }

    /// The same, with an item that comes first.
    #[must_use]
    pub fn watch_from(&self, first: T) -> Watch<T> {
        Watch { first: Some(first), ..self.watch() }
    }
}

/// A subscription.
#[derive(Debug)]
pub struct Watch<T> {
    first: Option<T>,
    events: broadcast::Receiver<T>,
}

impl<T: Clone> Watch<T> {
    /// Returns the next event, or how many were missed as an error; `None` when the publisher is
    /// gone. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<T, Missed>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        match self.events.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(RecvError::Lagged(missed)) => Some(Err(Missed(missed))),
            Err(RecvError::Closed) => None,
        }
    }
}

/// The number of events that were overwritten before they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(mut watch: Watch<String>) -> Vec<String> {
        let next = |seen: Result<String, Missed>| {
            seen.unwrap_or_else(|Missed(missed)| format!("missed {missed}"))
        };
        std::iter::from_fn(|| futures::executor::block_on(watch.next())).map(next).collect()
    }

    #[test]
    fn slow_subscriber_misses_events_and_delays_nobody() {
        let publisher = Publisher::new(4);
        publisher.step(|_| unreachable!("nobody watches"));
        let slow = publisher.watch_from(format!("snapshot {}", publisher.steps()));
        for _ in 0..4 {
            publisher.step(|step| format!("step {step}"));
        }
        let prompt = publisher.watch();
        publisher.publish(|| "alarm".to_owned());
        publisher.step(|step| format!("step {step}"));
        drop(publisher);
        let last = ["step 4", "step 5", "alarm", "step 6"];
        assert_eq!(rest(slow), [&["snapshot 1", "missed 2"], &last[..]].concat());
        assert_eq!(rest(prompt), last[2..]);
    }

    #[test]
    fn no_event_is_made_once_the_last_subscriber_has_left() {
        let publisher = Publisher::<String>::new(4);
        drop((publisher.watch(), publisher.watch()));
        assert!(!publisher.has_subscribers());
        publisher.publish(|| unreachable!("nobody watches"));
    }
}
