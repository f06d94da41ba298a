//! What lies between the sectors that were written and those that a drive gives back.
//!
//! A platter's file holds what was written: bytes that the channel turns into voxels, the same each
//! time. What a read makes of them is up to a [`Medium`]: one that loses whole sectors at a rate
//! (any [`Faults`]), or one that simulates voxels, images and decoders (crate `decode`).

use fulgurite_units::{LayerIndex, PlatterId, TrackIndex};

use crate::GlassError;
use crate::faults::Faults;

/// Which sectors are read: some neighboring ones of a track, the deepest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorsAt {
    /// The platter.
    pub platter: PlatterId,
    /// The physical track.
    pub track: TrackIndex,
    /// The deepest of them.
    pub first: LayerIndex,
    /// Bytes of each, with header and checksum.
    pub sector_bytes: usize,
}

impl SectorsAt {
    /// The layer of the sector of this number among them.
    #[must_use]
    pub fn layer(&self, number: usize) -> LayerIndex {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        LayerIndex::new(self.first.get().saturating_add(number))
    }

    /// A number for the place of the sector of this number among them, on its platter.
    #[must_use]
    pub fn number(&self, number: usize) -> u64 {
        u64::from(self.track.get()) << 16 | u64::from(self.layer(number).get())
    }
}

/// What became of a sector that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorReading {
    /// It could not be decoded.
    Lost,
    /// It was.
    Read {
        /// How much more it could have borne, as hundredths of the decoder's effort that were left;
        /// `None` from a medium that does not decode.
        margin: Option<u8>,
    },
}

impl SectorReading {
    /// In one byte: 0 lost, 1 read by a medium that does not decode, else 2 more than the margin.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Lost => 0,
            Self::Read { margin: None } => 1,
            Self::Read { margin: Some(margin) } => 2 + if margin > 100 { 100 } else { margin },
        }
    }

    /// What a byte says; nothing if it is none of these.
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
    /// Reads sectors: `bytes` holds them as they were written and then as they were read. One
    /// reading for each is added to `readings`; what is left of a lost one is of no use.
    ///
    /// # Errors
    /// When it cannot be told whether they can be read: [`GlassError::Medium`].
    fn read(
        &self,
        at: SectorsAt,
        bytes: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> Result<(), GlassError>;
}

impl<F: Faults> Medium for F {
    fn read(
        &self,
        at: SectorsAt,
        bytes: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> Result<(), GlassError> {
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
