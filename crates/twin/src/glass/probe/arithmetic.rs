//! Numbers of the paper that follow from others in closed form.

/// Returns the probability that more than `limit` of `trials` independent events happen, each with
/// probability `chance`. Terms are summed from the largest on; beyond a few dozen they are
/// negligible.
pub(super) fn binomial_tail(trials: u32, limit: u32, chance: f64) -> f64 {
    let first = limit + 1;
    if first > trials {
        return 0.0;
    }
    // ln of trials! / (first! (trials - first)!) p^first (1 - p)^(trials - first)
    let choose: f64 =
        (0..first).map(|index| (f64::from(trials - index) / f64::from(index + 1)).ln()).sum();
    let mut term =
        (choose + f64::from(first) * chance.ln() + f64::from(trials - first) * (-chance).ln_1p())
            .exp();
    let mut sum = 0.0;
    for losses in first..=trials {
        sum += term;
        term *= f64::from(trials - losses) / f64::from(losses + 1) * chance / (1.0 - chance);
    }
    sum
}

/// Returns the reads per second of a library in which each age-fold adds as much as the first did,
/// while older data is partly deleted and cools down.
pub(super) fn growth_rate(start: f64, folds: u32, deletion: f64, cool_down: f64) -> f64 {
    let retained = (1.0 - deletion) * (1.0 - cool_down);
    let mut rate = start;
    for _ in 0..folds {
        rate = rate * retained + start;
    }
    rate
}

#[cfg(test)]
mod tests {
    use super::{binomial_tail, growth_rate};

    #[test]
    fn small_cases_match_hand_computation() {
        // Three coins: more than one head in 4 of 8 cases.
        assert!((binomial_tail(3, 1, 0.5) - 0.5).abs() < 1e-12);
        // The paper's "hundreds of sectors": 100 + 8 give 3.6e-15 (docs/codes/durability.md).
        let track = binomial_tail(108, 8, 1e-3);
        assert!((track / 3.6e-15 - 1.0).abs() < 0.02, "{track:e}");
        assert!((growth_rate(1.0, 2, 0.5, 0.0) - 1.75).abs() < 1e-12);
    }
}
