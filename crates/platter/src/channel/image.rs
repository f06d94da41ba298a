//! Image formation: what the camera of a drive sees of a sector.
//!
//! ```text
//! voxels -- spots --> own light --------------------------------+
//!   |                                                            v
//!   +-- halo, neighboring layers, background: slow light --> field --> intensity of each state
//!        (at half the voxels' grid, magnified)                           x illumination x surface
//!                                        shift of the state, electrons, noise, bits <--+
//! ```
//!
//! The sum of the layers' fields is exact to first order in the retardance of a voxel, which is
//! 0.145 rad; Jones matrices would be needed above 40 nm. Everything is drawn independently at
//! every read, except what the seeds of drive and platter determine.

use fulgurite_units::Seed;

use super::camera::{Camera, Exposure};
use super::damage::{Orientation, ReadFaults};
use super::fingerprint::Optics;
use super::light::{Neighbor, slow_light};
use super::smooth::smooth;
use super::splat::{BORDER, splat};
use super::surface::Surface;
use super::write::WrittenSector;
use super::{Channel, SectorShape};
use crate::numeric::{Magnifier, Plane};

/// Length scale of the illumination, in pitches.
const ILLUMINATION_PITCHES: f32 = 50.0;

/// Images of a sector, one for each polarization state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectorImages {
    /// Number of images.
    pub count: usize,
    /// Pixel rows per image.
    pub rows: usize,
    /// Pixels per row.
    pub columns: usize,
    /// Bits per pixel.
    pub bits: u8,
    /// Pixels, image by image, row by row.
    pub pixels: Vec<u16>,
}

impl SectorImages {
    /// Returns the pixels of one image.
    #[must_use]
    pub fn image(&self, index: usize) -> &[u16] {
        &self.pixels[index * self.rows * self.columns..][..self.rows * self.columns]
    }
}

/// Seeds of a read: the same seeds give the same images.
#[derive(Clone, Copy, Debug)]
pub struct ReadSeeds {
    /// Seed of the platter: background, surface defects, its share of the optics.
    pub platter: Seed,
    /// Seed of the place on the platter: the surface, which all layers of a track share.
    pub track: Seed,
    /// Seed of this read.
    pub read: Seed,
}

/// A read drive with its own optics and camera.
#[derive(Debug)]
pub struct ReadHead {
    channel: Channel,
    drive: Seed,
    shape: SectorShape,
    illumination: Plane,
    camera: Camera,
    /// Light of the sector itself, with a border.
    own: [Plane; 2],
}

impl ReadHead {
    /// Creates the drive of this seed, for sectors of a shape.
    ///
    /// # Errors
    /// [`crate::PlatterError::Channel`] when the channel is out of range.
    pub fn new(
        channel: &Channel,
        shape: SectorShape,
        drive: Seed,
    ) -> Result<Self, crate::PlatterError> {
        channel.validate()?;
        let pitch = usize::from(channel.optics.pixels_per_pitch);
        let (rows, columns) = (shape.rows() * pitch, shape.columns() * pitch);
        let plane = || Plane::new(rows + 2 * BORDER, columns + 2 * BORDER);
        Ok(Self {
            channel: channel.clone(),
            drive,
            shape,
            illumination: illumination(channel, shape, &drive),
            camera: Camera::new(channel, rows, columns, &drive),
            own: [plane(), plane()],
        })
    }

    /// The channel parameters.
    #[must_use]
    pub const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Takes the images of a sector.
    ///
    /// # Panics
    /// When the sector does not have this drive's shape.
    pub fn read(
        &mut self,
        sector: &WrittenSector,
        neighbors: &[Neighbor<'_>],
        seeds: &ReadSeeds,
        faults: &ReadFaults,
    ) -> SectorImages {
        assert_eq!(sector.shape, self.shape, "the drive reads sectors of one shape");
        let channel = &self.channel;
        let optics = Optics::draw(channel, &self.drive, &seeds.platter, &seeds.read);
        for plane in &mut self.own {
            plane.values.fill(0.0);
        }
        splat(channel, &optics, faults.defocus_um, sector, &mut self.own);
        orient(&mut self.own, faults.placement);
        let mut slow = slow_light(channel, sector, neighbors, &seeds.track);
        orient(&mut slow, faults.placement);
        let surface = Surface::draw(channel, self.shape, &seeds.track, faults);
        let exposure = Exposure::new(channel, sector, &optics);
        let mut magnify =
            Magnifier::new(usize::from(channel.optics.pixels_per_pitch), self.shape.columns() / 2);
        self.camera.take(
            &exposure,
            &seeds.read,
            &faults.dead_columns,
            |row, [real, imaginary, bright]| {
                magnify.row(&slow[0], row, real);
                magnify.row(&slow[1], row, imaginary);
                magnify.row(&self.illumination, row, bright);
                surface.shade(row, bright);
                let unscattered = exposure.unscattered;
                for (sum, plane) in [(real, &self.own[0]), (imaginary, &self.own[1])] {
                    let own = &plane.row(row + BORDER)[BORDER..];
                    for (sum, own) in sum.iter_mut().zip(own) {
                        *sum += unscattered * own;
                    }
                }
            },
        )
    }
}

/// Computes the drive's illumination: darker towards the corners, and uneven.
fn illumination(channel: &Channel, shape: SectorShape, drive: &Seed) -> Plane {
    let mut noise = super::noise::Noise::new(&drive.child(b"illumination"));
    let [rows, columns] = [shape.rows(), shape.columns()].map(|side| side / 2);
    let mut plane = smooth(rows, columns, ILLUMINATION_PITCHES / 2.0, &mut noise);
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let half = (0.5 * channel.optics.illumination) as f32;
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let side = |at: usize, len: usize| (2.0 * at as f32 / len as f32 - 1.0).powi(2);
    for row in 0..rows {
        let u2 = side(row, rows);
        for (column, value) in plane.row_mut(row).iter_mut().enumerate() {
            *value = 1.0 + half * (*value - u2 - side(column, columns));
        }
    }
    plane
}

/// Transforms light by the platter's orientation: a rotation by 180 degrees mirrors rows and
/// columns and leaves azimuths unchanged; upside down, rows are mirrored and azimuths change their
/// sign.
fn orient([real, imaginary]: &mut [Plane; 2], placement: Orientation) {
    match placement {
        Orientation::Right => {}
        Orientation::HalfTurn => {
            real.values.reverse();
            imaginary.values.reverse();
        }
        Orientation::UpsideDown => {
            for plane in [&mut *real, &mut *imaginary] {
                let columns = plane.columns;
                plane.values.reverse();
                plane.values.chunks_mut(columns).for_each(<[f32]>::reverse);
            }
            imaginary.values.iter_mut().for_each(|value| *value = -*value);
        }
    }
}
