//! The optical variation from drive to drive, from platter to platter and from read to read.
//!
//! Each optical quantity is one normal number, the sum of a part of the drive, a part of the
//! platter and a part drawn at the read. The parts add up to the preset's variance, so a sector of
//! a random drive and platter is as in the preset, while sectors of one drive resemble each other.
//! The rate of failed sectors comes from that spread.

use fulgurite_units::Seed;

use super::noise::Noise;
use super::{Channel, Medium};
use crate::numeric::round;

/// Maximum number of polarization states.
pub(super) const STATES: usize = 4;

/// Deviations are clipped at this many sigma.
const CLIP_SIGMAS: f32 = 2.0;

/// Optics of one read of a sector.
#[derive(Clone, Debug)]
pub(super) struct Optics {
    /// Focus error, two tilts, field curvature: micrometers.
    pub(super) focus: [f32; 4],
    /// Shift downward and to the right: pixels.
    pub(super) shift: [f32; 2],
    /// Rotation, scale and distortion: pixels at the corner.
    pub(super) warp: [f32; 8],
    /// Polarization states.
    pub(super) states: [State; STATES],
}

/// Polarization state of an image: intensity = c . (1, real, imaginary, sqrt(1 - |field|^2)).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) weights: [f32; 4],
    /// Shift downward and to the right relative to the other images: pixels.
    pub(super) shift: [f32; 2],
}

const FOCUS: usize = 4;
const SHIFT: usize = 2;
const WARP: usize = 8;
/// Swing, axis, gain, two shifts.
const PER_STATE: usize = 5;
const COUNT: usize = FOCUS + SHIFT + WARP + STATES * PER_STATE;

fn draw_normals(seed: &Seed) -> [f32; COUNT] {
    let mut values = [0.0; COUNT];
    Noise::new(&seed.child(b"optics")).normals(&mut values);
    values
}

impl Optics {
    /// Draws the optics with which `drive` sees a sector of `platter` at the read of this seed.
    pub(super) fn draw(channel: &Channel, drive: &Seed, platter: &Seed, read: &Seed) -> Self {
        let shares = channel.shares;
        let rest = (1.0 - shares.drive - shares.platter).max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let roots = [shares.drive, shares.platter, rest].map(|share| share.sqrt() as f32);
        let parts = [drive, platter, read].map(draw_normals);
        let mut values = (0..COUNT).map(|i| {
            (0..3).map(|k| roots[k] * parts[k][i]).sum::<f32>().clamp(-CLIP_SIGMAS, CLIP_SIGMAS)
        });
        let mut take = |sigma: f64| {
            #[expect(clippy::cast_possible_truncation, reason = "single precision")]
            let sigma = sigma as f32;
            values.next().unwrap_or(0.0) * sigma
        };
        let focus = std::array::from_fn(|_| take(channel.optics.focus_um));
        let shift = std::array::from_fn(|_| take(channel.stage.shift_px));
        let warp = std::array::from_fn(|_| take(channel.stage.warp_px));
        let p = &channel.polarization;
        let states = std::array::from_fn(|index| {
            let swing = 1.0 + take(p.swing_error);
            let axis = take(p.axis_error_deg) / 360.0;
            let gain = 1.0 + take(p.gain_error);
            let shift = std::array::from_fn(|_| take(channel.stage.state_px));
            State { weights: weights(channel, index, swing, axis, gain), shift }
        });
        Self { focus, shift, warp, states }
    }
}

/// Returns the weights of a state. Birefringent: the Stokes vector of circular light behind a
/// retarder
///
/// ```text
/// S1 = D sin d sin 2phi     S2 = -D sin d cos 2phi     S3 = D cos d
/// I  = 1/2 (1 + sin(chi) (cos(psi) S1 + sin(psi) S2) - cos(chi) S3)
/// ```
///
/// seen through an elliptical analyzer of swing chi at axis psi, which advances by a quarter turn
/// per state (Shribak and Oldenbourg, Appl. Opt. 42, 3009, 2003). Phase: Zernike's positive phase
/// contrast with a quarter wave, 3 - 2 cos d + 2 sin d.
fn weights(channel: &Channel, index: usize, swing: f32, axis: f32, gain: f32) -> [f32; 4] {
    if channel.medium == Medium::Phase {
        return [3.0, 2.0, 0.0, -2.0].map(|weight| weight * gain);
    }
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let [waves, degree] =
        [channel.polarization.swing_waves, channel.polarization.degree].map(|value| value as f32);
    let (sin, cos) = crate::numeric::sincos_turns(waves * swing);
    #[expect(clippy::cast_precision_loss, reason = "at most 3")]
    let (sin_axis, cos_axis) = crate::numeric::sincos_turns(index as f32 / 4.0 + axis);
    [
        0.5 * gain,
        -0.5 * gain * sin * sin_axis * degree,
        0.5 * gain * sin * cos_axis * degree,
        -0.5 * gain * cos * degree,
    ]
}

/// Returns the nearest pixel to a position, and the distance beyond it.
pub(super) fn nearest(position: f32) -> (isize, f32) {
    let whole = round(position);
    #[expect(clippy::cast_possible_truncation, reason = "thousands of pixels")]
    (whole as isize, position - whole)
}
