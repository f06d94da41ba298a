//! Monte Carlo simulation with importance sampling, as a check of the formulas.
//!
//! A probability of 10^-27 cannot be measured by direct sampling. So losses are drawn from a
//! distribution under which failure is common, and each failure is weighted by the ratio of its
//! true probability to the probability with which it was drawn:
//!
//! ```text
//! independent: sectors fail with q = (R_t + 1) / (I_t + R_t) instead of p
//!              weight (p/q)^x ((1-p)/(1-q))^(n-x) of x losses
//! varying:     in addition the track's rate P is drawn as if R_t + 1 losses had been seen,
//!              from Beta(a + R_t + 1, b + I_t - 1) instead of Beta(a, b)
//! ```
//!
//! The formulas of the parent module add up terms. Here there are no terms and no binomial
//! coefficients, only sectors that fail or not. The check is that the two agree.

use super::loss::{Probability, SectorLoss};
use super::scheme::Track;
use super::special::{ln_beta, ln_sum};

/// Result of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Estimated probability.
    pub chance: Probability,
    /// Standard error divided by the estimate.
    pub relative_error: f64,
    /// Number of tracks drawn.
    pub samples: u64,
}

/// Estimates [`Track::failure_probability`] from `samples` tracks. `random` returns 64 uniform
/// bits.
///
/// # Panics
/// When the track has no sectors or `samples` is zero.
pub fn failure_probability(
    track: Track,
    loss: SectorLoss,
    samples: u64,
    random: &mut impl FnMut() -> u64,
) -> Estimate {
    assert!(samples > 0, "a simulation needs samples");
    let (sectors, limit) = (track.sectors() as f64, track.redundancy as f64);
    assert!(sectors > 0.0, "a track has sectors");
    let drawn_rate = ((limit + 1.0) / sectors).clamp(loss.mean(), 0.999);
    let mut weights = Vec::new();
    for _ in 0..samples {
        let (rate, ln_rate_weight) = match loss.beta_parameters() {
            None => (loss.mean(), 0.0),
            Some(beta) => draw_rate(beta, track, random),
        };
        let lost = draw_losses(track.sectors(), drawn_rate, random);
        if lost > track.redundancy {
            let (lost, survivors) = (lost as f64, sectors - lost as f64);
            let ln_weight = lost * (rate / drawn_rate).ln()
                + survivors * ((-rate).ln_1p() - (-drawn_rate).ln_1p());
            weights.push(ln_rate_weight + ln_weight);
        }
    }
    estimate(&weights, samples)
}

/// Draws the rate of a track; returns it with ln of its weight.
fn draw_rate([a, b]: [f64; 2], track: Track, random: &mut impl FnMut() -> u64) -> (f64, f64) {
    let seen = (track.redundancy + 1) as f64;
    let (drawn_a, drawn_b) = (a + seen, b + track.sectors() as f64 - seen);
    let (x, y) = (gamma(drawn_a, random), gamma(drawn_b, random));
    let rate = x / (x + y);
    let ln_ratio =
        (a - drawn_a) * rate.ln() + (b - drawn_b) * (-rate).ln_1p() + ln_beta(drawn_a, drawn_b)
            - ln_beta(a, b);
    (rate, ln_ratio)
}

/// Draws how many of `sectors` fail, each with probability `rate`, by the gaps between failures.
fn draw_losses(sectors: u64, rate: f64, random: &mut impl FnMut() -> u64) -> u64 {
    let ln_kept = (-rate).ln_1p();
    let (mut next, mut lost) = (0.0, 0);
    loop {
        next += (uniform(random).ln() / ln_kept).floor() + 1.0;
        if next > sectors as f64 {
            return lost;
        }
        lost += 1;
    }
}

fn estimate(ln_weights: &[f64], samples: u64) -> Estimate {
    let samples_f64 = samples as f64;
    let ln_mean = ln_sum(ln_weights) - samples_f64.ln();
    let squares: Vec<f64> = ln_weights.iter().map(|ln| 2.0 * ln).collect();
    let ln_square = ln_sum(&squares) - samples_f64.ln();
    let relative_variance = (ln_square - 2.0 * ln_mean).exp() - 1.0;
    Estimate {
        chance: Probability::from_ln(ln_mean),
        relative_error: (relative_variance / samples_f64).sqrt(),
        samples,
    }
}

/// Draws a number above 0 and at most 1, in steps of 2^-53.
fn uniform(random: &mut impl FnMut() -> u64) -> f64 {
    ((random() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Draws a standard normal number (Marsaglia's polar method).
fn normal(random: &mut impl FnMut() -> u64) -> f64 {
    loop {
        let (x, y) = (2.0 * uniform(random) - 1.0, 2.0 * uniform(random) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

/// Draws a gamma-distributed number of this shape, 1 or more, and scale 1 (Marsaglia and Tsang
/// 2000).
fn gamma(shape: f64, random: &mut impl FnMut() -> u64) -> f64 {
    assert!(shape >= 1.0, "shape {shape}");
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && uniform(random).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}
