//! Flat-field correction: images without the illumination, and the field that they show.
//!
//! ```text
//! flat  = image / its mean over 4 pitches around - 1            in bytes: 128 + 160 flat
//! field = (flat 3 - flat 1, flat 0 - flat 2), less its mean over 3 pitches around
//! ```
//!
//! The difference of opposite states is proportional to the field of the glass; subtracting the
//! mean removes slowly varying light, which comes from other layers and from the glass itself.
//!
//! A sector has millions of pixels, so the time goes to memory traffic: a pixel is four bytes, one
//! for each state of polarization, which byte dot-product instructions take at once. A step of a
//! byte is 1/160 of the mean light, finer than a camera of 8 bits, whose mean is near 95. Light
//! beyond 0.2 and 1.8 of the mean is clipped: one pixel of three million at `nominal`, of 65,000 at
//! `dense` (measured on 40 sectors). Everything is computed in one pass, row by row, in buffers
//! that are reused from sector to sector; the tones that locate voxels are summed in the same pass.

use fulgurite_platter::channel::SectorImages;
use fulgurite_platter::numeric::{
    DOWNSAMPLING_VARIANCE, Magnifier, Plane, blur, dispatch_simd, downsample, to_u16,
};

use crate::tones::Tones;

/// Radius of the mean that estimates the illumination, in pitches.
const ILLUMINATION_PITCHES: f32 = 4.0;

/// Radius of the mean that estimates slowly varying light, in pitches.
const SLOW_PITCHES: f32 = 3.0;

/// Border around images, in pixels: as many as the widest window needs.
pub(crate) const BORDER: usize = 16;

/// Bytes of a pixel: one for each image. Images that a medium does not have are [`MEAN`].
pub(crate) const STATES: usize = 4;

/// The byte for light equal to the mean of its surroundings.
pub(crate) const MEAN: u8 = 128;

/// Steps of a byte between darkness and the mean light.
pub(crate) const STEPS: f32 = 160.0;

/// Flat images of a sector: pixels interleaved, with a replicated border.
#[derive(Clone, Debug, Default)]
pub struct FlatImages {
    pub(crate) per_pitch: usize,
    pub(crate) images: usize,
    /// Including borders.
    pub(crate) rows: usize,
    /// Including borders.
    pub(crate) columns: usize,
    pub(crate) values: Vec<[u8; STATES]>,
    /// Tones of the field's energy.
    pub(crate) tones: Tones,
}

impl FlatImages {
    /// Removes the illumination from images.
    ///
    /// # Panics
    /// When the images are not of whole voxels, or their number is neither one nor four.
    #[must_use]
    pub fn new(images: &SectorImages, per_pitch: usize) -> Self {
        let mut flat = Self::default();
        flat.set(images, per_pitch);
        flat
    }

    /// Replaces the contents by the flat images of another sector.
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
        self.values.resize(self.rows * self.columns, [MEAN; STATES]);
        self.tones.set(rows, columns, per_pitch);
        match images.count {
            1 => self.fill::<1>(images),
            4 => self.fill::<4>(images),
            other => panic!("a medium has one image or four, not {other}"),
        }
        let stride = self.columns;
        for k in 0..BORDER {
            self.values.copy_within(BORDER * stride..(BORDER + 1) * stride, k * stride);
            let last = (BORDER + rows - 1) * stride;
            self.values.copy_within(last..last + stride, (BORDER + rows + k) * stride);
        }
    }

    fn fill<const N: usize>(&mut self, images: &SectorImages) {
        let (rows, columns, stride) = (images.rows, images.columns, self.columns);
        let mut gains: [Gain; N] =
            std::array::from_fn(|index| Gain::new(images, index, self.per_pitch));
        for row in 0..rows {
            let weight = gains.each_mut().map(|gain| gain.seek(row))[0];
            let line = &mut self.values[(BORDER + row) * stride..][..stride];
            let sums = self.tones.line(row);
            let pixels: [&[u16]; N] =
                std::array::from_fn(|index| &images.image(index)[row * columns..][..columns]);
            let gains = gains.each_ref().map(Gain::lines);
            dispatch_simd(
                #[inline(always)]
                || flatten(pixels, gains, weight, &mut line[BORDER..][..columns], sums),
            );
            let (first, last) = (line[BORDER], line[BORDER + columns - 1]);
            line[..BORDER].fill(first);
            line[BORDER + columns..].fill(last);
        }
    }

    /// Rows and columns in pixels, without borders.
    #[must_use]
    pub const fn size(&self) -> [usize; 2] {
        [self.rows - 2 * BORDER, self.columns - 2 * BORDER]
    }

    /// Returns a pixel of one image; outside of the images, the nearest border pixel.
    ///
    /// # Panics
    /// When there is no such image.
    #[must_use]
    pub fn pixel(&self, image: usize, [row, column]: [isize; 2]) -> f32 {
        assert!(image < self.images, "an image of {}", self.images);
        let [row, column] =
            [row, column].map(|at| (at + BORDER.cast_signed()).max(0).cast_unsigned());
        let (row, column) = (row.min(self.rows - 1), column.min(self.columns - 1));
        byte_to_flat(self.values[row * self.columns + column][image])
    }

    /// Returns the real and imaginary part of the field; for a single image, that image and zeros.
    #[must_use]
    pub fn field(&self) -> [Plane; 2] {
        let [rows, columns] = self.size();
        let mut planes = [0, 1].map(|_| Plane::new(rows, columns));
        for row in 0..rows {
            let line = &self.values[(BORDER + row) * self.columns + BORDER..][..columns];
            for (column, pixel) in line.iter().enumerate() {
                let field = pixel_field(pixel.map(i32::from), self.images == 1);
                for (plane, value) in planes.iter_mut().zip(field) {
                    #[expect(clippy::cast_precision_loss, reason = "at most 255")]
                    let value = value as f32 / STEPS;
                    plane.row_mut(row)[column] = value;
                }
            }
        }
        for plane in &mut planes {
            let mut means = VoxelMeans::new(rows, columns, self.per_pitch);
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

/// Converts a byte to the value of the flat image.
#[inline(always)]
pub(crate) fn byte_to_flat(byte: u8) -> f32 {
    (f32::from(byte) - f32::from(MEAN)) / STEPS
}

/// Returns the real and imaginary part of the field of a pixel, in steps of a byte, including
/// slowly varying light.
#[inline(always)]
fn pixel_field(pixel: [i32; STATES], is_single: bool) -> [i32; 2] {
    let [first, second, third, fourth] = pixel;
    if is_single {
        [first.wrapping_sub(i32::from(MEAN)), 0]
    } else {
        [fourth.wrapping_sub(second), first.wrapping_sub(third)]
    }
}

/// Flattens one row of pixels: each of `N` images times its gain, which is interpolated between two
/// lines. Adds the energy of the field to `sums`.
#[inline(always)]
fn flatten<const N: usize>(
    pixels: [&[u16]; N],
    gains: [[&[f32]; 2]; N],
    weight: f32,
    out: &mut [[u8; STATES]],
    sums: &mut [u32],
) {
    let count = out.len();
    let pixels = pixels.map(|pixels| &pixels[..count]);
    let gains = gains.map(|lines| lines.map(|line| &line[..count]));
    let sums = &mut sums[..count];
    for at in 0..count {
        let mut bytes = [i32::from(MEAN); STATES];
        for image in 0..N {
            let [above, below] = gains[image].map(|line| line[at]);
            let gain = above + weight * (below - above);
            let value = f32::from(pixels[image][at]) * gain - (STEPS - f32::from(MEAN));
            bytes[image] = i32::from(to_u16(value.clamp(0.0, 255.0)));
        }
        let [a, b, c, d] = bytes.map(i32::cast_unsigned);
        out[at] = (a | b << 8 | c << 16 | d << 24).to_le_bytes();
        // At most 255; wrapping, since overflow checks prevent vectorization.
        let [real, imaginary] = pixel_field(bytes, N == 1);
        let energy = real.wrapping_mul(real).wrapping_add(imaginary.wrapping_mul(imaginary));
        sums[at] = sums[at].wrapping_add(energy.cast_unsigned());
    }
}

/// The gain of an image: steps of a byte over the illumination, at the pixels' resolution.
struct Gain {
    /// At half the voxels' resolution.
    plane: Plane,
    magnifier: Magnifier,
    /// The row of the plane that the first of `lines` is from.
    at: Option<isize>,
    lines: [Vec<f32>; 2],
}

impl Gain {
    fn new(images: &SectorImages, index: usize, per_pitch: usize) -> Self {
        let mut plane = illumination(images, index, per_pitch);
        for value in &mut plane.values {
            *value = STEPS / value.max(1.0);
        }
        let magnifier = Magnifier::new(per_pitch, plane.columns);
        let lines = [0, 1].map(|_| vec![0.0; images.columns]);
        Self { plane, magnifier, at: None, lines }
    }

    /// Computes the lines above and below a row of pixels; returns the weight of the second.
    fn seek(&mut self, row: usize) -> f32 {
        let (above, weight) = self.magnifier.source_row(row);
        if self.at == Some(above) {
            return weight;
        }
        let [first, second] = &mut self.lines;
        if self.at == Some(above - 1) {
            std::mem::swap(first, second);
        } else {
            expand_row(&self.plane, above, &mut self.magnifier, first);
        }
        expand_row(&self.plane, above + 1, &mut self.magnifier, second);
        self.at = Some(above);
        weight
    }

    fn lines(&self) -> [&[f32]; 2] {
        self.lines.each_ref().map(|line| &line[..])
    }
}

/// Expands a row of a plane to the pixels' resolution; outside of the plane, its border row.
fn expand_row(plane: &Plane, row: isize, magnifier: &mut Magnifier, out: &mut [f32]) {
    let last = plane.rows.cast_signed() - 1;
    let row = plane.row(row.clamp(0, last).cast_unsigned());
    dispatch_simd(
        #[inline(always)]
        || magnifier.magnify_row(row, out),
    );
}

/// Means over the pixels of each voxel, from rows that arrive one by one.
struct VoxelMeans {
    per_pitch: usize,
    /// Column sums over the pixels of one row of voxels.
    line: Vec<f32>,
    means: Plane,
}

impl VoxelMeans {
    fn new(rows: usize, columns: usize, per_pitch: usize) -> Self {
        let means = Plane::new(rows / per_pitch, columns / per_pitch);
        Self { per_pitch, line: vec![0.0; columns], means }
    }

    #[inline(always)]
    fn add<T: Copy + Into<f32>>(&mut self, row: usize, pixels: &[T]) {
        let phase = row % self.per_pitch;
        if phase == 0 {
            for (sum, pixel) in self.line.iter_mut().zip(pixels) {
                *sum = (*pixel).into();
            }
        } else {
            for (sum, pixel) in self.line.iter_mut().zip(pixels) {
                *sum += (*pixel).into();
            }
        }
        if phase + 1 == self.per_pitch {
            let means = self.means.row_mut(row / self.per_pitch);
            match self.per_pitch {
                3 => row_means::<3>(&self.line, means),
                4 => row_means::<4>(&self.line, means),
                other => unreachable!("a pitch is 3 or 4 pixels, not {other}"),
            }
        }
    }

    /// Returns the mean with a radius of `pitches`, at every second voxel.
    fn blurred(&self, pitches: f32) -> Plane {
        #[expect(clippy::cast_possible_truncation, reason = "1.5")]
        let rest = (pitches * pitches - DOWNSAMPLING_VARIANCE as f32).sqrt();
        blur(&downsample(&self.means), 0.5 * rest)
    }
}

/// Computes the means of the voxels of a row from column sums.
#[inline(always)]
fn row_means<const PITCH: usize>(line: &[f32], means: &mut [f32]) {
    #[expect(clippy::cast_precision_loss, reason = "at most 16")]
    let share = 1.0 / (PITCH * PITCH) as f32;
    for (mean, pixels) in means.iter_mut().zip(line.as_chunks::<PITCH>().0) {
        *mean = share * pixels.iter().sum::<f32>();
    }
}

/// Estimates the illumination of one image, at half the voxels' resolution.
fn illumination(images: &SectorImages, index: usize, per_pitch: usize) -> Plane {
    let mut means = VoxelMeans::new(images.rows, images.columns, per_pitch);
    for (row, pixels) in images.image(index).chunks_exact(images.columns).enumerate() {
        dispatch_simd(
            #[inline(always)]
            || means.add(row, pixels),
        );
    }
    means.blurred(ILLUMINATION_PITCHES)
}
