//! Parameters of the simulated channel: every assumed quantity is a named number with its unit.
//!
//! The values are those of the documented channel experiment (docs/design/0007): a reader and a
//! medium that match the published figures, with the rest assumed. They decide how hard reading is,
//! so the gain of a decoder is a property of this model, not of glass.

use serde::{Deserialize, Serialize};

use super::Medium;
use crate::PlatterError;

/// Names of the presets.
pub const CHANNEL_PRESETS: [&str; 4] = ["nominal", "easy", "dense", "phase"];

/// A channel, from symbols to images. "Spread" is a standard deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// How a voxel encodes its symbol.
    pub medium: Medium,
    /// The write process.
    pub voxels: VoxelParameters,
    /// Optics, from voxels to light.
    pub optics: OpticsParameters,
    /// Polarization, from light to the states of the images.
    pub polarization: PolarizationParameters,
    /// Residual shifts and distortions after coarse registration.
    pub stage: StageParameters,
    /// Dust, scratches, voids.
    pub defects: DefectParameters,
    /// The camera.
    pub camera: CameraParameters,
    /// Shares of the optical variance that are specific to a drive and to a platter; the rest is
    /// drawn at every read.
    pub shares: Shares,
}

/// The write process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoxelParameters {
    /// Distance between neighboring voxels in a layer.
    pub pitch_um: f64,
    /// Distance between layers.
    pub layer_um: f64,
    /// Radius (sigma) of a voxel.
    pub radius_um: f64,
    /// Retardance of a voxel; for the medium `phase`, the largest path difference.
    pub retardance_nm: f64,
    /// Spread of the retardance from voxel to voxel, relative to its mean.
    pub retardance_spread: f64,
    /// Slow drift of the laser's energy over a sector, relative to its mean.
    pub drift: f64,
    /// Spread of the azimuth.
    pub azimuth_deg: f64,
    /// Effect of the previously written voxel on the azimuth: the seed pulse is half of its light.
    pub memory_azimuth: f64,
    /// Effect of the previously written voxel on the retardance.
    pub memory_retardance: f64,
    /// Effect of the previous line, relative to that of the previous voxel.
    pub memory_line: f64,
    /// Spread of a voxel's position, in pitches.
    pub position: f64,
    /// Spread of the position of whole lines, along the line, in pitches.
    pub line_position: f64,
    /// Probability that a voxel does not form.
    pub missing: f64,
}

/// Optics, from voxels to light.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpticsParameters {
    /// Camera pixels per pitch, 3 or 4: with 2, the position of a voxel could not be seen.
    pub pixels_per_pitch: u8,
    /// Refractive index of the glass.
    pub index: f64,
    /// Numerical aperture of the reader.
    pub aperture: f64,
    /// Wavelength of the reader's light.
    pub wavelength_um: f64,
    /// Focus error of a sector; tilt and field curvature each add half of it. Clipped at two sigma.
    pub focus_um: f64,
    /// Light from neighboring layers, 1 if all of it is conserved.
    pub crosstalk: f64,
    /// Number of neighboring layers simulated on each side.
    pub layers: u8,
    /// Share of a layer's light that is scattered into a halo of 2.5 pitches.
    pub halo: f64,
    /// Variation of the illumination over the field.
    pub illumination: f64,
}

/// Polarization, from light to the states of the images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolarizationParameters {
    /// Swing of the analyzer, in waves.
    pub swing_waves: f64,
    /// Relative error of each state's swing.
    pub swing_error: f64,
    /// Error of each state's axis.
    pub axis_error_deg: f64,
    /// Relative error of each state's brightness.
    pub gain_error: f64,
    /// Degree of polarization that remains behind the glass.
    pub degree: f64,
    /// Birefringence of the glass itself.
    pub background_rad: f64,
}

/// Residual shifts and distortions after coarse registration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageParameters {
    /// Shift of the whole sector.
    pub shift_px: f64,
    /// Rotation, scale, distortion: displacement at the corner.
    pub warp_px: f64,
    /// Shift of one state's image relative to the others.
    pub state_px: f64,
}

/// Dust, scratches, voids. Counts are means per 128 x 128 voxels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefectParameters {
    /// Particulates on the glass.
    pub dust: f64,
    /// Scratches of the glass; their number grows with the side length, not the area.
    pub scratches: f64,
    /// Clusters of voxels that did not form.
    pub voids: f64,
}

/// The camera.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CameraParameters {
    /// Mean electrons per pixel.
    pub electrons: f64,
    /// Read noise in electrons.
    pub read_electrons: f64,
    /// Spread of the pixels' sensitivity.
    pub nonuniformity: f64,
    /// Bits per pixel, at most 16. Full scale is 2.5 times the mean.
    pub bits: u8,
}

/// Shares of the variance that are specific to a drive and to a platter; the rest is drawn per
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// A drive's share.
    pub drive: f64,
    /// A platter's share.
    pub platter: f64,
}

impl Channel {
    /// Returns the preset of this name: `nominal` is the default, `easy` for fast tests, `dense`
    /// for stress, `phase` the other medium.
    ///
    /// # Errors
    /// [`PlatterError::Channel`] when there is no such preset.
    pub fn preset(name: &str) -> Result<Self, PlatterError> {
        let mut channel = Self::nominal();
        match name {
            "nominal" => {}
            "easy" => {
                channel.voxels.memory_azimuth = 0.0;
                channel.voxels.memory_retardance = 0.0;
                channel.optics.focus_um = 0.3;
            }
            "dense" => channel.voxels.pitch_um = 0.42,
            "phase" => channel = Self::phase(),
            _ => {
                let known = CHANNEL_PRESETS.join(", ");
                return Err(refuse("preset", name, &format!("one of {known}")));
            }
        }
        Ok(channel)
    }

    /// Returns the channel of fused silica: eight azimuths, four images.
    #[must_use]
    pub fn nominal() -> Self {
        Self {
            medium: Medium::Birefringent,
            voxels: VoxelParameters {
                pitch_um: 0.5,
                layer_um: 6.6,
                radius_um: 0.1,
                retardance_nm: 12.0,
                retardance_spread: 0.08,
                drift: 0.06,
                azimuth_deg: 1.5,
                memory_azimuth: 0.25,
                memory_retardance: 0.25,
                memory_line: 0.5,
                position: 0.03,
                line_position: 0.03,
                missing: 1e-3,
            },
            optics: OpticsParameters {
                pixels_per_pitch: 3,
                index: 1.46,
                aperture: 0.6,
                wavelength_um: 0.52,
                focus_um: 0.4,
                crosstalk: 1.0,
                layers: 3,
                halo: 0.06,
                illumination: 0.15,
            },
            polarization: PolarizationParameters {
                swing_waves: 0.08,
                swing_error: 0.03,
                axis_error_deg: 2.0,
                gain_error: 0.02,
                degree: 0.92,
                background_rad: 0.03,
            },
            stage: StageParameters { shift_px: 0.35, warp_px: 0.35, state_px: 0.15 },
            defects: DefectParameters { dust: 0.7, scratches: 0.08, voids: 0.15 },
            camera: CameraParameters {
                electrons: 900.0,
                read_electrons: 4.0,
                nonuniformity: 0.008,
                bits: 8,
            },
            shares: Shares { drive: 0.4, platter: 0.2 },
        }
    }

    /// Returns the channel of borosilicate: four phases, one image. All values but pitch and layers
    /// are assumed.
    fn phase() -> Self {
        let mut channel = Self::nominal();
        channel.medium = Medium::Phase;
        channel.voxels.pitch_um = 0.59;
        channel.voxels.layer_um = 7.75;
        channel.voxels.retardance_nm = 40.0;
        channel.voxels.azimuth_deg = 0.0;
        channel.voxels.memory_azimuth = 0.0;
        channel.voxels.memory_retardance = 0.1;
        channel.polarization.gain_error = 0.0;
        channel.optics.index = 1.47;
        channel
    }

    /// Checks that every number is in range.
    ///
    /// # Errors
    /// [`PlatterError::Channel`] with the field, its value and the allowed range.
    pub fn validate(&self) -> Result<(), PlatterError> {
        let Self { voxels: v, optics: o, polarization: p, stage: s, defects: d, camera: c, .. } =
            self;
        for (field, value, min, max) in [
            ("voxels.pitch_um", v.pitch_um, 0.1, 10.0),
            ("voxels.layer_um", v.layer_um, 0.5, 100.0),
            ("voxels.radius_um", v.radius_um, 0.0, 5.0),
            ("voxels.retardance_nm", v.retardance_nm, 0.1, 80.0),
            ("voxels.retardance_spread", v.retardance_spread, 0.0, 1.0),
            ("voxels.drift", v.drift, 0.0, 1.0),
            ("voxels.azimuth_deg", v.azimuth_deg, 0.0, 45.0),
            ("voxels.memory_azimuth", v.memory_azimuth, 0.0, 1.0),
            ("voxels.memory_retardance", v.memory_retardance, 0.0, 0.6),
            ("voxels.memory_line", v.memory_line, 0.0, 0.6),
            ("voxels.position", v.position, 0.0, 0.3),
            ("voxels.line_position", v.line_position, 0.0, 0.3),
            ("voxels.missing", v.missing, 0.0, 1.0),
            ("optics.pixels_per_pitch", f64::from(o.pixels_per_pitch), 3.0, 4.0),
            ("optics.index", o.index, 1.0, 3.0),
            ("optics.aperture", o.aperture, 0.05, 0.95 * o.index),
            ("optics.wavelength_um", o.wavelength_um, 0.2, 2.0),
            ("optics.focus_um", o.focus_um, 0.0, 5.0),
            ("optics.crosstalk", o.crosstalk, 0.0, 4.0),
            ("optics.layers", f64::from(o.layers), 0.0, 8.0),
            ("optics.halo", o.halo, 0.0, 0.9),
            ("optics.illumination", o.illumination, 0.0, 0.9),
            ("polarization.swing_waves", p.swing_waves, 0.01, 0.25),
            ("polarization.swing_error", p.swing_error, 0.0, 0.3),
            ("polarization.axis_error_deg", p.axis_error_deg, 0.0, 20.0),
            ("polarization.gain_error", p.gain_error, 0.0, 0.3),
            ("polarization.degree", p.degree, 0.05, 1.0),
            ("polarization.background_rad", p.background_rad, 0.0, 0.3),
            ("stage.shift_px", s.shift_px, 0.0, 2.0),
            ("stage.warp_px", s.warp_px, 0.0, 1.0),
            ("stage.state_px", s.state_px, 0.0, 0.5),
            ("defects.dust", d.dust, 0.0, 100.0),
            ("defects.scratches", d.scratches, 0.0, 100.0),
            ("defects.voids", d.voids, 0.0, 100.0),
            ("camera.electrons", c.electrons, 20.0, 1e6),
            ("camera.read_electrons", c.read_electrons, 0.0, 1e4),
            ("camera.nonuniformity", c.nonuniformity, 0.0, 0.3),
            ("camera.bits", f64::from(c.bits), 4.0, 16.0),
            ("shares.drive", self.shares.drive, 0.0, 1.0),
            ("shares.platter", self.shares.platter, 0.0, 1.0 - self.shares.drive),
        ] {
            if !(min..=max).contains(&value) {
                return Err(refuse(field, &value.to_string(), &format!("{min} to {max}")));
            }
        }
        Ok(())
    }

    /// Returns the radius (sigma) of a voxel's image, in pitches, at a distance from focus.
    ///
    /// ```text
    /// sigma^2 = (0.21 lambda / NA)^2 + radius^2 + (dz tan(asin(NA / n)) / 2)^2
    /// ```
    #[must_use]
    pub fn blur_pitches(&self, defocus_um: f64) -> f64 {
        let focus = 0.21 * self.optics.wavelength_um / self.optics.aperture;
        let cone = 0.5 * defocus_um * self.cone();
        (focus * focus + self.voxels.radius_um.powi(2) + cone * cone).sqrt() / self.voxels.pitch_um
    }

    /// Returns the tangent of the half angle of the light cone in the glass.
    pub(super) fn cone(&self) -> f64 {
        (self.optics.aperture / self.optics.index).asin().tan()
    }

    /// Returns the retardance of a voxel in waves.
    pub(super) fn retardance_waves(&self) -> f32 {
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let retardance_waves =
            (self.voxels.retardance_nm * 1e-3 / self.optics.wavelength_um) as f32;
        retardance_waves
    }
}

fn refuse(field: &'static str, value: &str, allowed: &str) -> PlatterError {
    PlatterError::Channel { field, value: value.to_owned(), allowed: allowed.to_owned() }
}
