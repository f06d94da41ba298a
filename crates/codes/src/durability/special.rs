//! Logarithms of the gamma function and of functions derived from it.

/// Returns ln of the gamma function at a positive number, with a relative error of about 1e-15:
/// Stirling's series at 10 or above, and the recurrence `gamma(x + 1) = x gamma(x)` down from
/// there.
pub(super) fn ln_gamma(x: f64) -> f64 {
    /// Coefficients B_2k / (2k (2k - 1)), with the Bernoulli numbers B_2k.
    const SERIES: [f64; 6] =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    assert!(x > 0.0, "ln_gamma of {x}");
    let (mut x, mut below) = (x, 0.0);
    while x < 10.0 {
        below += x.ln();
        x += 1.0;
    }
    let inverse_square = 1.0 / (x * x);
    let series = SERIES.iter().rev().fold(0.0, |sum, term| sum * inverse_square + term) / x;
    let half_ln_tau = 0.918_938_533_204_672_8;
    (x - 0.5) * x.ln() - x + half_ln_tau + series - below
}

/// Returns ln of the binomial coefficient `n` over `k`.
pub(super) fn ln_choose(n: u64, k: u64) -> f64 {
    assert!(k <= n, "{k} of {n}");
    ln_gamma(n as f64 + 1.0) - ln_gamma(k as f64 + 1.0) - ln_gamma((n - k) as f64 + 1.0)
}

/// Returns ln of the beta function.
pub(super) fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Returns ln of the sum of the numbers whose logarithms are given.
pub(super) fn ln_sum(logarithms: &[f64]) -> f64 {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    // Smallest first, so that many small terms are not lost to rounding.
    let mut shares: Vec<f64> = logarithms.iter().map(|l| (l - largest).exp()).collect();
    shares.sort_by(f64::total_cmp);
    largest + shares.iter().sum::<f64>().ln()
}
