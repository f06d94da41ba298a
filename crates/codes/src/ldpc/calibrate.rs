//! Calibration of soft bits: the scale factor from log-likelihood ratios to decoder units.
//!
//! Min-sum itself is independent of scale, but clipping at 31, the offset and integer quantization
//! are not: a scale too small loses resolution, one too large loses range. And a neural network's
//! probabilities are seldom calibrated. So a reader calibrates: it takes soft bits whose true
//! values are known (from sectors that decoded), finds the factor that makes them calibrated
//! ([`fit_temperature`], temperature scaling), and multiplies by [`UNITS_PER_LLR`]. The factor
//! belongs to a reader and a medium, and is stored with the data read, not with the data written.

/// Decoder units for a calibrated log-likelihood ratio of 1. Between 1.4 and 2.8 the frame error
/// rate hardly changes; see the figures in `docs/codes/ldpc.md`.
pub const UNITS_PER_LLR: f64 = 2.0;

/// Range of the search for the factor: beyond it, the input is not soft information.
const FACTOR_MIN: f64 = 1e-3;
const FACTOR_MAX: f64 = 1e3;

/// Returns the factor that calibrates soft bits: the maximum-likelihood factor for the known bits.
/// `known` has ratios `ln P(0) - ln P(1)` with the bits that were written. Returns `None` without
/// bits, or if there is no maximum: all ratios right, or more wrong than right.
#[must_use]
pub fn fit_temperature(known: &[(f32, bool)]) -> Option<f64> {
    // The log-likelihood is concave in the factor, so its slope has one root: the sum of a / (1 +
    // exp(f a)) over a = the ratio, negative where it is wrong.
    let slope = |factor: f64| {
        known
            .iter()
            .map(|&(ratio, bit)| {
                let a = if bit { -f64::from(ratio) } else { f64::from(ratio) };
                a / (1.0 + (factor * a).exp())
            })
            .sum::<f64>()
    };
    let (mut low, mut high) = (FACTOR_MIN, FACTOR_MAX);
    let brackets = slope(low) > 0.0 && slope(high) < 0.0;
    if !brackets {
        return None;
    }
    // Narrowing a range of 10^6 by 2^40 is more precision than any sample supports.
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    Some((low * high).sqrt())
}
