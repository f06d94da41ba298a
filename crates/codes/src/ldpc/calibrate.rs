//! Scale of soft bits: how many units of the decoder a natural unit of certainty is.
//!
//! Min-sum itself does not care about scale, but the cut at 31, the offset and the steps of an
//! integer do: a channel written too small loses its distinctions, one written too large its range.
//! And a neural network's probabilities are seldom as sure as they say. So a reader calibrates:
//! it takes soft bits whose truth is known (from sectors that decoded), finds the factor that makes
//! them honest ([`temper`]), and multiplies by [`UNITS`]. The factor belongs to a reader and a
//! medium, and is stored with what was read, not with what was written.

/// Units of the decoder for a calibrated log-likelihood ratio of 1. Between 1.4 and 2.8 the
/// frame error rate hardly moves; see the figures in `docs/codes/ldpc.md`.
pub const UNITS: f64 = 2.0;

/// Smallest and largest factor that is looked for: beyond, the input is not soft information.
const FACTOR_MIN: f64 = 1e-3;
const FACTOR_MAX: f64 = 1e3;

/// The factor that makes soft bits as sure as they are right: the one under which the known bits
/// are likeliest. `known` gives ratios `ln P(0) - ln P(1)` with the bits that were written. `None`
/// without bits, or when no factor is best: all ratios right, or more wrong than right.
#[must_use]
pub fn temper(known: &[(f32, bool)]) -> Option<f64> {
    // The logarithm of the likelihood is concave in the factor, so its slope has one root:
    // the sum of a / (1 + exp(f a)) over a = the ratio, negative where it is wrong.
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
    // 2^40 times narrower than a factor of 10^6 is beyond what any sample can tell.
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    Some((low * high).sqrt())
}
