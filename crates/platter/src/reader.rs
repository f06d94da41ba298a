//! Reading a platter: header first, then whole tracks. Every byte is verified, or restored from
//! verified bytes.
//!
//! ```text
//! open        header sectors from the front, else from the back; final record; length
//! read_track  whole track --medium, checksums--> lost sectors
//!             at most R_t lost: within-track code
//!             more: large-group code, only the columns that hold lost sectors (see group.rs)
//!             still lost: an error that names the level; cross-platter is the caller's next step
//! ```
//!
//! The reader keeps no state between tracks, so several threads can share one, each with its own
//! [`TrackBuffer`].

use std::ops::Range;

use fulgurite_units::{ArchiveId, LayerIndex, PlatterId, TrackIndex};

use crate::InformationTrack;
use crate::error::CodeLevel;
use crate::geometry::{TrackMap, TrackRole};
use crate::header::PlatterHeader;
use crate::medium::{Medium, SectorExtent, SectorReading};
use crate::seal::{SEAL_BYTES, Seal};
use crate::sector::{Erasure, SectorKind};
use crate::track::TrackBuffer;
use crate::writer::sector_header;
use crate::{PlatterError, PlatterSource, open};

/// A platter whose header and final record were read and verified.
#[derive(Debug)]
pub struct PlatterReader<R> {
    pub(crate) source: R,
    pub(crate) header: PlatterHeader,
    pub(crate) map: TrackMap,
    seal: Seal,
}

/// Result of reading a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TrackReport {
    /// The track.
    pub track: InformationTrack,
    /// Sectors of the track that failed, information and redundancy.
    pub failed: u16,
    /// The most expensive level of code that was needed; `None` when no information sector failed.
    pub repaired_by: Option<CodeLevel>,
    /// Further sectors that the track could have lost before it needed its large group; negative
    /// when it needed it.
    pub margin: i32,
}

impl<R: PlatterSource> PlatterReader<R> {
    /// Opens a platter; with `expected`, only that one.
    ///
    /// # Errors
    /// Distinguishes: not a platter, one of another archive, another one of the same archive,
    /// truncated, not sealed, of an unsupported version.
    pub fn open(
        source: R,
        expected: Option<(ArchiveId, PlatterId)>,
        medium: &dyn Medium,
    ) -> Result<Self, PlatterError> {
        let header = open::find_header(&source, medium)?;
        if let Some((archive, platter)) = expected {
            if header.archive != archive {
                return Err(PlatterError::WrongArchive {
                    platter: header.platter,
                    expected: archive,
                    found: header.archive,
                });
            }
            if header.platter != platter {
                return Err(PlatterError::WrongPlatter {
                    expected: platter,
                    found: header.platter,
                });
            }
        }
        let map = header.map();
        let (platter, expected, found) = (header.platter, map.file_bytes(), source.bytes());
        if found < expected {
            return Err(PlatterError::Truncated { platter, expected, found });
        }
        if found > expected {
            return Err(PlatterError::Overlong { platter, expected, found });
        }
        let mut tail = [0; SEAL_BYTES];
        let offset = expected - SEAL_BYTES as u64;
        source.read_at(offset, &mut tail).map_err(|source| PlatterError::Io { offset, source })?;
        let seal = Seal::find(&tail).ok_or(PlatterError::Unsealed { platter })?;
        check_seal(&header, &map, &seal)?;
        Ok(Self { source, header, map, seal })
    }

    /// Header of the platter.
    pub const fn header(&self) -> &PlatterHeader {
        &self.header
    }

    /// Tracks of the platter.
    pub const fn map(&self) -> &TrackMap {
        &self.map
    }

    /// Final record of the platter.
    pub const fn seal(&self) -> &Seal {
        &self.seal
    }

    /// Reads one whole information track. On success every user byte in the buffer was verified, or
    /// restored from verified bytes.
    ///
    /// # Errors
    /// [`PlatterError::Unreadable`] when this platter's codes cannot restore the track.
    ///
    /// # Panics
    /// When the platter has no such track.
    pub fn read_track(
        &self,
        track: InformationTrack,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
    ) -> Result<TrackReport, PlatterError> {
        let geometry = &self.header.geometry;
        let failed = self.load(self.map.physical(track), medium, buffer)?;
        let margin = i32::from(geometry.track_redundancy_sectors) - i32::from(failed);
        let repaired_by = if !buffer.has_lost_information() {
            None
        } else if margin >= 0 {
            buffer.decode(geometry)?;
            Some(CodeLevel::Track)
        } else {
            self.repair_by_group(track, medium, buffer)?;
            Some(CodeLevel::Group)
        };
        assert!(!buffer.has_lost_information(), "a track that was read has no lost information");
        Ok(TrackReport { track, failed, repaired_by, margin })
    }

    /// Passes the user bytes of a range to `sink`, in order, in pieces of at most a sector. Pieces
    /// passed before an error are correct.
    ///
    /// # Errors
    /// When the range is not on the platter, a track is unreadable, or `sink` fails.
    pub fn read_user(
        &self,
        range: Range<u64>,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), PlatterError>,
    ) -> Result<(), PlatterError> {
        let size = self.header.user_bytes();
        if range.start > range.end || range.end > size {
            return Err(PlatterError::Range {
                platter: self.header.platter,
                offset: range.start,
                length: range.end.saturating_sub(range.start),
                size,
            });
        }
        let track_bytes = self.header.geometry.track_user_bytes();
        let mut offset = range.start;
        while offset < range.end {
            let address = self.header.geometry.address(offset);
            self.read_track(address.track, medium, buffer)?;
            let start = u64::from(address.track.get()) * track_bytes as u64;
            let within = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
            let end = range.end.min(start + track_bytes as u64);
            for piece in buffer.user_bytes(within(offset), within(end) - within(offset)) {
                sink(piece)?;
            }
            offset = end;
        }
        Ok(())
    }

    /// Reads a physical track into the buffer and marks lost sectors. Returns the number of failed
    /// sectors.
    pub(crate) fn load(
        &self,
        physical_track: TrackIndex,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
    ) -> Result<u16, PlatterError> {
        let mut failed = 0;
        self.load_each(physical_track, medium, buffer, |_, found| {
            failed += u16::from(found.is_err())
        })?;
        Ok(failed)
    }

    /// Like `load`, and reports the result of each sector.
    pub(crate) fn load_each(
        &self,
        physical_track: TrackIndex,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
        mut on_sector: impl FnMut(&[u8], Result<Option<u8>, Erasure>),
    ) -> Result<(), PlatterError> {
        buffer.prepare(&self.header.geometry);
        let (image, lost) = (&mut buffer.image, &mut buffer.lost);
        self.read_sectors(physical_track, 0, image, medium, |layer, sector, found| {
            lost[layer] = found.is_err();
            on_sector(sector, found);
        })
    }

    /// Reads consecutive sectors of a track from the layer `first` on. `on_sector` gets the layer,
    /// the image, and the margin or the kind of erasure of each sector.
    pub(crate) fn read_sectors(
        &self,
        physical_track: TrackIndex,
        first: u16,
        bytes: &mut [u8],
        medium: &dyn Medium,
        mut on_sector: impl FnMut(usize, &[u8], Result<Option<u8>, Erasure>),
    ) -> Result<(), PlatterError> {
        let sector_bytes = self.header.geometry.sector_image_bytes();
        let offset = self.map.offset(physical_track) + u64::from(first) * sector_bytes as u64;
        self.source.read_at(offset, bytes).map_err(|source| PlatterError::Io { offset, source })?;
        let (platter, layer) = (self.header.platter, LayerIndex::new(first));
        let at = SectorExtent { platter, track: physical_track, first: layer, sector_bytes };
        let mut readings = Vec::with_capacity(bytes.len() / sector_bytes);
        medium.read(at, bytes, &mut readings)?;
        let sectors = bytes.chunks_exact(sector_bytes).zip(readings);
        for (layer, (sector, reading)) in (usize::from(first)..).zip(sectors) {
            on_sector(layer, sector, self.check(physical_track, layer, sector, reading));
        }
        Ok(())
    }

    /// Checks that a sector image is the sector expected here.
    fn check(
        &self,
        physical_track: TrackIndex,
        layer: usize,
        sector: &[u8],
        reading: SectorReading,
    ) -> Result<Option<u8>, Erasure> {
        let SectorReading::Read { margin } = reading else { return Err(Erasure::Simulated) };
        let expected =
            sector_header(&self.header, physical_track, layer, self.kind(physical_track, layer));
        expected.check(sector)?;
        Ok(margin)
    }

    fn kind(&self, physical_track: TrackIndex, layer: usize) -> SectorKind {
        let coded = |kind| {
            if layer < usize::from(self.header.geometry.track_information_sectors) {
                kind
            } else {
                SectorKind::TrackRedundancy
            }
        };
        match self.map.role(physical_track) {
            Some(TrackRole::Information(_)) => coded(SectorKind::Information),
            Some(TrackRole::Redundancy { .. }) => coded(SectorKind::GroupRedundancy),
            Some(TrackRole::Header(_)) | None => SectorKind::Header,
        }
    }
}

fn check_seal(header: &PlatterHeader, map: &TrackMap, seal: &Seal) -> Result<(), PlatterError> {
    let geometry = &header.geometry;
    let differences = [
        ("archive", seal.archive != header.archive),
        ("platter", seal.platter != header.platter),
        ("generation", seal.generation != header.generation),
        ("tracks", seal.tracks != map.tracks()),
        ("sectors of a track", seal.track_sectors != u32::from(geometry.track_sectors())),
        ("payload bytes", seal.payload_bytes != geometry.sector_payload_bytes),
        ("user bytes", seal.user_bytes != header.user_bytes()),
        ("file bytes", seal.file_bytes != map.file_bytes()),
    ];
    match differences.iter().find(|(_, differs)| *differs) {
        None => Ok(()),
        Some((name, _)) => Err(PlatterError::SealMismatch {
            platter: header.platter,
            reason: format!("the {name} differ"),
        }),
    }
}
