//! From the probabilities of symbols to soft bits.
//!
//! Sixteen voxels go side by side; the same body is compiled for the vectors of each level of
//! instructions, and gives the same bits. Logarithms and exponentials are short series, good to
//! 10^-6, where a soft bit is rounded to some tenths.

#![expect(unsafe_code, reason = "calls of functions with their features")]

use super::alphabet::{Alphabet, SYMBOL_BITS_MAX};
use super::vector::{LANES, Plain, ROUND, Vector};
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
    /// Voxels of a block of [`Self::logarithms_in_blocks`].
    pub const BLOCK: usize = LANES;

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
            Method::Exact => self.run::<false, true, false>(probabilities, soft),
            Method::MaxLog => self.run::<false, false, false>(probabilities, soft),
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
            Method::Exact => self.run::<true, true, false>(logarithms, soft),
            Method::MaxLog => self.run::<true, false, false>(logarithms, soft),
        }
        Ok(())
    }

    /// The same from logarithms in blocks of [`Self::BLOCK`] voxels, in each of which those of the
    /// first symbol come first: what a decoder has that works in vectors. The last block is whole,
    /// whatever stands for voxels that are no more.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the lengths do not fit each other.
    pub fn logarithms_in_blocks(&self, blocks: &[f32], soft: &mut [i8]) -> Result<(), CodeError> {
        let voxels = soft.len() / self.bits;
        self.check_voxels(blocks, voxels.next_multiple_of(LANES), soft)?;
        match self.method {
            Method::Exact => self.run::<true, true, true>(blocks, soft),
            Method::MaxLog => self.run::<true, false, true>(blocks, soft),
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

    fn run<const LN: bool, const EXACT: bool, const SORTED: bool>(
        &self,
        values: &[f32],
        soft: &mut [i8],
    ) {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa` is a level of this processor.
            Isa::Avx512Gfni => unsafe {
                x86::run_avx512::<LN, EXACT, SORTED>(self, values, soft);
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `isa` is a level of this processor.
            Isa::Avx2 | Isa::Avx2Gfni => unsafe {
                x86::run_avx2::<LN, EXACT, SORTED>(self, values, soft);
            },
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => {
                self.run_bits::<Plain, LN, EXACT, SORTED>(values, soft);
            }
            Isa::Scalar | Isa::Neon => self.run_bits::<Plain, LN, EXACT, SORTED>(values, soft),
        }
    }

    #[inline(always)]
    fn run_bits<V: Vector, const LN: bool, const EXACT: bool, const SORTED: bool>(
        &self,
        values: &[f32],
        soft: &mut [i8],
    ) {
        match self.bits {
            1 => self.run_any::<V, 1, 2, LN, EXACT, SORTED>(values, soft),
            2 => self.run_any::<V, 2, 4, LN, EXACT, SORTED>(values, soft),
            3 => self.run_any::<V, 3, 8, LN, EXACT, SORTED>(values, soft),
            4 => self.run_any::<V, 4, 16, LN, EXACT, SORTED>(values, soft),
            5 => self.run_any::<V, 5, 32, LN, EXACT, SORTED>(values, soft),
            6 => self.run_any::<V, 6, 64, LN, EXACT, SORTED>(values, soft),
            7 => self.run_any::<V, 7, 128, LN, EXACT, SORTED>(values, soft),
            8 => self.run_any::<V, 8, 256, LN, EXACT, SORTED>(values, soft),
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
        const SORTED: bool,
    >(
        &self,
        values: &[f32],
        soft: &mut [i8],
    ) {
        let soft = soft.as_chunks_mut::<BITS>().0;
        if SORTED {
            let blocks = values.as_chunks::<LANES>().0.as_chunks::<SIZE>().0;
            for (block, soft) in blocks.iter().zip(soft.chunks_mut(LANES)) {
                let mut whole = [[0; BITS]; LANES];
                self.sorted_block::<V, BITS, SIZE, LN, EXACT>(block, &mut whole);
                soft.copy_from_slice(&whole[..soft.len()]);
            }
            return;
        }
        let voxels = values.as_chunks::<SIZE>().0;
        let (blocks, rest) = voxels.as_chunks::<LANES>();
        let (soft_blocks, soft_rest) = soft.as_chunks_mut::<LANES>();
        let (mut last, mut soft_last) = ([[0.0; SIZE]; LANES], [[0; BITS]; LANES]);
        last[..rest.len()].copy_from_slice(rest);
        // One loop for whole blocks and the last: the body is compiled into it.
        let softs = soft_blocks.iter_mut().chain([&mut soft_last]);
        for (block, soft) in blocks.iter().chain([&last]).zip(softs) {
            self.block::<V, BITS, SIZE, LN, EXACT>(block, soft);
        }
        soft_rest.copy_from_slice(&soft_last[..rest.len()]);
    }

    /// The soft bits of sixteen voxels.
    #[inline(always)]
    fn block<V: Vector, const BITS: usize, const SIZE: usize, const LN: bool, const EXACT: bool>(
        &self,
        voxels: &[[f32; SIZE]; LANES],
        soft: &mut [[i8; BITS]; LANES],
    ) {
        let mut by_symbol = [[0.0; LANES]; SIZE];
        V::transpose(voxels.as_flattened(), &mut by_symbol);
        self.sorted_block::<V, BITS, SIZE, LN, EXACT>(&by_symbol, soft);
    }

    /// The same, symbol by symbol.
    #[inline(always)]
    fn sorted_block<
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
        let mut of = [V::splat(0.0); SIZE];
        for (of, symbol) in of.iter_mut().zip(self.symbols) {
            *of = V::load(&by_symbol[usize::from(symbol) % SIZE]);
        }
        let is_readable = normalize::<V, SIZE, LN, EXACT>(&mut of);
        let ratios = ratios::<V, BITS, SIZE, LN, EXACT>(&mut of);
        for (bit, ratios) in ratios.into_iter().enumerate() {
            let quantized = quantize(ratios, self.scale, is_readable);
            for (soft, quantized) in soft.iter_mut().zip(quantized) {
                soft[bit] = quantized;
            }
        }
    }
}

/// As unlikely as a symbol gets, beside the likeliest: far beyond where soft bits are cut, and far
/// from where the arithmetic loses digits.
const LEAST: f32 = 1e-30;
/// ln 10^-30.
const LEAST_LOGARITHM: f32 = -69.077_55;
/// Beyond, a value is an accident.
const MOST: f32 = 1e30;

/// Divides by the likeliest symbol, and cuts at the least. Exactly joined logarithms become
/// probabilities. Says which voxels are readable.
#[inline(always)]
fn normalize<V: Vector, const SIZE: usize, const LN: bool, const EXACT: bool>(
    of: &mut [V; SIZE],
) -> V::Mask {
    let least = V::splat(if LN { f32::NEG_INFINITY } else { 0.0 });
    let most = V::splat(MOST);
    let mut largest = least;
    let mut is_readable = V::splat(0.0).at_least(V::splat(0.0));
    for &values in of.iter() {
        largest = values.larger(largest);
        is_readable = V::both(is_readable, V::both(most.at_least(values), values.at_least(least)));
    }
    let threshold = V::splat(if LN { -MOST } else { LEAST });
    is_readable = V::both(is_readable, largest.above(threshold));
    let inverse = V::splat(1.0).divided(largest);
    for values in of.iter_mut() {
        *values = if LN {
            values.less(largest).larger(V::splat(LEAST_LOGARITHM))
        } else {
            values.times(inverse).larger(V::splat(LEAST))
        };
        if LN && EXACT {
            *values = values.exp();
        }
    }
    is_readable
}

/// The log-likelihood ratios of all bits.
#[inline(always)]
fn ratios<V: Vector, const BITS: usize, const SIZE: usize, const LN: bool, const EXACT: bool>(
    of: &mut [V; SIZE],
) -> [V; BITS] {
    let mut ratios = [V::splat(0.0); BITS];
    // The two halves of the labels are those without and with the highest bit; joined, they are the
    // labels of one bit less.
    for (bit, ratios) in ratios.iter_mut().enumerate().rev() {
        let (without, with) = of[..2 << bit].split_at_mut(1 << bit);
        let (mut zeros, mut ones) = (without[0], with[0]);
        for (&without, &with) in without[1..].iter().zip(&with[1..]) {
            zeros = join::<V, EXACT>(zeros, without);
            ones = join::<V, EXACT>(ones, with);
        }
        *ratios = if LN && !EXACT { zeros.less(ones) } else { zeros.divided(ones).ln() };
        for (without, &with) in without.iter_mut().zip(&*with) {
            *without = join::<V, EXACT>(*without, with);
        }
    }
    ratios
}

/// What symbols that agree in a bit say of it together.
#[inline(always)]
fn join<V: Vector, const EXACT: bool>(a: V, b: V) -> V {
    if EXACT { a.plus(b) } else { a.larger(b) }
}

/// Rounds, and cuts to the range of soft bits; 0 for what is unreadable.
#[inline(always)]
fn quantize<V: Vector>(ratios: V, scale: f32, is_readable: V::Mask) -> [i8; LANES] {
    const LIMIT: f32 = CHANNEL_MAX as f32;
    let scaled = ratios.times(V::splat(scale));
    let cut = V::splat(-LIMIT).larger(V::splat(LIMIT).smaller(scaled));
    cut.plus(V::splat(ROUND)).low_bytes(is_readable)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The body compiled for wider vectors.

    use super::super::vector::{Halves, Whole};
    use super::Demapper;

    #[target_feature(enable = "avx2")]
    pub(super) fn run_avx2<const LN: bool, const EXACT: bool, const SORTED: bool>(
        demapper: &Demapper,
        values: &[f32],
        soft: &mut [i8],
    ) {
        demapper.run_bits::<Halves, LN, EXACT, SORTED>(values, soft);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn run_avx512<const LN: bool, const EXACT: bool, const SORTED: bool>(
        demapper: &Demapper,
        values: &[f32],
        soft: &mut [i8],
    ) {
        demapper.run_bits::<Whole, LN, EXACT, SORTED>(values, soft);
    }
}
