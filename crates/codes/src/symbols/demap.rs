//! Soft demapping: computes soft bits from the probabilities of symbols.
//!
//! Sixteen voxels are processed together. The same body is compiled for the vectors of each
//! instruction-set level, and gives the same bits. Logarithms and exponentials are short series
//! with errors of 10^-6, while a soft bit is rounded to some tenths.

#![expect(unsafe_code, reason = "calls of functions with their features")]

use super::alphabet::{Alphabet, SYMBOL_BITS_MAX};
use super::vector::{LANES, ROUND, ScalarVector, Vector};
use crate::ldpc::decode::CHANNEL_MAX;
use crate::{CodeError, Isa};

/// How the probabilities of all symbols with the same value of a bit are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemapMethod {
    /// Their sum: exact.
    Exact,
    /// The largest of them. It costs less, and at the error rates of practical codes it does not
    /// measurably weaken the code.
    MaxLog,
}

/// Converts the readings of voxels to soft bits.
#[derive(Clone, Debug)]
pub struct Demapper {
    bits: usize,
    method: DemapMethod,
    scale: f32,
    /// Symbol of each label.
    symbols: [u8; 1 << SYMBOL_BITS_MAX],
    isa: Isa,
}

impl Demapper {
    /// Voxels per block of [`Self::demap_logarithm_blocks`].
    pub const BLOCK: usize = LANES;

    /// Creates a demapper for an alphabet. `scale` is the number of soft steps per natural unit of
    /// the log-likelihood ratio: larger scales have a finer resolution and clip earlier (see
    /// [`crate::ldpc::calibrate`]).
    ///
    /// # Errors
    /// [`CodeError::SoftScale`] when the scale is not a positive number.
    pub fn new(alphabet: &Alphabet, method: DemapMethod, scale: f32) -> Result<Self, CodeError> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(CodeError::SoftScale);
        }
        let mut symbols = [0; 1 << SYMBOL_BITS_MAX];
        for (label, symbol) in (0..=u8::MAX).zip(&mut symbols).take(alphabet.size()) {
            *symbol = alphabet.symbol(label);
        }
        Ok(Self { bits: alphabet.bits(), method, scale, symbols, isa: Isa::current() })
    }

    /// Sets the instruction set, or the scalar one if this processor lacks it.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Self {
        self.isa = if isa.is_supported() { isa } else { Isa::Scalar };
        self
    }

    /// Computes the soft bits of voxels, voxel by voxel, bit 0 of the label first. `probabilities`
    /// has those of all symbols of the first voxel, then those of the second, and so on. They need
    /// not add up to 1. A voxel is unreadable, and its bits are 0, if a probability is negative,
    /// NaN or above 10^30, or if none is above 10^-30.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the lengths do not match.
    pub fn probabilities(&self, probabilities: &[f32], soft: &mut [i8]) -> Result<(), CodeError> {
        self.check(probabilities, soft)?;
        match self.method {
            DemapMethod::Exact => self.run::<false, true, false>(probabilities, soft),
            DemapMethod::MaxLog => self.run::<false, false, false>(probabilities, soft),
        }
        Ok(())
    }

    /// Like `probabilities`, from logarithms of probabilities, up to a constant for each voxel: the
    /// last layer of a network before softmax. A voxel is unreadable if a logarithm is NaN or above
    /// 10^30, or if none is above -10^30.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the lengths do not match.
    pub fn logarithms(&self, logarithms: &[f32], soft: &mut [i8]) -> Result<(), CodeError> {
        self.check(logarithms, soft)?;
        match self.method {
            DemapMethod::Exact => self.run::<true, true, false>(logarithms, soft),
            DemapMethod::MaxLog => self.run::<true, false, false>(logarithms, soft),
        }
        Ok(())
    }

    /// Like `logarithms`, from blocks of [`Self::BLOCK`] voxels that are ordered by symbol within:
    /// the layout of vectorized decoders. The last block is complete, with arbitrary values for
    /// voxels beyond the end.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the lengths do not match.
    pub fn demap_logarithm_blocks(&self, blocks: &[f32], soft: &mut [i8]) -> Result<(), CodeError> {
        let voxels = soft.len() / self.bits;
        self.check_voxels(blocks, voxels.next_multiple_of(LANES), soft)?;
        match self.method {
            DemapMethod::Exact => self.run::<true, true, true>(blocks, soft),
            DemapMethod::MaxLog => self.run::<true, false, true>(blocks, soft),
        }
        Ok(())
    }

    fn check(&self, values: &[f32], soft: &[i8]) -> Result<(), CodeError> {
        self.check_voxels(values, soft.len() / self.bits, soft)
    }

    fn check_voxels(&self, values: &[f32], voxels: usize, soft: &[i8]) -> Result<(), CodeError> {
        let rest = soft.len() % self.bits;
        let need = voxels << self.bits;
        if rest != 0 || values.len() != need {
            return Err(CodeError::WordLength { have: values.len(), need });
        }
        Ok(())
    }

    fn run<const LN: bool, const EXACT: bool, const BY_SYMBOL: bool>(
        &self,
        values: &[f32],
        soft: &mut [i8],
    ) {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa` is supported by this processor.
            Isa::Avx512Gfni => unsafe {
                x86::run_avx512::<LN, EXACT, BY_SYMBOL>(self, values, soft);
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa` is supported by this processor.
            Isa::Avx2 | Isa::Avx2Gfni => unsafe {
                x86::run_avx2::<LN, EXACT, BY_SYMBOL>(self, values, soft);
            },
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => {
                self.run_bits::<ScalarVector, LN, EXACT, BY_SYMBOL>(values, soft);
            }
            Isa::Scalar | Isa::Neon => {
                self.run_bits::<ScalarVector, LN, EXACT, BY_SYMBOL>(values, soft)
            }
        }
    }

    #[inline(always)]
    fn run_bits<V: Vector, const LN: bool, const EXACT: bool, const BY_SYMBOL: bool>(
        &self,
        values: &[f32],
        soft: &mut [i8],
    ) {
        match self.bits {
            1 => self.run_any::<V, 1, 2, LN, EXACT, BY_SYMBOL>(values, soft),
            2 => self.run_any::<V, 2, 4, LN, EXACT, BY_SYMBOL>(values, soft),
            3 => self.run_any::<V, 3, 8, LN, EXACT, BY_SYMBOL>(values, soft),
            4 => self.run_any::<V, 4, 16, LN, EXACT, BY_SYMBOL>(values, soft),
            5 => self.run_any::<V, 5, 32, LN, EXACT, BY_SYMBOL>(values, soft),
            6 => self.run_any::<V, 6, 64, LN, EXACT, BY_SYMBOL>(values, soft),
            7 => self.run_any::<V, 7, 128, LN, EXACT, BY_SYMBOL>(values, soft),
            8 => self.run_any::<V, 8, 256, LN, EXACT, BY_SYMBOL>(values, soft),
            bits => unreachable!("no alphabet has {bits} bits"),
        }
    }

    #[inline(always)]
    fn run_any<
        V: Vector,
        const BITS: usize,
        const SIZE: usize,
        const LN: bool,
        const EXACT: bool,
        const BY_SYMBOL: bool,
    >(
        &self,
        values: &[f32],
        soft: &mut [i8],
    ) {
        let soft = soft.as_chunks_mut::<BITS>().0;
        if BY_SYMBOL {
            let blocks = values.as_chunks::<LANES>().0.as_chunks::<SIZE>().0;
            for (block, soft) in blocks.iter().zip(soft.chunks_mut(LANES)) {
                let mut whole = [[0; BITS]; LANES];
                self.block_by_symbol::<V, BITS, SIZE, LN, EXACT>(block, &mut whole);
                soft.copy_from_slice(&whole[..soft.len()]);
            }
            return;
        }
        let voxels = values.as_chunks::<SIZE>().0;
        let (blocks, rest) = voxels.as_chunks::<LANES>();
        let (soft_blocks, soft_rest) = soft.as_chunks_mut::<LANES>();
        let (mut last, mut soft_last) = ([[0.0; SIZE]; LANES], [[0; BITS]; LANES]);
        last[..rest.len()].copy_from_slice(rest);
        // One loop for whole blocks and the last one, so that the body is compiled only once.
        let softs = soft_blocks.iter_mut().chain([&mut soft_last]);
        for (block, soft) in blocks.iter().chain([&last]).zip(softs) {
            self.block::<V, BITS, SIZE, LN, EXACT>(block, soft);
        }
        soft_rest.copy_from_slice(&soft_last[..rest.len()]);
    }

    /// Computes the soft bits of sixteen voxels.
    #[inline(always)]
    fn block<V: Vector, const BITS: usize, const SIZE: usize, const LN: bool, const EXACT: bool>(
        &self,
        voxels: &[[f32; SIZE]; LANES],
        soft: &mut [[i8; BITS]; LANES],
    ) {
        let mut by_symbol = [[0.0; LANES]; SIZE];
        V::transpose(voxels.as_flattened(), &mut by_symbol);
        self.block_by_symbol::<V, BITS, SIZE, LN, EXACT>(&by_symbol, soft);
    }

    /// Like `block`, for values ordered by symbol.
    #[inline(always)]
    fn block_by_symbol<
        V: Vector,
        const BITS: usize,
        const SIZE: usize,
        const LN: bool,
        const EXACT: bool,
    >(
        &self,
        by_symbol: &[[f32; LANES]; SIZE],
        soft: &mut [[i8; BITS]; LANES],
    ) {
        let mut by_label = [V::splat(0.0); SIZE];
        for (by_label, symbol) in by_label.iter_mut().zip(self.symbols) {
            *by_label = V::load(&by_symbol[usize::from(symbol) % SIZE]);
        }
        let is_readable = normalize::<V, SIZE, LN, EXACT>(&mut by_label);
        let ratios = ratios::<V, BITS, SIZE, LN, EXACT>(&mut by_label);
        for (bit, ratios) in ratios.into_iter().enumerate() {
            let quantized = quantize(ratios, self.scale, is_readable);
            for (soft, quantized) in soft.iter_mut().zip(quantized) {
                soft[bit] = quantized;
            }
        }
    }
}

/// Minimum probability of a symbol relative to the likeliest: far beyond the clipping of soft bits,
/// and far from the limits of precision.
const PROBABILITY_MIN: f32 = 1e-30;
/// ln 10^-30.
const LN_PROBABILITY_MIN: f32 = -69.077_55;
/// Values above this are invalid.
const VALUE_MAX: f32 = 1e30;

/// Divides by the likeliest symbol's value, and clamps at the minimum. For the exact method,
/// converts logarithms to probabilities. Returns which voxels are readable.
#[inline(always)]
fn normalize<V: Vector, const SIZE: usize, const LN: bool, const EXACT: bool>(
    by_label: &mut [V; SIZE],
) -> V::Mask {
    let lower = V::splat(if LN { f32::NEG_INFINITY } else { 0.0 });
    let upper = V::splat(VALUE_MAX);
    let mut largest = lower;
    let mut is_readable = V::splat(0.0).ge(V::splat(0.0));
    for &values in by_label.iter() {
        largest = values.max(largest);
        is_readable = V::and(is_readable, V::and(upper.ge(values), values.ge(lower)));
    }
    let threshold = V::splat(if LN { -VALUE_MAX } else { PROBABILITY_MIN });
    is_readable = V::and(is_readable, largest.gt(threshold));
    let inverse = V::splat(1.0).div(largest);
    for values in by_label.iter_mut() {
        *values = if LN {
            values.sub(largest).max(V::splat(LN_PROBABILITY_MIN))
        } else {
            values.mul(inverse).max(V::splat(PROBABILITY_MIN))
        };
        if LN && EXACT {
            *values = values.exp();
        }
    }
    is_readable
}

/// Computes the log-likelihood ratios of all bits.
#[inline(always)]
fn ratios<V: Vector, const BITS: usize, const SIZE: usize, const LN: bool, const EXACT: bool>(
    by_label: &mut [V; SIZE],
) -> [V; BITS] {
    let mut ratios = [V::splat(0.0); BITS];
    // The two halves of the labels are those without and with the highest bit. Combined, they are
    // the labels of one bit less.
    for (bit, ratios) in ratios.iter_mut().enumerate().rev() {
        let (without, with) = by_label[..2 << bit].split_at_mut(1 << bit);
        let (mut zeros, mut ones) = (without[0], with[0]);
        for (&without, &with) in without[1..].iter().zip(&with[1..]) {
            zeros = combine::<V, EXACT>(zeros, without);
            ones = combine::<V, EXACT>(ones, with);
        }
        *ratios = if LN && !EXACT { zeros.sub(ones) } else { zeros.div(ones).ln() };
        for (without, &with) in without.iter_mut().zip(&*with) {
            *without = combine::<V, EXACT>(*without, with);
        }
    }
    ratios
}

/// Combines two symbols that agree in a bit.
#[inline(always)]
fn combine<V: Vector, const EXACT: bool>(a: V, b: V) -> V {
    if EXACT { a.add(b) } else { a.max(b) }
}

/// Rounds, and clips to the range of soft bits; 0 for unreadable voxels.
#[inline(always)]
fn quantize<V: Vector>(ratios: V, scale: f32, is_readable: V::Mask) -> [i8; LANES] {
    const LIMIT: f32 = CHANNEL_MAX as f32;
    let scaled = ratios.mul(V::splat(scale));
    let cut = V::splat(-LIMIT).max(V::splat(LIMIT).min(scaled));
    cut.add(V::splat(ROUND)).low_bytes(is_readable)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The body compiled for wider vectors.

    use super::super::vector::{Avx2Vector, Avx512Vector};
    use super::Demapper;

    #[target_feature(enable = "avx2")]
    pub(super) fn run_avx2<const LN: bool, const EXACT: bool, const BY_SYMBOL: bool>(
        demapper: &Demapper,
        values: &[f32],
        soft: &mut [i8],
    ) {
        demapper.run_bits::<Avx2Vector, LN, EXACT, BY_SYMBOL>(values, soft);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn run_avx512<const LN: bool, const EXACT: bool, const BY_SYMBOL: bool>(
        demapper: &Demapper,
        values: &[f32],
        soft: &mut [i8],
    ) {
        demapper.run_bits::<Avx512Vector, LN, EXACT, BY_SYMBOL>(values, soft);
    }
}
