//! Images with the illumination taken out, and the field that they show.
//!
//! ```text
//! flat  = image / its mean over 4 pitches around - 1
//! field = (flat 3 - flat 1, flat 0 - flat 2), less its mean over 3 pitches around
//! ```
//!
//! The difference of opposite states is proportional to the field of the glass; slow light, which
//! is other layers and the glass itself, is taken out with the mean.
//!
//! A sector's images are some 15 MB of numbers, so time goes to moving them. They are made in one
//! pass, row by row, in the order in which decoders look at them, in memory that is kept from
//! sector to sector; and what tells where voxels are is heard in the same pass.

use fulgurite_glass::channel::SectorImages;
use fulgurite_glass::numeric::{HALVING_VARIANCE, Magnifier, Plane, blur, halve, vectorized};

use crate::tones::Tones;

/// Radius of the mean that is the illumination, in pitches.
const ILLUMINATION_PITCHES: f32 = 4.0;

/// Radius of the mean that is slow light, in pitches.
const SLOW_PITCHES: f32 = 3.0;

/// Pixels around images: as many as the widest window has.
pub(crate) const BORDER: usize = 16;

/// Flat images of a sector: the pixels of one place together, and a border that repeats.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    pub(crate) per_pitch: usize,
    pub(crate) images: usize,
    /// With borders.
    pub(crate) rows: usize,
    /// With borders.
    pub(crate) columns: usize,
    pub(crate) values: Vec<f32>,
    /// Of the field's energy.
    pub(crate) tones: Tones,
}

impl Flat {
    /// Takes the illumination out.
    ///
    /// # Panics
    /// When the images are not of whole voxels, or neither one nor four.
    #[must_use]
    pub fn new(images: &SectorImages, per_pitch: usize) -> Self {
        let mut flat = Self::default();
        flat.set(images, per_pitch);
        flat
    }

    /// Becomes the flat images of another sector.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn set(&mut self, images: &SectorImages, per_pitch: usize) {
        let (rows, columns) = (images.rows, images.columns);
        assert!(rows % (2 * per_pitch) == 0 && columns % (2 * per_pitch) == 0, "whole voxels");
        self.per_pitch = per_pitch;
        self.images = images.count;
        self.rows = rows + 2 * BORDER;
        self.columns = columns + 2 * BORDER;
        self.values.resize(self.rows * self.columns * self.images, 0.0);
        self.tones = Tones::new(rows, columns, per_pitch);
        match images.count {
            1 => self.fill::<1>(images),
            4 => self.fill::<4>(images),
            other => panic!("a medium has one image or four, not {other}"),
        }
        let stride = self.columns * self.images;
        for k in 0..BORDER {
            self.values.copy_within(BORDER * stride..(BORDER + 1) * stride, k * stride);
            let last = (BORDER + rows - 1) * stride;
            self.values.copy_within(last..last + stride, (BORDER + rows + k) * stride);
        }
    }

    fn fill<const N: usize>(&mut self, images: &SectorImages) {
        let (rows, columns, per_pitch) = (images.rows, images.columns, self.per_pitch);
        let light: [Plane; N] = std::array::from_fn(|index| illumination(images, index, per_pitch));
        let mut magnifier = Magnifier::new(per_pitch, light[0].columns);
        let mut means = vec![0.0; columns];
        let mut flat: [Vec<f32>; N] = std::array::from_fn(|_| vec![0.0; columns]);
        let mut energy = vec![0.0; columns];
        for row in 0..rows {
            for (index, (flat, light)) in flat.iter_mut().zip(&light).enumerate() {
                let pixels = &images.image(index)[row * columns..][..columns];
                vectorized(
                    #[inline(always)]
                    || {
                        magnifier.row(light, row, &mut means);
                        for ((value, pixel), mean) in flat.iter_mut().zip(pixels).zip(&means) {
                            *value = f32::from(*pixel) / mean.max(1.0) - 1.0;
                        }
                    },
                );
            }
            let line = &mut self.values[(BORDER + row) * self.columns * N..][..self.columns * N];
            let (line, _) = line.as_chunks_mut::<N>();
            vectorized(
                #[inline(always)]
                || {
                    let flat = flat.each_ref().map(|flat| &flat[..columns]);
                    for (column, pixel) in line[BORDER..][..columns].iter_mut().enumerate() {
                        *pixel = flat.map(|flat| flat[column]);
                    }
                    for (column, energy) in energy.iter_mut().enumerate() {
                        let [real, imaginary] = field_of(&flat.map(|flat| flat[column]));
                        *energy = real * real + imaginary * imaginary;
                    }
                },
            );
            self.tones.add(row, &energy);
            let (first, last) = (line[BORDER], line[BORDER + columns - 1]);
            line[..BORDER].fill(first);
            line[BORDER + columns..].fill(last);
        }
    }

    /// Rows and columns of pixels, without borders.
    #[must_use]
    pub const fn size(&self) -> [usize; 2] {
        [self.rows - 2 * BORDER, self.columns - 2 * BORDER]
    }

    /// A pixel of one image; beyond the images, the nearest of their borders.
    ///
    /// # Panics
    /// When there is no such image.
    #[must_use]
    pub fn at(&self, image: usize, [row, column]: [isize; 2]) -> f32 {
        let [row, column] =
            [row, column].map(|at| (at + BORDER.cast_signed()).max(0).cast_unsigned());
        let (row, column) = (row.min(self.rows - 1), column.min(self.columns - 1));
        self.values[(row * self.columns + column) * self.images + image]
    }

    /// Real and imaginary part of the field; of one image, that and zeros.
    #[must_use]
    pub fn field(&self) -> [Plane; 2] {
        match self.images {
            1 => self.field_planes::<1>(),
            _ => self.field_planes::<4>(),
        }
    }

    fn field_planes<const N: usize>(&self) -> [Plane; 2] {
        let [rows, columns] = self.size();
        let mut planes = [0, 1].map(|_| Plane::new(rows, columns));
        let (pixels, _) = self.values.as_chunks::<N>();
        for row in 0..rows {
            let line = &pixels[(BORDER + row) * self.columns + BORDER..][..columns];
            for (column, pixel) in line.iter().enumerate() {
                for (plane, value) in planes.iter_mut().zip(field_of(pixel)) {
                    plane.row_mut(row)[column] = value;
                }
            }
        }
        for plane in &mut planes {
            let mut means = Means::new(rows, columns, self.per_pitch);
            for row in 0..rows {
                means.add(row, plane.row(row));
            }
            let slow = means.blurred(SLOW_PITCHES);
            let mut magnifier = Magnifier::new(self.per_pitch, slow.columns);
            let mut line = vec![0.0; columns];
            for row in 0..rows {
                magnifier.row(&slow, row, &mut line);
                for (value, mean) in plane.row_mut(row).iter_mut().zip(&line) {
                    *value -= mean;
                }
            }
        }
        planes
    }
}

/// Real and imaginary part of the field of a pixel, with slow light in it.
#[inline(always)]
fn field_of<const N: usize>(pixel: &[f32; N]) -> [f32; 2] {
    match pixel[..] {
        [first, second, third, fourth] => [fourth - second, first - third],
        _ => [pixel[0], 0.0],
    }
}

/// Means over the pixels of each voxel, of rows that come one by one.
struct Means {
    per_pitch: usize,
    /// Sums over rows of the pixels of one row of voxels.
    line: Vec<f32>,
    means: Plane,
}

impl Means {
    fn new(rows: usize, columns: usize, per_pitch: usize) -> Self {
        let means = Plane::new(rows / per_pitch, columns / per_pitch);
        Self { per_pitch, line: vec![0.0; columns], means }
    }

    #[inline(always)]
    fn add(&mut self, row: usize, pixels: &[f32]) {
        let phase = row % self.per_pitch;
        if phase == 0 {
            self.line.copy_from_slice(pixels);
        } else {
            for (sum, pixel) in self.line.iter_mut().zip(pixels) {
                *sum += pixel;
            }
        }
        if phase + 1 == self.per_pitch {
            let means = self.means.row_mut(row / self.per_pitch);
            match self.per_pitch {
                3 => sums_of::<3>(&self.line, means),
                4 => sums_of::<4>(&self.line, means),
                other => unreachable!("a pitch is 3 or 4 pixels, not {other}"),
            }
        }
    }

    /// The mean over so many pitches around each two voxels.
    fn blurred(&self, pitches: f32) -> Plane {
        #[expect(clippy::cast_possible_truncation, reason = "1.5")]
        let rest = (pitches * pitches - HALVING_VARIANCE as f32).sqrt();
        blur(&halve(&self.means), 0.5 * rest)
    }
}

/// The mean of a voxel's pixels, from the sums over their rows.
#[inline(always)]
fn sums_of<const PITCH: usize>(line: &[f32], means: &mut [f32]) {
    #[expect(clippy::cast_precision_loss, reason = "at most 16")]
    let share = 1.0 / (PITCH * PITCH) as f32;
    for (mean, pixels) in means.iter_mut().zip(line.as_chunks::<PITCH>().0) {
        *mean = share * pixels.iter().sum::<f32>();
    }
}

/// The illumination of one image, at half the voxels' resolution.
fn illumination(images: &SectorImages, index: usize, per_pitch: usize) -> Plane {
    let mut means = Means::new(images.rows, images.columns, per_pitch);
    let mut line = vec![0.0; images.columns];
    for (row, pixels) in images.image(index).chunks_exact(images.columns).enumerate() {
        vectorized(
            #[inline(always)]
            || {
                for (value, pixel) in line.iter_mut().zip(pixels) {
                    *value = f32::from(*pixel);
                }
                means.add(row, &line);
            },
        );
    }
    means.blurred(ILLUMINATION_PITCHES)
}
