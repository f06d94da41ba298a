//! The interface between the sectors that were written and those that a drive returns.
//!
//! A platter's file holds what was written: bytes that the channel turns into voxels
//! deterministically. A [`Medium`] decides what a read returns: it may lose whole sectors at a rate
//! (any [`Faults`]), or simulate voxels, images and decoders (crate `decode`).

use fulgurite_units::{LayerIndex, PlatterId, TrackIndex};

use crate::PlatterError;
use crate::faults::Faults;

/// The sectors being read: consecutive ones of a track, the deepest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorExtent {
    /// ID of the platter.
    pub platter: PlatterId,
    /// Physical track.
    pub track: TrackIndex,
    /// Layer of the deepest one.
    pub first: LayerIndex,
    /// Bytes per sector, with header and checksum.
    pub sector_bytes: usize,
}

impl SectorExtent {
    /// Returns the layer of sector `number` among them.
    #[must_use]
    pub fn layer(&self, number: usize) -> LayerIndex {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        LayerIndex::new(self.first.get().saturating_add(number))
    }

    /// Returns a number, unique on the platter, for the place of sector `number` among them.
    #[must_use]
    pub fn number(&self, number: usize) -> u64 {
        u64::from(self.track.get()) << 16 | u64::from(self.layer(number).get())
    }
}

/// Result of reading a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorReading {
    /// The sector could not be decoded.
    Lost,
    /// The sector was decoded.
    Read {
        /// Decoding margin: the unused part of the decoder's effort, in hundredths. `None` from a
        /// medium that does not decode.
        margin: Option<u8>,
    },
}

impl SectorReading {
    /// Encodes the reading in one byte: 0 lost, 1 read by a medium that does not decode, else the
    /// margin plus 2.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Lost => 0,
            Self::Read { margin: None } => 1,
            Self::Read { margin: Some(margin) } => 2 + if margin > 100 { 100 } else { margin },
        }
    }

    /// Decodes a reading; `None` if the byte is not valid.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Lost),
            1 => Some(Self::Read { margin: None }),
            2..=102 => Some(Self::Read { margin: Some(byte - 2) }),
            103.. => None,
        }
    }
}

/// Reads sectors.
pub trait Medium: Sync {
    /// Reads sectors: `bytes` holds them as they were written, and is replaced by what was read.
    /// Adds one reading per sector to `readings`; the bytes of a lost sector are undefined.
    ///
    /// # Errors
    /// When it cannot determine whether they are readable: [`PlatterError::Medium`].
    fn read(
        &self,
        at: SectorExtent,
        bytes: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> Result<(), PlatterError>;
}

impl<F: Faults> Medium for F {
    fn read(
        &self,
        at: SectorExtent,
        bytes: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> Result<(), PlatterError> {
        readings.extend((0..bytes.len() / at.sector_bytes).map(|number| {
            if self.fails(at.platter, at.track, at.layer(number)) {
                SectorReading::Lost
            } else {
                SectorReading::Read { margin: None }
            }
        }));
        Ok(())
    }
}
