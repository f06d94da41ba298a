//! A track in memory: its sectors as read, which of them are lost, and the within-track code that
//! restores them in place.
//!
//! The caller reuses the buffer for track after track, so reading allocates nothing.

use fulgurite_codes::small::SmallCode;

use crate::PlatterError;
use crate::geometry::Geometry;
use crate::sector::{SECTOR_HEADER_BYTES, payload, payload_mut};

/// One track as sector images; the content of lost ones is undefined until they are restored.
#[derive(Debug, Default)]
pub struct TrackBuffer {
    pub(crate) image: Vec<u8>,
    /// Whether the sector at each layer is lost.
    pub(crate) lost: Vec<bool>,
    shape: Option<Shape>,
    code: Option<SmallCode>,
}

/// The parameters of a geometry on which a track in memory depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    sector_bytes: usize,
    information: usize,
    redundancy: usize,
}

impl TrackBuffer {
    /// Creates an empty buffer; its size is set by the first platter read.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the user bytes of the track, sector by sector, in order.
    pub fn sectors(&self) -> impl Iterator<Item = &[u8]> {
        let (information, sector_bytes) = match self.shape {
            Some(shape) => (shape.information, shape.sector_bytes),
            None => (0, 1),
        };
        self.image.chunks_exact(sector_bytes).take(information).map(payload)
    }

    /// Returns the user bytes `from .. from + length` of the track, in pieces.
    ///
    /// # Panics
    /// When the range is not inside the track.
    pub fn user_bytes(&self, from: usize, length: usize) -> impl Iterator<Item = &[u8]> {
        let payload_bytes = self.sectors().next().map_or(1, <[u8]>::len);
        let size = self.sectors().count() * payload_bytes;
        let end = from.checked_add(length).filter(|&end| end <= size);
        let end = end.unwrap_or_else(|| panic!("{length} bytes at {from} of a track of {size}"));
        let first = from / payload_bytes;
        self.sectors()
            .enumerate()
            .skip(first)
            .take(end.div_ceil(payload_bytes).saturating_sub(first))
            .map(move |(index, sector)| {
                let start = index * payload_bytes;
                &sector[from.max(start) - start..end.min(start + payload_bytes) - start]
            })
            .filter(|piece| !piece.is_empty())
    }

    /// Resizes the buffer for a track of this geometry and marks all sectors as lost.
    pub(crate) fn prepare(&mut self, geometry: &Geometry) {
        let shape = Shape {
            sector_bytes: geometry.sector_image_bytes(),
            information: usize::from(geometry.track_information_sectors),
            redundancy: usize::from(geometry.track_redundancy_sectors),
        };
        if self.shape != Some(shape) {
            self.shape = Some(shape);
            self.code = None;
        }
        self.image.resize(geometry.track_image_bytes(), 0);
        self.lost.clear();
        self.lost.resize(usize::from(geometry.track_sectors()), true);
    }

    /// Number of sectors that are lost now.
    pub(crate) fn lost_count(&self) -> u16 {
        let lost = self.lost.iter().filter(|&&lost| lost).count();
        u16::try_from(lost).unwrap_or(u16::MAX)
    }

    /// Whether any information sector is lost.
    pub(crate) fn has_lost_information(&self) -> bool {
        let information = self.shape.map_or(0, |shape| shape.information);
        self.lost[..information].contains(&true)
    }

    /// Returns the payload of a layer.
    pub(crate) fn sector(&self, layer: usize) -> &[u8] {
        let sector_bytes = self.shape.map_or(0, |shape| shape.sector_bytes);
        payload(&self.image[layer * sector_bytes..][..sector_bytes])
    }

    /// Returns the payload of a layer, mutably.
    pub(crate) fn sector_mut(&mut self, layer: usize) -> &mut [u8] {
        let sector_bytes = self.shape.map_or(0, |shape| shape.sector_bytes);
        payload_mut(&mut self.image[layer * sector_bytes..][..sector_bytes])
    }

    /// Writes a restored piece of a layer's payload.
    pub(crate) fn restore(&mut self, layer: usize, offset: usize, piece: &[u8]) {
        let sector_bytes = self.shape.map_or(0, |shape| shape.sector_bytes);
        let from = layer * sector_bytes + SECTOR_HEADER_BYTES + offset;
        self.image[from..from + piece.len()].copy_from_slice(piece);
    }

    /// Restores all lost information sectors with the within-track code.
    ///
    /// The caller has checked that no more than the track's redundancy is lost.
    pub(crate) fn decode(&mut self, geometry: &Geometry) -> Result<(), PlatterError> {
        let shape = self.shape.unwrap_or_else(|| unreachable!("the buffer was prepared"));
        let code = match self.code.take() {
            Some(code) => code,
            None => geometry.track_code()?,
        };
        let result = self.reconstruct(&code, shape);
        self.code = Some(code);
        result?;
        self.lost[..shape.information].fill(false);
        Ok(())
    }

    /// Restores in place. Outputs are sectors that are lost, inputs are sectors that are not: the
    /// split borrows both without a copy of the track.
    fn reconstruct(&mut self, code: &SmallCode, shape: Shape) -> Result<(), PlatterError> {
        let mut wanted: Vec<(usize, &mut [u8])> = Vec::new();
        let mut available: Vec<(usize, &[u8])> = Vec::with_capacity(code.shards());
        for (layer, image) in self.image.chunks_exact_mut(shape.sector_bytes).enumerate() {
            if !self.lost[layer] {
                available.push((layer, payload(image)));
            } else if layer < shape.information {
                wanted.push((layer, payload_mut(image)));
            }
        }
        Ok(code.reconstruct(&available, &mut wanted)?)
    }
}
