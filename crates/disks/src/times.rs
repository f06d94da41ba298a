//! Distributions of how long simulated disks take to spin up, to be mounted and to be unmounted.
//!
//! The paper shows them in figure 3 (OSDI 2014) without numbers. These are fitted to its text: 8 s
//! at least, twelve groups brought up in less than 180 s, a first byte after 14.2 s on an idle
//! rack, and 3.3 kW when nearly two thirds of the time is spent spinning up.

use fulgurite_units::{Duration, RandomStream};
use serde::{Deserialize, Serialize};

/// A log-normal distribution above a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogNormal {
    /// Minimum in seconds.
    pub floor_s: f64,
    /// Median in seconds above the minimum.
    pub median_s: f64,
    /// Standard deviation of the logarithm of the part above the minimum.
    pub sigma: f64,
}

impl LogNormal {
    /// Draws a time.
    #[must_use]
    pub fn draw(&self, stream: &mut RandomStream) -> Duration {
        Duration::from_secs_f64(self.floor_s + self.median_s * (self.sigma * normal(stream)).exp())
    }

    /// Returns the mean in seconds.
    #[must_use]
    pub fn mean_s(&self) -> f64 {
        self.floor_s + self.median_s * (self.sigma * self.sigma / 2.0).exp()
    }
}

/// Draws from the standard normal distribution (Box-Muller).
fn normal(stream: &mut RandomStream) -> f64 {
    // 1 - u is never 0, so its logarithm is finite.
    let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * stream.unit()).cos()
}

/// Distributions of the delays of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// From the command until the platters spin.
    pub spin_up: LogNormal,
    /// Until the file system can be used.
    pub mount: LogNormal,
    /// The same while many operations wait.
    pub mount_loaded: LogNormal,
    /// Number of waiting operations above which that applies.
    pub loaded_above: u32,
    /// Until the file system is unmounted.
    pub unmount: LogNormal,
}

impl Times {
    /// Mounts on a loaded rack are only slightly slower than on an idle one. The mean of the
    /// slowest of a group of 24 is 10.3 s (spin-up), 2.4 s (mount; 4.5 s loaded) and 1.0 s
    /// (unmount).
    pub const PELICAN: Self = Self {
        spin_up: LogNormal { floor_s: 8.0, median_s: 1.2, sigma: 0.33 },
        mount: LogNormal { floor_s: 0.0, median_s: 1.2, sigma: 0.35 },
        mount_loaded: LogNormal { floor_s: 0.0, median_s: 1.8, sigma: 0.45 },
        loaded_above: 600,
        unmount: LogNormal { floor_s: 0.0, median_s: 0.5, sigma: 0.35 },
    };

    /// The same, but mounts on a loaded rack are several times slower, as the paper's throughput
    /// and its refusals suggest.
    pub const PELICAN_SLOW_MOUNTS: Self = Self {
        mount_loaded: LogNormal { floor_s: 0.0, median_s: 6.0, sigma: 0.45 },
        ..Self::PELICAN
    };

    /// Draws the time of a mount while `waiting` operations wait.
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
