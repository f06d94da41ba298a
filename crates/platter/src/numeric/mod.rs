//! Arithmetic of the inner loops, in single precision and in loops that vectorize.
//!
//! Nothing here calls the platform's libm: a platter that was written on one machine is the same
//! voxel for voxel on every other, whatever its instruction set. Sums keep their order and there is
//! no fused multiply-add, so wider vectors change the speed and never the result.

use std::f32::consts::{LN_2, LOG2_E, TAU};

use fulgurite_codes::Isa;

mod plane;

pub use plane::{DOWNSAMPLING_VARIANCE, Magnifier, Plane, blur, downsample};

/// The numbers 0, 1, ...
pub const LANE_INDICES: [f32; LANES] =
    [0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.];

/// Lanes that an inner loop processes at once: one vector of AVX-512, two of AVX2, four of SSE2.
pub const LANES: usize = 16;

/// Runs `kernel`, compiled for the widest vectors that this processor supports.
///
/// Functions that it calls must be `#[inline(always)]`: only inlined code is compiled for them.
#[inline]
pub fn dispatch_simd<R>(kernel: impl FnOnce() -> R) -> R {
    if Isa::current() == Isa::Scalar { kernel() } else { pulp::Arch::new().dispatch(kernel) }
}

/// Adding and subtracting this rounds to the nearest integer, for magnitudes below 2^22.
const ROUND: f32 = 12_582_912.0;

/// Returns the nearest integer, for magnitudes below 2^22.
#[inline(always)]
#[must_use]
pub fn round(x: f32) -> f32 {
    (x + ROUND) - ROUND
}

/// Returns sin(2 pi x) for |x| <= 1/4: the Taylor series to the 13th power, with an error below
/// 1e-7.
#[inline(always)]
#[expect(clippy::excessive_precision, reason = "coefficients as they are computed")]
fn sin_quarter(x: f32) -> f32 {
    let y = x * x;
    let p = 3.819_952_6;
    let p = p * y - 15.094_642_6;
    let p = p * y + 42.058_693_9;
    let p = p * y - 76.705_859_8;
    let p = p * y + 81.605_249_3;
    let p = p * y - 41.341_702_2;
    (p * y + TAU) * x
}

/// Returns (sin, cos) of 2 pi `turns`, for magnitudes below 2^22.
#[inline(always)]
#[must_use]
pub fn sincos_turns(turns: f32) -> (f32, f32) {
    let r = turns - round(turns);
    // sin(pi - a) = sin(a) folds the outer quarters in; cos(a) = sin(pi/2 - |a|).
    let magnitude = r.abs();
    let folded = if magnitude > 0.25 { 0.5 - magnitude } else { magnitude };
    (sin_quarter(folded).copysign(r), sin_quarter(0.25 - magnitude))
}

/// Converts a small whole number to two's complement: the low bits of its sum with [`ROUND`].
#[inline(always)]
const fn integer_bits(rounded: f32) -> u32 {
    rounded.to_bits().wrapping_sub(ROUND.to_bits())
}

/// Returns the nearest integer to `x`, for 0 <= x < 2^16.
#[inline(always)]
#[must_use]
pub const fn to_u16(x: f32) -> u16 {
    #[expect(clippy::cast_possible_truncation, reason = "16 bits are meant")]
    let bits = integer_bits(x + ROUND) as u16;
    bits
}

/// Returns e^-x for x >= 0; relative error below (3 + x) 1e-7, and 2^-126 beyond the range.
#[inline(always)]
#[must_use]
pub fn exp_negative(x: f32) -> f32 {
    let y = (x * -LOG2_E).max(-126.0);
    let rounded = y + ROUND;
    let f = (y - (rounded - ROUND)) * LN_2;
    let p = 1.0 / 720.0;
    let p = p * f + 1.0 / 120.0;
    let p = p * f + 1.0 / 24.0;
    let p = p * f + 1.0 / 6.0;
    let p = p * f + 0.5;
    let p = (p * f + 1.0) * f + 1.0;
    p * f32::from_bits(integer_bits(rounded).wrapping_add(127) << 23)
}

/// Returns the natural logarithm of a positive normal number; absolute error below 3e-7 near 1.
#[inline(always)]
#[expect(clippy::cast_possible_wrap, reason = "bits of a float")]
pub fn ln(x: f32) -> f32 {
    let bits = x.to_bits() as i32;
    // Splits off the mantissa in [sqrt(1/2), sqrt(2)).
    let exponent = bits.wrapping_sub(0x3F35_04F3) >> 23;
    let m = f32::from_bits(bits.wrapping_sub(exponent << 23).cast_unsigned());
    let t = (m - 1.0) / (m + 1.0);
    let y = t * t;
    let p = 2.0 / 9.0;
    let p = p * y + 2.0 / 7.0;
    let p = p * y + 2.0 / 5.0;
    let p = p * y + 2.0 / 3.0;
    #[expect(clippy::cast_precision_loss, reason = "at most 128")]
    let e = exponent as f32;
    (p * y + 2.0) * t + e * LN_2
}
