//! Power of the disks: each is in standby, spinning up or spinning (Pelican, OSDI 2014, section
//! 4.8).

use fulgurite_units::Instant;

use super::scenario::Disks;
use super::shape::DISKS;

/// Power over time, in a window.
#[derive(Clone, Debug)]
pub(crate) struct Power {
    standby_w: f64,
    active_w: f64,
    spin_up_w: f64,
    window: [Instant; 2],
    /// Disks not in standby, and those of them that are spinning up.
    awake: u32,
    spinning_up: u32,
    since: Instant,
    /// Disk-seconds out of standby and spinning up, in the window.
    awake_s: f64,
    spinning_up_s: f64,
    max_w: f64,
}

impl Power {
    pub(crate) const fn new(disks: &Disks, window: [Instant; 2]) -> Self {
        Self {
            standby_w: disks.standby_w,
            active_w: disks.active_w,
            spin_up_w: disks.spin_up_w,
            window,
            awake: 0,
            spinning_up: 0,
            since: Instant::ZERO,
            awake_s: 0.0,
            spinning_up_s: 0.0,
            max_w: 0.0,
        }
    }

    /// Records that disks start to spin up, for this many disk-seconds in total.
    pub(crate) fn spin_up(&mut self, now: Instant, disks: u32, total_s: f64) {
        self.pass(now);
        self.awake += disks;
        self.spinning_up += disks;
        let [from, until] = self.window;
        if (from..until).contains(&now) {
            self.spinning_up_s += total_s;
        }
    }

    /// Records that disks have finished spinning up.
    pub(crate) fn spun_up(&mut self, now: Instant, disks: u32) {
        self.pass(now);
        assert!(disks <= self.spinning_up, "only disks that are spinning up can reach full speed");
        self.spinning_up -= disks;
    }

    /// Records that disks go to standby.
    pub(crate) fn stop(&mut self, now: Instant, disks: u32) {
        self.pass(now);
        assert!(disks <= self.awake - self.spinning_up, "only spinning disks can stop");
        self.awake -= disks;
    }

    /// Returns the mean and the maximum over the window, in watts.
    pub(crate) fn window_power(&mut self) -> (f64, f64) {
        let [from, until] = self.window;
        self.pass(until);
        let window = until.since(from).as_secs_f64();
        let mean = f64::from(DISKS) * self.standby_w
            + self.awake_s / window * (self.active_w - self.standby_w)
            + self.spinning_up_s / window * (self.spin_up_w - self.active_w);
        (mean, self.max_w.max(self.current_w()))
    }

    /// Returns the current power, in watts.
    fn current_w(&self) -> f64 {
        let turning = self.awake - self.spinning_up;
        f64::from(DISKS - self.awake) * self.standby_w
            + f64::from(turning) * self.active_w
            + f64::from(self.spinning_up) * self.spin_up_w
    }

    fn pass(&mut self, now: Instant) {
        let [from, until] = self.window;
        let (begin, end) = (self.since.max(from), now.min(until));
        if begin < end {
            self.awake_s += f64::from(self.awake) * end.since(begin).as_secs_f64();
            self.max_w = self.max_w.max(self.current_w());
        }
        self.since = self.since.max(now);
    }
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{Duration, Instant};

    use super::{DISKS, Power};
    use crate::rack::scenario::Disks;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// The sums of section 4.8: all in standby, the peak of 96 disks spinning up, all spinning, and
    /// all spinning up, which the paper gives as 25.8 kW.
    #[test]
    fn state_powers_add_up() {
        let after = |spun: u32, spun_up: u32| {
            let mut power = Power::new(&Disks::default(), [at(0), at(10)]);
            power.spin_up(at(0), spun, f64::from(spun) * 10.0);
            power.spun_up(at(0), spun_up);
            power.window_power()
        };
        for ((spun, spun_up), expected) in [
            ((0, 0), 1_797.12),
            ((96, 0), 3_714.24),
            ((DISKS, DISKS), 10_851.84),
            ((DISKS, 0), 24_802.56),
        ] {
            let (_, most) = after(spun, spun_up);
            assert!((most - expected).abs() < 1e-6, "{most} for {expected}");
        }
        let (mean, _) = after(96, 0);
        assert!((mean - 3_714.24).abs() < 1e-6, "{mean}");
    }

    #[test]
    fn only_the_window_is_measured() {
        let mut power = Power::new(&Disks::default(), [at(10), at(20)]);
        power.spin_up(at(0), 24, 100.0);
        power.spun_up(at(9), 24);
        power.stop(at(15), 24);
        assert_eq!(power.awake, 0);
        let (mean, most) = power.window_power();
        let turning = 24.0 * (9.42 - 1.56);
        assert!((mean - (1_797.12 + turning / 2.0)).abs() < 1e-6, "{mean}");
        assert!((most - (1_797.12 + turning)).abs() < 1e-6, "{most}");
    }
}
