//! Random numbers in bulk, and the few mathematical functions that generators need.
//!
//! Logarithm and power are computed here, from additions, multiplications and one division, and not
//! by the system's mathematics library: a seed gives the same trace on every machine, and the
//! functions are inlined into the generators, which run tens of millions of times a second.

use fulgurite_units::{RandomStream, Seed};

const BUFFER_DRAWS: usize = 512;

/// A child stream, drawn 4 KiB at a time.
#[derive(Clone)]
pub(crate) struct Draws {
    stream: RandomStream,
    buffer: Box<[[u8; 8]; BUFFER_DRAWS]>,
    position: usize,
}

impl std::fmt::Debug for Draws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draws").field("at", &self.position).finish_non_exhaustive()
    }
}

impl Draws {
    pub(crate) fn new(seed: &Seed, label: &[u8]) -> Self {
        let buffer = Box::new([[0; 8]; BUFFER_DRAWS]);
        Self { stream: seed.child(label).stream(), buffer, position: BUFFER_DRAWS }
    }

    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        if self.position == BUFFER_DRAWS {
            self.refill();
        }
        let drawn = self.buffer[self.position];
        self.position += 1;
        u64::from_le_bytes(drawn)
    }

    #[inline(never)]
    fn refill(&mut self) {
        self.stream.fill(self.buffer.as_flattened_mut());
        self.position = 0;
    }

    /// Draws uniformly from [0, 1), with 53 bits.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws uniformly below `bound`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let wide = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// Draws from the normal distribution of mean 0 and deviation 1 (Marsaglia's polar method; one
    /// of the pair is dropped).
    #[inline]
    pub(crate) fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

/// Exponential draws of mean 1, a block at a time, so that the CPU can overlap their logarithms.
#[derive(Clone)]
pub(crate) struct Exponentials {
    draws: Draws,
    block: Box<[f64; BUFFER_DRAWS]>,
    position: usize,
}

impl std::fmt::Debug for Exponentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exponentials").field("at", &self.position).finish_non_exhaustive()
    }
}

impl Exponentials {
    pub(crate) fn new(seed: &Seed, label: &[u8]) -> Self {
        let block = Box::new([0.0; BUFFER_DRAWS]);
        Self { draws: Draws::new(seed, label), block, position: BUFFER_DRAWS }
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> f64 {
        if self.position == BUFFER_DRAWS {
            self.refill();
        }
        let drawn = self.block[self.position];
        self.position += 1;
        drawn
    }

    #[inline(never)]
    fn refill(&mut self) {
        for value in self.block.iter_mut() {
            let above_zero = ((self.draws.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
            *value = -ln(above_zero);
        }
        self.position = 0;
    }
}

/// Returns the natural logarithm of a positive, normal number; the error is below 1e-14.
#[inline]
pub(crate) fn ln(x: f64) -> f64 {
    /// The bits of the square root of one half: mantissas range from there to its double, so that
    /// the series below converges within nine terms.
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    debug_assert!(x >= f64::MIN_POSITIVE);
    let bits = x.to_bits();
    let exponent = bits.wrapping_sub(SQRT_HALF).cast_signed() >> 52;
    let mantissa = f64::from_bits(bits.wrapping_sub(exponent.cast_unsigned() << 52));
    // Reciprocals are constants: a division would cost more than the rest of the series.
    // ln m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 + ...), and |s| < 0.1716.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let z2 = z * z;
    let z4 = z2 * z2;
    let low = (1.0 + z * (1.0 / 3.0)) + z2 * (1.0 / 5.0 + z * (1.0 / 7.0));
    let high = (1.0 / 9.0 + z * (1.0 / 11.0)) + z2 * (1.0 / 13.0 + z * (1.0 / 15.0));
    let series = low + z4 * (high + z4 * (1.0 / 17.0));
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

/// Returns two to the power of `x`, clamped to +-1000; the relative error is below 1e-11.
#[inline]
pub(crate) fn exp2(x: f64) -> f64 {
    /// Adding this to a number leaves its nearest integer in the low bits of the sum.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let x = x.clamp(-1000.0, 1000.0);
    let shifted = x + ROUND;
    let whole = shifted.to_bits().wrapping_sub(ROUND.to_bits());
    let y = (x - (shifted - ROUND)) * std::f64::consts::LN_2;
    // The series of e^y to its ninth term, for |y| < 0.3466.
    let y2 = y * y;
    let y4 = y2 * y2;
    let low = (1.0 + y) + y2 * (1.0 / 2.0 + y * (1.0 / 6.0));
    let high = (1.0 / 24.0 + y * (1.0 / 120.0)) + y2 * (1.0 / 720.0 + y * (1.0 / 5040.0));
    let top = 1.0 / 40_320.0 + y * (1.0 / 362_880.0);
    let scale = f64::from_bits(whole.wrapping_add(1023) << 52);
    scale * (low + y4 * (high + y4 * top))
}

/// Returns `base` to the power of `exponent`, for a positive base.
#[inline]
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    exp2(ln(base) * std::f64::consts::LOG2_E * exponent)
}

/// Returns the integer part of a non-negative number.
#[inline]
pub(crate) const fn floor(x: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float casts saturate, and what is drawn here is never negative"
    )]
    let whole = x as u64;
    whole
}

/// Draws an index with given weights from 64 bits (Walker's alias method).
#[derive(Clone, Debug)]
pub(crate) struct AliasTable {
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// In units of 2^-32: below it the column itself, else the alias.
    threshold: u32,
    alias: u32,
}

impl AliasTable {
    /// Creates a table of at least one weight; all finite, none negative, not all zero.
    pub(crate) fn new(weights: &[f64]) -> Self {
        assert!(!weights.is_empty() && u32::try_from(weights.len()).is_ok());
        let sum: f64 = weights.iter().sum();
        assert!(sum > 0.0 && sum.is_finite(), "the sum of weights must be positive");
        let scale = weights.len() as f64 / sum;
        let mut heights: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let mut columns: Vec<_> =
            (0..).take(weights.len()).map(|alias| Column { threshold: u32::MAX, alias }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..heights.len()).partition(|&column| heights[column] < 1.0);
        while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
            small.pop();
            let threshold = floor(heights[low] * (1u64 << 32) as f64);
            columns[low].threshold = u32::try_from(threshold).unwrap_or(u32::MAX);
            columns[low].alias = u32::try_from(high).unwrap_or(u32::MAX);
            heights[high] -= 1.0 - heights[low];
            if heights[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        // Remaining columns are full except for rounding, and are their own alias.
        Self { columns }
    }

    #[inline]
    pub(crate) fn draw(&self, bits: u64) -> u32 {
        let index = ((bits >> 32) * self.columns.len() as u64) >> 32;
        let index = u32::try_from(index).unwrap_or(0);
        let column = self.columns[index as usize];
        // The choice between the two is random: a branch would be mispredicted every other time.
        let own = bits & 0xffff_ffff < u64::from(column.threshold);
        std::hint::select_unpredictable(own, index, column.alias)
    }
}
