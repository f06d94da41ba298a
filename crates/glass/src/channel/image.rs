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
//! 0.145 of a radian; Jones matrices would be needed above 40 nm. All of it is drawn anew at every
//! read but what the seeds of drive and platter fix.

use fulgurite_units::Seed;

use super::camera::{Camera, Exposure};
use super::damage::{Placement, ReadFaults};
use super::fingerprint::Optics;
use super::light::{Neighbor, slow_light};
use super::smooth::smooth;
use super::splat::{BORDER, splat};
use super::surface::Surface;
use super::write::WrittenSector;
use super::{Channel, SectorShape};
use crate::numeric::{Magnifier, Plane};

/// Pitches over which the illumination changes.
const ILLUMINATION_PITCHES: f32 = 50.0;

/// The images of a sector, one of each state of polarization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectorImages {
    /// Images.
    pub count: usize,
    /// Rows of pixels of each.
    pub rows: usize,
    /// Pixels of a row.
    pub columns: usize,
    /// Bits of a pixel.
    pub bits: u8,
    /// Image after image, row after row.
    pub pixels: Vec<u16>,
}

impl SectorImages {
    /// The pixels of one image.
    #[must_use]
    pub fn image(&self, index: usize) -> &[u16] {
        &self.pixels[index * self.rows * self.columns..][..self.rows * self.columns]
    }
}

/// Which read this is: the same seeds make the same images.
#[derive(Clone, Copy, Debug)]
pub struct ReadSeeds {
    /// The platter's: background, defects of its surface, its share of the optics.
    pub platter: Seed,
    /// The place on the platter, which all layers of a track share: its surface.
    pub track: Seed,
    /// This read.
    pub read: Seed,
}

/// A read drive: its own optics and camera.
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
    /// The drive of this seed, for sectors of a shape.
    ///
    /// # Errors
    /// [`crate::GlassError::Channel`] when the channel is out of range.
    pub fn new(
        channel: &Channel,
        shape: SectorShape,
        drive: Seed,
    ) -> Result<Self, crate::GlassError> {
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

    /// The channel that it reads.
    #[must_use]
    pub const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Takes the images of a sector.
    ///
    /// # Panics
    /// When the sector has another shape than this drive reads.
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
        turn(&mut self.own, faults.placement);
        let mut slow = slow_light(channel, sector, neighbors, &seeds.track);
        turn(&mut slow, faults.placement);
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
                let keep = exposure.keep;
                for (sum, plane) in [(real, &self.own[0]), (imaginary, &self.own[1])] {
                    let own = &plane.row(row + BORDER)[BORDER..];
                    for (sum, own) in sum.iter_mut().zip(own) {
                        *sum += keep * own;
                    }
                }
            },
        )
    }
}

/// The drive's illumination: darker towards the corners, and uneven.
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

/// Turns light as the platter lies: half a turn mirrors rows and columns and leaves azimuths as
/// they are; upside down, rows are mirrored and azimuths change their sign.
fn turn([real, imaginary]: &mut [Plane; 2], placement: Placement) {
    match placement {
        Placement::Right => {}
        Placement::HalfTurn => {
            real.values.reverse();
            imaginary.values.reverse();
        }
        Placement::UpsideDown => {
            for plane in [&mut *real, &mut *imaginary] {
                let columns = plane.columns;
                plane.values.reverse();
                plane.values.chunks_mut(columns).for_each(<[f32]>::reverse);
            }
            imaginary.values.iter_mut().for_each(|value| *value = -*value);
        }
    }
}
