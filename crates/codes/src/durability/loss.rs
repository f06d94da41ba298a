//! The model of sector losses, and the probability that too many sectors are lost.

use std::fmt;

use super::special::{ln_beta, ln_choose, ln_sum};
use crate::CodeError;

/// A probability, stored as its natural logarithm: many are too small for an f64.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Probability {
    ln: f64,
}

impl Probability {
    /// Probability of an impossible event.
    pub const ZERO: Self = Self { ln: f64::NEG_INFINITY };

    /// Creates a probability from its natural logarithm; values above 1 (rounding) become 1.
    #[must_use]
    pub const fn from_ln(ln: f64) -> Self {
        Self { ln: ln.min(0.0) }
    }

    /// Natural logarithm of the probability.
    #[must_use]
    pub const fn ln(self) -> f64 {
        self.ln
    }

    /// Returns the probability as an f64: 0 below about 10^-308.
    #[must_use]
    pub fn value(self) -> f64 {
        self.ln.exp()
    }
}

impl fmt::Display for Probability {
    /// Writes scientific notation, with two digits or the precision asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        if self.ln == f64::NEG_INFINITY {
            return f.write_str("0");
        }
        let log10 = self.ln / std::f64::consts::LN_10;
        let mut exponent = log10.floor();
        let mut text = format!("{:.digits$}", 10f64.powf(log10 - exponent));
        if text.starts_with("10") {
            exponent += 1.0;
            text = format!("{:.digits$}", 1.0);
        }
        write!(f, "{text}e{exponent}")
    }
}

/// Returns the probability that more than `limit` of `trials` independent events of probability
/// `probability` happen: the upper tail of a binomial distribution.
///
/// # Errors
/// [`CodeError::LossRate`] when `probability` is not strictly between 0 and 1.
pub fn binomial_tail(trials: u64, probability: f64, limit: u64) -> Result<Probability, CodeError> {
    Ok(SectorLoss::new(probability, 0.0)?.probability_above(limit, trials))
}

/// Model of sector losses within a track: each sector is lost with the same probability, which is
/// either fixed or drawn for each track from a beta distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SectorLoss {
    mean: f64,
    variation: f64,
}

impl SectorLoss {
    /// Creates a model with mean probability `mean` and, between tracks, the coefficient of
    /// variation (standard deviation over mean) `variation`; 0 for independent sectors.
    ///
    /// # Errors
    /// [`CodeError::LossRate`] when the mean is not strictly between 0 and 1, or when no beta
    /// distribution has that mean and variation.
    pub fn new(mean: f64, variation: f64) -> Result<Self, CodeError> {
        let is_chance = mean > 0.0 && mean < 1.0;
        let spread = variation * variation * mean;
        if !is_chance || variation.is_nan() || variation < 0.0 || spread >= 1.0 - mean {
            return Err(CodeError::LossRate);
        }
        Ok(Self { mean, variation })
    }

    /// Mean probability that a sector is lost.
    #[must_use]
    pub const fn mean(self) -> f64 {
        self.mean
    }

    /// Coefficient of variation between tracks.
    #[must_use]
    pub const fn variation(self) -> f64 {
        self.variation
    }

    /// Returns the two parameters of the beta distribution, if the probability varies.
    #[must_use]
    pub fn beta_parameters(self) -> Option<[f64; 2]> {
        // Var = (variation mean)^2 = mean (1 - mean) / (a + b + 1).
        let variance = (self.variation * self.mean).powi(2);
        let sum = self.mean * (1.0 - self.mean) / variance - 1.0;
        (self.variation > 0.0).then_some([self.mean * sum, (1.0 - self.mean) * sum])
    }

    /// Returns ln of the probability that exactly `lost` of `sectors` sectors of a track are lost.
    #[must_use]
    pub fn ln_pmf(self, lost: u64, sectors: u64) -> f64 {
        let (k, rest) = (lost as f64, (sectors - lost) as f64);
        let each = match self.beta_parameters() {
            None => k * self.mean.ln() + rest * (-self.mean).ln_1p(),
            Some([a, b]) => ln_beta(k + a, rest + b) - ln_beta(a, b),
        };
        ln_choose(sectors, lost) + each
    }

    /// Returns the probability that more than `limit` of `sectors` sectors of a track are lost.
    #[must_use]
    pub fn probability_above(self, limit: u64, sectors: u64) -> Probability {
        let mut terms = Vec::new();
        let mut largest = f64::NEG_INFINITY;
        for lost in limit + 1..=sectors {
            let term = self.ln_pmf(lost, sectors);
            largest = largest.max(term);
            terms.push(term);
            // The terms have a single peak. A term beyond it that is below e^-60 of it can be
            // dropped with all that follow: they fall ever faster, or at worst like a power up to
            // `sectors`.
            if term < largest - 60.0 {
                break;
            }
        }
        Probability::from_ln(ln_sum(&terms))
    }
}
