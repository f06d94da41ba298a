//! Storage overhead and durability of fragments at sites, in closed form.

use crate::Error;

/// Returns the bytes stored for each user byte, where a site stores `stored_for_each` bytes for
/// each byte it is given.
#[must_use]
pub fn overhead(data: u8, parity: u8, stored_for_each: f64) -> f64 {
    f64::from(data + parity) / f64::from(data) * stored_for_each
}

/// Returns how many times a year more sites are lost at once than the parity tolerates.
///
/// ```text
///   sum over all sets of parity + 1 sites: (parity + 1) x product of rates x years ^ parity
/// ```
///
/// This is what a Markov chain with parallel repairs gives if a repair takes far less than the time
/// between losses. Site losses are independent; correlated losses are not modeled.
///
/// # Errors
/// When repairs take so long that the approximation no longer holds.
pub fn losses_a_year(rates: &[f64], repair_days: f64, parity: u8) -> Result<f64, Error> {
    let years = repair_days / 365.25;
    let out = rates.iter().map(|rate| rate * years).sum::<f64>();
    let sane = rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0);
    if !sane || !(0.0..=0.1).contains(&out) {
        let value = format!("{out:.3} sites");
        let expected = "rates and repairs with at most 0.1 unavailable sites on average";
        return Err(Error::Parameter { field: "losses_a_year, repair", value, expected });
    }
    // Elementary symmetric polynomials, one rate at a time.
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
