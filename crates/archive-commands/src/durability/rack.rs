//! Blobs of a rack: how likely it is that one loses more disks in a year than it may, before what
//! was on them is made anew.
//!
//! The method is that of Backblaze's calculator for its vaults: a year is cut into periods T in
//! which a failed disk is found and its stacks are made anew; in each the disks of a blob fail
//! independently. A disk that sleeps fails unseen, so T has the time until it is found: at most the
//! interval of verifications.

use fulgurite_codes::CodeError;
use fulgurite_codes::durability::{Chance, binomial_tail};

/// Days of a year.
pub(super) const YEAR_DAYS: f64 = 365.24;

/// The formula of [`yearly_loss`].
pub(super) const FORMULA: &str = "1 - (1 - p)^(365.24 / T), \
     p = sum over i > r of C(n, i) q^i (1-q)^(n-i), q = AFR T / 365.24, n = k + r";

/// The chance that a blob is lost in a year of `year_days`, with `information` stacks of which all
/// are needed and `redundancy` more, on disks of which a share of `failures` fails in a year, each
/// made anew within `days` of its failure.
///
/// # Errors
/// [`CodeError::LossRate`] when so many fail in a period that it is no chance.
pub(super) fn yearly_loss(
    [information, redundancy]: [u64; 2],
    failures: f64,
    days: f64,
    year_days: f64,
) -> Result<Chance, CodeError> {
    let period = binomial_tail(information + redundancy, failures * days / year_days, redundancy)?;
    let periods = year_days / days;
    // Below this all terms but the first are nothing beside it.
    if period.ln() < -600.0 {
        return Ok(Chance::from_ln(period.ln() + periods.ln()));
    }
    let year = -(periods * (-period.value()).ln_1p()).exp_m1();
    Ok(Chance::from_ln(year.ln()))
}

/// How many nines there are in what is left.
pub(super) fn nines(chance: Chance) -> f64 {
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

    /// The calculator's own sample, whose year has 365 days.
    #[test]
    fn the_sample_of_the_calculator_comes_out() {
        let chance = yearly_loss([4, 2], 0.1, 1.0, 365.0).unwrap();
        assert_eq!(format!("{chance:.3}"), "1.500e-7");
    }

    #[test]
    fn vaults_and_racks_have_the_nines_that_they_are_said_to_have() {
        // Backblaze says 11 for its vaults of 17 + 3.
        check([17, 3], 0.0041, 6.5, 11.11);
        check([17, 3], 0.0131, 6.5, 9.10);
        // Pelican's 15 + 3: 11.7, and 9.8 with three times the failures.
        check([15, 3], 0.0131, 1.0, 11.73);
        check([15, 3], 0.04, 1.0, 9.79);
        check([15, 3], 0.0131, 11.3 / 24.0, 12.71);
        // What a failure costs that is found after a month of sleep.
        check([15, 3], 0.0131, 31.0, 7.26);
    }

    #[test]
    fn what_is_below_the_smallest_number_is_one_all_the_same() {
        let chance = yearly_loss([15, 100], 0.0001, 0.001, YEAR_DAYS).unwrap();
        assert!(chance.ln() < -700.0 && chance.ln().is_finite());
        assert!(yearly_loss([15, 3], 0.5, 1000.0, YEAR_DAYS).is_err());
    }
}
