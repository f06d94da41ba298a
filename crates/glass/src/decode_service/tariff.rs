//! When verification is decoded: in the cheapest hours before its deadline.

use std::time::Duration;

/// Hours of a price curve.
pub const HOURS: usize = 24;

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;

/// The price of energy by hour, and how long verification may wait for a lower one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tariff {
    /// Price of each hour of the day (UTC), in any unit.
    pub prices: [f64; HOURS],
    /// How long verification may wait, its decoding included; zero decodes at once.
    pub within: Duration,
}

impl Default for Tariff {
    /// Every hour costs the same, and nothing waits.
    fn default() -> Self {
        Self { prices: [1.0; HOURS], within: Duration::ZERO }
    }
}

impl Tariff {
    /// Returns the price at a time, in seconds of the Unix epoch.
    pub(super) fn price(&self, at: f64) -> f64 {
        self.prices[hour(at)]
    }

    /// Returns how long work of `work_s` seconds waits from `now` for the cheapest period that ends
    /// within [`Self::within`]; the earliest of equal ones.
    pub(super) fn wait(&self, now: f64, work_s: f64) -> Duration {
        let latest = self.within.as_secs_f64() - work_s;
        let mut best = (0.0, self.cost(now, work_s));
        let mut wait = until_next_hour(now);
        while wait <= latest {
            let cost = self.cost(now + wait, work_s);
            // Lower by more than the rounding error of the sums.
            if cost < best.1 * (1.0 - 1e-9) {
                best = (wait, cost);
            }
            wait += HOUR;
        }
        Duration::from_secs_f64(best.0)
    }

    /// Returns the cost of work that starts at `from`.
    fn cost(&self, from: f64, work_s: f64) -> f64 {
        let (mut at, mut left, mut cost) = (from, work_s.max(1.0), 0.0);
        while left > 0.0 {
            let part = until_next_hour(at).min(left);
            cost += part * self.price(at);
            at += part;
            left -= part;
        }
        cost
    }
}

fn hour(at: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to 24, and float casts saturate"
    )]
    let hour = (at.rem_euclid(DAY) / HOUR) as usize;
    hour.min(HOURS - 1)
}

/// Returns the seconds until the next hour: more than zero, one hour at most.
fn until_next_hour(at: f64) -> f64 {
    // Large times are rounded, so what is left of an hour must not become zero.
    (HOUR - at.rem_euclid(HOUR)).max(1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cheap at night, expensive in the evening.
    fn night(within_hours: f64) -> Tariff {
        let mut prices = [20.0; HOURS];
        prices[2] = 5.0;
        prices[3] = 5.0;
        prices[18] = 60.0;
        Tariff { prices, within: Duration::from_secs_f64(within_hours * HOUR) }
    }

    fn check(tariff: Tariff, now_hours: f64, work_hours: f64, wait_hours: f64) {
        let day = 20_000.0 * DAY;
        let wait = tariff.wait(day + now_hours * HOUR, work_hours * HOUR).as_secs_f64();
        assert!((wait - wait_hours * HOUR).abs() < 0.01, "{wait} s, not {wait_hours} h");
    }

    #[test]
    fn work_waits_for_the_cheapest_hours_before_its_deadline() {
        check(night(24.0), 12.0, 0.5, 14.0);
        // Both cheap hours are needed; one and a half fit as well from 2:00.
        check(night(24.0), 12.0, 2.0, 14.0);
        // Nothing cheaper before the deadline: at once.
        check(night(5.0), 12.0, 0.5, 0.0);
        // It would not be done in time.
        check(night(14.25), 12.0, 0.5, 0.0);
        check(night(14.5), 12.0, 0.5, 14.0);
        // In the expensive hour: until that is over.
        check(night(4.0), 18.5, 0.25, 0.5);
        // In a cheap one: at once.
        check(night(24.0), 3.2, 0.5, 0.0);
        // Work that is longer than all cheap hours starts so that it covers most of them.
        check(night(24.0), 23.0, 4.0, 3.0 - 2.0);
    }

    #[test]
    fn nothing_waits_without_prices_or_slack() {
        check(Tariff::default(), 12.0, 1.0, 0.0);
        check(Tariff { within: Duration::from_secs(86_400), ..Tariff::default() }, 12.0, 1.0, 0.0);
        check(night(0.0), 12.0, 0.1, 0.0);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "prices are given back as they are")]
    fn a_day_begins_at_midnight() {
        let tariff = night(1.0);
        assert_eq!(tariff.price(0.0), 20.0);
        assert_eq!(tariff.price(2.0 * HOUR), 5.0);
        assert_eq!(tariff.price(4.0 * HOUR - 1e-9), 5.0);
        assert_eq!(tariff.price(4.0 * HOUR), 20.0);
        assert_eq!(tariff.price(DAY + 18.5 * HOUR), 60.0);
    }
}
