//! The dimensions of a sector, in voxels.

use fulgurite_units::RandomStream;
use serde::{Deserialize, Serialize};

use crate::PlatterError;

/// Minimum side of a sector; blurs and the decoders' windows need some room.
pub const SECTOR_SIDE_MIN: u16 = 16;

/// Maximum side of a sector.
pub const SECTOR_SIDE_MAX: u16 = 2048;

/// Rows and columns of a sector's voxels. A row is a line of the writing laser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "[u16; 2]", into = "[u16; 2]")]
pub struct SectorShape {
    rows: u16,
    columns: u16,
}

impl SectorShape {
    /// Creates a shape of `rows` lines of `columns` voxels.
    ///
    /// # Errors
    /// [`PlatterError::Channel`] when a side is not a multiple of four (decoders work on blocks of
    /// four) from 16 to 2048.
    pub fn new(rows: u16, columns: u16) -> Result<Self, PlatterError> {
        for (field, side) in [("rows", rows), ("columns", columns)] {
            if !(SECTOR_SIDE_MIN..=SECTOR_SIDE_MAX).contains(&side) || side % 4 != 0 {
                let allowed = format!("a multiple of 4, {SECTOR_SIDE_MIN} to {SECTOR_SIDE_MAX}");
                return Err(PlatterError::Channel { field, value: side.to_string(), allowed });
            }
        }
        Ok(Self { rows, columns })
    }

    /// Returns the shape closest to a square that holds this many voxels.
    ///
    /// # Errors
    /// [`PlatterError::Channel`] when no sector does.
    pub fn holding(voxels: usize) -> Result<Self, PlatterError> {
        let refuse = || PlatterError::Channel {
            field: "voxels",
            value: voxels.to_string(),
            allowed: format!("1 to {}", usize::from(SECTOR_SIDE_MAX).pow(2)),
        };
        let side_max = usize::from(SECTOR_SIDE_MAX);
        if voxels == 0 || voxels > side_max * side_max {
            return Err(refuse());
        }
        let columns = (voxels.isqrt().next_multiple_of(4)).max(usize::from(SECTOR_SIDE_MIN));
        let columns = columns.min(side_max);
        let rows = voxels.div_ceil(columns).next_multiple_of(4);
        let rows = rows.max(usize::from(SECTOR_SIDE_MIN));
        match (u16::try_from(rows), u16::try_from(columns)) {
            (Ok(rows), Ok(columns)) => Self::new(rows, columns),
            _ => Err(refuse()),
        }
    }

    /// Number of lines.
    #[must_use]
    pub const fn rows(self) -> usize {
        self.rows as usize
    }

    /// Voxels per line.
    #[must_use]
    pub const fn columns(self) -> usize {
        self.columns as usize
    }

    /// Number of voxels.
    #[must_use]
    pub const fn voxels(self) -> usize {
        self.rows() * self.columns()
    }

    /// Draws a random position, in rows and columns.
    pub(super) fn random_position(self, stream: &mut RandomStream) -> [f64; 2] {
        [f64::from(self.rows) * stream.unit(), f64::from(self.columns) * stream.unit()]
    }
}

impl TryFrom<[u16; 2]> for SectorShape {
    type Error = PlatterError;

    fn try_from([rows, columns]: [u16; 2]) -> Result<Self, PlatterError> {
        Self::new(rows, columns)
    }
}

impl From<SectorShape> for [u16; 2] {
    fn from(shape: SectorShape) -> Self {
        [shape.rows, shape.columns]
    }
}
