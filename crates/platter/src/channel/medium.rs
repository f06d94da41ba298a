//! The two media, and what follows from their published figures.

use serde::{Deserialize, Serialize};

/// How a voxel encodes its symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// Fused silica: the azimuth of the slow axis, in steps of 180/8 degrees; four images.
    Birefringent,
    /// Borosilicate: the change of the refractive index, in four steps; one phase-contrast image.
    Phase,
}

impl Medium {
    /// Number of symbols per voxel.
    #[must_use]
    pub const fn symbols(self) -> u8 {
        match self {
            Self::Birefringent => 8,
            Self::Phase => 4,
        }
    }

    /// Raw bits per voxel.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Birefringent => 3,
            Self::Phase => 2,
        }
    }

    /// Images per sector.
    #[must_use]
    pub const fn images(self) -> usize {
        match self {
            Self::Birefringent => 4,
            Self::Phase => 1,
        }
    }

    /// Returns what is subtracted from each voxel, relative to the largest. Phase contrast sees
    /// differences: its reference light is the mean of all voxels.
    pub(super) const fn reference_level(self) -> f32 {
        match self {
            Self::Birefringent => 0.0,
            Self::Phase => 0.5,
        }
    }

    /// Returns the published figures of the medium.
    #[must_use]
    pub const fn figures(self) -> MediumFigures {
        match self {
            Self::Birefringent => MediumFigures {
                layers: 301,
                density_gbit_mm3: 1.59,
                quality_bits: 2.56,
                capacity_tb: 4.84,
                write_mbit_s: 25.6,
                pulses_mhz: 10.0,
            },
            Self::Phase => MediumFigures {
                layers: 258,
                density_gbit_mm3: 0.678,
                quality_bits: 1.84,
                capacity_tb: 2.02,
                write_mbit_s: 18.4,
                pulses_mhz: 10.0,
            },
        }
    }
}

/// Figures of a platter of 120 x 120 x 2 mm (Nature 650, 606-612, 2026).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MediumFigures {
    /// Number of layers.
    pub layers: u16,
    /// User bits per volume, before guard bands.
    pub density_gbit_mm3: f64,
    /// User bits per voxel.
    pub quality_bits: f64,
    /// User bytes per platter, in units of 10^12.
    pub capacity_tb: f64,
    /// User bits per second written by one beam.
    pub write_mbit_s: f64,
    /// Pulse rate of the laser, one pulse per voxel.
    pub pulses_mhz: f64,
}

/// Side length of a platter.
const SIDE_MM: f64 = 120.0;

/// Thickness of a platter.
const THICKNESS_MM: f64 = 2.0;

impl MediumFigures {
    /// Returns the distance between layers.
    #[must_use]
    pub fn layer_um(&self) -> f64 {
        THICKNESS_MM * 1e3 / f64::from(self.layers)
    }

    /// Returns the area per voxel: its user bits divided by density and layer distance.
    #[must_use]
    pub fn voxel_um2(&self) -> f64 {
        // 1 Gbit/mm^3 is 1 bit/um^3.
        self.quality_bits / (self.density_gbit_mm3 * self.layer_um())
    }

    /// Returns the share of the glass that carries user bytes: capacity divided by density and
    /// volume. Our copies of the paper say 0.747, which does not follow from its other figures.
    #[must_use]
    pub fn used_share(&self) -> f64 {
        let raw_tb = self.density_gbit_mm3 * SIDE_MM * SIDE_MM * THICKNESS_MM / 8e3;
        self.capacity_tb / raw_tb
    }

    /// Returns the user bits per second that one beam writes: pulse rate times user bits per voxel.
    #[must_use]
    pub fn derived_write_mbit_s(&self) -> f64 {
        self.pulses_mhz * self.quality_bits
    }

    /// Returns the number of voxels per platter.
    #[must_use]
    pub fn voxels(&self) -> f64 {
        self.capacity_tb * 8e12 / self.quality_bits
    }
}
