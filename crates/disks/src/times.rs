//! How long disks take to turn up, to be mounted and to be put down: laws to draw from, for what is
//! simulated.
//!
//! The paper shows them as figure 3 (OSDI 2014) and gives no numbers. These were fitted to what its
//! text says: 8 s at least, twelve groups brought up in less than 180 s, a first byte after 14.2 s
//! on an idle rack, and 3.3 kW when nearly two thirds of the time goes by turning up.

use fulgurite_units::{Duration, RandomStream};
use serde::{Deserialize, Serialize};

/// A least time, and a log-normal one on top of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// Seconds that it takes at least.
    pub floor_s: f64,
    /// Half of all take no more seconds than this beyond the floor.
    pub median_s: f64,
    /// Standard deviation of the logarithm of what is beyond the floor.
    pub sigma: f64,
}

impl Law {
    /// A time.
    #[must_use]
    pub fn draw(&self, stream: &mut RandomStream) -> Duration {
        Duration::from_secs_f64(self.floor_s + self.median_s * (self.sigma * normal(stream)).exp())
    }

    /// The mean of all times, in seconds.
    #[must_use]
    pub fn mean_s(&self) -> f64 {
        self.floor_s + self.median_s * (self.sigma * self.sigma / 2.0).exp()
    }
}

/// A draw of the standard normal law (Box and Muller).
fn normal(stream: &mut RandomStream) -> f64 {
    // 1 - u is never 0, so its logarithm is finite.
    let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * stream.unit()).cos()
}

/// How long the steps of a disk take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// From the command until its platters turn.
    pub spin_up: Law,
    /// Until its file system can be used.
    pub mount: Law,
    /// The same while many operations wait.
    pub mount_loaded: Law,
    /// Operations that wait, above which that is so.
    pub loaded_above: u32,
    /// Until its file system is put away.
    pub unmount: Law,
}

impl Times {
    /// One law of mounts for an idle rack, one that is hardly slower for a loaded one. A group of
    /// 24 waits for its slowest: 10.3 s, 2.4 s (4.5 s) and 1.0 s in the mean.
    pub const PELICAN: Self = Self {
        spin_up: Law { floor_s: 8.0, median_s: 1.2, sigma: 0.33 },
        mount: Law { floor_s: 0.0, median_s: 1.2, sigma: 0.35 },
        mount_loaded: Law { floor_s: 0.0, median_s: 1.8, sigma: 0.45 },
        loaded_above: 600,
        unmount: Law { floor_s: 0.0, median_s: 0.5, sigma: 0.35 },
    };

    /// The same with mounts of a loaded rack that are several times slower, which the paper's
    /// throughput and its refusals point to.
    pub const PELICAN_SLOW_MOUNTS: Self =
        Self { mount_loaded: Law { floor_s: 0.0, median_s: 6.0, sigma: 0.45 }, ..Self::PELICAN };

    /// How long a mount takes while so many operations wait.
    #[must_use]
    pub fn draw_mount(&self, waiting: u32, stream: &mut RandomStream) -> Duration {
        if waiting > self.loaded_above { self.mount_loaded } else { self.mount }.draw(stream)
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::PELICAN
    }
}
