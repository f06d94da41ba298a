//! The tracks of a platter that an operation is about.

use fulgurite_units::TrackIndex;
use serde::{Deserialize, Serialize};

/// Consecutive tracks of one platter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackSpan {
    /// The first track.
    pub first: TrackIndex,
    /// Number of tracks.
    pub track_count: u32,
}

impl TrackSpan {
    /// Creates the span of `track_count` tracks from `first` on.
    #[must_use]
    pub const fn new(first: TrackIndex, track_count: u32) -> Self {
        Self { first, track_count }
    }

    /// Returns the track after the last one, if tracks can be counted that far.
    #[must_use]
    pub const fn end(self) -> Option<TrackIndex> {
        match self.first.get().checked_add(self.track_count) {
            Some(end) => Some(TrackIndex::new(end)),
            None => None,
        }
    }

    /// Returns what is left after the first `track_count` tracks.
    pub(crate) const fn without_first(self, track_count: u32) -> Self {
        assert!(track_count <= self.track_count, "no more tracks are done than the span has");
        let first = TrackIndex::new(self.first.get() + track_count);
        Self { first, track_count: self.track_count - track_count }
    }
}
