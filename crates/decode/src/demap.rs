//! Demaps estimates of voxels to probabilities, with a Gaussian in the plane for each symbol.

use fulgurite_codes::{CodeError, symbols};
use fulgurite_platter::channel::Medium;
use fulgurite_platter::numeric::{LANES, dispatch_simd, sincos_turns};
use serde::{Deserialize, Serialize};

use crate::decoder::bits_per_symbol;
use crate::probabilities::store_normalized;
use crate::{DecodeError, SymbolProbabilities};

/// Voxels whose log-probabilities are computed before their soft bits: few enough for the L1 cache.
const BLOCK_VOXELS: usize = 16 * LANES;

/// The distribution of the estimates of one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cloud {
    mean: [f32; 2],
    /// Inverse covariance: xx, xy, yy.
    inverse: [f32; 3],
    /// Half the logarithm of the determinant of the covariance.
    spread: f32,
}

/// A Gaussian for each symbol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demapper {
    clouds: Vec<Cloud>,
    /// Divides the log-probabilities: above 1 when the Gaussians are overconfident.
    pub temperature: f32,
}

/// Returns the ideal estimate of a symbol: on the circle at twice its azimuth, or its level.
#[must_use]
pub(crate) fn target(medium: Medium, symbol: u8) -> [f32; 2] {
    let count = f32::from(medium.symbols());
    match medium {
        Medium::Birefringent => {
            let (sin, cos) = sincos_turns(f32::from(symbol) / count);
            [cos, sin]
        }
        Medium::Phase => [2.0 * f32::from(symbol) / (count - 1.0) - 1.0, 0.0],
    }
}

impl Demapper {
    /// Fits a demapper to estimates whose symbols are known.
    ///
    /// # Errors
    /// [`DecodeError::Fit`] when a symbol has fewer than 16 estimates, or they are not finite.
    pub fn fit(
        medium: Medium,
        estimates: &[[f32; 2]],
        symbols: &[u8],
    ) -> Result<Self, DecodeError> {
        let cloud = |own: u8| {
            let own_estimates =
                || estimates.iter().zip(symbols).filter(|(_, symbol)| **symbol == own);
            let count = own_estimates().count();
            if count < 16 {
                let reason = format!("symbol {own} was seen {count} times; 16 are needed");
                return Err(DecodeError::Fit { reason });
            }
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            let share = 1.0 / count as f64;
            let mean: [f64; 2] = std::array::from_fn(|i| {
                share * own_estimates().map(|(z, _)| f64::from(z[i])).sum::<f64>()
            });
            let mut covariance = [1e-9, 0.0, 1e-9];
            for (z, _) in own_estimates() {
                let [x, y] = [f64::from(z[0]) - mean[0], f64::from(z[1]) - mean[1]];
                covariance[0] += share * x * x;
                covariance[1] += share * x * y;
                covariance[2] += share * y * y;
            }
            Cloud::new(mean, covariance)
        };
        let clouds = (0..medium.symbols()).map(cloud).collect::<Result<_, _>>()?;
        Ok(Self { clouds, temperature: 1.0 })
    }

    /// Creates a demapper for estimates with isotropic scatter, with this variance in each
    /// direction.
    ///
    /// # Errors
    /// [`DecodeError::Fit`] when the variance is not finite.
    pub fn isotropic(medium: Medium, variance: f64) -> Result<Self, DecodeError> {
        let variance = variance.max(1e-9);
        let cloud = |symbol: u8| {
            Cloud::new(target(medium, symbol).map(f64::from), [variance, 0.0, variance])
        };
        let clouds = (0..medium.symbols()).map(cloud).collect::<Result<_, _>>()?;
        Ok(Self { clouds, temperature: 1.0 })
    }

    /// Size of the alphabet.
    #[must_use]
    pub const fn symbols(&self) -> usize {
        self.clouds.len()
    }

    /// Computes the probabilities of all estimates.
    #[must_use]
    pub fn probabilities(&self, estimates: &[[f32; 2]]) -> SymbolProbabilities {
        match self.clouds.len() {
            4 => self.blocks::<4>(estimates),
            8 => self.blocks::<8>(estimates),
            _ => {
                let scale = 1.0 / self.temperature;
                let voxels = estimates.iter().flat_map(|[x, y]| {
                    self.clouds.iter().map(move |cloud| -scale * cloud.distance(*x, *y))
                });
                SymbolProbabilities::normalized(self.clouds.len(), voxels.collect())
            }
        }
    }

    /// Computes the soft bits of all estimates, by the demapper of an alphabet of the same size.
    /// `blocks` is scratch memory for log-probabilities.
    pub(crate) fn soft_bits(
        &self,
        estimates: &[[f32; 2]],
        demapper: &symbols::Demapper,
        blocks: &mut Vec<f32>,
        soft: &mut [i8],
    ) -> Result<(), CodeError> {
        let count = self.clouds.len();
        let scale = 1.0 / self.temperature;
        let bits = bits_per_symbol(count);
        for (own, soft) in estimates.chunks(BLOCK_VOXELS).zip(soft.chunks_mut(BLOCK_VOXELS * bits))
        {
            blocks.resize(own.len().next_multiple_of(LANES) * count, 0.0);
            dispatch_simd(
                #[inline(always)]
                || {
                    let lines = blocks.as_chunks_mut::<LANES>().0.chunks_exact_mut(count);
                    for (lines, own) in lines.zip(own.chunks(LANES)) {
                        let (x, y) = split_components(own);
                        for (values, cloud) in lines.iter_mut().zip(&self.clouds) {
                            for lane in 0..LANES {
                                values[lane] = -scale * cloud.distance(x[lane], y[lane]);
                            }
                        }
                    }
                },
            );
            demapper.demap_logarithm_blocks(blocks, soft)?;
        }
        Ok(())
    }

    /// Computes probabilities for an alphabet of `SYMBOLS`, several voxels at a time.
    fn blocks<const SYMBOLS: usize>(&self, estimates: &[[f32; 2]]) -> SymbolProbabilities {
        let mut logarithms = vec![0.0; estimates.len() * SYMBOLS];
        let voxels = logarithms.as_chunks_mut::<SYMBOLS>().0;
        let scale = 1.0 / self.temperature;
        dispatch_simd(
            #[inline(always)]
            || {
                for (out, own) in voxels.chunks_mut(LANES).zip(estimates.chunks(LANES)) {
                    let (x, y) = split_components(own);
                    let mut block = [[0.0; LANES]; SYMBOLS];
                    for (values, cloud) in block.iter_mut().zip(&self.clouds) {
                        for lane in 0..LANES {
                            values[lane] = -scale * cloud.distance(x[lane], y[lane]);
                        }
                    }
                    store_normalized(block, out);
                }
            },
        );
        SymbolProbabilities::from_normalized(SYMBOLS, logarithms)
    }
}

/// Returns both components of some estimates, zero-padded.
#[inline(always)]
fn split_components(estimates: &[[f32; 2]]) -> ([f32; LANES], [f32; LANES]) {
    let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
    for (lane, estimate) in estimates.iter().enumerate() {
        [x[lane], y[lane]] = *estimate;
    }
    (x, y)
}

impl Cloud {
    fn new(mean: [f64; 2], [xx, xy, yy]: [f64; 3]) -> Result<Self, DecodeError> {
        let determinant = xx * yy - xy * xy;
        if !(determinant > 0.0 && determinant.is_finite()) {
            let reason = "estimates of a symbol are all equal, or not finite".to_owned();
            return Err(DecodeError::Fit { reason });
        }
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let single = |value: f64| value as f32;
        let inverse = [yy / determinant, -xy / determinant, xx / determinant].map(single);
        let spread = single(0.5 * determinant.ln());
        Ok(Self { mean: mean.map(single), inverse, spread })
    }

    /// Returns the negative log-density of an estimate, up to a constant.
    #[inline(always)]
    fn distance(&self, x: f32, y: f32) -> f32 {
        let [dx, dy] = [x - self.mean[0], y - self.mean[1]];
        let [xx, xy, yy] = self.inverse;
        let square = xx * dx * dx + 2.0 * xy * dx * dy + yy * dy * dy;
        0.5 * square + self.spread
    }
}
