//! What a network sees at once.

use fulgurite_glass::numeric::Plane;

/// A part of registered images. Where it goes on beyond the sector there is no light, as the
/// network was taught by its own padding.
#[derive(Clone, Copy, Debug)]
pub struct Tile<'a> {
    planes: &'a [Plane],
    from: [usize; 2],
    size: [usize; 2],
}

impl<'a> Tile<'a> {
    /// So many rows and columns of pixels of all images, from a pixel of theirs on.
    #[must_use]
    pub const fn new(planes: &'a [Plane], from: [usize; 2], size: [usize; 2]) -> Self {
        Self { planes, from, size }
    }

    /// Images.
    #[must_use]
    pub const fn states(&self) -> usize {
        self.planes.len()
    }

    /// Rows and columns of pixels.
    #[must_use]
    pub const fn size(&self) -> [usize; 2] {
        self.size
    }

    /// A row of an image; `made` is where it is made if it is not there as it is.
    #[must_use]
    pub fn row<'b>(&self, state: usize, row: usize, made: &'b mut Vec<f32>) -> &'b [f32]
    where
        'a: 'b,
    {
        let ([top, left], [_, columns]) = (self.from, self.size);
        let plane = &self.planes[state];
        let there = if top + row < plane.rows { plane.row(top + row) } else { &[] };
        let there = there.get(left..).unwrap_or_default();
        if let Some(whole) = there.get(..columns) {
            return whole;
        }
        made.clear();
        made.extend_from_slice(there);
        made.resize(columns, 0.0);
        made
    }

    /// All of it, image by image and row by row.
    pub fn gather(&self, out: &mut Vec<f32>) {
        let mut made = Vec::new();
        out.clear();
        for state in 0..self.planes.len() {
            for row in 0..self.size[0] {
                out.extend_from_slice(self.row(state, row, &mut made));
            }
        }
    }
}
