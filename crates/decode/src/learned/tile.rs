//! The part of the images that a network sees at once.

use fulgurite_glass::numeric::Plane;

use crate::Range;
use crate::flat::STATES;
use crate::front::Seen;

/// A part of registered images. Beyond the sector it is zero, like the network's own padding in
/// training.
#[derive(Clone, Copy, Debug)]
pub struct Tile<'a> {
    images: Seen<'a>,
    from: [usize; 2],
    size: [usize; 2],
}

impl<'a> Tile<'a> {
    /// Creates a tile of `size` pixels of all images, starting at the pixel `from`.
    #[must_use]
    pub const fn new(planes: &'a [Plane], from: [usize; 2], size: [usize; 2]) -> Self {
        Self { images: Seen::Planes(planes), from, size }
    }

    /// Creates a tile from a decoder's images.
    pub(super) const fn of(seen: Seen<'a>, from: [usize; 2], size: [usize; 2]) -> Self {
        Self { images: seen, from, size }
    }

    /// Number of images.
    #[must_use]
    pub const fn states(&self) -> usize {
        match self.images {
            Seen::Planes(planes) => planes.len(),
            Seen::Bytes { states, .. } => states,
        }
    }

    /// Rows and columns of pixels.
    #[must_use]
    pub const fn size(&self) -> [usize; 2] {
        self.size
    }

    /// Returns the part of a row that lies within the images, as interleaved bytes, if the images
    /// are stored as bytes of this range.
    pub(super) fn bytes(&self, row: usize, as_range: Range) -> Option<&'a [[u8; STATES]]> {
        let Seen::Bytes { pixels, range, .. } = self.images else { return None };
        let ([top, left], [_, columns]) = (self.from, self.size);
        let line = pixels.values.get((top + row) * pixels.columns..).unwrap_or_default();
        let line = line.get(left..pixels.columns).unwrap_or_default();
        (range == as_range).then_some(&line[..columns.min(line.len())])
    }

    /// Returns a row of an image, using the buffer `made` if the row is not stored in this form.
    #[must_use]
    pub fn row<'b>(&self, state: usize, row: usize, made: &'b mut Vec<f32>) -> &'b [f32]
    where
        'a: 'b,
    {
        let ([top, left], [_, columns]) = (self.from, self.size);
        match self.images {
            Seen::Planes(planes) => {
                let plane = &planes[state];
                let there = if top + row < plane.rows { plane.row(top + row) } else { &[] };
                let there = there.get(left..).unwrap_or_default();
                if let Some(whole) = there.get(..columns) {
                    return whole;
                }
                made.clear();
                made.extend_from_slice(there);
            }
            Seen::Bytes { range, .. } => {
                let pixels = self.bytes(row, range).unwrap_or_default();
                let zero = f32::from(range.zero);
                made.clear();
                made.extend(pixels.iter().map(|p| (f32::from(p[state]) - zero) * range.scale));
            }
        }
        made.resize(columns, 0.0);
        made
    }

    /// Copies the whole tile, image by image and row by row.
    pub fn gather(&self, out: &mut Vec<f32>) {
        let mut made = Vec::new();
        out.clear();
        for state in 0..self.states() {
            for row in 0..self.size[0] {
                out.extend_from_slice(self.row(state, row, &mut made));
            }
        }
    }
}
