//! Decoding with the large-group code: restores a track that its own redundancy cannot restore.
//!
//! ```text
//! column by column, only those that hold a lost sector of the wanted track:
//!   1. read the column's sectors of every other track of the group
//!   2. more lost than the column's redundancy? read those tracks whole, restore them within
//!      themselves, take their sectors
//!   3. decode; as soon as the wanted track has no more losses than its own redundancy, the
//!      within-track code does the rest
//! ```
//!
//! Memory: one column of the group and one more track. In the worst case this reads a whole group,
//! which is why it is not the first level tried.

use fulgurite_codes::Shard;
use fulgurite_units::TrackIndex;

use crate::InformationTrack;
use crate::PlatterError;
use crate::PlatterSource;
use crate::error::{CodeLevel, Unreadable};
use crate::geometry::Column;
use crate::medium::Medium;
use crate::reader::PlatterReader;
use crate::sector::payload;
use crate::track::TrackBuffer;

/// One column of a group in memory.
struct ColumnBuffer {
    /// `count` sector images of each track.
    bytes: Vec<u8>,
    /// Whether each sector is lost.
    lost: Vec<bool>,
}

impl<R: PlatterSource> PlatterReader<R> {
    /// Restores the information sectors of a track whose own redundancy is not enough. The buffer
    /// holds the track as loaded.
    pub(crate) fn repair_by_group(
        &self,
        track: InformationTrack,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
    ) -> Result<(), PlatterError> {
        let geometry = &self.header.geometry;
        let group = self.map.group_of(track);
        let first = group * u32::from(geometry.group_information_tracks);
        let members: Vec<TrackIndex> = (first..first + u32::from(self.map.group_tracks(group)))
            .map(|track| self.map.physical(InformationTrack::new(track)))
            .chain(
                (0..geometry.group_redundancy_tracks)
                    .map(|index| self.map.physical_redundancy(group, index)),
            )
            .collect();
        let mut state = ColumnBuffer { bytes: Vec::new(), lost: Vec::new() };
        let mut scratch_buffer = TrackBuffer::new();
        for column in geometry.group_columns() {
            let layers = column.layers();
            if !buffer.lost[layers].contains(&true) {
                continue;
            }
            self.load_column(&members, column, medium, &mut state)?;
            let code = geometry.group_code(column.count)?;
            if lost_count(&state) > code.redundancy() {
                self.repair_column(
                    track,
                    &members,
                    column,
                    medium,
                    &mut state,
                    &mut scratch_buffer,
                )?;
            }
            let lost = lost_count(&state);
            if lost > code.redundancy() {
                return Err(PlatterError::Unreadable(Unreadable {
                    platter: self.header.platter,
                    track,
                    level: CodeLevel::Group,
                    lost: u32::try_from(lost).unwrap_or(u32::MAX),
                    redundancy: u32::try_from(code.redundancy()).unwrap_or(u32::MAX),
                }));
            }
            self.decode_column(track, column, &state, buffer)?;
            if buffer.lost_count() <= geometry.track_redundancy_sectors {
                break;
            }
        }
        if buffer.has_lost_information() { buffer.decode(geometry) } else { Ok(()) }
    }

    /// Reads and checks a column of all tracks of the group.
    fn load_column(
        &self,
        members: &[TrackIndex],
        column: Column,
        medium: &dyn Medium,
        state: &mut ColumnBuffer,
    ) -> Result<(), PlatterError> {
        let sector_bytes = self.header.geometry.sector_image_bytes();
        let span_bytes = usize::from(column.count) * sector_bytes;
        state.bytes.resize(members.len() * span_bytes, 0);
        state.lost.clear();
        for (&physical_track, span) in members.iter().zip(state.bytes.chunks_exact_mut(span_bytes))
        {
            self.load_span(physical_track, column, medium, span, &mut state.lost)?;
        }
        Ok(())
    }

    /// Reads and checks a column of one track: sector images into `span`, losses appended to
    /// `lost`.
    pub(crate) fn load_span(
        &self,
        physical_track: TrackIndex,
        column: Column,
        medium: &dyn Medium,
        span: &mut [u8],
        lost: &mut Vec<bool>,
    ) -> Result<(), PlatterError> {
        let on_sector = |_: usize, _: &[u8], found: Result<_, _>| lost.push(found.is_err());
        self.read_sectors(physical_track, column.first, span, medium, on_sector)
    }

    /// Restores sectors of the column within their own tracks, where possible.
    fn repair_column(
        &self,
        wanted: InformationTrack,
        members: &[TrackIndex],
        column: Column,
        medium: &dyn Medium,
        state: &mut ColumnBuffer,
        scratch_buffer: &mut TrackBuffer,
    ) -> Result<(), PlatterError> {
        let geometry = &self.header.geometry;
        let sector_bytes = geometry.sector_image_bytes();
        let count = usize::from(column.count);
        let wanted = self.map.physical(wanted);
        for (member, &physical_track) in members.iter().enumerate() {
            let shards = member * count..(member + 1) * count;
            if physical_track == wanted || !state.lost[shards.clone()].contains(&true) {
                continue;
            }
            if self.load(physical_track, medium, scratch_buffer)?
                > geometry.track_redundancy_sectors
            {
                continue;
            }
            scratch_buffer.decode(geometry)?;
            let from = usize::from(column.first) * sector_bytes;
            state.bytes[member * count * sector_bytes..][..count * sector_bytes]
                .copy_from_slice(&scratch_buffer.image[from..from + count * sector_bytes]);
            state.lost[shards].fill(false);
        }
        Ok(())
    }

    fn decode_column(
        &self,
        wanted: InformationTrack,
        column: Column,
        state: &ColumnBuffer,
        buffer: &mut TrackBuffer,
    ) -> Result<(), PlatterError> {
        let geometry = &self.header.geometry;
        let sector_bytes = geometry.sector_image_bytes();
        let count = usize::from(column.count);
        let (information, payload_bytes) = (
            usize::from(geometry.group_information_tracks) * count,
            geometry.sector_payload_bytes as usize,
        );
        let used = usize::from(self.map.group_tracks(self.map.group_of(wanted))) * count;
        let own = usize::try_from(wanted.get() % u32::from(geometry.group_information_tracks))
            .unwrap_or(usize::MAX);
        let shard = |index: usize| {
            // Stored shards are those of the used information tracks, followed by the redundancy.
            let stored = if index < used {
                index
            } else if index < information {
                return Shard::Zero;
            } else {
                index - information + used
            };
            if state.lost[stored] {
                Shard::Lost
            } else {
                Shard::Given(payload(&state.bytes[stored * sector_bytes..][..sector_bytes]))
            }
        };
        let is_own = |index: usize| index / count == own;
        let on_restored = |index: usize, offset: usize, piece: &[u8]| {
            if is_own(index) {
                buffer.restore(usize::from(column.first) + index % count, offset, piece);
            }
        };
        geometry.group_code(column.count)?.decoder(payload_bytes)?.decode_wanted(
            shard,
            is_own,
            on_restored,
        )?;
        buffer.lost[column.layers()].fill(false);
        Ok(())
    }
}

fn lost_count(state: &ColumnBuffer) -> usize {
    state.lost.iter().filter(|&&lost| lost).count()
}
