//! Geometry: the parameters of a platter, and the layout that follows from them.
//!
//! ```text
//! file of a platter          (one cell = one track image; the last group may be short)
//! +--------+--------------------+------------------+-----+--------+------------+
//! | header | group 0:           | group 0:         | ... | header | final      |
//! | track  | information tracks | redundancy tracks|     | track  | record     |
//! +--------+--------------------+------------------+-----+--------+------------+
//! physical 0  1 ..                                        last
//! ```
//!
//! Only information tracks that are in use exist; the redundancy tracks of a short last group
//! follow its last information track. This is arithmetic only: nothing here reads or writes.

use fulgurite_codes::LargeCode;
use fulgurite_codes::small::SmallCode;
use fulgurite_units::{LayerIndex, TrackIndex};
use serde::{Deserialize, Serialize};

use crate::InformationTrack;
use crate::PlatterError;
use crate::limits::{SECTOR_PAYLOAD_BYTES_MAX, TRACK_IMAGE_BYTES_MAX, TRACK_SECTORS_MAX};
use crate::seal::SEAL_BYTES;
use crate::sector::SECTOR_OVERHEAD;

/// The parameters of a platter and of its platter-set, under a profile name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Name of the profile.
    pub profile: String,
    /// Payload bytes per sector, a multiple of 128.
    pub sector_payload_bytes: u32,
    /// Information sectors of a track (I_t).
    pub track_information_sectors: u16,
    /// Redundancy sectors of a track (R_t).
    pub track_redundancy_sectors: u16,
    /// Information tracks of a large group (I_l).
    pub group_information_tracks: u16,
    /// Redundancy tracks of a large group (R_l).
    pub group_redundancy_tracks: u16,
    /// Sectors of each track in one codeword of the large-group code.
    pub group_span_sectors: u16,
    /// Large groups of a platter.
    pub groups: u32,
    /// Information platters of a set (I_p).
    pub set_information_platters: u16,
    /// Redundancy platters of a set (R_p).
    pub set_redundancy_platters: u16,
    /// Sectors of each platter's track that are processed together when a set is encoded or a track
    /// is recovered. Each sector is a codeword of its own: this only sets the size of reads.
    pub set_span_sectors: u16,
}

/// Location of a user byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Information track.
    pub track: InformationTrack,
    /// Sector of the track.
    pub layer: LayerIndex,
    /// Byte of the sector's payload.
    pub byte: u32,
}

/// Sectors `first .. first + count` of each track: those in one codeword of a span code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// First information sector.
    pub first: u16,
    /// Number of sectors; the last column of a track may be shorter than the span.
    pub count: u16,
}

impl Column {
    /// Returns its sectors of a track, by layer.
    pub(crate) fn layers(self) -> std::ops::Range<usize> {
        usize::from(self.first)..usize::from(self.first) + usize::from(self.count)
    }
}

impl Geometry {
    /// Returns the profile of this name: `sliver` (small enough for voxels to be simulated),
    /// `demo`, `desk` or `silica`.
    ///
    /// # Errors
    /// [`PlatterError::UnknownProfile`].
    pub fn profile(name: &str) -> Result<Self, PlatterError> {
        let (payload, track, group, span, groups, set_span) = match name {
            "sliver" => (4 << 10, (12, 3), (6, 2), 12, 1, 12),
            "demo" => (8 << 10, (32, 4), (64, 3), 32, 1, 32),
            "desk" => (64 << 10, (128, 11), (128, 3), 8, 4, 16),
            "silica" => (100 << 10, (200, 16), (300, 6), 4, 400, 16),
            _ => return Err(PlatterError::UnknownProfile { profile: name.to_owned() }),
        };
        let set = if name == "sliver" { (4, 2) } else { (16, 3) };
        Ok(Self {
            profile: name.to_owned(),
            sector_payload_bytes: payload,
            track_information_sectors: track.0,
            track_redundancy_sectors: track.1,
            group_information_tracks: group.0,
            group_redundancy_tracks: group.1,
            group_span_sectors: span,
            groups,
            set_information_platters: set.0,
            set_redundancy_platters: set.1,
            set_span_sectors: set_span,
        })
    }

    /// Checks that the parameters give a platter within the limits of the format. An existing
    /// platter is checked for nothing more: the room for its header was settled when it was
    /// written, by a program whose header may have been shorter.
    pub(crate) fn validate_numbers(&self) -> Result<(), PlatterError> {
        let refuse =
            |reason: String| Err(PlatterError::Geometry { profile: self.profile.clone(), reason });
        let payload = self.sector_payload_bytes;
        if payload == 0 || !payload.is_multiple_of(128) || payload > SECTOR_PAYLOAD_BYTES_MAX {
            return refuse(format!(
                "a sector payload of {payload} bytes is not a multiple of 128 up to \
                 {SECTOR_PAYLOAD_BYTES_MAX}"
            ));
        }
        let sectors =
            u32::from(self.track_information_sectors) + u32::from(self.track_redundancy_sectors);
        if sectors > TRACK_SECTORS_MAX {
            return refuse(format!("a track of {sectors} sectors exceeds {TRACK_SECTORS_MAX}"));
        }
        let image = u64::from(sectors) * u64::from(payload + SECTOR_OVERHEAD_U32);
        if image > TRACK_IMAGE_BYTES_MAX {
            return refuse(format!("a track of {image} bytes exceeds {TRACK_IMAGE_BYTES_MAX}"));
        }
        for span in [self.group_span_sectors, self.set_span_sectors] {
            if span == 0 || span > self.track_information_sectors {
                return refuse(format!("a span of {span} sectors is not within a track"));
            }
        }
        let tracks = u64::from(self.groups)
            * (u64::from(self.group_information_tracks) + u64::from(self.group_redundancy_tracks));
        if tracks == 0 || tracks + 2 > u64::from(u32::MAX) {
            return refuse(format!("a platter of {tracks} tracks is not possible"));
        }
        let codes = [
            ("track", self.track_code().map(|_| ())),
            ("large-group", self.group_code(self.group_span_sectors).map(|_| ())),
            ("cross-platter", self.set_code().map(|_| ())),
        ];
        for (level, code) in codes {
            if let Err(error) = code {
                return refuse(format!("{level} code: {error}"));
            }
        }
        Ok(())
    }

    /// Returns the bytes of a sector in the file: header, payload, checksum.
    #[must_use]
    pub const fn sector_image_bytes(&self) -> usize {
        self.sector_payload_bytes as usize + SECTOR_OVERHEAD
    }

    /// Returns the sectors of a track, information and redundancy.
    #[must_use]
    pub const fn track_sectors(&self) -> u16 {
        self.track_information_sectors + self.track_redundancy_sectors
    }

    /// Returns the bytes of a track in the file.
    #[must_use]
    pub const fn track_image_bytes(&self) -> usize {
        self.sector_image_bytes() * self.track_sectors() as usize
    }

    /// Returns the user bytes of a track.
    #[must_use]
    pub const fn track_user_bytes(&self) -> usize {
        self.sector_payload_bytes as usize * self.track_information_sectors as usize
    }

    /// Returns the information tracks of a full platter.
    #[must_use]
    pub const fn information_tracks(&self) -> u32 {
        self.groups * self.group_information_tracks as u32
    }

    /// Returns the user bytes of a full platter.
    #[must_use]
    pub const fn platter_user_bytes(&self) -> u64 {
        self.track_user_bytes() as u64 * self.information_tracks() as u64
    }

    /// Returns the platters of a full set.
    #[must_use]
    pub const fn set_platters(&self) -> u16 {
        self.set_information_platters + self.set_redundancy_platters
    }

    /// Returns the user bytes of a full set.
    #[must_use]
    pub const fn set_user_bytes(&self) -> u64 {
        self.platter_user_bytes() * self.set_information_platters as u64
    }

    /// Returns the number of information tracks for `user_bytes`; the last one may be partly
    /// filled.
    #[must_use]
    pub fn tracks_for(&self, user_bytes: u64) -> u32 {
        let tracks = user_bytes.div_ceil(self.track_user_bytes() as u64);
        u32::try_from(tracks).unwrap_or(u32::MAX)
    }

    /// Returns the location of the user byte at `offset`, which is below
    /// [`Self::platter_user_bytes`].
    ///
    /// # Panics
    /// When the offset is outside the platter.
    #[must_use]
    pub fn address(&self, offset: u64) -> Address {
        assert!(offset < self.platter_user_bytes(), "user byte {offset} is outside the platter");
        let in_track = offset % self.track_user_bytes() as u64;
        let payload = u64::from(self.sector_payload_bytes);
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Address {
            track: InformationTrack::new(narrow(offset / self.track_user_bytes() as u64)),
            layer: LayerIndex::new(u16::try_from(in_track / payload).unwrap_or(u16::MAX)),
            byte: narrow(in_track % payload),
        }
    }

    /// Returns the tracks of a platter that holds `used` information tracks.
    ///
    /// # Panics
    /// When the platter does not have that many.
    #[must_use]
    pub fn map(&self, used: u32) -> TrackMap {
        assert!(used <= self.information_tracks(), "{used} tracks do not fit the platter");
        TrackMap { geometry: self.clone(), used }
    }

    /// Returns the columns of the large-group code.
    pub fn group_columns(&self) -> impl Iterator<Item = Column> + use<> {
        columns(self.track_information_sectors, self.group_span_sectors)
    }

    /// Returns the columns of the cross-platter code.
    pub fn set_columns(&self) -> impl Iterator<Item = Column> + use<> {
        columns(self.track_information_sectors, self.set_span_sectors)
    }

    /// Returns the within-track code.
    ///
    /// # Errors
    /// When the field is too small for it.
    pub fn track_code(&self) -> Result<SmallCode, PlatterError> {
        small(self.track_information_sectors, self.track_redundancy_sectors)
    }

    /// Returns the code of one column of a large group, `count` sectors of each track.
    ///
    /// # Errors
    /// When the field is too small for it.
    pub fn group_code(&self, count: u16) -> Result<LargeCode, PlatterError> {
        let span = usize::from(count);
        let information = usize::from(self.group_information_tracks) * span;
        let redundancy = usize::from(self.group_redundancy_tracks) * span;
        Ok(LargeCode::new(information, redundancy)?)
    }

    /// Returns the code of one sector of all platters of a set.
    ///
    /// # Errors
    /// When the field is too small for it.
    pub fn set_code(&self) -> Result<SmallCode, PlatterError> {
        small(self.set_information_platters, self.set_redundancy_platters)
    }
}

fn small(information: u16, redundancy: u16) -> Result<SmallCode, PlatterError> {
    Ok(SmallCode::new(usize::from(information), usize::from(redundancy))?)
}

#[expect(clippy::cast_possible_truncation, reason = "the overhead of a sector is 128 bytes")]
const SECTOR_OVERHEAD_U32: u32 = SECTOR_OVERHEAD as u32;

fn columns(sectors: u16, span: u16) -> impl Iterator<Item = Column> {
    (0..sectors)
        .step_by(usize::from(span))
        .map(move |first| Column { first, count: span.min(sectors - first) })
}

/// Role of a physical track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrackRole {
    /// A replica of the header: the front one is 0, the back one is 1.
    Header(u8),
    /// User bytes.
    Information(InformationTrack),
    /// Redundancy of a large group.
    Redundancy {
        /// Index of the large group.
        group: u32,
        /// Index among the group's redundancy tracks.
        index: u16,
    },
}

/// The physical tracks of one platter: a geometry and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackMap {
    geometry: Geometry,
    used: u32,
}

impl TrackMap {
    /// The platter's geometry.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Number of information tracks on the platter.
    #[must_use]
    pub const fn information_tracks(&self) -> u32 {
        self.used
    }

    /// Returns the number of large groups on the platter; the last one may be short.
    #[must_use]
    pub const fn groups(&self) -> u32 {
        self.used.div_ceil(self.geometry.group_information_tracks as u32)
    }

    /// Returns the number of information tracks of large group `group`.
    #[must_use]
    pub fn group_tracks(&self, group: u32) -> u16 {
        let full = self.geometry.group_information_tracks;
        let left = self.used.saturating_sub(group * u32::from(full));
        u16::try_from(left).map_or(full, |left| left.min(full))
    }

    /// Returns the number of physical tracks on the platter, both headers included.
    #[must_use]
    pub const fn tracks(&self) -> u32 {
        2 + self.used + self.groups() * self.geometry.group_redundancy_tracks as u32
    }

    /// Returns the large group of an information track.
    #[must_use]
    pub const fn group_of(&self, track: InformationTrack) -> u32 {
        track.get() / self.geometry.group_information_tracks as u32
    }

    /// Returns the physical track of an information track of this platter.
    ///
    /// # Panics
    /// When the platter does not have that many information tracks.
    #[must_use]
    pub fn physical(&self, track: InformationTrack) -> TrackIndex {
        assert!(track.get() < self.used, "information track {track} of {} tracks", self.used);
        let before = self.group_of(track) * u32::from(self.geometry.group_redundancy_tracks);
        TrackIndex::new(1 + track.get() + before)
    }

    /// Returns the physical track of a redundancy track of a large group of this platter.
    ///
    /// # Panics
    /// When the platter has no such track.
    #[must_use]
    pub fn physical_redundancy(&self, group: u32, index: u16) -> TrackIndex {
        let per_group = u32::from(self.geometry.group_redundancy_tracks);
        assert!(group < self.groups(), "group {group} of {}", self.groups());
        assert!(u32::from(index) < per_group, "redundancy track {index} of {per_group}");
        let last = (group + 1) * u32::from(self.geometry.group_information_tracks);
        TrackIndex::new(1 + last.min(self.used) + group * per_group + u32::from(index))
    }

    /// Returns the role of a physical track; `None` beyond the last one.
    #[must_use]
    pub fn role(&self, track: TrackIndex) -> Option<TrackRole> {
        let (track, last) = (track.get(), self.tracks() - 1);
        if track == 0 {
            return Some(TrackRole::Header(0));
        }
        if track >= last {
            return (track == last).then_some(TrackRole::Header(1));
        }
        let information = u32::from(self.geometry.group_information_tracks);
        let redundancy = u32::from(self.geometry.group_redundancy_tracks);
        let group = (track - 1) / (information + redundancy);
        let place = (track - 1) % (information + redundancy);
        let here = u32::from(self.group_tracks(group));
        if place < here {
            Some(TrackRole::Information(InformationTrack::new(group * information + place)))
        } else {
            let index = u16::try_from(place - here).unwrap_or(u16::MAX);
            Some(TrackRole::Redundancy { group, index })
        }
    }

    /// Returns the byte offset of a physical track in the platter's file.
    #[must_use]
    pub const fn offset(&self, track: TrackIndex) -> u64 {
        track.get() as u64 * self.geometry.track_image_bytes() as u64
    }

    /// Returns the size of the whole file: all tracks and the final record.
    #[must_use]
    pub const fn file_bytes(&self) -> u64 {
        self.tracks() as u64 * self.geometry.track_image_bytes() as u64 + SEAL_BYTES as u64
    }
}
