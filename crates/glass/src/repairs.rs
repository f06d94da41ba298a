//! Counts of repairs while shards were read, by the layer of code that made them.

use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_platter::CodeLevel;

/// Repairs since start.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    sectors_by_track: AtomicU64,
    tracks_by_group: AtomicU64,
    tracks_by_set: AtomicU64,
}

impl Repairs {
    /// Counts a track that was read with `sectors` failed sectors.
    pub(crate) fn count(&self, repaired_by: Option<CodeLevel>, sectors: u64) {
        let (counter, more) = match repaired_by {
            Some(CodeLevel::Track) => (&self.sectors_by_track, sectors),
            Some(CodeLevel::Group) => (&self.tracks_by_group, 1),
            Some(CodeLevel::Set) => (&self.tracks_by_set, 1),
            None => return,
        };
        counter.fetch_add(more, Ordering::Relaxed);
    }

    /// Returns the sectors repaired by their track, the tracks repaired by their large group, and
    /// the tracks repaired by their set.
    #[must_use]
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.sectors_by_track), count(&self.tracks_by_group), count(&self.tracks_by_set))
    }
}
