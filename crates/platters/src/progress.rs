//! How far a long call is, for those who watch it: bytes of tracks that were written and read, and
//! bytes of restored copies that were read, of how many.
//!
//! Nothing is decided by it, so it may be a little behind what it counts. Rates and the time that
//! is left are the watcher's to say.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_glass::Geometry;

/// Bytes done, of bytes in all. The second figure may grow or shrink while a call runs: what will
/// be sealed next is estimated until it is planned.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Bytes done, and bytes in all: none of either when nothing is under way.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed).min(total), total)
    }

    /// Begins anew: so much is done of so much.
    pub fn set(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// More was done.
    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a piece of the work that says itself how far it is, and may have to begin anew.
    #[must_use]
    pub fn part(self: &Arc<Self>) -> Part {
        Part { progress: Arc::clone(self), done: 0 }
    }
}

/// A piece of the work.
#[derive(Debug)]
pub struct Part {
    progress: Arc<Progress>,
    done: u64,
}

impl Part {
    /// So much of it is done, which may be less than before.
    pub fn at(&mut self, done: u64) {
        let all = &self.progress.done;
        match done.checked_sub(self.done) {
            Some(more) => all.fetch_add(more, Ordering::Relaxed),
            None => all.fetch_sub(self.done - done, Ordering::Relaxed),
        };
        self.done = done;
    }
}

/// Bytes of all tracks of a platter that holds so many user bytes.
#[must_use]
pub(crate) fn platter_bytes(geometry: &Geometry, user_bytes: u64) -> u64 {
    let tracks = geometry.map(geometry.tracks_for(user_bytes)).tracks();
    u64::from(tracks) * geometry.track_image_bytes() as u64
}

/// About how many bytes of tracks sets take that hold so many user bytes: platter after platter is
/// filled, and a redundancy platter is as long as the longest of its set. Lists of what is on them
/// are left out.
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
