//! Writing a platter: once, front to back, with all redundancy that stays on it.
//!
//! ```text
//! user bytes --> track image --full--> within-track redundancy, checksums --> append
//!                                                                               |
//!                  last information track of a large group? <-------------------'
//!                    read its sectors back, a span at a time --> redundancy tracks --> append
//! finish: zeros to the end of the track, last group, header replica, final record
//! ```
//!
//! Memory: one track image, one span of the group, and the group's redundancy tracks. The sink is
//! the caller's; a track is one append. What is read back is checked, so that a fault of the sink
//! is an error now and not wrong redundancy forever.

use std::collections::BTreeMap;
use std::io;

use fulgurite_codes::{CHECKSUM_BYTES, Encoder, RunningChecksum};
use fulgurite_units::{LayerIndex, TrackIndex};

use crate::GlassError;
use crate::airgap::{Blank, Written};
use crate::geometry::{Column, InformationTrack, TrackMap};
use crate::header::PlatterHeader;
use crate::seal::Seal;
use crate::sector::{SECTOR_HEADER_BYTES, SectorHeader, SectorKind, payload, payload_mut};

/// Where a platter is written: a file, as a rule.
pub trait PlatterSink {
    /// Appends bytes at the end.
    ///
    /// # Errors
    /// When they could not be written; the platter is scrap then.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Reads bytes that were appended before.
    ///
    /// # Errors
    /// When they could not be read; the platter is scrap then.
    fn read_back(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl<S: PlatterSink + ?Sized> PlatterSink for &mut S {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (**self).append(bytes)
    }

    fn read_back(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_back(offset, buffer)
    }
}

/// A platter in memory, for tests and small platters.
impl PlatterSink for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn read_back(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        crate::reader::read_slice(self, offset, buffer)
    }
}

/// A platter being written.
#[derive(Debug)]
pub struct PlatterWriter<S> {
    blank: Blank,
    sink: S,
    header: PlatterHeader,
    map: TrackMap,
    /// The track being filled, and its user bytes so far.
    image: Vec<u8>,
    filled: usize,
    /// Information tracks appended so far.
    next: u32,
    track_encoder: Encoder,
    group: GroupEncoder,
    digest: RunningChecksum,
    position: u64,
}

/// The memory of the large-group code.
#[derive(Debug, Default)]
struct GroupEncoder {
    encoders: BTreeMap<u16, Encoder>,
    /// One column: `count` sector images of each information track of the group.
    column: Vec<u8>,
    /// The redundancy tracks.
    images: Vec<Vec<u8>>,
}

impl<S: PlatterSink> PlatterWriter<S> {
    /// Begins a platter: writes its header track. Only a write drive can, see [`crate::airgap`].
    pub(crate) fn new(blank: Blank, header: PlatterHeader, sink: S) -> Result<Self, GlassError> {
        header.validate()?;
        if blank.platter() != header.platter {
            return Err(GlassError::WrongPlatter {
                expected: header.platter,
                found: blank.platter(),
            });
        }
        let map = header.map();
        let geometry = &header.geometry;
        let track_encoder =
            geometry.track_code()?.encoder(geometry.sector_payload_bytes as usize)?;
        let mut writer = Self {
            blank,
            sink,
            image: vec![0; geometry.track_image_bytes()],
            filled: 0,
            next: 0,
            track_encoder,
            group: GroupEncoder::default(),
            digest: RunningChecksum::new(),
            position: 0,
            map,
            header,
        };
        writer.append_header()?;
        Ok(writer)
    }

    /// The header of the platter being written.
    pub const fn header(&self) -> &PlatterHeader {
        &self.header
    }

    /// User bytes taken so far.
    pub fn written(&self) -> u64 {
        u64::from(self.next) * self.header.geometry.track_user_bytes() as u64 + self.filled as u64
    }

    /// Takes the next user bytes, cut in any way.
    ///
    /// # Errors
    /// When the sink fails, or more bytes come than the header announced.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), GlassError> {
        let planned = self.header.user_bytes();
        if bytes.len() as u64 > planned - self.written() {
            return Err(GlassError::Overrun { platter: self.header.platter, planned });
        }
        let payload_bytes = self.header.geometry.sector_payload_bytes as usize;
        let sector_bytes = self.header.geometry.sector_image_bytes();
        while !bytes.is_empty() {
            let (sector, within) = (self.filled / payload_bytes, self.filled % payload_bytes);
            let (head, rest) = bytes.split_at(bytes.len().min(payload_bytes - within));
            let from = sector * sector_bytes + SECTOR_HEADER_BYTES + within;
            self.image[from..from + head.len()].copy_from_slice(head);
            self.filled += head.len();
            bytes = rest;
            if self.filled == self.header.geometry.track_user_bytes() {
                self.append_information()?;
            }
        }
        Ok(())
    }

    /// Ends the platter: everything that is still open, the header replica and the final record.
    ///
    /// # Errors
    /// When the sink fails, or fewer bytes came than the header announced.
    pub fn finish(mut self) -> Result<(Written, S), GlassError> {
        let (written, planned) = (self.written(), self.header.user_bytes());
        if written != planned {
            let platter = self.header.platter;
            return Err(GlassError::Incomplete { platter, planned, written });
        }
        if self.filled > 0 {
            self.pad();
            self.append_information()?;
        }
        debug_assert_eq!(self.next, self.map.information_tracks());
        self.append_header()?;
        let geometry = &self.header.geometry;
        let seal = Seal {
            archive: self.header.archive,
            platter: self.header.platter,
            generation: self.header.generation,
            tracks: self.map.tracks(),
            track_sectors: u32::from(geometry.track_sectors()),
            payload_bytes: geometry.sector_payload_bytes,
            user_bytes: planned,
            file_bytes: self.map.file_bytes(),
            digest: self.digest.finish(),
        };
        let offset = self.position;
        self.sink.append(&seal.to_bytes()).map_err(|source| GlassError::Io { offset, source })?;
        Ok((Written::new(self.blank, seal), self.sink))
    }

    /// Zeros from the last user byte to the end of the track.
    fn pad(&mut self) {
        let payload_bytes = self.header.geometry.sector_payload_bytes as usize;
        let sector_bytes = self.header.geometry.sector_image_bytes();
        let sectors = usize::from(self.header.geometry.track_information_sectors);
        let (first, within) = (self.filled / payload_bytes, self.filled % payload_bytes);
        for (index, sector) in
            self.image.chunks_exact_mut(sector_bytes).enumerate().take(sectors).skip(first)
        {
            let from = if index == first { within } else { 0 };
            payload_mut(sector)[from..].fill(0);
        }
    }

    fn append_information(&mut self) -> Result<(), GlassError> {
        let track = InformationTrack::new(self.next);
        let place = self.map.physical(track);
        let mut image = std::mem::take(&mut self.image);
        let result = self.append_coded(place, SectorKind::Information, &mut image);
        self.image = image;
        result?;
        self.filled = 0;
        self.next += 1;
        let in_group = self.header.geometry.group_information_tracks;
        if self.next == self.map.information_tracks() || self.next.is_multiple_of(in_group.into()) {
            self.append_group(self.map.group_of(track))?;
        }
        Ok(())
    }

    /// Adds within-track redundancy, headers and checksums to a track's payloads and appends it.
    fn append_coded(
        &mut self,
        place: TrackIndex,
        kind: SectorKind,
        image: &mut [u8],
    ) -> Result<(), GlassError> {
        let sector_bytes = self.header.geometry.sector_image_bytes();
        let information = usize::from(self.header.geometry.track_information_sectors);
        let (front, back) = image.split_at_mut(information * sector_bytes);
        self.track_encoder.encode(
            |index| Some(payload(&front[index * sector_bytes..][..sector_bytes])),
            |index, offset, piece| {
                let from = index * sector_bytes + SECTOR_HEADER_BYTES + offset;
                back[from..from + piece.len()].copy_from_slice(piece);
            },
        )?;
        self.append_sealed(place, image, |layer| {
            if layer < information { kind } else { SectorKind::TrackRedundancy }
        })
    }

    fn append_header(&mut self) -> Result<(), GlassError> {
        let pages = self.header.to_pages()?;
        let sector_bytes = self.header.geometry.sector_image_bytes();
        let last = self.map.tracks() - 1;
        let place = TrackIndex::new(if self.position == 0 { 0 } else { last });
        let mut image = std::mem::take(&mut self.image);
        for (layer, sector) in image.chunks_exact_mut(sector_bytes).enumerate() {
            pages.fill(layer, payload_mut(sector));
        }
        let result = self.append_sealed(place, &mut image, |_| SectorKind::Header);
        self.image = image;
        result
    }

    /// Writes headers and checksums into a track image and appends it.
    fn append_sealed(
        &mut self,
        place: TrackIndex,
        image: &mut [u8],
        kind: impl Fn(usize) -> SectorKind,
    ) -> Result<(), GlassError> {
        assert_eq!(self.map.offset(place), self.position, "tracks are written in order");
        let sector_bytes = self.header.geometry.sector_image_bytes();
        for (layer, sector) in image.chunks_exact_mut(sector_bytes).enumerate() {
            sector_header(&self.header, place, layer, kind(layer)).seal(sector);
            self.digest.update(&sector[sector_bytes - CHECKSUM_BYTES..]);
        }
        let offset = self.position;
        self.sink.append(image).map_err(|source| GlassError::Io { offset, source })?;
        self.position += image.len() as u64;
        Ok(())
    }

    /// Computes and appends the redundancy tracks of a large group whose tracks are all written.
    fn append_group(&mut self, group: u32) -> Result<(), GlassError> {
        let mut state = std::mem::take(&mut self.group);
        let track_bytes = self.header.geometry.track_image_bytes();
        let redundancy = self.header.geometry.group_redundancy_tracks;
        state.images.resize_with(usize::from(redundancy), || vec![0; track_bytes]);
        for column in self.header.geometry.group_columns() {
            self.encode_column(group, column, &mut state)?;
        }
        for (index, image) in (0..redundancy).zip(&mut state.images) {
            let place = self.map.physical_redundancy(group, index);
            self.append_coded(place, SectorKind::GroupRedundancy, image)?;
        }
        self.group = state;
        Ok(())
    }

    fn encode_column(
        &mut self,
        group: u32,
        column: Column,
        state: &mut GroupEncoder,
    ) -> Result<(), GlassError> {
        let geometry = &self.header.geometry;
        let sector_bytes = geometry.sector_image_bytes();
        let count = usize::from(column.count);
        let tracks = usize::from(self.map.group_tracks(group));
        let span_bytes = count * sector_bytes;
        state.column.resize(tracks * span_bytes, 0);
        let first = group * u32::from(geometry.group_information_tracks);
        for (track, span) in (first..).zip(state.column.chunks_exact_mut(span_bytes)) {
            let place = self.map.physical(InformationTrack::new(track));
            let offset = self.map.offset(place) + u64::from(column.first) * sector_bytes as u64;
            self.sink
                .read_back(offset, span)
                .map_err(|source| GlassError::Io { offset, source })?;
            for (sector, layer) in span.chunks_exact(sector_bytes).zip(usize::from(column.first)..)
            {
                sector_header(&self.header, place, layer, SectorKind::Information)
                    .check(sector)
                    .map_err(|erasure| GlassError::ReadBack {
                        platter: self.header.platter,
                        track: place,
                        erasure,
                    })?;
            }
        }
        let encoder = match state.encoders.entry(column.count) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let code = geometry.group_code(column.count)?;
                entry.insert(code.encoder(geometry.sector_payload_bytes as usize)?)
            }
        };
        let (sectors, images) = (&state.column, &mut state.images);
        encoder.encode(
            |shard| {
                (shard < tracks * count)
                    .then(|| payload(&sectors[shard * sector_bytes..][..sector_bytes]))
            },
            |shard, offset, piece| {
                let layer = usize::from(column.first) + shard % count;
                let from = layer * sector_bytes + SECTOR_HEADER_BYTES + offset;
                images[shard / count][from..from + piece.len()].copy_from_slice(piece);
            },
        )?;
        Ok(())
    }
}

/// The header of the sector at this place of this platter.
pub(crate) fn sector_header(
    header: &PlatterHeader,
    track: TrackIndex,
    layer: usize,
    kind: SectorKind,
) -> SectorHeader {
    SectorHeader {
        archive: header.archive,
        platter: header.platter,
        generation: header.generation,
        track,
        layer: LayerIndex::new(u16::try_from(layer).unwrap_or(u16::MAX)),
        kind,
        payload_bytes: header.geometry.sector_payload_bytes,
    }
}
