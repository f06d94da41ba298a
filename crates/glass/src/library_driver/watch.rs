//! Subscriptions to the library: a snapshot, and from then on every event and decision, in order.
//!
//! The driver never waits for a subscriber: one that is too slow gets nothing more, except an end
//! marker. It can subscribe again, from another snapshot. This is not the log, which has every step
//! since the start, or none.

use fulgurite_glass_core::control::{Event, Library, LibraryShape, Output, Snapshot};
use fulgurite_tier::watch::{Publisher, Watch};
use fulgurite_units::Instant;
use serde::Serialize;

/// An item that a subscriber receives.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Seen {
    /// The state before the steps that follow: the first item, and again when the library had to be
    /// restarted.
    Snapshot(Box<LibrarySnapshot>),
    /// An event of the library.
    Step(LibraryStep),
    /// Nothing more follows.
    End(WatchEnd),
}

/// A snapshot of the library.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LibrarySnapshot {
    /// Number of steps until now, since the archive was opened.
    pub step: u64,
    /// The time, since the archive was opened.
    pub at: Instant,
    /// Real seconds per mechanical second.
    pub time_scale: f64,
    /// The shape of the library.
    pub shape: LibraryShape,
    /// Where everything is and what it is doing.
    pub library: Snapshot,
}

/// An event that the library received, and its decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LibraryStep {
    /// Sequence number since the archive was opened, without gaps.
    pub step: u64,
    /// The time, since the archive was opened.
    pub at: Instant,
    /// The event.
    pub event: Event,
    /// The decisions, in order.
    pub outputs: Vec<Output>,
}

/// Why a subscriber receives nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum WatchEnd {
    /// It was too slow, and events were overwritten.
    Late,
    /// The library stopped.
    Stopped,
}

/// A subscription.
#[derive(Debug)]
pub struct LibraryWatch {
    events: Watch<Seen>,
    is_over: bool,
}

impl LibraryWatch {
    /// Waits for the next item; returns `None` after the end. Cancel-safe: an item that is not
    /// awaited to the end is not lost.
    pub async fn next(&mut self) -> Option<Seen> {
        if self.is_over {
            return None;
        }
        let end = match self.events.next().await {
            Some(Ok(seen)) => return Some(seen),
            Some(Err(_)) => WatchEnd::Late,
            None => WatchEnd::Stopped,
        };
        self.is_over = true;
        Some(Seen::End(end))
    }
}

/// Publishes the steps of the library.
#[derive(Debug)]
pub(super) struct LibraryPublisher {
    publisher: Publisher<Seen>,
    time_scale: f64,
}

impl LibraryPublisher {
    pub(super) fn new(steps_max: usize, time_scale: f64) -> Self {
        Self { publisher: Publisher::new(steps_max), time_scale }
    }

    /// Adds a subscriber from now on.
    pub(super) fn watch(&self, library: &Library, now: Instant) -> LibraryWatch {
        let events = self.publisher.watch_from(self.snapshot(library, now));
        LibraryWatch { events, is_over: false }
    }

    /// Sends a new snapshot to all subscribers after the library was replaced.
    pub(super) fn restart(&self, library: &Library, now: Instant) {
        self.publisher.publish(|| self.snapshot(library, now));
    }

    /// Sends an event and its outputs to all subscribers.
    pub(super) fn step(&self, at: Instant, event: Event, outputs: &[Output]) {
        self.publisher.step(|step| {
            let outputs = outputs.to_vec();
            Seen::Step(LibraryStep { step, at, event, outputs })
        });
    }

    fn snapshot(&self, library: &Library, at: Instant) -> Seen {
        Seen::Snapshot(Box::new(LibrarySnapshot {
            step: self.publisher.steps(),
            at,
            time_scale: self.time_scale,
            shape: library.shape().clone(),
            library: library.snapshot(),
        }))
    }
}
