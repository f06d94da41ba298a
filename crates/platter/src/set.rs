//! The cross-platter code: any `R_p` platters of a set may be lost.
//!
//! ```text
//! platter   0   1   2  ... 15 | 16  17  18
//! track t  [t] [t] [-] ... [t]| [t] [t] [t]      the sectors of one layer are a codeword
//!                   ^ not written: zeros
//! ```
//!
//! Redundancy platters are platters like any other: the encoder computes their user bytes, which
//! are written with a [`crate::PlatterWriter`], which adds their own inner redundancy. Memory is
//! one column of `set_span` layers of the set, whatever the size of a track.

use fulgurite_codes::small::{Reconstruction, SmallCode};
use fulgurite_units::PlatterId;

use crate::InformationTrack;
use crate::PlatterError;
use crate::PlatterSource;
use crate::error::{CodeLevel, Unreadable};
use crate::geometry::{Column, Geometry};
use crate::header::PlatterHeader;
use crate::medium::Medium;
use crate::reader::PlatterReader;
use crate::sector::payload;
use crate::track::TrackBuffer;

/// Computes the user bytes of a set's redundancy platters.
#[derive(Debug)]
pub struct SetEncoder {
    geometry: Geometry,
    code: Option<SmallCode>,
    bytes: Vec<u8>,
    redundancy: Vec<u8>,
    zeros: Vec<u8>,
    scratch_buffer: TrackBuffer,
}

impl SetEncoder {
    /// Creates an encoder for sets of this geometry.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            geometry: geometry.clone(),
            code: None,
            bytes: Vec::new(),
            redundancy: Vec::new(),
            zeros: vec![0; geometry.sector_payload_bytes as usize],
            scratch_buffer: TrackBuffer::new(),
        }
    }

    /// Encodes one track of all information platters (`None`, or a platter without this track,
    /// counts as zeros). `out` gets the track's user bytes for each redundancy platter, by its
    /// index, in order and in pieces of one column.
    ///
    /// # Errors
    /// When an information platter cannot be read, or `out` fails.
    ///
    /// # Panics
    /// When `platters` does not have all information platters of a set.
    pub fn encode_track<R: PlatterSource>(
        &mut self,
        track: InformationTrack,
        platters: &[Option<&PlatterReader<R>>],
        medium: &dyn Medium,
        mut out: impl FnMut(u16, &[u8]) -> Result<(), PlatterError>,
    ) -> Result<(), PlatterError> {
        for column in self.geometry.set_columns() {
            let bytes = usize::from(column.count) * self.geometry.sector_payload_bytes as usize;
            let encoded = self.encode_column(track, column, platters, medium)?;
            for (index, piece) in (0u16..).zip(encoded.chunks_exact(bytes)) {
                out(index, piece)?;
            }
        }
        Ok(())
    }

    /// Encodes one column of a track of all information platters. Returns its user bytes for each
    /// redundancy platter, concatenated in the order of their indices.
    ///
    /// # Errors
    /// When an information platter cannot be read.
    ///
    /// # Panics
    /// When `platters` does not have all information platters of a set.
    pub fn encode_column<R: PlatterSource>(
        &mut self,
        track: InformationTrack,
        column: Column,
        platters: &[Option<&PlatterReader<R>>],
        medium: &dyn Medium,
    ) -> Result<&[u8], PlatterError> {
        assert_eq!(platters.len(), usize::from(self.geometry.set_information_platters));
        let sector_bytes = self.geometry.sector_image_bytes();
        let payload_bytes = self.geometry.sector_payload_bytes as usize;
        let span_bytes = usize::from(column.count) * sector_bytes;
        self.bytes.resize(platters.len() * span_bytes, 0);
        let has_track = |reader: &PlatterReader<R>| track.get() < reader.map().information_tracks();
        for (platter, span) in platters.iter().zip(self.bytes.chunks_exact_mut(span_bytes)) {
            if let Some(reader) = platter
                && has_track(reader)
            {
                reader.read_span(track, column, medium, span, &mut self.scratch_buffer)?;
            }
        }
        let code = match &mut self.code {
            Some(code) => code,
            none @ None => none.insert(self.geometry.set_code()?),
        };
        let out_bytes = usize::from(column.count) * payload_bytes;
        self.redundancy.resize(code.redundancy() * out_bytes, 0);
        for sector in 0..usize::from(column.count) {
            let available: Vec<&[u8]> = platters
                .iter()
                .zip(self.bytes.chunks_exact(span_bytes))
                .map(|(platter, span)| {
                    let image = &span[sector * sector_bytes..][..sector_bytes];
                    if platter.is_some_and(has_track) { payload(image) } else { &self.zeros }
                })
                .collect();
            let mut redundancy: Vec<&mut [u8]> = self
                .redundancy
                .chunks_exact_mut(out_bytes)
                .map(|out| &mut out[sector * payload_bytes..][..payload_bytes])
                .collect();
            code.encode(&available, &mut redundancy)?;
        }
        Ok(&self.redundancy)
    }
}

/// Availability of one platter of a set.
#[derive(Debug)]
pub enum Member<'a, R> {
    /// The platter can be read.
    Platter(&'a PlatterReader<R>),
    /// Its track has already been read.
    Track(&'a TrackBuffer),
    /// It was never written, or has no such track. An information platter then counts as zeros; a
    /// redundancy platter, whose content would not be zeros, is lost.
    NotWritten,
    /// It is lost, or its track is unreadable.
    Lost,
}

/// Result of recovering a track from its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SetReport {
    /// The track.
    pub track: InformationTrack,
    /// Number of other platters whose track was needed but unavailable.
    pub lost: u16,
    /// Number of platters whose track was used.
    pub used: u16,
}

/// Recovers tracks of lost information platters.
#[derive(Debug)]
pub struct SetDecoder {
    geometry: Geometry,
    platters: Vec<Option<PlatterId>>,
    /// The current plan, and its key: platters available and wanted.
    plan: Option<(Vec<usize>, usize, Reconstruction)>,
    bytes: Vec<u8>,
    zeros: Vec<u8>,
    scratch_buffer: TrackBuffer,
}

impl SetDecoder {
    /// Creates a decoder for the set of any one of its platters.
    #[must_use]
    pub fn new(header: &PlatterHeader) -> Self {
        Self {
            geometry: header.geometry.clone(),
            platters: header.members.iter().map(|m| m.map(|m| m.platter)).collect(),
            plan: None,
            bytes: Vec::new(),
            zeros: vec![0; header.geometry.sector_payload_bytes as usize],
            scratch_buffer: TrackBuffer::new(),
        }
    }

    /// Recovers the track of the information platter at position `wanted` into `out`. `members` are
    /// all platters of the set by position; only as many as needed are read, in this order. The
    /// member at `wanted` itself is ignored.
    ///
    /// # Errors
    /// [`PlatterError::Unreadable`] with the number of lost platters, when too many are lost.
    pub fn recover_track<R: PlatterSource>(
        &mut self,
        track: InformationTrack,
        members: &[Member<'_, R>],
        wanted: usize,
        medium: &dyn Medium,
        out: &mut TrackBuffer,
    ) -> Result<SetReport, PlatterError> {
        let information = usize::from(self.geometry.set_information_platters);
        let platter = self.platters.get(wanted).copied().flatten();
        let (Some(platter), true) =
            (platter, wanted < information && members.len() == self.platters.len())
        else {
            return Err(PlatterError::SetShape {
                expected: self.platters.len(),
                found: members.len(),
                wanted,
            });
        };
        out.prepare(&self.geometry);
        // A member that failed once is not retried for the next column.
        let mut lost: Vec<bool> = (0..)
            .zip(members)
            .map(|(position, m)| is_lost(m, position >= information, track))
            .collect();
        lost[wanted] = true;
        let mut used = 0;
        for column in self.geometry.set_columns() {
            let available = self.load_column(track, column, members, &mut lost, medium)?;
            used = available.iter().filter(|available| **available).count();
            if used < information {
                let lost = lost.iter().filter(|&&lost| lost).count();
                return Err(PlatterError::Unreadable(Unreadable {
                    platter,
                    track,
                    level: CodeLevel::Set,
                    lost: u32::try_from(lost).unwrap_or(u32::MAX),
                    redundancy: u32::from(self.geometry.set_redundancy_platters),
                }));
            }
            self.decode_column(track, column, members, &available, wanted, out)?;
        }
        let count = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let unavailable = lost.iter().filter(|&&lost| lost).count() - 1;
        Ok(SetReport { track, lost: count(unavailable), used: count(used) })
    }

    /// Reads a column of members until there are as many as information platters.
    fn load_column<R: PlatterSource>(
        &mut self,
        track: InformationTrack,
        column: Column,
        members: &[Member<'_, R>],
        lost: &mut [bool],
        medium: &dyn Medium,
    ) -> Result<Vec<bool>, PlatterError> {
        let span_bytes = usize::from(column.count) * self.geometry.sector_image_bytes();
        self.bytes.resize(members.len() * span_bytes, 0);
        let mut available = vec![false; members.len()];
        let mut missing = usize::from(self.geometry.set_information_platters);
        for (position, span) in self.bytes.chunks_exact_mut(span_bytes).enumerate() {
            if missing == 0 {
                break;
            }
            if lost[position] {
                continue;
            }
            if let Member::Platter(reader) = members[position]
                && track.get() < reader.map().information_tracks()
            {
                match reader.read_span(track, column, medium, span, &mut self.scratch_buffer) {
                    Ok(()) => {}
                    Err(PlatterError::Unreadable(_)) => {
                        lost[position] = true;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            available[position] = true;
            missing -= 1;
        }
        Ok(available)
    }

    fn decode_column<R: PlatterSource>(
        &mut self,
        track: InformationTrack,
        column: Column,
        members: &[Member<'_, R>],
        available: &[bool],
        wanted: usize,
        out: &mut TrackBuffer,
    ) -> Result<(), PlatterError> {
        let sector_bytes = self.geometry.sector_image_bytes();
        let count = usize::from(column.count);
        let bytes = &self.bytes;
        let shard = |position: usize, sector: usize| match members[position] {
            _ if !available[position] => None,
            Member::Platter(reader) if track.get() < reader.map().information_tracks() => {
                let image = (position * count + sector) * sector_bytes;
                Some(payload(&bytes[image..][..sector_bytes]))
            }
            Member::Track(buffer) => Some(buffer.sector(usize::from(column.first) + sector)),
            Member::Platter(_) | Member::NotWritten => Some(&self.zeros[..]),
            Member::Lost => None,
        };
        let plan = plan(&mut self.plan, &self.geometry, available, wanted)?;
        for sector in 0..count {
            let sources: Vec<&[u8]> =
                (0..members.len()).filter_map(|position| shard(position, sector)).collect();
            let target = out.sector_mut(usize::from(column.first) + sector);
            plan.run(&sources, &mut [target])?;
        }
        out.lost[column.layers()].fill(false);
        Ok(())
    }
}

/// Whether a member has no data for a track. Missing redundancy is lost, since it would not be
/// zeros: every redundancy platter is as long as the longest platter of the set.
fn is_lost<R: PlatterSource>(
    member: &Member<'_, R>,
    is_redundancy: bool,
    track: InformationTrack,
) -> bool {
    match member {
        Member::Lost => true,
        Member::NotWritten => is_redundancy,
        Member::Platter(reader) => {
            is_redundancy && track.get() >= reader.map().information_tracks()
        }
        Member::Track(_) => false,
    }
}

/// Returns the plan for these platters, computed again only when they change.
fn plan<'a>(
    cache: &'a mut Option<(Vec<usize>, usize, Reconstruction)>,
    geometry: &Geometry,
    available: &[bool],
    wanted: usize,
) -> Result<&'a Reconstruction, PlatterError> {
    let available: Vec<usize> =
        (0..available.len()).filter(|&position| available[position]).collect();
    let entry = match cache.take() {
        Some((sources, target, plan)) if sources == available && target == wanted => {
            (sources, target, plan)
        }
        Some(_) | None => {
            let plan = geometry.set_code()?.plan(&available, &[wanted])?;
            (available, wanted, plan)
        }
    };
    Ok(&cache.insert(entry).2)
}

impl<R: PlatterSource> PlatterReader<R> {
    /// Reads the sectors of one column of a track into `span` (contiguous images). If any of them
    /// fails, reads and restores the whole track.
    fn read_span(
        &self,
        track: InformationTrack,
        column: Column,
        medium: &dyn Medium,
        span: &mut [u8],
        scratch_buffer: &mut TrackBuffer,
    ) -> Result<(), PlatterError> {
        let mut lost = Vec::with_capacity(usize::from(column.count));
        self.load_span(self.map.physical(track), column, medium, span, &mut lost)?;
        if lost.contains(&true) {
            self.read_track(track, medium, scratch_buffer)?;
            let from = usize::from(column.first) * self.header.geometry.sector_image_bytes();
            span.copy_from_slice(&scratch_buffer.image[from..from + span.len()]);
        }
        Ok(())
    }
}
