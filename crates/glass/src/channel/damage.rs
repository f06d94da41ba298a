//! What goes wrong with a sector: while it is written, to the platter, and in the drive.
//!
//! Everyday defects are drawn by the channel; what is here is injected on top, by tests and by
//! whoever asks what the codes above survive.

use fulgurite_units::RandomStream;
use serde::{Deserialize, Serialize};

use super::SectorShape;

/// A region of a sector, in voxels: a disc.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disc {
    /// Row of its middle.
    pub row: f64,
    /// Column of its middle.
    pub column: f64,
    /// Radius in pitches.
    pub radius: f64,
}

/// What went wrong while a sector was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WriteFaults {
    /// The laser's energy fell over these regions to this share.
    pub dips: Vec<(Disc, f64)>,
    /// Particulates kept the light away: nothing formed.
    pub particulates: Vec<Disc>,
    /// Nothing of the layer formed.
    pub lost_layer: bool,
}

impl WriteFaults {
    /// Changes what was written.
    pub(super) fn apply(&self, shape: SectorShape, retardance: &mut [f32]) {
        for (region, share) in &self.dips {
            #[expect(clippy::cast_possible_truncation, reason = "single precision")]
            let share = share.clamp(0.0, 1.0) as f32;
            disc(shape, [region.row, region.column], region.radius, |i| retardance[i] *= share);
        }
        for region in &self.particulates {
            disc(shape, [region.row, region.column], region.radius, |i| retardance[i] = 0.0);
        }
        if self.lost_layer {
            retardance.fill(0.0);
        }
    }
}

/// A straight scratch of the platter's surface: it is before every layer of a track.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scratch {
    /// A row that it crosses.
    pub row: f64,
    /// The column where it crosses that.
    pub column: f64,
    /// Its direction, from the columns' towards the rows'.
    pub angle_deg: f64,
    /// Half its width (sigma) in pitches.
    pub width: f64,
    /// Share of the light that it takes.
    pub depth: f64,
}

/// Something on the platter's surface that takes light.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dust {
    /// Where it is; its radius is a sigma.
    pub region: Disc,
    /// Share of the light that it takes.
    pub depth: f64,
}

/// How a platter lies in a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// As it should.
    #[default]
    Right,
    /// Upside down: rows are mirrored, and so are azimuths.
    UpsideDown,
    /// Turned by half a turn: rows and columns are mirrored; azimuths are the same.
    HalfTurn,
}

/// What is wrong with the surface of a platter, and with a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadFaults {
    /// Scratches besides those that the channel draws.
    pub scratches: Vec<Scratch>,
    /// Dust besides what the channel draws.
    pub dust: Vec<Dust>,
    /// The drive is out of focus by so much more.
    pub defocus_um: f64,
    /// Columns of the camera that see nothing.
    pub dead_columns: Vec<u16>,
    /// How the platter lies.
    pub placement: Placement,
}

/// Calls `each` with the index of every voxel in a disc.
pub(super) fn disc(shape: SectorShape, at: [f64; 2], radius: f64, mut each: impl FnMut(usize)) {
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
                each(row * shape.columns() + column);
            }
        }
    }
}

/// A Poisson number of a small mean (Knuth's product of uniform numbers).
pub(super) fn poisson(mean: f64, stream: &mut RandomStream) -> u32 {
    // Beyond this nothing changes: the sector is lost.
    let limit = (-mean.min(500.0)).exp();
    let mut product = stream.unit();
    let mut count = 0;
    while product > limit {
        product *= stream.unit();
        count += 1;
    }
    count
}
