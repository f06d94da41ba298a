//! What fragments at sites take and how long they last, by arithmetic alone.

use crate::Error;

/// What is stored for each byte, where a site stores so much for each that it is given.
#[must_use]
pub fn overhead(data: u8, parity: u8, stored_for_each: f64) -> f64 {
    f64::from(data + parity) / f64::from(data) * stored_for_each
}

/// How often a year more sites are lost at a time than there is parity for.
///
/// ```text
///   sum over all sets of parity + 1 sites: (parity + 1) x product of rates x years ^ parity
/// ```
///
/// which is what a Markov chain with repairs side by side gives, where a repair takes far less than
/// the time between losses. Sites are lost on their own: nothing that takes two is in it.
///
/// # Errors
/// When a repair takes so long that this is no longer near.
pub fn losses_a_year(rates: &[f64], repair_days: f64, parity: u8) -> Result<f64, Error> {
    let years = repair_days / 365.25;
    let out = rates.iter().map(|rate| rate * years).sum::<f64>();
    let sane = rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0);
    if !sane || !(0.0..=0.1).contains(&out) {
        let value = format!("{out:.3} sites");
        let expected = "rates and repairs by which at most 0.1 sites are away on average";
        return Err(Error::Parameter { field: "losses_a_year, repair", value, expected });
    }
    // Elementary symmetric polynomials, one rate after the other.
    let size = usize::from(parity) + 1;
    let mut products = vec![0.0; size + 1];
    products[0] = 1.0;
    for rate in rates {
        for count in (1..=size).rev() {
            products[count] += products[count - 1] * rate;
        }
    }
    let power = (0..parity).fold(1.0, |power, _| power * years);
    Ok(products[size] * (f64::from(parity) + 1.0) * power)
}
