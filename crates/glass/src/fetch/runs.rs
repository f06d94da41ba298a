//! The positions of shards on a platter, and which shards are read in one go.

use fulgurite_glass_core::control::TrackSpan;
use fulgurite_platter::{Geometry, TrackMap};
use fulgurite_units::TrackIndex;

use super::ShardRequest;
use crate::Shard;
use crate::limits::READ_GAP_TRACKS;
use crate::rows::{PlatterRow, SetRow};

/// The positions of a platter's tracks.
pub(super) struct TrackPositions {
    geometry: Geometry,
    map: TrackMap,
}

impl TrackPositions {
    pub(super) fn new(set: &SetRow, row: &PlatterRow) -> Self {
        let geometry = set.geometry.clone();
        let map = geometry.map(geometry.tracks_for(row.data_bytes + row.list_bytes));
        Self { geometry, map }
    }

    /// Returns the first and the last physical track of a shard.
    fn track_range(&self, shard: &Shard) -> (u32, u32) {
        let at = |offset| self.map.physical(self.geometry.address(offset).track).get();
        (at(shard.offset), at(shard.offset + shard.bytes.max(1) - 1))
    }

    /// Returns the one span that covers the tracks of all shards.
    pub(super) fn span<P>(&self, requests: &[ShardRequest<P>]) -> TrackSpan {
        let all = requests.iter().map(|request| self.track_range(&request.shard));
        let (first, last) = all.fold((u32::MAX, 0), |(first, last), track_range| {
            (first.min(track_range.0), last.max(track_range.1))
        });
        let first = first.min(last);
        TrackSpan::new(TrackIndex::new(first), last - first + 1)
    }

    /// Sorts requests by position and groups them into runs of tracks that are read in one go.
    pub(super) fn runs<P>(
        &self,
        mut requests: Vec<ShardRequest<P>>,
    ) -> Vec<(TrackSpan, Vec<ShardRequest<P>>)> {
        requests.sort_by_key(|request| request.shard.offset);
        let mut runs: Vec<(u32, Vec<ShardRequest<P>>)> = Vec::new();
        for request in requests {
            let (first, last) = self.track_range(&request.shard);
            match runs.last_mut() {
                Some((end, requests)) if first <= end.saturating_add(READ_GAP_TRACKS) => {
                    *end = last.max(*end);
                    requests.push(request);
                }
                _ => runs.push((last, vec![request])),
            }
        }
        runs.into_iter().map(|(_, requests)| (self.span(&requests), requests)).collect()
    }
}
