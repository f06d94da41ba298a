//! Probabilities of the symbols of a sector's voxels.
//!
//! Sixteen voxels are normalized side by side, with the series of [`fulgurite_platter::numeric`]
//! for exponential and logarithm. The platform's functions, one number at a time, took a sixth of a
//! learned decoder's time. They were slowest where a decoder is sure; denormal numbers are a likely
//! cause, but this is not proven.

use fulgurite_platter::numeric::{LANES, dispatch_simd, exp_negative, ln};

/// Natural logarithms of the probabilities of each symbol, voxel by voxel. They are normalized: the
/// exponentials of a voxel add to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolProbabilities {
    symbols: usize,
    logarithms: Vec<f32>,
}

impl SymbolProbabilities {
    /// Normalizes unnormalized log-probabilities, `symbols` numbers for each voxel.
    ///
    /// # Panics
    /// When the numbers are not a whole count of voxels.
    #[must_use]
    pub fn normalized(symbols: usize, mut logarithms: Vec<f32>) -> Self {
        assert_eq!(logarithms.len() % symbols, 0, "a whole count of voxels");
        match symbols {
            4 => normalize_all::<4>(&mut logarithms),
            8 => normalize_all::<8>(&mut logarithms),
            _ => logarithms.chunks_mut(symbols).for_each(normalize_one),
        }
        Self { symbols, logarithms }
    }

    /// Wraps logarithms that are already normalized.
    pub(crate) fn from_normalized(symbols: usize, logarithms: Vec<f32>) -> Self {
        assert_eq!(logarithms.len() % symbols, 0, "a whole count of voxels");
        Self { symbols, logarithms }
    }

    /// Combines two independent observations, by adding logarithms.
    ///
    /// # Panics
    /// When their numbers of voxels or symbols differ.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        assert_eq!((self.symbols, self.logarithms.len()), (other.symbols, other.logarithms.len()));
        let sums = self.logarithms.iter().zip(&other.logarithms).map(|(a, b)| a + b).collect();
        Self::normalized(self.symbols, sums)
    }

    /// Size of the alphabet.
    #[must_use]
    pub const fn symbols(&self) -> usize {
        self.symbols
    }

    /// Number of voxels.
    #[must_use]
    pub fn voxels(&self) -> usize {
        self.logarithms.len() / self.symbols
    }

    /// All logarithms, voxel by voxel.
    #[must_use]
    pub fn logarithms(&self) -> &[f32] {
        &self.logarithms
    }

    /// The logarithms of one voxel.
    #[must_use]
    pub fn voxel(&self, index: usize) -> &[f32] {
        &self.logarithms[index * self.symbols..][..self.symbols]
    }

    /// Returns the likeliest symbol of a voxel.
    ///
    /// # Panics
    /// When there are more than 256 symbols.
    #[must_use]
    pub fn likeliest(&self, index: usize) -> u8 {
        let voxel = self.voxel(index).iter().enumerate();
        let best = voxel.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(symbol, _)| symbol);
        u8::try_from(best).expect("at most 256 symbols")
    }
}

/// Logarithms of a block of voxels, symbol by symbol.
pub(crate) type Block<const SYMBOLS: usize> = [[f32; LANES]; SYMBOLS];

/// Normalizes each voxel of a block: the exponentials add to 1.
#[inline(always)]
fn normalize<const SYMBOLS: usize>(block: &mut Block<SYMBOLS>) {
    let mut max = [f32::NEG_INFINITY; LANES];
    for values in &*block {
        for lane in 0..LANES {
            max[lane] = max[lane].max(values[lane]);
        }
    }
    let mut sums = [0.0f32; LANES];
    for values in &*block {
        for lane in 0..LANES {
            sums[lane] += exp_negative(max[lane] - values[lane]);
        }
    }
    for lane in 0..LANES {
        max[lane] += ln(sums[lane]);
    }
    for values in block {
        for lane in 0..LANES {
            values[lane] -= max[lane];
        }
    }
}

/// Normalizes a block and stores it voxel by voxel, as many voxels as `out` has.
#[inline(always)]
pub(crate) fn store_normalized<const SYMBOLS: usize>(
    mut block: Block<SYMBOLS>,
    out: &mut [[f32; SYMBOLS]],
) {
    normalize(&mut block);
    match out.as_chunks_mut::<LANES>().0 {
        [all] => store(&block, all),
        _ => store(&block, out),
    }
}

#[inline(always)]
fn store<const SYMBOLS: usize>(block: &Block<SYMBOLS>, out: &mut [[f32; SYMBOLS]]) {
    for (lane, voxel) in out.iter_mut().enumerate() {
        for symbol in 0..SYMBOLS {
            voxel[symbol] = block[symbol][lane];
        }
    }
}

fn normalize_all<const SYMBOLS: usize>(logarithms: &mut [f32]) {
    let (blocks, rest) = logarithms.as_chunks_mut::<SYMBOLS>().0.as_chunks_mut::<LANES>();
    dispatch_simd(
        #[inline(always)]
        || {
            for voxels in blocks {
                let mut block = [[0.0; LANES]; SYMBOLS];
                for lane in 0..LANES {
                    for symbol in 0..SYMBOLS {
                        block[symbol][lane] = voxels[lane][symbol];
                    }
                }
                store_normalized(block, voxels);
            }
        },
    );
    rest.iter_mut().for_each(|voxel| normalize_one(voxel));
}

/// Normalizes one voxel, with any alphabet, by the same sums.
fn normalize_one(voxel: &mut [f32]) {
    let max = voxel.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = voxel.iter().map(|value| exp_negative(max - value)).sum();
    let shift = max + ln(sum);
    for value in voxel {
        *value -= shift;
    }
}

#[cfg(test)]
mod tests {
    //! Normalization by series against double precision.

    use fulgurite_units::Seed;

    use super::{SymbolProbabilities, normalize_one};

    /// Logarithms of different ranges, as decoders may produce them.
    fn logarithms(symbols: usize, voxels: usize) -> Vec<f32> {
        let mut stream = Seed::new(symbols as u64).stream();
        let mut draw = |voxel: usize| {
            let scale = [0.01, 1.0, 30.0, 1000.0][voxel % 4];
            #[expect(clippy::cast_possible_truncation, reason = "single precision")]
            let number = (scale * (2.0 * stream.unit() - 1.0)) as f32;
            number
        };
        (0..voxels * symbols).map(|at| draw(at / symbols)).collect()
    }

    /// The error is at most 1e-6, plus some last digits where the logarithms themselves are large.
    #[test]
    fn logarithms_are_normalized_to_a_millionth() {
        for symbols in [2, 4, 5, 8, 16] {
            for voxels in [1, 15, 16, 33, 400] {
                let drawn = logarithms(symbols, voxels);
                let found = SymbolProbabilities::normalized(symbols, drawn.clone());
                for (index, own) in drawn.chunks(symbols).enumerate() {
                    let own: Vec<f64> = own.iter().map(|value| f64::from(*value)).collect();
                    let max = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = own.iter().map(|value| (value - max).exp()).sum();
                    for (value, found) in own.iter().zip(found.voxel(index)) {
                        let exact = value - max - sum.ln();
                        let error = (exact - f64::from(*found)).abs();
                        let most_error = 1e-6 + 2e-7 * (max.abs() + exact.abs());
                        assert!(error < most_error, "{symbols} symbols: {exact} is {found}");
                    }
                }
            }
        }
    }

    /// Blocks give the same bits as single voxels.
    #[test]
    fn blocks_match_single_voxels() {
        for symbols in [4, 8] {
            let drawn = logarithms(symbols, 100);
            let found = SymbolProbabilities::normalized(symbols, drawn.clone());
            let mut one_by_one = drawn;
            one_by_one.chunks_mut(symbols).for_each(normalize_one);
            assert_eq!(found.logarithms(), one_by_one);
        }
    }

    /// An impossible symbol stays impossible; NaN affects only its own voxel.
    #[test]
    fn nan_affects_only_its_own_voxel() {
        let mut drawn = logarithms(8, 32);
        drawn[8] = f32::NEG_INFINITY;
        drawn[16] = f32::NAN;
        let found = SymbolProbabilities::normalized(8, drawn);
        assert!(found.voxel(1)[0].is_infinite() && found.voxel(1)[0] < 0.0);
        assert!(found.voxel(1)[1..].iter().all(|value| value.is_finite()));
        assert!(found.voxel(2)[0].is_nan());
        let others = (0..32).filter(|voxel| ![1, 2].contains(voxel));
        assert!(others.flat_map(|voxel| found.voxel(voxel)).all(|value| value.is_finite()));
    }
}
