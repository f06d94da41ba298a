//! The simulated time until a group loses data. A loss takes 10^10 hours, too rare for a plain
//! simulation like that of Pergamum (FAST 2008), section 5.2. Here failures are made frequent, and
//! outcomes are weighted by how much rarer they really are (importance sampling).
//!
//! ```text
//!   all well --first failure--> cycle --.--> all well again      mean time to loss =
//!      ^                                '--> lost, weight w      mean length of a cycle
//!      '---------------------------------------------'           / mean weight of a loss
//! ```
//!
//! In a cycle a failure comes before the next repair in nine of ten draws; the weight is multiplied
//! by the true probability of the outcome divided by that of the draw. If no further failure can be
//! survived, nothing is drawn: the probability of a loss before the repair is added to the loss,
//! and the weight continues with the rest. So no draw is rare, and nearly every cycle contributes.
//! Cycles used for their length are drawn without weights.
//!
//! Unlike the [chain](super::mttdl_by_chain) it has repairs that take a fixed time, like the
//! paper's simulator. Like the chain, it tracks how many disks have failed, not which.

use std::collections::VecDeque;

use fulgurite_units::Seed;

use super::group::Group;
use crate::workload::{Draws, Exponentials, exp2, ln};

/// Cycles drawn for their length, which is the time to the first failure plus a hundredth.
const PLAIN_CYCLES: u32 = 20_000;
/// Maximum steps of one cycle: only a group that fails faster than it is repaired takes more.
const STEPS_MAX: u32 = 10_000;
/// Probability of a failure before the next repair, where it is forced.
const FORCED_FAILURE_PROBABILITY: f64 = 0.9;
/// Standard deviations of the 95 % confidence interval of a normal mean.
const CONFIDENCE_95: f64 = 1.96;

/// The result of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean time until a group loses data, in hours.
    pub hours: f64,
    /// Half of the 95 % confidence interval, in hours.
    pub half_interval: f64,
}

/// Simulates `cycles` cycles.
///
/// # Errors
/// When a value of the group is out of range, or it is lost before it is repaired.
pub fn sample(group: &Group, cycles: u32, seed: u64) -> Result<Estimate, String> {
    group.validate()?;
    if cycles < 2 {
        return Err("a simulation needs at least two cycles".to_owned());
    }
    let mut cycle = Cycle::new(group, &Seed::new(seed));
    let mut length = 0.0;
    for _ in 0..PLAIN_CYCLES {
        length += cycle.plain()?;
    }
    length /= f64::from(PLAIN_CYCLES);
    // The time to the first failure is known and need not be drawn.
    length += 1.0 / (f64::from(group.disks) * group.failures());
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..cycles {
        let lost = cycle.weighted()?;
        sum += lost;
        squares += lost * lost;
    }
    let count = f64::from(cycles);
    let mean = sum / count;
    let variance = (squares / count - mean * mean).max(0.0) / (count - 1.0);
    let hours = length / mean;
    Ok(Estimate { hours, half_interval: CONFIDENCE_95 * hours * variance.sqrt() / mean })
}

/// Simulates one cycle after the other.
struct Cycle<'a> {
    group: &'a Group,
    fails: f64,
    stuck: f64,
    uncorrectable_errors: f64,
    uniform: Draws,
    times: Exponentials,
    failed: u32,
    now: f64,
    /// When disks are rebuilt, for repairs that take a fixed time.
    ends: VecDeque<f64>,
}

impl<'a> Cycle<'a> {
    fn new(group: &'a Group, seed: &Seed) -> Self {
        Self {
            group,
            fails: group.failures(),
            stuck: group.stuck(),
            uncorrectable_errors: group.uncorrectable_errors(),
            uniform: Draws::new(seed, b"coins"),
            times: Exponentials::new(seed, b"times"),
            failed: 0,
            now: 0.0,
            ends: VecDeque::new(),
        }
    }

    /// Starts a cycle: the first disk fails.
    fn begin(&mut self) {
        (self.failed, self.now) = (0, 0.0);
        self.ends.clear();
        self.fail();
    }

    fn fail(&mut self) {
        self.failed += 1;
        if !self.group.repair_is_fixed {
            return;
        }
        let waits_for = if self.group.repair_is_serial { self.ends.back() } else { None };
        let from = waits_for.copied().unwrap_or(self.now).max(self.now);
        self.ends.push_back(from + self.group.repair_h);
    }

    /// Returns the time until the next disk is rebuilt. Exponential times are redrawn after each
    /// event.
    fn repair_in(&mut self) -> f64 {
        if let Some(at) = self.ends.front() {
            return at - self.now;
        }
        let at_a_time = if self.group.repair_is_serial { 1 } else { self.failed };
        self.times.draw() * self.group.repair_h / f64::from(at_a_time)
    }

    /// Returns the probability that a disk fails, or the group is lost, before the next one is
    /// rebuilt. With exponential times it is known, and the time does not matter.
    fn fails_first(&self) -> f64 {
        let rate = if self.is_last() { self.losses() } else { self.failures() };
        if let Some(at) = self.ends.front() {
            return 1.0 - exp(-rate * (at - self.now));
        }
        let at_a_time = if self.group.repair_is_serial { 1 } else { self.failed };
        rate / (rate + f64::from(at_a_time) / self.group.repair_h)
    }

    fn repaired_next(&mut self) {
        self.failed -= 1;
        self.now = self.ends.pop_front().unwrap_or(self.now);
    }

    fn repaired(&mut self, after: f64) {
        self.failed -= 1;
        self.now += after;
        self.ends.pop_front();
    }

    fn is_last(&self) -> bool {
        self.failed == self.group.inter
    }

    /// Returns the failures of further disks per hour.
    fn failures(&self) -> f64 {
        f64::from(self.group.disks - self.failed) * self.fails
    }

    /// Returns the losses per hour of a group that may lose no more disks.
    fn losses(&self) -> f64 {
        self.failures() + f64::from(self.group.disks - self.failed) * self.uncorrectable_errors
    }

    /// Returns the weight with which a cycle ends in a loss.
    fn weighted(&mut self) -> Result<f64, String> {
        self.begin();
        let (mut weight, mut lost) = (1.0, 0.0);
        if self.is_last() {
            lost += weight * self.stuck;
            weight *= 1.0 - self.stuck;
        }
        for _ in 0..STEPS_MAX {
            let chance = self.fails_first();
            if self.is_last() {
                lost += weight * chance;
                weight *= 1.0 - chance;
                self.repaired_next();
            } else if self.uniform.unit() < FORCED_FAILURE_PROBABILITY {
                weight *= chance / FORCED_FAILURE_PROBABILITY;
                if !self.ends.is_empty() {
                    // The time of the failure, given that it is before the repair.
                    self.now += -ln(1.0 - self.uniform.unit() * chance) / self.failures();
                }
                self.fail();
                if self.is_last() {
                    lost += weight * self.stuck;
                    weight *= 1.0 - self.stuck;
                }
            } else {
                weight *= (1.0 - chance) / (1.0 - FORCED_FAILURE_PROBABILITY);
                self.repaired_next();
            }
            if self.failed == 0 {
                return Ok(lost);
            }
        }
        Err(self.not_converged())
    }

    /// Returns the length of a cycle from its first failure on, drawn without weights.
    fn plain(&mut self) -> Result<f64, String> {
        self.begin();
        let mut fails = true;
        for _ in 0..STEPS_MAX {
            if fails && self.is_last() && self.uniform.unit() < self.stuck {
                return Ok(self.now);
            }
            let repair = self.repair_in();
            let rate = if self.is_last() { self.losses() } else { self.failures() };
            let failure = self.times.draw() / rate;
            fails = failure < repair;
            if !fails {
                self.repaired(repair);
            } else if self.is_last() {
                return Ok(self.now + failure);
            } else {
                self.now += failure;
                self.fail();
            }
            if self.failed == 0 {
                return Ok(self.now);
            }
        }
        Err(self.not_converged())
    }

    fn not_converged(&self) -> String {
        format!(
            "group: disks fail faster than they are repaired ({} failed at a time)",
            self.failed
        )
    }
}

fn exp(x: f64) -> f64 {
    exp2(x * std::f64::consts::LOG2_E)
}

#[cfg(test)]
mod tests {
    use super::{Estimate, sample};
    use crate::tome::{Group, mttdl_by_chain};

    const CYCLES: u32 = 200_000;

    fn check(group: Group, expected: f64, within: f64) -> Estimate {
        let ours = sample(&group, CYCLES, 1).unwrap();
        let off = (ours.hours / expected - 1.0).abs();
        assert!(off < within, "{ours:?} for {expected:.4e}");
        // Rarely more than twice the 95 % interval; lengths of cycles are drawn too.
        let interval = 2.0 * ours.half_interval / ours.hours;
        assert!(off < interval + 1e-3, "{ours:?} for {expected:.4e}");
        ours
    }

    #[test]
    fn sampling_matches_the_chain() {
        let ours = check(Group::default(), 1.402e10, 0.01);
        assert!(ours.half_interval / ours.hours < 0.01, "{ours:?}");
        for inter in 1..=3 {
            for intra in [None, Some(0), Some(1), Some(3)] {
                for repair_is_serial in [false, true] {
                    let group = Group { inter, intra, repair_is_serial, ..Group::default() };
                    let group = Group { runs_on: 0.1, ..group };
                    check(group, mttdl_by_chain(&group).unwrap(), 0.015);
                }
            }
        }
    }

    /// With one failure survived, a cycle ends in a loss if any of 15 disks fails within the
    /// repair.
    #[test]
    fn fixed_repairs_match_the_closed_form() {
        let group = Group { inter: 1, repair_is_fixed: true, ..Group::default() };
        let loss = 1.0 - f64::exp(-15.0 * 1e-5 * 100.0);
        let degraded = loss / (15.0 * 1e-5);
        check(group, (1.0 / 16e-5 + degraded) / loss, 1e-3);
        // With parallel repairs the losses of a cycle depend only on the mean repair time. With
        // serial repairs the result is nearly the same if their time is fixed: four failures that
        // coincide have almost always occurred within the first repair.
        let fixed = Group { inter: 3, ..group };
        check(fixed, mttdl_by_chain(&Group { inter: 3, ..Group::default() }).unwrap(), 0.02);
        let one_by_one = Group { repair_is_serial: true, ..fixed };
        let [fixed, one_by_one] =
            [fixed, one_by_one].map(|group| sample(&group, CYCLES, 1).unwrap().hours);
        assert!((0.93..1.0).contains(&(one_by_one / fixed)), "{one_by_one} for {fixed}");
    }

    #[test]
    fn sampling_repeats_by_seed_and_rejects_hopeless_groups() {
        let of = |seed| sample(&Group::default(), 1_000, seed).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert!(sample(&Group::default(), 1, 1).is_err());
        let hopeless = Group { disks: 900, inter: 60, life_h: 900.0, ..Group::default() };
        assert!(sample(&hopeless, 10, 1).unwrap_err().contains("faster than"));
    }
}
