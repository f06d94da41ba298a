//! Estimates of how long verification takes, and when to recompute them.
//!
//! Not here: what is decided from them (`verification.rs`).

use fulgurite_units::{Duration, Instant};

use crate::control::limits::LOAD_TRACK_MS;

/// Tracks that a pass must have read to update the estimate.
const ESTIMATE_TRACKS_MIN: u32 = 16;
/// Upper bound of the estimate for a track: a minute, which is more than any drive needs.
const TRACK_NS_MAX: u64 = 60_000_000_000;

/// What is known of the time that verification needs and has.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    updated_at: Instant,
    is_due: bool,
    /// When the passage of time alone changes something.
    next: Option<Instant>,
    /// Nanoseconds per track, estimated from past passes.
    track_ns: u64,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Self {
            updated_at: Instant::ZERO,
            is_due: false,
            next: None,
            track_ns: LOAD_TRACK_MS * 1_000_000,
        }
    }

    /// Whether something has changed since the last computation.
    #[inline]
    pub(crate) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// When the passage of time alone changes something.
    #[inline]
    pub(crate) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Nanoseconds per track, estimated from past passes.
    pub(crate) const fn track_ns(&self) -> u64 {
        self.track_ns
    }

    /// Whether the pace was computed at this moment, and nothing has changed since.
    pub(crate) fn is_current(&self, now: Instant) -> bool {
        self.updated_at == now && !self.is_due
    }

    /// Records that something has changed.
    pub(crate) const fn mark_stale(&mut self) {
        self.is_due = true;
    }

    /// Records that the pace is computed now.
    pub(crate) const fn begin_update(&mut self, now: Instant) {
        (self.is_due, self.updated_at, self.next) = (false, now, None);
    }

    /// Sets when the passage of time changes something, unless it is set to an earlier time.
    pub(crate) fn schedule_update(&mut self, at: Option<Instant>) {
        self.next = [self.next, at].into_iter().flatten().min();
    }

    /// Updates the estimate from a pass that read this many tracks.
    pub(crate) fn update_estimate(&mut self, took: Duration, tracks: u32) {
        if tracks >= ESTIMATE_TRACKS_MIN {
            let track_ns = (took.as_nanos() / u64::from(tracks)).min(TRACK_NS_MAX);
            self.track_ns = self.track_ns / 8 * 7 + track_ns / 8;
            self.is_due = true;
        }
    }
}
