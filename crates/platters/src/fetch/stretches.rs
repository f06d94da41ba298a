//! The positions of shards on a platter, and which shards are read in one go.

use fulgurite_glass::{Geometry, TrackMap};
use fulgurite_library::TrackSpan;
use fulgurite_units::TrackIndex;

use super::Wish;
use crate::Shard;
use crate::limits::READ_GAP_TRACKS;
use crate::rows::{PlatterRow, SetRow};

/// The positions of a platter's tracks.
pub(super) struct Tracked {
    geometry: Geometry,
    map: TrackMap,
}

impl Tracked {
    pub(super) fn new(set: &SetRow, row: &PlatterRow) -> Self {
        let geometry = set.geometry.clone();
        let map = geometry.map(geometry.tracks_for(row.data_bytes + row.list_bytes));
        Self { geometry, map }
    }

    /// Returns the first and the last physical track of a shard.
    fn of(&self, shard: &Shard) -> (u32, u32) {
        let at = |offset| self.map.physical(self.geometry.address(offset).track).get();
        (at(shard.offset), at(shard.offset + shard.bytes.max(1) - 1))
    }

    /// Returns the one span that covers the tracks of all shards.
    pub(super) fn span<P>(&self, wishes: &[Wish<P>]) -> TrackSpan {
        let all = wishes.iter().map(|wish| self.of(&wish.shard));
        let (first, last) =
            all.fold((u32::MAX, 0), |(first, last), of| (first.min(of.0), last.max(of.1)));
        let first = first.min(last);
        TrackSpan::new(TrackIndex::new(first), last - first + 1)
    }

    /// Sorts wishes by position and groups them into runs of tracks that are read in one go.
    pub(super) fn stretches<P>(&self, mut wishes: Vec<Wish<P>>) -> Vec<(TrackSpan, Vec<Wish<P>>)> {
        wishes.sort_by_key(|wish| wish.shard.offset);
        let mut stretches: Vec<(u32, Vec<Wish<P>>)> = Vec::new();
        for wish in wishes {
            let (first, last) = self.of(&wish.shard);
            match stretches.last_mut() {
                Some((end, wishes)) if first <= end.saturating_add(READ_GAP_TRACKS) => {
                    *end = last.max(*end);
                    wishes.push(wish);
                }
                _ => stretches.push((last, vec![wish])),
            }
        }
        stretches.into_iter().map(|(_, wishes)| (self.span(&wishes), wishes)).collect()
    }
}
