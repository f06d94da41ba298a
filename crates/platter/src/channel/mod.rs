//! The voxel channel: from symbols to camera images. Simulated, from published optics.
//!
//! ```text
//! symbols --write--> WrittenSector (in the glass for good) --ReadHead::read--> SectorImages
//!             ^                                                 ^
//!    seed of platter and place                   seeds of drive, platter, track and read
//! ```
//!
//! Writing is deterministic: the same seeds and symbols give the same voxels on every machine.
//! Noise of reads is drawn independently at every read. The channel does no decoding; the crate
//! `decode` does. It proves nothing about glass: quantities that were not published are assumed
//! (docs/design/0007).

mod camera;
mod damage;
mod fingerprint;
mod image;
mod light;
mod medium;
mod noise;
mod parameters;
mod population;
mod shape;
mod smooth;
mod splat;
mod surface;
mod write;

#[cfg(test)]
mod tests;

pub use damage::{Disc, Dust, Orientation, ReadFaults, Scratch, WriteFaults};
pub use image::{ReadHead, ReadSeeds, SectorImages};
pub use light::Neighbor;
pub use medium::{Medium, MediumFigures};
pub use parameters::{
    CHANNEL_PRESETS, CameraParameters, Channel, DefectParameters, OpticsParameters,
    PolarizationParameters, Shares, StageParameters, VoxelParameters,
};
pub use population::{Population, random_symbols};
pub use shape::{SECTOR_SIDE_MAX, SECTOR_SIDE_MIN, SectorShape};
pub use write::WrittenSector;

use crate::PlatterError;
use fulgurite_units::Seed;

impl Channel {
    /// Writes a sector: computes the voxels that the laser leaves in the glass for these symbols,
    /// row by row. The seed is the platter's for this place.
    ///
    /// # Errors
    /// [`PlatterError::Channel`] when the channel is out of range, the number of symbols is not
    /// that of the voxels, or a symbol is invalid for the medium.
    pub fn write(
        &self,
        shape: SectorShape,
        symbols: &[u8],
        seed: &Seed,
        faults: &WriteFaults,
    ) -> Result<WrittenSector, PlatterError> {
        self.validate()?;
        write::write(self, shape, symbols, seed, faults)
    }
}
