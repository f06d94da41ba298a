//! Subscriptions to the library: a snapshot, and from then on every event and decision, in order.
//!
//! ```text
//! LiveLibrary::watch --> inbox --> Driver -- a snapshot, then a step per event --> LibraryWatch
//!                                            a queue per subscriber, never waited for
//! ```
//!
//! The driver never waits for a subscriber: one whose queue is full gets nothing more, except an
//! end marker after what is in the queue. It can subscribe again, from another snapshot. This is
//! not the log, which has every step since the start, or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fulgurite_glass_core::control::{Event, Library, LibraryShape, Output, Snapshot};
use fulgurite_units::Instant;
use serde::Serialize;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// An item that a subscriber receives.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Seen {
    /// The state before the steps that follow: the first item, and again when the library had to be
    /// restarted.
    Scene(Box<LibrarySnapshot>),
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
    /// It was too slow, and its queue was full.
    Late,
    /// The library stopped.
    Stopped,
}

/// The subscriber's end of its queue.
#[derive(Debug)]
pub struct LibraryWatch {
    seen: Receiver<Seen>,
    is_late: Arc<AtomicBool>,
    is_over: bool,
}

impl LibraryWatch {
    /// Waits for the next item; returns `None` after the end. Cancel-safe: an item that is not
    /// awaited to the end is not lost.
    pub async fn next(&mut self) -> Option<Seen> {
        if let Some(seen) = self.seen.recv().await {
            return Some(seen);
        }
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        let is_late = self.is_late.load(Ordering::SeqCst);
        Some(Seen::End(if is_late { WatchEnd::Late } else { WatchEnd::Stopped }))
    }
}

/// The driver's end of the queue.
#[derive(Debug)]
pub(super) struct Subscriber {
    seen: Sender<Seen>,
    is_late: Arc<AtomicBool>,
}

impl Subscriber {
    /// Creates both ends of a queue of `waiting_max` items.
    pub(super) fn new(waiting_max: usize) -> (Self, LibraryWatch) {
        let (sender, receiver) = channel(waiting_max);
        let is_late = Arc::<AtomicBool>::default();
        let watch = LibraryWatch { seen: receiver, is_late: Arc::clone(&is_late), is_over: false };
        (Self { seen: sender, is_late }, watch)
    }

    /// Sends an item; returns whether the subscriber stays subscribed.
    fn try_send(&self, seen: Seen) -> bool {
        match self.seen.try_send(seen) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                // Set before the sender is dropped, by which the reader learns of its end.
                self.is_late.store(true, Ordering::SeqCst);
                false
            }
        }
    }
}

/// All subscribers.
#[derive(Debug)]
pub(super) struct Subscribers {
    all: Vec<Subscriber>,
    steps: u64,
    time_scale: f64,
}

impl Subscribers {
    pub(super) const fn new(time_scale: f64) -> Self {
        Self { all: Vec::new(), steps: 0, time_scale }
    }

    /// Adds a subscriber from now on.
    pub(super) fn add(&mut self, subscriber: Subscriber, library: &Library, now: Instant) {
        // Drops subscribers that left while nothing happened.
        self.all.retain(|subscriber| !subscriber.seen.is_closed());
        if subscriber.try_send(self.snapshot(library, now)) {
            self.all.push(subscriber);
        }
    }

    /// Sends a new snapshot to all subscribers after the library was replaced.
    pub(super) fn restart(&mut self, library: &Library, now: Instant) {
        let snapshot = self.snapshot(library, now);
        self.all.retain(|subscriber| subscriber.try_send(snapshot.clone()));
    }

    /// Sends an event and its outputs to all subscribers.
    pub(super) fn step(&mut self, at: Instant, event: &Event, outputs: &[Output]) {
        self.steps += 1;
        if self.all.is_empty() {
            return;
        }
        let (step, event, outputs) = (self.steps, *event, outputs.to_vec());
        let seen = Seen::Step(LibraryStep { step, at, event, outputs });
        self.all.retain(|subscriber| subscriber.try_send(seen.clone()));
    }

    fn snapshot(&self, library: &Library, at: Instant) -> Seen {
        Seen::Scene(Box::new(LibrarySnapshot {
            step: self.steps,
            at,
            time_scale: self.time_scale,
            shape: library.shape().clone(),
            library: library.snapshot(),
        }))
    }
}
