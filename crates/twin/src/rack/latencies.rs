//! Latency distributions of disks: a floor plus a lognormal part; and the latency of a group, which
//! is that of its slowest disk.
//!
//! The paper shows these distributions only as pictures (Pelican, OSDI 2014, Figure 3): the values
//! in a scenario are calibrated, not measured.

use fulgurite_units::{Duration, Seed};
use serde::{Deserialize, Serialize};

use super::scenario::Disks;
use super::shape::DISKS_OF_GROUP;
use crate::Error;
use crate::workload::{Draws, exp2, ln};

/// Steps of the numeric integration for the mean of the slowest.
const STEPS: u32 = 20_000;
/// The smallest tail probability drawn; beyond it the sum of floats is not exact.
const TAIL_MIN: f64 = 1e-12;

/// A latency distribution: lognormal above a floor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// The floor, in seconds.
    #[serde(default)]
    pub floor_s: f64,
    /// Median of the part above the floor, in seconds.
    pub median_s: f64,
    /// Standard deviation of its logarithm.
    pub sigma: f64,
}

impl Law {
    /// Creates a distribution without a floor.
    #[must_use]
    pub const fn new(median_s: f64, sigma: f64) -> Self {
        Self { floor_s: 0.0, median_s, sigma }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self, field: &'static str) -> Result<(), Error> {
        let fine = (0.0..=3_600.0).contains(&self.floor_s)
            && (0.0..=3_600.0).contains(&self.median_s)
            && (0.0..=3.0).contains(&self.sigma);
        if fine {
            return Ok(());
        }
        let expected = "a floor and a median from 0 to 3600 s and a sigma from 0 to 3";
        Err(Error::Parameter { field, value: format!("{self:?}"), expected })
    }

    /// Returns the mean, in seconds.
    #[must_use]
    pub fn mean_s(&self) -> f64 {
        self.floor_s + self.median_s * exp(self.sigma * self.sigma / 2.0)
    }

    /// Draws the time of one disk, in seconds.
    fn draw_s(&self, draws: &mut Draws) -> f64 {
        self.floor_s + self.median_s * exp(self.sigma * draws.normal())
    }

    /// Returns the time that this share of disks does not exceed, in seconds.
    #[must_use]
    pub fn quantile_s(&self, share: f64) -> f64 {
        self.at_tail_s(1.0 - share)
    }

    /// Returns the time that this share of disks exceeds, in seconds.
    fn at_tail_s(&self, tail: f64) -> f64 {
        self.floor_s + self.median_s * exp(self.sigma * upper_normal(tail))
    }
}

/// The time until the needed number of disks that start together are done: that of the slowest, if
/// all are needed. It is drawn directly as an order statistic, like the sum of all times, which
/// gives their energy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderStatistic {
    law: Law,
    disks: u32,
    needed: u32,
    /// Mean time of the other disks, in seconds.
    others_s: f64,
}

impl OrderStatistic {
    /// Creates the distribution of the `needed`-th fastest of `disks`.
    pub(crate) fn new(law: Law, disks: u32, needed: u32) -> Self {
        assert!((1..=disks).contains(&needed), "{needed} of {disks} disks");
        // The density of the order statistic, except for a constant factor: u^(j-1) (1-u)^(n-j).
        let (below, above) = (f64::from(needed - 1), f64::from(disks - needed));
        let (mut sum, mut weights) = (0.0, 0.0);
        for step in 0..STEPS {
            let share = (f64::from(step) + 0.5) / f64::from(STEPS);
            let weight = exp(below * ln(share) + above * ln(1.0 - share));
            sum += weight * law.at_tail_s(1.0 - share);
            weights += weight;
        }
        let all = f64::from(disks);
        // A single disk has no others.
        let others_s = (all * law.mean_s() - sum / weights) / (all - 1.0).max(1.0);
        Self { law, disks, needed, others_s: others_s.max(0.0) }
    }

    /// Draws the time, in seconds.
    pub(crate) fn draw_s(&self, draws: &mut Draws) -> f64 {
        // The largest of n uniform numbers, then the largest of those below it, and so on.
        let mut share_ln = 0.0;
        for disks in (self.needed..=self.disks).rev() {
            share_ln += ln(draws.unit().max(f64::EPSILON)) / f64::from(disks);
        }
        self.law.at_tail_s((1.0 - exp(share_ln)).clamp(TAIL_MIN, 1.0 - TAIL_MIN))
    }

    /// Draws the time of each disk, in seconds.
    pub(crate) fn draw_each_s(&self, draws: &mut Draws) -> Vec<f64> {
        (0..self.disks).map(|_| self.law.draw_s(draws)).collect()
    }

    /// Draws the time of a single disk, in seconds.
    pub(crate) fn draw_one_s(&self, draws: &mut Draws) -> f64 {
        self.law.draw_s(draws)
    }

    /// Returns when enough disks are done if each started at a time of its own, in seconds.
    pub(crate) fn after_each_s(&self, begun_s: &[f64], draws: &mut Draws) -> f64 {
        let mut done: Vec<f64> =
            begun_s.iter().map(|begun| begun + self.law.draw_s(draws)).collect();
        done.sort_by(f64::total_cmp);
        let last = done.len().min(self.needed as usize);
        done[..last].last().copied().unwrap_or_default()
    }

    /// Returns the summed time of all disks if the slowest took this long. The mean of the others
    /// is taken as constant.
    pub(crate) fn total_s(&self, took_s: f64) -> f64 {
        took_s + f64::from(self.disks - 1) * self.others_s
    }
}

/// The latency distributions of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLatencies {
    pub(crate) unmount: OrderStatistic,
    pub(crate) spin_up: OrderStatistic,
    pub(crate) mount: OrderStatistic,
    pub(crate) mount_busy: OrderStatistic,
}

impl GroupLatencies {
    pub(crate) fn new(disks: &Disks) -> Self {
        let all = |law| OrderStatistic::new(law, DISKS_OF_GROUP, DISKS_OF_GROUP);
        let needed = |law| OrderStatistic::new(law, DISKS_OF_GROUP, disks.awake);
        Self {
            unmount: all(disks.unmount),
            spin_up: needed(disks.spin_up),
            mount: needed(disks.mount),
            mount_busy: needed(disks.mount_busy),
        }
    }
}

/// Converts a drawn time.
pub(crate) fn seconds(time_s: f64) -> Duration {
    Duration::from_secs_f64(time_s)
}

/// Returns the random stream of one distribution.
pub(crate) fn stream(seed: &Seed, label: &[u8]) -> Draws {
    Draws::new(&seed.child(b"rack"), label)
}

fn exp(x: f64) -> f64 {
    exp2(x * std::f64::consts::LOG2_E)
}

/// Returns the upper quantile of the normal distribution: Acklam's rational approximations, whose
/// relative error is below 1.2e-9.
fn upper_normal(tail: f64) -> f64 {
    const A: [f64; 6] = [
        -39.696_830_286_653_76,
        220.946_098_424_520_5,
        -275.928_510_446_968_7,
        138.357_751_867_269,
        -30.664_798_066_147_16,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -54.476_098_798_224_06,
        161.585_836_858_040_9,
        -155.698_979_859_886_6,
        66.801_311_887_719_72,
        -13.280_681_552_885_72,
        1.0,
    ];
    const C: [f64; 6] = [
        -0.007_784_894_002_430_293,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        0.007_784_695_709_041_462,
        0.322_467_129_070_039_8,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    /// Below this probability, on either side, the tail's approximation applies.
    const EDGE: f64 = 0.024_25;
    let polynomial = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    let side = |share: f64| {
        let q = (-2.0 * ln(share)).sqrt();
        polynomial(&C, q) / polynomial(&D, q)
    };
    if tail < EDGE {
        return -side(tail);
    }
    if tail > 1.0 - EDGE {
        return side(1.0 - tail);
    }
    let q = 0.5 - tail;
    q * polynomial(&A, q * q) / polynomial(&B, q * q)
}

#[cfg(test)]
mod tests {
    use fulgurite_units::Seed;

    use super::{Law, OrderStatistic, stream, upper_normal};

    #[test]
    fn normal_quantiles_match_tables() {
        for (tail, at) in [
            (0.5, 0.0),
            (0.158_655_253_931_457, 1.0),
            (0.001_349_898_031_630_1, 3.0),
            (0.841_344_746_068_543, -1.0),
            (0.998_650_101_968_37, -3.0),
            (2.866_515_718_791_9e-7, 5.0),
        ] {
            assert!((upper_normal(tail) - at).abs() < 1e-7, "{tail}: {}", upper_normal(tail));
        }
    }

    /// The order statistics, slowest of 24 and 21st of 24, match those of 24 single draws, and so
    /// does the sum.
    #[test]
    fn order_statistic_matches_individual_draws() {
        const ROUNDS: u32 = 20_000;
        let law = Law { floor_s: 8.0, median_s: 1.2, sigma: 0.33 };
        let (mut once, mut singly) =
            (stream(&Seed::new(1), b"once"), stream(&Seed::new(1), b"singly"));
        for needed in [24, 21] {
            let slowest = OrderStatistic::new(law, 24, needed);
            let (mut drawn, mut together, mut expected, mut sum) = (0.0, 0.0, 0.0, 0.0);
            for _ in 0..ROUNDS {
                let time = slowest.draw_s(&mut once);
                drawn += time;
                together += slowest.total_s(time);
                let mut times: Vec<f64> = (0..24).map(|_| law.draw_s(&mut singly)).collect();
                times.sort_by(f64::total_cmp);
                expected += times[needed as usize - 1];
                sum += times.iter().sum::<f64>();
            }
            assert!((drawn / expected - 1.0).abs() < 0.002, "{drawn} for {expected}");
            assert!((together / sum - 1.0).abs() < 0.002, "{together} for {sum}");
        }
        // The latency of a group in the calibrated distributions.
        let mean = |law: Law| {
            let slowest = OrderStatistic::new(law, 24, 24);
            let mut draws = stream(&Seed::new(2), b"means");
            (0..ROUNDS).map(|_| slowest.draw_s(&mut draws)).sum::<f64>() / f64::from(ROUNDS)
        };
        for (law, expected) in [
            (law, 10.32),
            (Law::new(0.5, 0.35), 1.00),
            (Law::new(1.2, 0.35), 2.41),
            (Law::new(1.8, 0.45), 4.45),
            (Law::new(6.0, 0.45), 14.8),
        ] {
            assert!((mean(law) / expected - 1.0).abs() < 0.01, "{law:?}: {}", mean(law));
        }
    }

    #[test]
    fn slowest_of_one_disk_is_that_disk() {
        let law = Law::new(1.0, 0.3);
        let one = OrderStatistic::new(law, 1, 1);
        assert!((one.total_s(3.0) - 3.0).abs() < 1e-12);
        assert!((law.quantile_s(0.5) - 1.0).abs() < 1e-9);
        assert!(law.quantile_s(0.9) > law.quantile_s(0.1));
    }

    #[test]
    fn invalid_law_is_rejected() {
        assert!(Law::new(1.0, 0.2).validate("mount").is_ok());
        for law in [Law::new(-1.0, 0.2), Law::new(1.0, f64::NAN), Law::new(1.0, 4.0)] {
            assert!(law.validate("mount").unwrap_err().to_string().starts_with("mount is"));
        }
    }
}
