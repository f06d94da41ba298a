//! Flat images side by side, for decoders that look at windows of all of them.

use fulgurite_glass::numeric::vectorized;

use crate::Flat;

/// Pixels around images: as many as the widest window has.
pub(crate) const BORDER: usize = 16;

/// Flat images with the pixels of one place together, and a border that repeats.
pub(crate) struct Interleaved {
    pub(crate) images: usize,
    /// With borders.
    pub(crate) rows: usize,
    /// With borders.
    pub(crate) columns: usize,
    pub(crate) values: Vec<f32>,
}

impl Interleaved {
    pub(crate) fn new(flat: &Flat) -> Self {
        let images = flat.images.len();
        let (inner_rows, inner_columns) = (flat.images[0].rows, flat.images[0].columns);
        let (rows, columns) = (inner_rows + 2 * BORDER, inner_columns + 2 * BORDER);
        let mut values = vec![0.0; rows * columns * images];
        for row in 0..rows {
            let from = row.saturating_sub(BORDER).min(inner_rows - 1);
            let line = &mut values[row * columns * images..][..columns * images];
            let inner = &mut line[BORDER * images..][..inner_columns * images];
            if let [a, b, c, d] = &flat.images[..] {
                let [a, b, c, d] = [a, b, c, d].map(|plane| plane.row(from));
                vectorized(
                    #[inline(always)]
                    || {
                        let four = a.iter().zip(b).zip(c).zip(d);
                        let pixels = inner.as_chunks_mut::<4>().0.iter_mut();
                        for (pixel, (((a, b), c), d)) in pixels.zip(four) {
                            *pixel = [*a, *b, *c, *d];
                        }
                    },
                );
            } else {
                inner.copy_from_slice(flat.images[0].row(from));
            }
            for k in 0..BORDER {
                line.copy_within(BORDER * images..(BORDER + 1) * images, k * images);
                let last = (BORDER + inner_columns - 1) * images;
                line.copy_within(last..last + images, (BORDER + inner_columns + k) * images);
            }
        }
        Self { images, rows, columns, values }
    }
}

/// Weights of the pixels -1, 0, 1, 2 for the value at `t` behind 0, below 1 (Keys, a = -1/2).
#[inline(always)]
pub(crate) fn cubic(t: f32) -> [f32; 4] {
    let (t2, t3) = (t * t, t * t * t);
    [
        0.5 * (-t3 + 2.0 * t2 - t),
        0.5 * (3.0 * t3 - 5.0 * t2 + 2.0),
        0.5 * (-3.0 * t3 + 4.0 * t2 + t),
        0.5 * (t3 - t2),
    ]
}
