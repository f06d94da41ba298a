//! How long each mechanical operation takes, after the prototype of Silica section 7.1.
//!
//! Pure: an operation and a random stream give a duration. Both drivers use it: the live one to
//! emulate machines that do not exist, the twin to schedule completions. The controller never sees
//! it. Values the paper states are marked "given"; the others only appear in its figures and are
//! assumed so that the paper's travel tails come out (29.4 s at the 99.9th percentile in a
//! partition, section 7.5).

use fulgurite_units::{ByteCount, Duration, RandomStream};
use serde::{Deserialize, Serialize};

use crate::control::limits::CHARGE_INTERVAL;
use crate::control::{Action, Error, TrackSpan};

/// Quantiles of the seek time, in s. The median of 0.6 and the maximum of 2 are given; the others
/// are assumed.
const SEEK: [(f64, f64); 7] =
    [(0.0, 0.1), (0.25, 0.42), (0.5, 0.6), (0.75, 0.82), (0.95, 1.25), (0.995, 1.7), (1.0, 2.0)];

/// The timing parameters of the machines; every value has a name and a source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MechanicsParameters {
    /// Top speed of a shuttle, in m/s. Assumed: half a panel (4 racks of 1.2 m) in about 28 s.
    pub speed: f64,
    /// Acceleration and deceleration of a shuttle, in m/s^2. Assumed; it hardly matters.
    pub acceleration: f64,
    /// Alignment after each horizontal motion, in s. Given.
    pub fine_tuning: f64,
    /// Share of crabs that take `crab_fast_max` or less. Given.
    pub crab_fast_share: f64,
    /// Fastest crab, in s. Given: 88 ms below the slowest.
    pub crab_min: f64,
    /// Upper bound of a fast crab, in s. Given.
    pub crab_fast_max: f64,
    /// Slowest crab, in s. Given.
    pub crab_max: f64,
    /// Mean time to place a platter, in s. Assumed: "a few seconds" in a figure.
    pub place: f64,
    /// Extra time of a pick over a place, in s. Given.
    pub pick_extra: f64,
    /// Spread of pick and place around their means, as a share. Assumed.
    pub handling_spread: f64,
    /// Mounting and unmounting, in s. Given, as a conservative constant.
    pub mount: f64,
    /// Fast switching between the two slots of a drive, in s. Given, as a conservative constant.
    pub switch: f64,
}

impl MechanicsParameters {
    /// The prototype of Silica section 7.1.
    pub const PAPER: Self = Self {
        speed: 0.17,
        acceleration: 0.5,
        fine_tuning: 0.5,
        crab_fast_share: 0.86,
        crab_min: 2.932,
        crab_fast_max: 3.0,
        crab_max: 3.02,
        place: 1.915,
        pick_extra: 0.17,
        handling_spread: 0.1,
        mount: 1.0,
        switch: 1.0,
    };

    /// Checks that each parameter is a time or a share.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn validate(&self) -> Result<(), Error> {
        let positive = [("speed", self.speed), ("acceleration", self.acceleration)];
        let none = |&&(_, value): &&(&str, f64)| value.is_nan() || value <= 0.0;
        if let Some(&(field, value)) = positive.iter().find(none) {
            return Err(Error::Mechanics { field, value: value.to_string() });
        }
        let times = [
            ("fine_tuning", self.fine_tuning),
            ("crab_fast_share", self.crab_fast_share),
            ("crab_min", self.crab_min),
            ("crab_fast_max", self.crab_fast_max),
            ("crab_max", self.crab_max),
            ("place", self.place),
            ("pick_extra", self.pick_extra),
            ("handling_spread", self.handling_spread),
            ("mount", self.mount),
            ("switch", self.switch),
        ];
        let bad = |&&(_, value): &&(&str, f64)| !(0.0..=86_400.0).contains(&value);
        match times.iter().find(bad) {
            Some(&(field, value)) => Err(Error::Mechanics { field, value: value.to_string() }),
            None => Ok(()),
        }
    }

    /// Returns the seconds to travel `meters` with a trapezoidal speed profile; triangular if top
    /// speed is never reached.
    #[must_use]
    pub fn travel(&self, meters: f64) -> f64 {
        if meters >= self.speed * self.speed / self.acceleration {
            meters / self.speed + self.speed / self.acceleration
        } else {
            2.0 * (meters / self.acceleration).sqrt()
        }
    }

    /// Returns the seconds into a motion over `meters` after which `part` meters are behind it;
    /// `None` once it slows down.
    #[must_use]
    pub fn passes(&self, meters: f64, part: f64) -> Option<f64> {
        let ramp = self.speed * self.speed / (2.0 * self.acceleration);
        let braking_start = if meters >= 2.0 * ramp { meters - ramp } else { meters / 2.0 };
        if part > braking_start {
            return None;
        }
        Some(if part <= ramp {
            (2.0 * part / self.acceleration).sqrt()
        } else {
            self.speed / self.acceleration + (part - ramp) / self.speed
        })
    }

    fn crab(&self, kind: f64, unit: f64) -> f64 {
        let (min, max) = if kind < self.crab_fast_share {
            (self.crab_min, self.crab_fast_max)
        } else {
            (self.crab_fast_max, self.crab_max)
        };
        min + unit * (max - min)
    }

    fn handling(&self, mean: f64, unit: f64) -> f64 {
        mean * (1.0 - self.handling_spread + 2.0 * self.handling_spread * unit)
    }
}

impl Default for MechanicsParameters {
    fn default() -> Self {
        Self::PAPER
    }
}

/// The timing of the machines: the mechanics with a read throughput and a track size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mechanics {
    parameters: MechanicsParameters,
    throughput: Throughput,
    track_size: ByteCount,
    time_scale: f64,
}

impl Mechanics {
    /// Creates the paper's mechanics, reading tracks of `track_size` with drives of `throughput`.
    #[must_use]
    pub const fn new(throughput: Throughput, track_size: ByteCount) -> Self {
        Self { parameters: MechanicsParameters::PAPER, throughput, track_size, time_scale: 1.0 }
    }

    /// Replaces the parameters.
    #[must_use]
    pub const fn with_parameters(self, parameters: MechanicsParameters) -> Self {
        Self { parameters, ..self }
    }

    /// Multiplies all durations by `time_scale`; at 0 the machines take no time.
    #[must_use]
    pub const fn with_time_scale(self, time_scale: f64) -> Self {
        Self { time_scale, ..self }
    }

    /// Returns `duration` on this time scale.
    fn scaled(&self, duration: Duration) -> Duration {
        if self.time_scale.to_bits() == 1.0_f64.to_bits() {
            return duration;
        }
        Duration::from_secs_f64(duration.as_secs_f64() * self.time_scale)
    }

    /// Returns how long one execution of `action` takes. Draws the same number of values for the
    /// same kind of action, so that streams stay aligned.
    #[must_use]
    pub fn duration(&self, action: &Action, random: &mut RandomStream) -> Duration {
        let parameters = &self.parameters;
        let seconds = match action {
            Action::Move { from, to, .. } => {
                parameters.travel(from.meters_to(*to)) + parameters.fine_tuning
            }
            Action::Crab { .. } => parameters.crab(random.unit(), random.unit()),
            Action::Pick { .. } => {
                parameters.handling(parameters.place + parameters.pick_extra, random.unit())
            }
            Action::Place { .. } => parameters.handling(parameters.place, random.unit()),
            Action::Charge { .. } => return self.scaled(CHARGE_INTERVAL),
            Action::Mount { .. } | Action::Unmount { .. } => parameters.mount,
            Action::Switch { .. } => parameters.switch,
            Action::Seek { .. } => seek(random.unit()),
            Action::Read { tracks, .. } | Action::VerifyPass { tracks, .. } => {
                return self.read(*tracks);
            }
        };
        self.scaled(Duration::from_secs_f64(seconds))
    }

    /// Returns when a motion over `meters` has `part` of them behind it, see
    /// [`MechanicsParameters::passes`].
    #[must_use]
    pub fn passes(&self, meters: f64, part: f64) -> Option<Duration> {
        let seconds = self.parameters.passes(meters, part)?;
        Some(self.scaled(Duration::from_secs_f64(seconds)))
    }

    /// Returns how long a drive reads these tracks. A halted pass ends at a multiple of one track's
    /// time.
    #[must_use]
    pub fn read(&self, tracks: TrackSpan) -> Duration {
        // 64 bits are enough up to 18 GB, and wider divisions are slow.
        let count = u64::from(tracks.track_count);
        let per_second = self.throughput.bytes_per_second();
        let bytes = count.checked_mul(self.track_size.get());
        let nanos = match bytes.and_then(|bytes| bytes.checked_mul(1_000_000_000)) {
            Some(product) => product / per_second,
            None => self.read_long(count, per_second),
        };
        self.scaled(Duration::from_nanos(nanos))
    }

    fn read_long(&self, track_count: u64, per_second: u64) -> u64 {
        let bytes = u128::from(track_count) * u128::from(self.track_size.get());
        let nanos = bytes * 1_000_000_000 / u128::from(per_second);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// What a read drive reads per second: a multiple of 30 MB/s up to 210 (Silica, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Throughput(u32);

impl Throughput {
    /// The drives the paper settles on: 60 MB/s.
    pub const PAPER: Self = Self(60);

    /// Creates a throughput of `megabytes` of 1,000,000 bytes per second.
    ///
    /// # Errors
    /// When no drive has this throughput.
    pub const fn new(megabytes: u32) -> Result<Self, Error> {
        if megabytes == 0 || megabytes > 210 || !megabytes.is_multiple_of(30) {
            return Err(Error::Throughput { megabytes });
        }
        Ok(Self(megabytes))
    }

    /// Bytes per second.
    #[must_use]
    pub const fn bytes_per_second(self) -> u64 {
        self.0 as u64 * 1_000_000
    }
}

impl TryFrom<u32> for Throughput {
    type Error = Error;
    fn try_from(megabytes: u32) -> Result<Self, Error> {
        Self::new(megabytes)
    }
}

impl From<Throughput> for u32 {
    fn from(throughput: Throughput) -> Self {
        throughput.0
    }
}

/// Returns the seek time at the quantile `unit`, linear between the points.
fn seek(unit: f64) -> f64 {
    let above = SEEK.iter().position(|&(share, _)| unit < share).unwrap_or(SEEK.len() - 1);
    let ((low, from), (high, to)) = (SEEK[above.max(1) - 1], SEEK[above.max(1)]);
    from + (unit - low) / (high - low) * (to - from)
}
