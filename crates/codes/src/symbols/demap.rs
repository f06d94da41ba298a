//! From the probabilities of symbols to soft bits.

use super::alphabet::{Alphabet, SYMBOL_BITS_MAX};
use crate::CodeError;
use crate::ldpc::decode::CHANNEL_MAX;

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
        Ok(Self { bits: alphabet.bits(), method, scale, symbols })
    }

    /// The soft bits of voxels: bit 0 of the label first, voxel after voxel. `probabilities` has
    /// those of all symbols of the first voxel, then those of the second, and so on. They need not
    /// add up to 1. A voxel with a probability that is negative or no number, or with none above
    /// zero, is unreadable: its bits are 0.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the lengths do not fit each other.
    pub fn from_probabilities(
        &self,
        probabilities: &[f32],
        soft: &mut [i8],
    ) -> Result<(), CodeError> {
        self.check(probabilities, soft)?;
        let pairs =
            probabilities.chunks_exact(1 << self.bits).zip(soft.chunks_exact_mut(self.bits));
        for (probabilities, soft) in pairs {
            let largest = probabilities.iter().copied().fold(0.0, f32::max);
            let readable = probabilities.iter().all(|p| p.is_finite() && *p >= 0.0);
            if !readable || largest <= 0.0 {
                soft.fill(0);
                continue;
            }
            let of = |label: usize| {
                (probabilities[usize::from(self.symbols[label])] / largest).max(LEAST)
            };
            let ratio = |zeros: f32, ones: f32| (zeros / ones).ln();
            match self.method {
                Method::Exact => self.put(soft, of, |a, b| a + b, ratio),
                Method::MaxLog => self.put(soft, of, f32::max, ratio),
            }
        }
        Ok(())
    }

    /// The same from logarithms of probabilities, up to a constant for each voxel: what a network
    /// computes last. A voxel with one that is no number, or positive infinity, is unreadable.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the lengths do not fit each other.
    pub fn from_logarithms(&self, logarithms: &[f32], soft: &mut [i8]) -> Result<(), CodeError> {
        self.check(logarithms, soft)?;
        let pairs = logarithms.chunks_exact(1 << self.bits).zip(soft.chunks_exact_mut(self.bits));
        for (logarithms, soft) in pairs {
            let largest = logarithms.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            if logarithms.iter().any(|l| l.is_nan()) || !largest.is_finite() {
                soft.fill(0);
                continue;
            }
            let of = |label: usize| {
                (logarithms[usize::from(self.symbols[label])] - largest).max(LEAST_LOGARITHM)
            };
            match self.method {
                Method::Exact => {
                    self.put(soft, |label| of(label).exp(), |a, b| a + b, |z, o| (z / o).ln());
                }
                Method::MaxLog => self.put(soft, of, f32::max, |zeros, ones| zeros - ones),
            }
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

    /// Puts the soft bits of one voxel, from what is said of each label.
    #[inline]
    fn put(
        &self,
        soft: &mut [i8],
        of: impl Fn(usize) -> f32,
        join: impl Fn(f32, f32) -> f32,
        ratio: impl Fn(f32, f32) -> f32,
    ) {
        let mut values = [0.0; 1 << SYMBOL_BITS_MAX];
        let values = &mut values[..1 << self.bits];
        for (label, value) in values.iter_mut().enumerate() {
            *value = of(label);
        }
        // The two halves of the labels are those without and with the highest bit; joined, they
        // are the labels of one bit less.
        let mut live = values;
        for (bit, soft) in soft.iter_mut().enumerate().rev() {
            let (without, with) = live.split_at_mut(1 << bit);
            let zeros = without.iter().copied().reduce(&join).unwrap_or_default();
            let ones = with.iter().copied().reduce(&join).unwrap_or_default();
            *soft = quantize(ratio(zeros, ones) * self.scale);
            for (without, with) in without.iter_mut().zip(with) {
                *without = join(*without, *with);
            }
            live = without;
        }
    }
}

/// As unlikely as a symbol gets, beside the likeliest: far beyond where soft bits are cut, and far
/// from where the arithmetic loses digits.
const LEAST: f32 = 1e-30;
/// ln 10^-30.
const LEAST_LOGARITHM: f32 = -69.077_55;

/// Rounds, and cuts to the range of soft bits.
fn quantize(scaled: f32) -> i8 {
    let limit = f32::from(CHANNEL_MAX);
    #[expect(clippy::cast_possible_truncation, reason = "cut to the range of the type before")]
    let quantized = scaled.round().clamp(-limit, limit) as i8;
    quantized
}
