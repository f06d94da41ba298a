//! The output of engines for a tile.

use fulgurite_platter::numeric::LANES;

use super::integer::Map;
use crate::probabilities::Block;
use crate::resample::Range;

/// Logits of a tile's voxels.
#[derive(Debug)]
pub struct Logits<'a>(Values<'a>);

#[derive(Debug)]
enum Values<'a> {
    /// `[symbol, row, column]`.
    Planes(Vec<f32>),
    /// Channels of 8 bits, of which the first `symbols` are logits.
    Bytes { map: &'a Map, symbols: usize, range: Range },
}

impl<'a> Logits<'a> {
    /// Creates logits in the order `[symbol, row, column]`.
    #[must_use]
    pub const fn new(planes: Vec<f32>) -> Self {
        Self(Values::Planes(planes))
    }

    /// Creates logits that are stored in a map.
    pub(super) const fn from_map(map: &'a Map, symbols: usize, range: Range) -> Self {
        Self(Values::Bytes { map, symbols, range })
    }

    /// Number of logits.
    pub(super) const fn count(&self) -> usize {
        match &self.0 {
            Values::Planes(planes) => planes.len(),
            Values::Bytes { map, symbols, .. } => *symbols * map.rows * map.columns,
        }
    }

    /// Converts the logits to the order `[symbol, row, column]`.
    #[must_use]
    pub fn into_planes(self) -> Vec<f32> {
        match self.0 {
            Values::Planes(planes) => planes,
            Values::Bytes { map, symbols, range } => {
                let zero = f32::from(range.zero);
                let mut out = Vec::with_capacity(symbols * map.rows * map.columns);
                for symbol in 0..symbols {
                    for row in 0..map.rows {
                        let logits = map.channel(symbol, row);
                        out.extend(logits.map(|logit| (f32::from(logit) - zero) * range.scale));
                    }
                }
                out
            }
        }
    }

    /// Returns the scaled logits of the voxels of a row, starting at `column`, up to a constant for
    /// each voxel; arbitrary finite values beyond the row's end. `[rows, columns]` is the size of
    /// the tile.
    #[inline(always)]
    pub(super) fn block<const SYMBOLS: usize>(
        &self,
        [rows, columns]: [usize; 2],
        row: usize,
        column: usize,
        scale: f32,
    ) -> Block<SYMBOLS> {
        let mut block = [[0.0; LANES]; SYMBOLS];
        match &self.0 {
            Values::Planes(planes) => {
                for (symbol, values) in block.iter_mut().enumerate() {
                    let line = &planes[(symbol * rows + row) * columns..];
                    let logits = &line[column..columns];
                    if let Some(logits) = logits.first_chunk::<LANES>() {
                        for lane in 0..LANES {
                            values[lane] = scale * logits[lane];
                        }
                    } else {
                        for (value, logit) in values.iter_mut().zip(logits) {
                            *value = scale * logit;
                        }
                    }
                }
            }
            Values::Bytes { map, range, .. } => {
                let scale = scale * range.scale;
                for (group, values) in block.chunks_mut(Map::GROUP).enumerate() {
                    let pixels = map.lanes(group, row, column);
                    for (values, shift) in values.iter_mut().zip([0, 8, 16, 24]) {
                        for lane in 0..LANES {
                            let word = u32::from_le_bytes(pixels[lane]);
                            let logit = word >> shift & 0xff;
                            #[expect(clippy::cast_precision_loss, reason = "at most 255")]
                            let logit = logit.cast_signed() as f32;
                            values[lane] = scale * logit;
                        }
                    }
                }
            }
        }
        block
    }

    /// Returns the first of some voxels of a row with a logit that is not finite, if `is_finite` is
    /// false.
    pub(super) fn find_non_finite(
        &self,
        [rows, width]: [usize; 2],
        row: usize,
        columns: &std::ops::Range<usize>,
        is_finite: bool,
    ) -> Option<usize> {
        let Values::Planes(planes) = &self.0 else { return None };
        let mut unknown = columns.clone().filter(|_| !is_finite);
        unknown.find(|column| {
            let at = row * width + column;
            planes[at..].iter().step_by(rows * width).any(|logit| !logit.is_finite())
        })
    }
}
