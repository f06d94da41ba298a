//! Progress of a long call, for monitoring: bytes of tracks that were written and read, and bytes
//! of restored copies that were read, with their totals.
//!
//! No decision depends on it, so it may lag a little behind what it counts. Rates and the remaining
//! time are computed by the reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_platter::Geometry;

/// Bytes done, and bytes in total. The total may grow or shrink while a call runs: what will be
/// sealed next is estimated until it is planned.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Returns bytes done and bytes in total: both zero when nothing is in progress.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed).min(total), total)
    }

    /// Resets it to this much done of this total.
    pub fn set(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Adds bytes that were done.
    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Starts counting a part of the work that reports its own progress, and may have to start
    /// over.
    #[must_use]
    pub fn part(self: &Arc<Self>) -> Part {
        Part { progress: Arc::clone(self), done: 0 }
    }
}

/// A part of the work.
#[derive(Debug)]
pub struct Part {
    progress: Arc<Progress>,
    done: u64,
}

impl Part {
    /// Sets how much of it is done, which may be less than before.
    pub fn set_done(&mut self, done: u64) {
        let all = &self.progress.done;
        match done.checked_sub(self.done) {
            Some(more) => all.fetch_add(more, Ordering::Relaxed),
            None => all.fetch_sub(self.done - done, Ordering::Relaxed),
        };
        self.done = done;
    }
}

/// Returns the bytes of all tracks of a platter that holds this many user bytes.
#[must_use]
pub(crate) fn platter_bytes(geometry: &Geometry, user_bytes: u64) -> u64 {
    let tracks = geometry.map(geometry.tracks_for(user_bytes)).tracks();
    u64::from(tracks) * geometry.track_image_bytes() as u64
}

/// Estimates the bytes of tracks of sets that hold this many user bytes: platters are filled one
/// after the other, and a redundancy platter is as long as the longest of its set. File lists are
/// left out.
#[must_use]
pub(crate) fn sets_bytes(geometry: &Geometry, user_bytes: u64) -> u64 {
    let (platter, set) = (geometry.platter_user_bytes(), geometry.set_user_bytes());
    let full = platter_bytes(geometry, platter);
    let redundancy = u64::from(geometry.set_redundancy_platters);
    let sets =
        user_bytes / set * (u64::from(geometry.set_information_platters) + redundancy) * full;
    let rest = user_bytes % set;
    if rest == 0 {
        return sets;
    }
    let part = rest % platter;
    let last = if part == 0 { 0 } else { platter_bytes(geometry, part) };
    let longest = if rest >= platter { full } else { last };
    sets + rest / platter * full + last + redundancy * longest
}

#[cfg(test)]
mod tests;
