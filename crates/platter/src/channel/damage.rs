//! Injected faults of a sector: during the write, on the platter, and in the drive.
//!
//! The channel itself draws everyday defects. These faults come on top, for tests and for studies
//! of what the codes above survive.

use fulgurite_units::RandomStream;
use serde::{Deserialize, Serialize};

use super::SectorShape;

/// A circular region of a sector, in voxels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disc {
    /// Row of its center.
    pub row: f64,
    /// Column of its center.
    pub column: f64,
    /// Radius in pitches.
    pub radius: f64,
}

/// Faults during the write of a sector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WriteFaults {
    /// Regions in which the laser's energy dropped to this share.
    pub dips: Vec<(Disc, f64)>,
    /// Regions in which particulates blocked the light: no voxels formed.
    pub particulates: Vec<Disc>,
    /// No voxel of the layer formed.
    pub lost_layer: bool,
}

impl WriteFaults {
    /// Applies the faults to the written retardances.
    pub(super) fn apply(&self, shape: SectorShape, retardance: &mut [f32]) {
        for (region, share) in &self.dips {
            #[expect(clippy::cast_possible_truncation, reason = "single precision")]
            let share = share.clamp(0.0, 1.0) as f32;
            for_each_in_disc(shape, [region.row, region.column], region.radius, |i| {
                retardance[i] *= share
            });
        }
        for region in &self.particulates {
            for_each_in_disc(shape, [region.row, region.column], region.radius, |i| {
                retardance[i] = 0.0
            });
        }
        if self.lost_layer {
            retardance.fill(0.0);
        }
    }
}

/// A straight scratch of the platter's surface: it is in front of every layer of a track.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scratch {
    /// Row of a point on the scratch.
    pub row: f64,
    /// Column of that point.
    pub column: f64,
    /// Direction, from the columns' axis towards the rows' axis.
    pub angle_deg: f64,
    /// Half its width (sigma) in pitches.
    pub width: f64,
    /// Share of the light that it absorbs.
    pub depth: f64,
}

/// A spot on the platter's surface that absorbs light.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dust {
    /// Position; its radius is a sigma.
    pub region: Disc,
    /// Share of the light that it absorbs.
    pub depth: f64,
}

/// Orientation of a platter in a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Orientation {
    /// Correct.
    #[default]
    Right,
    /// Upside down: rows are mirrored, and so are azimuths.
    UpsideDown,
    /// Rotated by 180 degrees: rows and columns are mirrored; azimuths are unchanged.
    HalfTurn,
}

/// Faults of a platter's surface and of a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadFaults {
    /// Scratches in addition to those that the channel draws.
    pub scratches: Vec<Scratch>,
    /// Dust in addition to the dust that the channel draws.
    pub dust: Vec<Dust>,
    /// Additional focus error of the drive.
    pub defocus_um: f64,
    /// Dead columns of the camera.
    pub dead_columns: Vec<u16>,
    /// Orientation of the platter.
    pub placement: Orientation,
}

/// Calls `visit` with the index of every voxel in a disc.
pub(super) fn for_each_in_disc(
    shape: SectorShape,
    at: [f64; 2],
    radius: f64,
    mut visit: impl FnMut(usize),
) {
    let range = |middle: f64, len: usize| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float casts saturate, which is what is meant"
        )]
        let range = (middle - radius) as usize..((middle + radius) as usize + 1).min(len);
        range
    };
    for row in range(at[0], shape.rows()) {
        for column in range(at[1], shape.columns()) {
            #[expect(clippy::cast_precision_loss, reason = "thousands")]
            let (y, x) = (row as f64 - at[0], column as f64 - at[1]);
            if y * y + x * x < radius * radius {
                visit(row * shape.columns() + column);
            }
        }
    }
}

/// Draws a Poisson number of a small mean (Knuth's product of uniform numbers).
pub(super) fn poisson(mean: f64, stream: &mut RandomStream) -> u32 {
    // A larger mean makes no difference: the sector is lost anyway.
    let limit = (-mean.min(500.0)).exp();
    let mut product = stream.unit();
    let mut count = 0;
    while product > limit {
        product *= stream.unit();
        count += 1;
    }
    count
}
