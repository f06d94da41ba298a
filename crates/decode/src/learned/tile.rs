//! The part of the images that a network sees at once.

use fulgurite_platter::numeric::Plane;

use crate::Range;
use crate::flat::STATES;
use crate::front::RegisteredImages;

/// A part of registered images. Beyond the sector it is zero, like the network's own padding in
/// training.
#[derive(Clone, Copy, Debug)]
pub struct Tile<'a> {
    images: RegisteredImages<'a>,
    from: [usize; 2],
    size: [usize; 2],
}

impl<'a> Tile<'a> {
    /// Creates a tile of `size` pixels of all images, starting at the pixel `from`.
    #[must_use]
    pub const fn new(planes: &'a [Plane], from: [usize; 2], size: [usize; 2]) -> Self {
        Self { images: RegisteredImages::Planes(planes), from, size }
    }

    /// Creates a tile from a decoder's images.
    pub(super) const fn from_images(
        input: RegisteredImages<'a>,
        from: [usize; 2],
        size: [usize; 2],
    ) -> Self {
        Self { images: input, from, size }
    }

    /// Number of images.
    #[must_use]
    pub const fn states(&self) -> usize {
        match self.images {
            RegisteredImages::Planes(planes) => planes.len(),
            RegisteredImages::Bytes { states, .. } => states,
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
        let RegisteredImages::Bytes { pixels, range, .. } = self.images else { return None };
        let ([top, left], [_, columns]) = (self.from, self.size);
        let line = pixels.values.get((top + row) * pixels.columns..).unwrap_or_default();
        let line = line.get(left..pixels.columns).unwrap_or_default();
        (range == as_range).then_some(&line[..columns.min(line.len())])
    }

    /// Returns a row of an image, using the buffer `buffer` if the row is not stored in this form.
    #[must_use]
    pub fn row<'b>(&self, state: usize, row: usize, buffer: &'b mut Vec<f32>) -> &'b [f32]
    where
        'a: 'b,
    {
        let ([top, left], [_, columns]) = (self.from, self.size);
        match self.images {
            RegisteredImages::Planes(planes) => {
                let plane = &planes[state];
                let available = if top + row < plane.rows { plane.row(top + row) } else { &[] };
                let available = available.get(left..).unwrap_or_default();
                if let Some(whole) = available.get(..columns) {
                    return whole;
                }
                buffer.clear();
                buffer.extend_from_slice(available);
            }
            RegisteredImages::Bytes { range, .. } => {
                let pixels = self.bytes(row, range).unwrap_or_default();
                let zero = f32::from(range.zero);
                buffer.clear();
                buffer.extend(pixels.iter().map(|p| (f32::from(p[state]) - zero) * range.scale));
            }
        }
        buffer.resize(columns, 0.0);
        buffer
    }

    /// Copies the whole tile, image by image and row by row.
    pub fn copy_to(&self, out: &mut Vec<f32>) {
        let mut buffer = Vec::new();
        out.clear();
        for state in 0..self.states() {
            for row in 0..self.size[0] {
                out.extend_from_slice(self.row(state, row, &mut buffer));
            }
        }
    }
}
