//! Writes a platter: once, front to back, with all redundancy within the platter.
//!
//! ```text
//! user bytes --> track image --full--> within-track redundancy, checksums --> append
//!                     |
//!                     '--> large-group code, a running sum --last track of the group-->
//!                              redundancy tracks --> append
//! finish: zeros to the end of the track, last group, header replica, final record
//! ```
//!
//! Nothing is read back: the large-group code is summed up as tracks are written. Memory is one
//! track image and twice the group's redundancy (rounded up to a power of two sectors of a column).
//! The caller supplies the sink; each track is one append.

use fulgurite_codes::small::SmallCode;
use fulgurite_codes::{CHECKSUM_BYTES, LargeStreamEncoder, RunningChecksum};
use fulgurite_units::{LayerIndex, TrackIndex};

use crate::InformationTrack;
use crate::airgap::{Blank, WrittenPlatter};
use crate::geometry::TrackMap;
use crate::header::PlatterHeader;
use crate::seal::Seal;
use crate::sector::{SECTOR_HEADER_BYTES, SectorHeader, SectorKind, payload, payload_mut};
use crate::{PlatterError, PlatterSink};

/// The only type that can write platters.
#[derive(Debug, Default)]
pub struct WriteDrive(());

impl WriteDrive {
    /// Creates a write drive.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }

    /// Begins to write a blank: writes the header track to the sink immediately.
    ///
    /// # Errors
    /// When the header is invalid or of another platter, or the sink fails.
    pub fn write<S: PlatterSink>(
        &self,
        blank: Blank,
        header: PlatterHeader,
        sink: S,
    ) -> Result<PlatterWriter<S>, PlatterError> {
        PlatterWriter::new(blank, header, sink)
    }
}

/// A platter being written.
#[derive(Debug)]
pub struct PlatterWriter<S> {
    blank: Blank,
    sink: S,
    header: PlatterHeader,
    map: TrackMap,
    /// The current track, and its user bytes so far.
    image: Vec<u8>,
    filled: usize,
    /// Number of information tracks appended so far.
    next: u32,
    track_code: SmallCode,
    /// Encoders of the large group, column by column.
    group: Vec<LargeStreamEncoder>,
    digest: RunningChecksum,
    position: u64,
}

impl<S: PlatterSink> PlatterWriter<S> {
    /// Begins a platter: writes its header track. Only a write drive can do so, see
    /// [`crate::airgap`].
    fn new(blank: Blank, header: PlatterHeader, sink: S) -> Result<Self, PlatterError> {
        header.validate()?;
        if blank.platter() != header.platter {
            return Err(PlatterError::WrongPlatter {
                expected: header.platter,
                found: blank.platter(),
            });
        }
        let map = header.map();
        let geometry = &header.geometry;
        let payload_bytes = geometry.sector_payload_bytes as usize;
        let track_code = geometry.track_code()?;
        let group = geometry
            .group_columns()
            .map(|column| Ok(geometry.group_code(column.count)?.stream_encoder(payload_bytes)?))
            .collect::<Result<_, PlatterError>>()?;
        let mut writer = Self {
            blank,
            sink,
            image: vec![0; geometry.track_image_bytes()],
            filled: 0,
            next: 0,
            track_code,
            group,
            digest: RunningChecksum::new(),
            position: 0,
            map,
            header,
        };
        writer.append_header()?;
        Ok(writer)
    }

    /// Header of the platter being written.
    pub const fn header(&self) -> &PlatterHeader {
        &self.header
    }

    /// User bytes accepted so far.
    pub fn written(&self) -> u64 {
        u64::from(self.next) * self.header.geometry.track_user_bytes() as u64 + self.filled as u64
    }

    /// Writes the next user bytes, in pieces of any size.
    ///
    /// # Errors
    /// When the sink fails, or there are more bytes than the header announced.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), PlatterError> {
        let planned = self.header.user_bytes();
        if bytes.len() as u64 > planned - self.written() {
            return Err(PlatterError::Overrun { platter: self.header.platter, planned });
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

    /// Completes the platter: writes the unfinished track and group, the header replica and the
    /// final record.
    ///
    /// # Errors
    /// When the sink fails, or there were fewer bytes than the header announced.
    pub fn finish(mut self) -> Result<(WrittenPlatter, S), PlatterError> {
        let (written, planned) = (self.written(), self.header.user_bytes());
        if written != planned {
            let platter = self.header.platter;
            return Err(PlatterError::Incomplete { platter, planned, written });
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
        self.sink.append(&seal.to_bytes()).map_err(|source| PlatterError::Io { offset, source })?;
        Ok((WrittenPlatter::new(self.blank, seal), self.sink))
    }

    /// Pads the track with zeros after the last user byte.
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

    fn append_information(&mut self) -> Result<(), PlatterError> {
        let track = InformationTrack::new(self.next);
        let physical_track = self.map.physical(track);
        let mut image = std::mem::take(&mut self.image);
        let result = self
            .encode_group(&image)
            .and_then(|()| self.append_coded(physical_track, SectorKind::Information, &mut image));
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

    /// Adds within-track redundancy, headers and checksums to a track's payloads, and appends it.
    fn append_coded(
        &mut self,
        physical_track: TrackIndex,
        kind: SectorKind,
        image: &mut [u8],
    ) -> Result<(), PlatterError> {
        let sector_bytes = self.header.geometry.sector_image_bytes();
        let information = usize::from(self.header.geometry.track_information_sectors);
        let (front, back) = image.split_at_mut(information * sector_bytes);
        let payloads: Vec<&[u8]> = front.chunks_exact(sector_bytes).map(payload).collect();
        let mut redundancy: Vec<&mut [u8]> =
            back.chunks_exact_mut(sector_bytes).map(payload_mut).collect();
        self.track_code.encode(&payloads, &mut redundancy)?;
        self.append_sealed(physical_track, image, |layer| {
            if layer < information { kind } else { SectorKind::TrackRedundancy }
        })
    }

    fn append_header(&mut self) -> Result<(), PlatterError> {
        let pages = self.header.to_pages()?;
        let sector_bytes = self.header.geometry.sector_image_bytes();
        let last = self.map.tracks() - 1;
        let physical_track = TrackIndex::new(if self.position == 0 { 0 } else { last });
        let mut image = std::mem::take(&mut self.image);
        for (layer, sector) in image.chunks_exact_mut(sector_bytes).enumerate() {
            pages.fill(layer, payload_mut(sector));
        }
        let result = self.append_sealed(physical_track, &mut image, |_| SectorKind::Header);
        self.image = image;
        result
    }

    /// Writes headers and checksums into a track image and appends it.
    fn append_sealed(
        &mut self,
        physical_track: TrackIndex,
        image: &mut [u8],
        kind: impl Fn(usize) -> SectorKind,
    ) -> Result<(), PlatterError> {
        assert_eq!(self.map.offset(physical_track), self.position, "tracks are written in order");
        let sector_bytes = self.header.geometry.sector_image_bytes();
        for (layer, sector) in image.chunks_exact_mut(sector_bytes).enumerate() {
            sector_header(&self.header, physical_track, layer, kind(layer)).seal(sector);
            self.digest.update(&sector[sector_bytes - CHECKSUM_BYTES..]);
        }
        let offset = self.position;
        self.sink.append(image).map_err(|source| PlatterError::Io { offset, source })?;
        self.position += image.len() as u64;
        Ok(())
    }

    /// Adds an information track to the large group's code.
    fn encode_group(&mut self, image: &[u8]) -> Result<(), PlatterError> {
        let sector_bytes = self.header.geometry.sector_image_bytes();
        for (column, encoder) in self.header.geometry.group_columns().zip(&mut self.group) {
            for layer in column.layers() {
                encoder.push(Some(payload(&image[layer * sector_bytes..][..sector_bytes])))?;
            }
        }
        Ok(())
    }

    /// Appends the redundancy tracks of a large group whose information tracks are all written.
    fn append_group(&mut self, group: u32) -> Result<(), PlatterError> {
        let sector_bytes = self.header.geometry.sector_image_bytes();
        self.group.iter_mut().for_each(LargeStreamEncoder::finish);
        let mut image = std::mem::take(&mut self.image);
        for index in 0..self.header.geometry.group_redundancy_tracks {
            for (column, encoder) in self.header.geometry.group_columns().zip(&self.group) {
                let first = usize::from(index) * usize::from(column.count);
                for (shard, layer) in (first..).zip(column.layers()) {
                    let mut rest = payload_mut(&mut image[layer * sector_bytes..][..sector_bytes]);
                    for piece in encoder.redundancy(shard) {
                        let (head, tail) = rest.split_at_mut(piece.len());
                        head.copy_from_slice(piece);
                        rest = tail;
                    }
                }
            }
            let physical_track = self.map.physical_redundancy(group, index);
            self.append_coded(physical_track, SectorKind::GroupRedundancy, &mut image)?;
        }
        self.image = image;
        Ok(())
    }
}

/// Returns the header of the sector at this place of this platter.
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
