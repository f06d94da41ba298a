//! The parameters of a group's reliability: failure rates, rebuild times, latent errors, scrubs,
//! and the cost of spin-ups (Pergamum (FAST 2008), section 5.2, table 4).
//!
//! Two models use them: a [chain](super::mttdl_by_chain) and a [simulation](super::sample). Not
//! here: which tome is where. Times are in hours, as in the paper.
//!
//! # Latent errors
//!
//! An error makes a block unreadable, and with probability `runs_on` the next one too, and so on: a
//! run is longer than `r` blocks with probability `runs_on^r`. Segments correct as many blocks as
//! they have parity. The group must handle longer runs, and two runs in one segment that are longer
//! together; three are ignored. A scrub repairs what can be repaired, at random times as in table
//! 4, so that since the last one `k` errors have occurred with probability `(1-a) a^k`, `a` being
//! the share of errors among errors and scrubs.

use serde::{Deserialize, Serialize};

use super::hardware::YEAR_H;

/// A group of disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Group {
    /// Number of disks.
    pub disks: u32,
    /// Number of disks that may be lost.
    pub inter: u32,
    /// Parity blocks per segment. If omitted, no block ever becomes unreadable: the paper's ideal.
    pub intra: Option<u32>,
    /// Mean life of a disk that is never spun up.
    pub life_h: f64,
    /// Mean time of a rebuild.
    pub repair_h: f64,
    /// Whether every rebuild takes exactly that time; else times are exponential.
    pub repair_is_fixed: bool,
    /// Whether disks are rebuilt one after the other; else in parallel.
    pub repair_is_serial: bool,
    /// Mean time between latent errors of a disk.
    pub latent_h: f64,
    /// Mean time between scrubs of a disk.
    pub scrub_h: f64,
    /// Probability that an error extends to the next block.
    pub runs_on: f64,
    /// Segments per disk: of 64 blocks of 1 MB on 1 TB.
    pub segments: u32,
    /// Hours of a disk's life that a spin-up costs.
    pub spin_up_h: f64,
    /// Spin-ups of a disk per year, without those of scrubs.
    pub spin_ups: f64,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            disks: 16,
            inter: 3,
            intra: None,
            life_h: 100_000.0,
            repair_h: 100.0,
            repair_is_fixed: false,
            repair_is_serial: false,
            latent_h: 13_245.0,
            scrub_h: 8_640.0,
            runs_on: 0.0,
            segments: 15_625,
            spin_up_h: 0.0,
            spin_ups: 0.0,
        }
    }
}

impl Group {
    /// Checks every part.
    ///
    /// # Errors
    /// Describes what is out of range, in a sentence.
    pub fn validate(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("group: {what}"));
        let times = [self.life_h, self.repair_h, self.latent_h, self.scrub_h];
        if times.iter().any(|hours| !(*hours > 0.0 && hours.is_finite())) {
            return wrong("times must be above 0");
        }
        if !(1..=64).contains(&self.inter)
            || !(self.inter..=1_000).contains(&self.disks.saturating_sub(1))
        {
            return wrong("inter must be from 1 to 64 and below disks, which must be at most 1001");
        }
        if !(0.0..1.0).contains(&self.runs_on) || self.segments == 0 {
            return wrong("runs_on must be from 0 to below 1, and segments at least 1");
        }
        let costs = [self.spin_up_h, self.spin_ups];
        if costs.iter().any(|cost| !(0.0..=1e6).contains(cost)) {
            return wrong("spin_up_h and spin_ups must be from 0 to 1000000");
        }
        Ok(())
    }

    /// Returns the failures of a disk per hour. Each spin-up takes hours off its life, which
    /// shortens it; an exponential life has the same rate at every age.
    pub(crate) fn failures(&self) -> f64 {
        let spin_ups = self.spin_ups / YEAR_H + 1.0 / self.scrub_h;
        (1.0 + self.spin_up_h * spin_ups) / self.life_h
    }

    /// Returns the errors of a disk per hour that its segments cannot correct.
    pub(crate) fn uncorrectable_errors(&self) -> f64 {
        let Some(parity) = self.intra else { return 0.0 };
        let errors = 1.0 / self.latent_h;
        errors * (self.longer(parity) + self.errors_since_scrub() * self.pair(parity))
    }

    /// Returns the probability that a disk has such an error now.
    pub(crate) fn unreadable(&self) -> f64 {
        let Some(parity) = self.intra else { return 0.0 };
        let runs = self.longer(parity) * self.errors_since_scrub();
        let by_run = runs / (1.0 + runs);
        let by_pair =
            (self.errors_since_scrub() * self.errors_since_scrub() * self.pair(parity)).min(1.0);
        1.0 - (1.0 - by_run) * (1.0 - by_pair)
    }

    /// Returns the probability that one of the last disks that a group can be rebuilt from is
    /// unreadable.
    pub(crate) fn stuck(&self) -> f64 {
        1.0 - power(1.0 - self.unreadable(), self.disks - self.inter)
    }

    /// Returns the mean number of errors of a disk since its last scrub.
    fn errors_since_scrub(&self) -> f64 {
        self.scrub_h / self.latent_h
    }

    /// Returns the probability that a run is longer than this.
    fn longer(&self, blocks: u32) -> f64 {
        power(self.runs_on, blocks)
    }

    /// Returns the probability that two runs lie in one segment and together are longer than it can
    /// correct.
    fn pair(&self, parity: u32) -> f64 {
        if parity == 0 {
            // A single run is enough.
            return 0.0;
        }
        let ends = (1.0 - self.runs_on) * (1.0 - self.runs_on);
        let sums = (2..=parity).map(|sum| f64::from(sum - 1) * power(self.runs_on, sum - 2) * ends);
        (1.0 - sums.sum::<f64>()) / f64::from(self.segments)
    }
}

/// Computes a power by multiplication: the result is the same on every machine.
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

#[cfg(test)]
mod tests {
    use fulgurite_units::Seed;

    use super::Group;

    #[test]
    fn without_segment_parity_rebuilds_mostly_fail() {
        let group = Group { inter: 1, intra: Some(0), ..Group::default() };
        assert!((group.unreadable() - 0.394_79).abs() < 1e-5);
        assert!((group.stuck() - 0.999_46).abs() < 1e-5);
        let ideal = Group::default();
        assert!(ideal.stuck() <= 0.0 && ideal.uncorrectable_errors() <= 0.0);
    }

    #[test]
    fn spin_ups_shorten_disk_life() {
        let never = Group::default();
        assert!((never.failures() - 1e-5).abs() < 1e-18);
        let often = Group { spin_up_h: 10.0, spin_ups: 876.6, ..never };
        assert!((often.failures() * 1e5 - (2.0 + 10.0 / 8_640.0)).abs() < 1e-9);
    }

    /// Disks drawn one by one, with the position and length of each error, are unreadable as often
    /// as computed.
    #[test]
    fn sampled_disks_match_unreadable_probability() {
        const DISKS: u32 = 200_000;
        let mut random = Seed::new(7).stream();
        for (runs_on, parity) in [(0.0, 1), (0.3, 1), (0.3, 2), (0.3, 3)] {
            let group = Group { intra: Some(parity), runs_on, segments: 400, ..Group::default() };
            let share = group.errors_since_scrub() / (1.0 + group.errors_since_scrub());
            let mut found = 0_u32;
            for _ in 0..DISKS {
                let mut bad = std::collections::BTreeMap::new();
                while random.unit() < share {
                    let lost = bad.entry(random.below(u64::from(group.segments))).or_insert(0);
                    *lost += 1;
                    while random.unit() < runs_on {
                        *lost += 1;
                    }
                }
                found += u32::from(bad.values().any(|lost| *lost > parity));
            }
            let (ours, drawn) = (group.unreadable(), f64::from(found) / f64::from(DISKS));
            let error = (drawn / f64::from(DISKS)).sqrt();
            assert!((ours - drawn).abs() < 4.0 * error + 0.03 * ours, "{ours} for {drawn}");
        }
    }

    #[test]
    fn invalid_group_is_rejected() {
        let group = Group::default();
        assert_eq!(group.validate(), Ok(()));
        assert!(Group { inter: 16, ..group }.validate().is_err());
        assert!(Group { runs_on: 1.0, ..group }.validate().is_err());
        assert!(Group { repair_h: 0.0, ..group }.validate().is_err());
        assert!(Group { spin_ups: -1.0, ..group }.validate().is_err());
    }
}
