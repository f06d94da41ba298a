//! Whoever watches the library: what it is like at one moment, and from then on all that it is told
//! and decides, in order.
//!
//! ```text
//! LiveLibrary::watch --> inbox --> Driver --- a scene, then a step for each event --> LibraryWatch
//!                                             a queue for each watcher, never waited for
//! ```
//!
//! The driver waits for nobody: a watcher whose queue is full sees no more, and is told so behind
//! what is in the queue. It watches anew, from another scene. What it is not: the log, which has
//! every step since the start, or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fulgurite_library::{Event, Library, LibraryShape, Output, Snapshot};
use fulgurite_units::Instant;
use serde::Serialize;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// What a watcher sees.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Seen {
    /// What the steps behind it begin with: the first thing of all, and again when the library had
    /// to begin anew.
    Scene(Box<LibraryScene>),
    /// The library was told something.
    Step(LibraryStep),
    /// Nothing more is seen.
    End(WatchEnd),
}

/// The library at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LibraryScene {
    /// Steps until now, since the archive was opened.
    pub step: u64,
    /// Now, since then.
    pub at: Instant,
    /// How much of the mechanics' times is waited for.
    pub time_scale: f64,
    /// How large the library is.
    pub shape: LibraryShape,
    /// Where everything is and what it is doing.
    pub library: Snapshot,
}

/// One thing that the library was told, and what it decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LibraryStep {
    /// Counted since the archive was opened, without a gap.
    pub step: u64,
    /// When, since then.
    pub at: Instant,
    /// What it was told.
    pub event: Event,
    /// What it decided, in order.
    pub outputs: Vec<Output>,
}

/// Why a watcher sees nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum WatchEnd {
    /// More happened than it took.
    Late,
    /// The library stopped.
    Stopped,
}

/// A watcher's end of its queue.
#[derive(Debug)]
pub struct LibraryWatch {
    seen: Receiver<Seen>,
    is_late: Arc<AtomicBool>,
    is_over: bool,
}

impl LibraryWatch {
    /// The next thing, once it is there; nothing behind the end. What is not waited for to the end
    /// is not lost.
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

/// The driver's end of it.
#[derive(Debug)]
pub(super) struct Watcher {
    seen: Sender<Seen>,
    is_late: Arc<AtomicBool>,
}

impl Watcher {
    /// Both ends of a queue of `waiting_max`.
    pub(super) fn new(waiting_max: usize) -> (Self, LibraryWatch) {
        let (sender, receiver) = channel(waiting_max);
        let is_late = Arc::<AtomicBool>::default();
        let watch = LibraryWatch { seen: receiver, is_late: Arc::clone(&is_late), is_over: false };
        (Self { seen: sender, is_late }, watch)
    }

    /// Whether it saw this, and goes on watching.
    fn sees(&self, seen: Seen) -> bool {
        match self.seen.try_send(seen) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                // Before the sender goes, by which the reader learns of its end.
                self.is_late.store(true, Ordering::SeqCst);
                false
            }
        }
    }
}

/// All who watch.
#[derive(Debug)]
pub(super) struct Watchers {
    all: Vec<Watcher>,
    steps: u64,
    time_scale: f64,
}

impl Watchers {
    pub(super) const fn new(time_scale: f64) -> Self {
        Self { all: Vec::new(), steps: 0, time_scale }
    }

    /// One more watches, from now on.
    pub(super) fn add(&mut self, watcher: Watcher, library: &Library, now: Instant) {
        // Those who left while nothing happened.
        self.all.retain(|watcher| !watcher.seen.is_closed());
        if watcher.sees(self.scene(library, now)) {
            self.all.push(watcher);
        }
    }

    /// The library is another one from now on.
    pub(super) fn begin_anew(&mut self, library: &Library, now: Instant) {
        let scene = self.scene(library, now);
        self.all.retain(|watcher| watcher.sees(scene.clone()));
    }

    /// The library was told something.
    pub(super) fn step(&mut self, at: Instant, event: &Event, outputs: &[Output]) {
        self.steps += 1;
        if self.all.is_empty() {
            return;
        }
        let (step, event, outputs) = (self.steps, *event, outputs.to_vec());
        let seen = Seen::Step(LibraryStep { step, at, event, outputs });
        self.all.retain(|watcher| watcher.sees(seen.clone()));
    }

    fn scene(&self, library: &Library, at: Instant) -> Seen {
        Seen::Scene(Box::new(LibraryScene {
            step: self.steps,
            at,
            time_scale: self.time_scale,
            shape: library.shape().clone(),
            library: library.snapshot(),
        }))
    }
}
