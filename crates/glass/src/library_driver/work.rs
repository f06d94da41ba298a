//! The work of a drive for a request: a read runs to its end, a verification pauses when customers
//! need the drive, and continues later.
//!
//! ```text
//! VerifyPass --> thread: track, track, track ... -- whole --> Completed
//!    ^                           |  ^
//!    |                 Halt -----'  '-- checked after every track
//!    '--- the rest, later <-- Halted { tracks_done }
//! ```
//!
//! Reading is real and takes the time the bytes take. A drive's own time, when it is scaled, is
//! waited for after each track, so that a paused drive has read as many tracks as it reports.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fulgurite_glass_core::control::TrackSpan;

/// Reads what a request wants, once.
pub(crate) type Read = Box<dyn FnOnce() + Send>;

/// Continues a verification from where it paused. Called again after the end, it has nothing left
/// to do.
pub(crate) type Verify = Box<dyn FnMut(&Pace) -> Pass + Send>;

/// How a pass of a verification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// There is nothing left to verify, or no way to.
    Complete,
    /// It paused because [`Pace::can_continue`] said so, after this many tracks of the platter.
    Paused {
        /// Counted from the platter's first track.
        tracks_done: u32,
    },
}

/// The work of a request.
pub(super) enum Work {
    Read(Read),
    Verify(Verify),
}

/// How a thread's work ended, in terms of its command.
#[derive(Debug)]
pub(super) enum WorkEnd {
    Complete,
    /// After this many tracks of the command's span.
    Halted(u32),
    /// It panicked.
    Died(String),
}

/// Asks a verification to pause.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    is_requested: Mutex<bool>,
    requested: Condvar,
}

impl Halt {
    /// Asks for a pause at the next track.
    pub(crate) fn request(&self) {
        *self.is_requested.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.requested.notify_all();
    }

    /// Waits until `due`, or until a pause is requested; returns whether it was.
    fn wait_until(&self, due: Instant) -> bool {
        let is_requested = self.is_requested.lock().unwrap_or_else(PoisonError::into_inner);
        let left = due.saturating_duration_since(Instant::now());
        let waited =
            self.requested.wait_timeout_while(is_requested, left, |is_requested| !*is_requested);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Limits how fast a drive may read, and tells it when to pause.
#[derive(Debug)]
pub(crate) struct Pace {
    halt: Arc<Halt>,
    started: Instant,
    span: TrackSpan,
    duration: Duration,
}

impl Pace {
    /// Creates the pace of a command over `span` that takes `duration`, until `halt` is requested.
    #[must_use]
    pub(crate) fn new(halt: Arc<Halt>, span: TrackSpan, duration: Duration) -> Self {
        Self { halt, started: Instant::now(), span, duration }
    }

    /// Waits as long as the drive takes for this many tracks of the platter. Returns `false` if the
    /// drive has to pause here.
    #[must_use]
    pub(crate) fn can_continue(&self, tracks_done: u32) -> bool {
        let done = self.tracks_in_span(tracks_done);
        !self.halt.wait_until(self.started + self.duration * done / self.span.track_count.max(1))
    }

    /// Returns how many of the platter's first `tracks_done` tracks are in the command's span.
    fn tracks_in_span(&self, tracks_done: u32) -> u32 {
        tracks_done.saturating_sub(self.span.first.get()).min(self.span.track_count)
    }

    /// Returns how the command of a finished pass ended.
    pub(super) fn end(&self, pass: Pass) -> WorkEnd {
        match pass {
            Pass::Paused { tracks_done } => WorkEnd::Halted(self.tracks_in_span(tracks_done)),
            // Work that needs no reading here still takes the drive's time, and can be paused like
            // any other.
            Pass::Complete if self.halt.wait_until(self.started + self.duration) => {
                let (passed, count) = (self.started.elapsed(), self.span.track_count);
                let done = passed.as_nanos() * u128::from(count) / self.duration.as_nanos().max(1);
                match u32::try_from(done).ok().filter(|&done| done < count) {
                    Some(done) => WorkEnd::Halted(done),
                    None => WorkEnd::Complete,
                }
            }
            Pass::Complete => WorkEnd::Complete,
        }
    }
}
