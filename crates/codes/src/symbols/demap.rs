//! From the probabilities of symbols to soft bits.
//!
//! Sixteen voxels go side by side, in arrays that the compiler makes vectors of; the same body is
//! compiled for each level of instructions. Logarithms and exponentials are short series, good to
//! 10^-6, where a soft bit is rounded to some tenths.

#![expect(unsafe_code, reason = "calls of functions with their features")]

use super::alphabet::{Alphabet, SYMBOL_BITS_MAX};
use crate::ldpc::decode::CHANNEL_MAX;
use crate::{CodeError, Isa};

/// How the probabilities of the symbols that agree in a bit are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Their sum: exact.
    Exact,
    /// The largest of them. At the error rates that a code works at, it does not make the code
    /// measurably worse, and it costs less.
    MaxLog,
}

/// Turns the readings of voxels into soft bits.
#[derive(Clone, Debug)]
pub struct Demapper {
    bits: usize,
    method: Method,
    scale: f32,
    /// The symbol of each label.
    symbols: [u8; 1 << SYMBOL_BITS_MAX],
    isa: Isa,
}

impl Demapper {
    /// A demapper of an alphabet. `scale` is soft steps for a natural unit of log-likelihood: the
    /// larger, the finer, and the sooner it is cut (see [`crate::ldpc::calibrate`]).
    ///
    /// # Errors
    /// [`CodeError::SoftScale`] when the scale is not a positive number.
    pub fn new(alphabet: &Alphabet, method: Method, scale: f32) -> Result<Self, CodeError> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(CodeError::SoftScale);
        }
        let mut symbols = [0; 1 << SYMBOL_BITS_MAX];
        for (label, symbol) in (0..=u8::MAX).zip(&mut symbols).take(alphabet.size()) {
            *symbol = alphabet.symbol(label);
        }
        Ok(Self { bits: alphabet.bits(), method, scale, symbols, isa: Isa::current() })
    }

    /// The same with given instructions, or with plain ones if this processor lacks them.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = if isa.is_supported() { isa } else { Isa::Scalar };
        self
    }

    /// The soft bits of voxels: bit 0 of the label first, voxel after voxel. `probabilities` has
    /// those of all symbols of the first voxel, then those of the second, and so on. They need not
    /// add up to 1. A voxel with a probability that is negative, no number or beyond 10^30, or with
    /// none above 10^-30, is unreadable: its bits are 0.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the lengths do not fit each other.
    pub fn probabilities(&self, probabilities: &[f32], soft: &mut [i8]) -> Result<(), CodeError> {
        self.check(probabilities, soft)?;
        match self.method {
            Method::Exact => self.run::<false, true>(probabilities, soft),
            Method::MaxLog => self.run::<false, false>(probabilities, soft),
        }
        Ok(())
    }

    /// The same from logarithms of probabilities, up to a constant for each voxel: what a network
    /// computes last. A voxel with one that is no number or beyond 10^30, or with none above
    /// -10^30, is unreadable.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the lengths do not fit each other.
    pub fn logarithms(&self, logarithms: &[f32], soft: &mut [i8]) -> Result<(), CodeError> {
        self.check(logarithms, soft)?;
        match self.method {
            Method::Exact => self.run::<true, true>(logarithms, soft),
            Method::MaxLog => self.run::<true, false>(logarithms, soft),
        }
        Ok(())
    }

    fn check(&self, values: &[f32], soft: &[i8]) -> Result<(), CodeError> {
        let (voxels, rest) = (soft.len() / self.bits, soft.len() % self.bits);
        let need = voxels << self.bits;
        if rest != 0 || values.len() != need {
            return Err(CodeError::WordLength { have: values.len(), need });
        }
        Ok(())
    }

    fn run<const LN: bool, const EXACT: bool>(&self, values: &[f32], soft: &mut [i8]) {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa` is a level of this processor.
            Isa::Avx512Gfni => unsafe { x86::run_avx512::<LN, EXACT>(self, values, soft) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa` is a level of this processor.
            Isa::Avx2 | Isa::Avx2Gfni => unsafe { x86::run_avx2::<LN, EXACT>(self, values, soft) },
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => self.run_bits::<LN, EXACT>(values, soft),
            Isa::Scalar | Isa::Neon => self.run_bits::<LN, EXACT>(values, soft),
        }
    }

    #[inline(always)]
    fn run_bits<const LN: bool, const EXACT: bool>(&self, values: &[f32], soft: &mut [i8]) {
        match self.bits {
            1 => self.run_any::<1, 2, LN, EXACT>(values, soft),
            2 => self.run_any::<2, 4, LN, EXACT>(values, soft),
            3 => self.run_any::<3, 8, LN, EXACT>(values, soft),
            4 => self.run_any::<4, 16, LN, EXACT>(values, soft),
            5 => self.run_any::<5, 32, LN, EXACT>(values, soft),
            6 => self.run_any::<6, 64, LN, EXACT>(values, soft),
            7 => self.run_any::<7, 128, LN, EXACT>(values, soft),
            8 => self.run_any::<8, 256, LN, EXACT>(values, soft),
            bits => unreachable!("no alphabet has {bits} bits"),
        }
    }

    #[inline(always)]
    fn run_any<const BITS: usize, const SIZE: usize, const LN: bool, const EXACT: bool>(
        &self,
        values: &[f32],
        soft: &mut [i8],
    ) {
        let (voxels, soft) = (values.as_chunks::<SIZE>().0, soft.as_chunks_mut::<BITS>().0);
        let (blocks, rest) = voxels.as_chunks::<LANES>();
        let (soft_blocks, soft_rest) = soft.as_chunks_mut::<LANES>();
        for (block, soft) in blocks.iter().zip(soft_blocks) {
            *soft = self.block::<BITS, SIZE, LN, EXACT>(block);
        }
        let mut block = [[0.0; SIZE]; LANES];
        block[..rest.len()].copy_from_slice(rest);
        let soft = self.block::<BITS, SIZE, LN, EXACT>(&block);
        soft_rest.copy_from_slice(&soft[..rest.len()]);
    }

    /// The soft bits of sixteen voxels.
    #[inline(always)]
    fn block<const BITS: usize, const SIZE: usize, const LN: bool, const EXACT: bool>(
        &self,
        voxels: &[[f32; SIZE]; LANES],
    ) -> [[i8; BITS]; LANES] {
        let mut of = [[0.0; LANES]; SIZE];
        for (of, symbol) in of.iter_mut().zip(self.symbols) {
            for (lane, voxel) in of.iter_mut().zip(voxels) {
                *lane = voxel[usize::from(symbol) % SIZE];
            }
        }
        let is_readable = normalize::<SIZE, LN, EXACT>(&mut of);
        let ratios = ratios::<BITS, SIZE, LN, EXACT>(&mut of);
        let mut soft = [[0; BITS]; LANES];
        for (bit, ratios) in ratios.iter().enumerate() {
            let quantized = quantize(ratios, self.scale, &is_readable);
            for (soft, quantized) in soft.iter_mut().zip(quantized) {
                soft[bit] = quantized;
            }
        }
        soft
    }
}

/// Voxels side by side.
const LANES: usize = 16;
type Lanes = [f32; LANES];
/// All ones or none, for each lane.
type Mask = [u32; LANES];

/// As unlikely as a symbol gets, beside the likeliest: far beyond where soft bits are cut, and far
/// from where the arithmetic loses digits.
const LEAST: f32 = 1e-30;
/// ln 10^-30.
const LEAST_LOGARITHM: f32 = -69.077_55;
/// Beyond, a value is an accident.
const MOST: f32 = 1e30;

/// The larger. Of a number and no number either; what comes of it is not used.
#[inline(always)]
const fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline(always)]
const fn mask(is_set: bool) -> u32 {
    0u32.wrapping_sub(is_set as u32)
}

/// Divides by the likeliest symbol, and cuts at the least. Exactly joined logarithms become
/// probabilities. Says which voxels are readable.
#[inline(always)]
fn normalize<const SIZE: usize, const LN: bool, const EXACT: bool>(of: &mut [Lanes; SIZE]) -> Mask {
    let mut largest = [if LN { f32::NEG_INFINITY } else { 0.0 }; LANES];
    let mut is_readable = [u32::MAX; LANES];
    for values in of.iter() {
        for lane in 0..LANES {
            largest[lane] = larger(values[lane], largest[lane]);
            let least = if LN { f32::NEG_INFINITY } else { 0.0 };
            is_readable[lane] &= mask((values[lane] <= MOST) & (values[lane] >= least));
        }
    }
    for lane in 0..LANES {
        is_readable[lane] &= mask(largest[lane] > if LN { -MOST } else { LEAST });
    }
    let inverse = largest.map(|largest| 1.0 / largest);
    for values in of.iter_mut() {
        for lane in 0..LANES {
            values[lane] = if LN {
                larger(values[lane] - largest[lane], LEAST_LOGARITHM)
            } else {
                larger(values[lane] * inverse[lane], LEAST)
            };
        }
        if LN && EXACT {
            *values = values.map(exp);
        }
    }
    is_readable
}

/// The log-likelihood ratios of all bits.
#[inline(always)]
fn ratios<const BITS: usize, const SIZE: usize, const LN: bool, const EXACT: bool>(
    of: &mut [Lanes; SIZE],
) -> [Lanes; BITS] {
    let join = |a: f32, b: f32| if EXACT { a + b } else { larger(a, b) };
    let mut ratios = [[0.0; LANES]; BITS];
    // The two halves of the labels are those without and with the highest bit; joined, they are the
    // labels of one bit less.
    for (bit, ratios) in ratios.iter_mut().enumerate().rev() {
        let (without, with) = of[..2 << bit].split_at_mut(1 << bit);
        let mut sides = [without[0], with[0]];
        for (side, half) in sides.iter_mut().zip([&*without, &*with]) {
            for values in &half[1..] {
                for lane in 0..LANES {
                    side[lane] = join(side[lane], values[lane]);
                }
            }
        }
        for lane in 0..LANES {
            let (zeros, ones) = (sides[0][lane], sides[1][lane]);
            ratios[lane] = if LN && !EXACT { zeros - ones } else { ln(zeros / ones) };
        }
        for (without, with) in without.iter_mut().zip(with) {
            for lane in 0..LANES {
                without[lane] = join(without[lane], with[lane]);
            }
        }
    }
    ratios
}

/// Rounds, and cuts to the range of soft bits; 0 for what is unreadable.
#[inline(always)]
fn quantize(ratios: &Lanes, scale: f32, is_readable: &Mask) -> [i8; LANES] {
    /// 1.5 * 2^23: beside it the last bit of a mantissa is worth 1, so adding it rounds.
    const ROUND: f32 = 12_582_912.0;
    const LIMIT: f32 = CHANNEL_MAX as f32;
    let mut quantized = [0; LANES];
    for lane in 0..LANES {
        let scaled = ratios[lane] * scale;
        let cut = if scaled > LIMIT { LIMIT } else { scaled };
        let cut = if cut < -LIMIT { -LIMIT } else { cut };
        let [low, ..] = ((cut + ROUND).to_bits() & is_readable[lane]).to_le_bytes();
        quantized[lane] = low.cast_signed();
    }
    quantized
}

/// ln of a positive number: `x = m 2^e` with m within sqrt(2) of 1, and
/// `ln m = 2 (s + s^3/3 + s^5/5 + s^7/7 + ..)` for `s = (m - 1) / (m + 1)`, |s| < 0.172; what is
/// left out is below 3e-8.
#[inline(always)]
fn ln(x: f32) -> f32 {
    // The bits of 1 / sqrt(2): taking them off carries into the exponent above sqrt(2).
    const ROOT: u32 = 0x3f35_04f3;
    let offset = x.to_bits().wrapping_sub(ROOT);
    let exponent = (offset.cast_signed() >> 23) as f32;
    let m = f32::from_bits((offset & 0x007f_ffff).wrapping_add(ROOT));
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let series = 2.0 + square * (2.0 / 3.0 + square * (2.0 / 5.0 + square * (2.0 / 7.0)));
    exponent * std::f32::consts::LN_2 + s * series
}

/// e^x for x from -70 to 0: `2^n 2^f` with |f| <= 1/2 and the series of `2^f` to f^6; what is left
/// out is below 2e-7 of it.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let y = x * std::f32::consts::LOG2_E;
    let shifted = y + ROUND;
    let f = (y - (shifted - ROUND)) * std::f32::consts::LN_2;
    let series = 1.0
        + f * (1.0
            + f * (1.0 / 2.0
                + f * (1.0 / 6.0 + f * (1.0 / 24.0 + f * (1.0 / 120.0 + f * (1.0 / 720.0))))));
    // n is the low bits of the mantissa of `shifted`, and moves into the exponent.
    f32::from_bits(series.to_bits().wrapping_add(shifted.to_bits() << 23))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The body compiled for wider vectors.

    use super::Demapper;

    #[target_feature(enable = "avx2")]
    pub(super) fn run_avx2<const LN: bool, const EXACT: bool>(
        demapper: &Demapper,
        values: &[f32],
        soft: &mut [i8],
    ) {
        demapper.run_bits::<LN, EXACT>(values, soft);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn run_avx512<const LN: bool, const EXACT: bool>(
        demapper: &Demapper,
        values: &[f32],
        soft: &mut [i8],
    ) {
        demapper.run_bits::<LN, EXACT>(values, soft);
    }
}
