//! What differs from drive to drive, from platter to platter and from read to read.
//!
//! Each optical quantity is one normal number, part of it the drive's, part the platter's and the
//! rest drawn at the read. The parts add to the preset's variance, so one sector of a random drive
//! and platter is as the preset says, and sectors of one drive resemble each other: that spread is
//! what the rate of failed sectors is made of.

use fulgurite_units::Seed;

use super::noise::Noise;
use super::{Channel, Medium};
use crate::numeric::round;

/// States of polarization at most.
pub(super) const STATES: usize = 4;

/// Spreads are cut at so many sigma.
const CUT: f32 = 2.0;

/// How one read sees a sector.
#[derive(Clone, Debug)]
pub(super) struct Optics {
    /// Focus error, two tilts, field curvature: micrometers.
    pub(super) focus: [f32; 4],
    /// Shift down and to the right: pixels.
    pub(super) shift: [f32; 2],
    /// Rotation, scale and distortion: pixels at the corner.
    pub(super) warp: [f32; 8],
    /// Of each state of polarization.
    pub(super) states: [State; STATES],
}

/// An image's state of polarization: intensity = c . (1, real, imaginary, sqrt(1 - |field|^2)).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) weights: [f32; 4],
    /// Shift down and to the right against the other images: pixels.
    pub(super) shift: [f32; 2],
}

const FOCUS: usize = 4;
const SHIFT: usize = 2;
const WARP: usize = 8;
/// Swing, axis, gain, two shifts.
const OF_STATE: usize = 5;
const COUNT: usize = FOCUS + SHIFT + WARP + STATES * OF_STATE;

fn drawn(seed: &Seed) -> [f32; COUNT] {
    let mut values = [0.0; COUNT];
    Noise::new(&seed.child(b"optics")).normals(&mut values);
    values
}

impl Optics {
    /// How `drive` sees a sector of `platter` at the read of this seed.
    pub(super) fn draw(channel: &Channel, drive: &Seed, platter: &Seed, read: &Seed) -> Self {
        let shares = channel.shares;
        let rest = (1.0 - shares.drive - shares.platter).max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let roots = [shares.drive, shares.platter, rest].map(|share| share.sqrt() as f32);
        let parts = [drive, platter, read].map(drawn);
        let mut values = (0..COUNT)
            .map(|i| (0..3).map(|k| roots[k] * parts[k][i]).sum::<f32>().clamp(-CUT, CUT));
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

/// The weights of a state. Birefringent: the Stokes vector of circular light behind a retarder
///
/// ```text
/// S1 = D sin d sin 2phi     S2 = -D sin d cos 2phi     S3 = D cos d
/// I  = 1/2 (1 + sin(chi) (cos(psi) S1 + sin(psi) S2) - cos(chi) S3)
/// ```
///
/// seen through an elliptical analyzer of swing chi at axis psi, a quarter turn on at each state
/// (Shribak and Oldenbourg, Appl. Opt. 42, 3009, 2003). Phase: Zernike's positive phase contrast
/// with a quarter wave, 3 - 2 cos d + 2 sin d.
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

/// The nearest pixel to a position, and how far beyond it that is.
pub(super) fn nearest(position: f32) -> (isize, f32) {
    let whole = round(position);
    #[expect(clippy::cast_possible_truncation, reason = "thousands of pixels")]
    (whole as isize, position - whole)
}
