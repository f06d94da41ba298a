//! Time without a clock: instants on a driver's own axis, durations, and wall-clock time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A point on a driver's time axis, in nanoseconds since that driver started.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(u64);

impl Instant {
    /// The start of the axis.
    pub const ZERO: Self = Self(0);

    /// Creates the instant `ns` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`, zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration.0)
    }
}

/// The deadline of a request, carried along so that queues can be ordered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(pub UnixTime);

/// Marks a read that verifies the reader's own write. Nobody waits for its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadBack;

/// A length of time in nanoseconds. Displayed and parsed with units: `250ms`, `30s`, `24h`, `7d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates a duration of `ns` nanoseconds.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Creates a duration of `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Creates a duration of `seconds` seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1_000_000_000)
    }

    /// Rounds `seconds` to the nearest nanosecond; negative values and NaN become zero.
    #[must_use]
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        let ns = seconds * 1e9;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float casts saturate, and a negative or NaN length is zero by contract"
        )]
        let whole = ns as u64;
        // Rounded by hand: without a CPU instruction for it, `round` is a library call. The
        // difference is exact, because above 2^53 every float is whole.
        #[expect(clippy::cast_precision_loss, reason = "the whole part is exact as a float")]
        let rounds_up = ns - whole as f64 >= 0.5;
        Self(whole.saturating_add(u64::from(rounds_up)))
    }

    /// Returns whole nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns seconds, with fractions.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "53 bits of nanoseconds hold 104 days exactly"
        )]
        let ns = self.0 as f64;
        ns / 1e9
    }
}

impl std::ops::Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        Self::from_nanos(duration.0)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = UNITS
            .iter()
            .copied()
            .find(|&(_, unit)| self.0 >= unit && self.0.is_multiple_of(unit))
            .unwrap_or(("s", 1_000_000_000));
        write!(f, "{}{name}", self.0 / unit)
    }
}

/// A duration could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseDurationError(String);

impl fmt::Display for ParseDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not a duration; write a whole number and a unit, like 30s", self.0)
    }
}

impl std::error::Error for ParseDurationError {}

impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseDurationError(text.to_owned());
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(fail)?;
        let (digits, unit) = text.split_at(digits_end);
        let number: u64 = digits.parse().map_err(|_| fail())?;
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, f)| f);
        number.checked_mul(factor.ok_or_else(fail)?).map(Self).ok_or_else(fail)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            u64::deserialize(deserializer).map(Self)
        }
    }
}

/// Wall-clock time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct UnixTime(u64);

impl UnixTime {
    /// Creates the time `ms` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Returns milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the time since `earlier`, zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
