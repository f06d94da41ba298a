//! Durability of blobs in a rack: the probability that a blob loses more disks in a year than it
//! can tolerate, before they are rebuilt.
//!
//! The method is that of Backblaze's calculator for its vaults: a year is divided into periods T in
//! which a failed disk is detected and its stacks are rebuilt; in each period the disks of a blob
//! fail independently. A disk that is spun down fails unnoticed, so T includes the time to
//! detection: at most the interval of verifications.

use fulgurite_codes::CodeError;
use fulgurite_codes::durability::{Probability, binomial_tail};

/// Days per year.
pub(super) const YEAR_DAYS: f64 = 365.24;

/// The formula of [`yearly_loss`].
pub(super) const FORMULA: &str = "1 - (1 - p)^(365.24 / T), \
     p = sum over i > r of C(n, i) q^i (1-q)^(n-i), q = AFR T / 365.24, n = k + r";

/// Returns the probability that a blob is lost in a year of `year_days`, with `information` stacks,
/// all of which are needed, and `redundancy` more, on disks with an annual failure rate of
/// `failures`, each rebuilt within `days` of its failure.
///
/// # Errors
/// [`CodeError::LossRate`] when so many fail in a period that it is no probability.
pub(super) fn yearly_loss(
    [information, redundancy]: [u64; 2],
    failures: f64,
    days: f64,
    year_days: f64,
) -> Result<Probability, CodeError> {
    let period = binomial_tail(information + redundancy, failures * days / year_days, redundancy)?;
    let periods = year_days / days;
    // Below this all terms but the first are negligible.
    if period.ln() < -600.0 {
        return Ok(Probability::from_ln(period.ln() + periods.ln()));
    }
    let year = -(periods * (-period.value()).ln_1p()).exp_m1();
    Ok(Probability::from_ln(year.ln()))
}

/// Returns the number of nines of durability.
pub(super) fn nines(chance: Probability) -> f64 {
    -chance.ln() / std::f64::consts::LN_10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: [u64; 2], failures: f64, days: f64, expected: f64) {
        let nines = nines(yearly_loss(code, failures, days, YEAR_DAYS).unwrap());
        assert!((nines - expected).abs() < 0.005, "{nines}");
    }

    /// The calculator's own example, whose year has 365 days.
    #[test]
    fn backblaze_calculator_example_is_reproduced() {
        let chance = yearly_loss([4, 2], 0.1, 1.0, 365.0).unwrap();
        assert_eq!(format!("{chance:.3}"), "1.500e-7");
    }

    #[test]
    fn published_nines_of_vaults_and_racks_are_reproduced() {
        // Backblaze states 11 for its vaults of 17 + 3.
        check([17, 3], 0.0041, 6.5, 11.11);
        check([17, 3], 0.0131, 6.5, 9.10);
        // Pelican's 15 + 3: 11.7, and 9.8 with three times the failures.
        check([15, 3], 0.0131, 1.0, 11.73);
        check([15, 3], 0.04, 1.0, 9.79);
        check([15, 3], 0.0131, 11.3 / 24.0, 12.71);
        // The cost of detecting a failure only after a month.
        check([15, 3], 0.0131, 31.0, 7.26);
    }

    #[test]
    fn tiny_probabilities_do_not_underflow() {
        let chance = yearly_loss([15, 100], 0.0001, 0.001, YEAR_DAYS).unwrap();
        assert!(chance.ln() < -700.0 && chance.ln().is_finite());
        assert!(yearly_loss([15, 3], 0.5, 1000.0, YEAR_DAYS).is_err());
    }
}
