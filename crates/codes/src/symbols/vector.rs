//! Vectors of sixteen numbers, with which the demapper computes, for each instruction-set level.
//!
//! Each operation rounds like its scalar counterpart, so that all levels give the same bits. There
//! is no fused multiply-add.

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2Vector, Avx512Vector};

/// Voxels processed together.
pub(super) const LANES: usize = 16;

/// The bits of 1 / sqrt(2): subtracting them carries into the exponent above sqrt(2).
const ROOT: u32 = 0x3f35_04f3;
/// The bits of a mantissa, and their number.
const MANTISSA: u32 = 0x007f_ffff;
const MANTISSA_BITS: u32 = 23;
/// 1.5 * 2^23: at this magnitude the last bit of a mantissa is worth 1, so adding it rounds.
pub(super) const ROUND: f32 = 12_582_912.0;

/// Sixteen numbers.
pub(super) trait Vector: Copy {
    /// Sixteen booleans.
    type Mask: Copy;

    /// Transposes the values of sixteen voxels to symbol order; `lanes` has an entry for each
    /// symbol.
    fn transpose(values: &[f32], lanes: &mut [[f32; LANES]]);
    /// Loads an array.
    fn load(lanes: &[f32; LANES]) -> Self;
    /// Broadcasts a number to all lanes.
    fn splat(value: f32) -> Self;
    /// Adds.
    fn add(self, other: Self) -> Self;
    /// Subtracts.
    fn sub(self, other: Self) -> Self;
    /// Multiplies.
    fn mul(self, other: Self) -> Self;
    /// Divides.
    fn div(self, other: Self) -> Self;
    /// Returns `self` where it is larger, and `other` elsewhere.
    fn max(self, other: Self) -> Self;
    /// Returns `self` where it is smaller, and `other` elsewhere.
    fn min(self, other: Self) -> Self;
    /// Returns where `self` is at least `other`.
    fn ge(self, other: Self) -> Self::Mask;
    /// Returns where `self` is above `other`.
    fn gt(self, other: Self) -> Self::Mask;
    /// Returns where both masks are set.
    fn and(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Splits positive numbers into exponents and mantissas: `x = m 2^e`, m within a factor sqrt(2)
    /// of 1.
    fn frexp(self) -> (Self, Self);
    /// Multiplies by 2^n, where n is the low bits of `shifted`.
    fn ldexp(self, shifted: Self) -> Self;
    /// Returns the lowest byte of each number where the mask is set, and 0 elsewhere.
    fn low_bytes(self, mask: Self::Mask) -> [i8; LANES];

    /// [`logarithm`].
    #[inline(always)]
    fn ln(self) -> Self {
        logarithm(self)
    }

    /// [`exponential`].
    #[inline(always)]
    fn exp(self) -> Self {
        exponential(self)
    }
}

/// Computes ln of a positive number: `x = m 2^e` with m within a factor sqrt(2) of 1, and `ln m = 2
/// (s + s^3/3 + s^5/5 + s^7/7 + ..)` for `s = (m - 1) / (m + 1)`, |s| < 0.172; the truncation error
/// is below 3e-8.
#[inline(always)]
fn logarithm<V: Vector>(x: V) -> V {
    let (exponent, m) = x.frexp();
    let one = V::splat(1.0);
    let s = m.sub(one).div(m.add(one));
    let square = s.mul(s);
    let mut series = V::splat(2.0 / 7.0);
    for term in [2.0 / 5.0, 2.0 / 3.0, 2.0] {
        series = V::splat(term).add(square.mul(series));
    }
    exponent.mul(V::splat(std::f32::consts::LN_2)).add(s.mul(series))
}

/// Computes e^x for x from -70 to 0: `2^n 2^f` with |f| <= 1/2 and the series of `2^f` to f^6; the
/// relative truncation error is below 2e-7.
#[inline(always)]
fn exponential<V: Vector>(x: V) -> V {
    let y = x.mul(V::splat(std::f32::consts::LOG2_E));
    let shifted = y.add(V::splat(ROUND));
    let f = y.sub(shifted.sub(V::splat(ROUND))).mul(V::splat(std::f32::consts::LN_2));
    let mut series = V::splat(1.0 / 720.0);
    for term in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0, 1.0, 1.0] {
        series = V::splat(term).add(f.mul(series));
    }
    // n is the low bits of the mantissa of `shifted`, and moves into the exponent.
    series.ldexp(shifted)
}

/// Sixteen numbers in plain Rust: the reference for the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScalarVector([f32; LANES]);

impl ScalarVector {
    #[inline(always)]
    fn zip(self, other: Self, operation: impl Fn(f32, f32) -> f32) -> Self {
        let mut lanes = self.0;
        for (lane, other) in lanes.iter_mut().zip(other.0) {
            *lane = operation(*lane, other);
        }
        Self(lanes)
    }

    #[inline(always)]
    fn compare(self, other: Self, operation: impl Fn(f32, f32) -> bool) -> [u32; LANES] {
        let mut mask = [0; LANES];
        for (mask, (lane, other)) in mask.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            *mask = 0u32.wrapping_sub(u32::from(operation(lane, other)));
        }
        mask
    }
}

impl Vector for ScalarVector {
    /// All ones or all zeros, for each lane.
    type Mask = [u32; LANES];

    #[inline(always)]
    fn transpose(values: &[f32], lanes: &mut [[f32; LANES]]) {
        for (voxel, values) in values.chunks_exact(lanes.len()).enumerate() {
            for (lanes, value) in lanes.iter_mut().zip(values) {
                lanes[voxel] = *value;
            }
        }
    }

    #[inline(always)]
    fn load(lanes: &[f32; LANES]) -> Self {
        Self(*lanes)
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn ge(self, other: Self) -> Self::Mask {
        self.compare(other, |a, b| a >= b)
    }

    #[inline(always)]
    fn gt(self, other: Self) -> Self::Mask {
        self.compare(other, |a, b| a > b)
    }

    #[inline(always)]
    fn and(mut a: Self::Mask, b: Self::Mask) -> Self::Mask {
        a.iter_mut().zip(b).for_each(|(a, b)| *a &= b);
        a
    }

    #[inline(always)]
    fn frexp(self) -> (Self, Self) {
        let (mut exponents, mut mantissas) = (self.0, self.0);
        for (exponent, mantissa) in exponents.iter_mut().zip(&mut mantissas) {
            let offset = mantissa.to_bits().wrapping_sub(ROOT);
            *exponent = (offset.cast_signed() >> MANTISSA_BITS) as f32;
            *mantissa = f32::from_bits((offset & MANTISSA).wrapping_add(ROOT));
        }
        (Self(exponents), Self(mantissas))
    }

    #[inline(always)]
    fn ldexp(self, shifted: Self) -> Self {
        self.zip(shifted, |a, b| {
            f32::from_bits(a.to_bits().wrapping_add(b.to_bits() << MANTISSA_BITS))
        })
    }

    #[inline(always)]
    fn low_bytes(self, mask: Self::Mask) -> [i8; LANES] {
        let mut bytes = [0; LANES];
        for (byte, (lane, mask)) in bytes.iter_mut().zip(self.0.into_iter().zip(mask)) {
            let [low, ..] = (lane.to_bits() & mask).to_le_bytes();
            *byte = low.cast_signed();
        }
        bytes
    }

    // Not inlined: the scalar code for sixteen numbers is so large that the compiler took half a
    // minute for its copies in all sizes of alphabets.
    #[inline(never)]
    fn ln(self) -> Self {
        logarithm(self)
    }

    #[inline(never)]
    fn exp(self) -> Self {
        exponential(self)
    }
}
