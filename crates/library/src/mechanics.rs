//! How long each mechanical operation takes, after the prototype of Silica section 7.1.
//!
//! Pure: an operation and a random stream give a duration. Both drivers use it: the live one to
//! emulate machines that are not there, the twin to schedule completions. The controller never
//! sees it. Values the paper states are marked "given"; the others only appear in its figures and
//! are assumed so that the paper's travel tails come out (29.4 s at the 99.9th percentile in a
//! partition, section 7.5).

use fulgurite_units::{ByteCount, Duration, RandomStream};
use serde::{Deserialize, Serialize};

use crate::{Action, Error, TrackSpan};

/// Top speed of a shuttle, in m/s. Assumed: half a panel (4 racks of 1.2 m) in about 28 s.
const SPEED: f64 = 0.17;
/// Acceleration and deceleration of a shuttle, in m/s^2. Assumed; it hardly matters.
const ACCELERATION: f64 = 0.5;
/// Alignment after each horizontal motion, in s. Given.
const FINE_TUNING: f64 = 0.5;
/// Share of crabs that take 3 s or less. Given.
const CRAB_FAST_SHARE: f64 = 0.86;
/// Fastest crab, in s. Given: 88 ms below the slowest.
const CRAB_MIN: f64 = 2.932;
/// What a fast crab stays below, in s. Given.
const CRAB_FAST_MAX: f64 = 3.0;
/// Slowest crab, in s. Given.
const CRAB_MAX: f64 = 3.02;
/// Mean time to place a platter, in s. Assumed: "a few seconds" in a figure.
const PLACE: f64 = 1.915;
/// What a pick takes more than a place, in s. Given.
const PICK_EXTRA: f64 = 0.17;
/// Spread of pick and place around their means. Assumed.
const HANDLING_SPREAD: f64 = 0.1;
/// Mounting, unmounting and fast switching, in s. Given, as a conservative constant.
const MOUNT: f64 = 1.0;
/// Chances and seek times in s. The median of 0.6 and the maximum of 2 are given; the others are
/// assumed.
const SEEK: [(f64, f64); 7] =
    [(0.0, 0.1), (0.25, 0.42), (0.5, 0.6), (0.75, 0.82), (0.95, 1.25), (0.995, 1.7), (1.0, 2.0)];

/// The machines' timing: the paper's mechanics with a read throughput and a track size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanics {
    throughput: Throughput,
    track_size: ByteCount,
}

impl Mechanics {
    /// The paper's mechanics, reading tracks of `track_size` with drives of `throughput`.
    #[must_use]
    pub const fn new(throughput: Throughput, track_size: ByteCount) -> Self {
        Self { throughput, track_size }
    }

    /// How long one execution of `action` takes. Draws the same number of values for the same kind
    /// of action, so that streams stay aligned.
    #[must_use]
    pub fn duration(&self, action: &Action, random: &mut RandomStream) -> Duration {
        let seconds = match action {
            Action::Move { from, to, .. } => travel(from.meters_to(*to)) + FINE_TUNING,
            Action::Crab { .. } => crab(random.unit(), random.unit()),
            Action::Pick { .. } => handling(PLACE + PICK_EXTRA, random.unit()),
            Action::Place { .. } => handling(PLACE, random.unit()),
            Action::Mount { .. } | Action::Unmount { .. } | Action::Switch { .. } => MOUNT,
            Action::Seek { .. } => seek(random.unit()),
            Action::Read { tracks, .. } | Action::VerifyPass { tracks, .. } => {
                return self.read(*tracks);
            }
        };
        Duration::from_secs_f64(seconds)
    }

    /// How long a drive reads these tracks. A halted pass ends at a multiple of one track's time.
    #[must_use]
    pub fn read(&self, tracks: TrackSpan) -> Duration {
        let bytes = u128::from(tracks.track_count) * u128::from(self.track_size.get());
        let nanos = bytes * 1_000_000_000 / u128::from(self.throughput.bytes_per_second());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// What a read drive reads per second: a multiple of 30 MB/s up to 210 (Silica, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Throughput(u32);

impl Throughput {
    /// The drives the paper settles on: 60 MB/s.
    pub const PAPER: Self = Self(60);

    /// `megabytes` of 1,000,000 bytes per second.
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

/// Seconds for a trapezoid of speed over `meters`; a triangle when top speed is never reached.
fn travel(meters: f64) -> f64 {
    if meters >= SPEED * SPEED / ACCELERATION {
        meters / SPEED + SPEED / ACCELERATION
    } else {
        2.0 * (meters / ACCELERATION).sqrt()
    }
}

fn crab(kind: f64, unit: f64) -> f64 {
    let (min, max) =
        if kind < CRAB_FAST_SHARE { (CRAB_MIN, CRAB_FAST_MAX) } else { (CRAB_FAST_MAX, CRAB_MAX) };
    min + unit * (max - min)
}

fn handling(mean: f64, unit: f64) -> f64 {
    mean * (1.0 - HANDLING_SPREAD + 2.0 * HANDLING_SPREAD * unit)
}

/// The seek time below which a share `unit` of all seeks stay, linear between the points.
fn seek(unit: f64) -> f64 {
    let above = SEEK.iter().position(|&(share, _)| unit < share).unwrap_or(SEEK.len() - 1);
    let ((low, from), (high, to)) = (SEEK[above.max(1) - 1], SEEK[above.max(1)]);
    from + (unit - low) / (high - low) * (to - from)
}
