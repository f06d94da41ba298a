//! The read rate over time: warm-up, window with a burst, cool-down, and a modulation over it.
//!
//! ```text
//! rate            +------+
//!                 | burst|
//!        +--------+      +-------------+
//! -------+                             +---------------
//! warm-up|           window            |   cool-down
//! ```
//!
//! The rate is constant between steps, so that arrivals are exact: no thinning, no rejected draws.

use fulgurite_units::{Duration, Instant, Ratio, Seed};
use serde::{Deserialize, Serialize};

use super::draws::{Draws, Exponentials, exp2, floor};
use super::{check_range, share};
use crate::Error;

/// Maximum reads per second: the nanoseconds of a trace must tell them apart.
const RATE_MAX: f64 = 1e6;
/// Maximum number of modulation intervals: a century of hours.
const INTERVALS_MAX: u64 = 876_600;
/// Longest trace: 100 years.
const LENGTH_MAX: u64 = 36_525 * 86_400;
const HOUR: u64 = 3_600;

/// The read rate over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// Time before the measured window; 6 h.
    pub warm_up: Duration,
    /// Length of the measured window; 12 h.
    pub window: Duration,
    /// Time after it; 12 h.
    pub cool_down: Duration,
    /// Mean reads per second in the window.
    pub window_rate: f64,
    /// Reads per second before and after; 0.3.
    pub quiet_rate: f64,
    /// A part of the window with more reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// A random factor of the rate, over the whole trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modulation: Option<Modulation>,
}

/// A part of the window with more reads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// When it begins, from the start of the window; 3 h.
    pub start: Duration,
    /// Its length.
    pub length: Duration,
    /// Share of the window's reads that it contains.
    pub share: Ratio,
}

impl Burst {
    /// Creates a burst 3 h into the window.
    pub(super) fn new(of_reads: f64, length: Duration) -> Self {
        Self { start: Duration::from_secs(3 * HOUR), length, share: share(of_reads) }
    }
}

/// A lognormal factor of the rate, of mean 1, that changes at each interval. Silica section 2 says
/// how far the hourly rates of data centers spread (tail over median up to 1e7), not how they
/// change: the shape is an assumption, and deviation and correlation are meant to be varied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modulation {
    /// How long a factor holds.
    pub interval: Duration,
    /// Standard deviation of the factor's natural logarithm; zero is a steady rate. The 99.9th
    /// percentile of the factor over its median is e^(3.09 deviation). Hourly bytes of half a year
    /// have, with sizes and jobs: 11 at 0, 25 at 1, 500 at 2, 8e4 at 3; 1e7 at 4 for 10 libraries.
    pub deviation: f64,
    /// Correlation of the logarithms of neighboring intervals.
    pub correlation: Ratio,
}

impl Modulation {
    /// Returns an hourly modulation of deviation 2 (tail over median 480), correlation 0.8.
    /// Assumed.
    #[must_use]
    pub fn hourly() -> Self {
        let interval = Duration::from_secs(HOUR);
        Self { interval, deviation: 2.0, correlation: share(0.8) }
    }
}

impl Envelope {
    /// Returns 6 h warm-up, 12 h window, 12 h cool-down; 0.3 reads/s around the window.
    #[must_use]
    pub const fn twelve_hours(window_rate: f64, burst: Option<Burst>) -> Self {
        Self {
            warm_up: Duration::from_secs(6 * HOUR),
            window: Duration::from_secs(12 * HOUR),
            cool_down: Duration::from_secs(12 * HOUR),
            window_rate,
            quiet_rate: super::LIBRARY_RATE,
            burst,
            modulation: None,
        }
    }

    /// Returns the time from the first read to the end of the cool-down.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.warm_up + self.window + self.cool_down
    }

    /// Returns when the window begins: reads from here on are measured.
    #[must_use]
    pub fn window_from(&self) -> Instant {
        Instant::ZERO + self.warm_up
    }

    /// Returns when the window ends.
    #[must_use]
    pub fn window_until(&self) -> Instant {
        self.window_from() + self.window
    }

    /// Returns the expected number of reads in the whole trace.
    #[must_use]
    pub fn reads_mean(&self) -> f64 {
        let quiet = self.warm_up.as_secs_f64() + self.cool_down.as_secs_f64();
        self.window_rate * self.window.as_secs_f64() + self.quiet_rate * quiet
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let rate = "from 0 to 1000000 per second";
        check_range("envelope.window_rate", self.window_rate, 0.0..=RATE_MAX, rate)?;
        check_range("envelope.quiet_rate", self.quiet_rate, 0.0..=RATE_MAX, rate)?;
        let longest = Duration::from_secs(LENGTH_MAX);
        let lengths = [self.warm_up, self.window, self.cool_down];
        if lengths.iter().any(|&length| length > longest) || self.length() > longest {
            return Err(refuse(
                "envelope.window",
                self.window,
                "at most 100 years including warm-up and cool-down",
            ));
        }
        if let Some(burst) = self.burst {
            let within = burst.start <= self.window
                && burst.length.as_nanos() <= self.window.as_nanos() - burst.start.as_nanos();
            if burst.length == Duration::ZERO || !within {
                return Err(refuse("envelope.burst.length", burst.length, "within the window"));
            }
            let rates = [burst.share.get() * self.window_rate * self.window.as_secs_f64()]
                .map(|reads| reads / burst.length.as_secs_f64());
            check_range("envelope.burst.share", rates[0], 0.0..=RATE_MAX, rate)?;
        }
        self.modulation.map_or(Ok(()), |modulation| modulation.validate(self.length()))
    }

    /// Returns the phases in the order of time: length and reads per second.
    fn phases(&self) -> [(Duration, f64); 5] {
        let window = self.window.as_secs_f64();
        let burst = self.burst.unwrap_or(Burst {
            start: self.window,
            length: Duration::ZERO,
            share: Ratio::ZERO,
        });
        let length = burst.length.as_secs_f64();
        let reads = self.window_rate * window;
        let per_second =
            |reads: f64, seconds: f64| if seconds > 0.0 { reads / seconds } else { 0.0 };
        let outside = per_second(reads * (1.0 - burst.share.get()), window - length);
        let after = self.window.as_nanos() - burst.start.as_nanos() - burst.length.as_nanos();
        [
            (self.warm_up, self.quiet_rate),
            (burst.start, outside),
            (burst.length, per_second(reads * burst.share.get(), length)),
            (Duration::from_nanos(after), outside),
            (self.cool_down, self.quiet_rate),
        ]
    }

    /// Returns the steps of the rate, for something that occurs `per_read` times per read.
    pub(super) fn steps(&self, per_read: f64, seed: &Seed) -> Steps {
        let mut factors = self.modulation.map(|modulation| Factors::new(modulation, seed));
        let (mut steps, mut begin) = (Vec::new(), 0);
        for (length, rate) in self.phases() {
            let phase_end = begin + length.as_nanos();
            while begin < phase_end {
                let (factor, until) = factors.as_mut().map_or((1.0, u64::MAX), |f| f.at(begin));
                let end = until.min(phase_end);
                steps.push(Step::new(end, rate * per_read * factor / 1e9));
                begin = end;
            }
        }
        Steps { steps, current: 0, gaps: Exponentials::new(seed, b"arrivals"), now: 0 }
    }
}

impl Modulation {
    fn validate(&self, length: Duration) -> Result<(), Error> {
        let field = "envelope.modulation.deviation";
        check_range(field, self.deviation, 0.0..=10.0, "from 0 to 10")?;
        let nanos = self.interval.as_nanos();
        if nanos == 0 || length.as_nanos() / nanos > INTERVALS_MAX {
            let field = "envelope.modulation.interval";
            return Err(refuse(
                field,
                self.interval,
                "long enough to need at most 876600 intervals",
            ));
        }
        Ok(())
    }
}

/// Factors of a modulation, one interval after another.
#[derive(Debug)]
struct Factors {
    modulation: Modulation,
    draws: Draws,
    /// The logarithm, in standard deviations.
    level: f64,
    end: u64,
}

impl Factors {
    fn new(modulation: Modulation, seed: &Seed) -> Self {
        let mut draws = Draws::new(seed, b"modulation");
        let level = draws.normal();
        Self { modulation, draws, level, end: modulation.interval.as_nanos() }
    }

    /// Returns the factor at this time, which never goes back, and until when it holds.
    fn at(&mut self, nanos: u64) -> (f64, u64) {
        let correlation = self.modulation.correlation.get();
        while nanos >= self.end {
            let fresh = (1.0 - correlation * correlation).sqrt() * self.draws.normal();
            self.level = correlation * self.level + fresh;
            self.end += self.modulation.interval.as_nanos();
        }
        let deviation = self.modulation.deviation;
        // Subtracting half of the square makes the mean 1.
        let logarithm = deviation * self.level - deviation * deviation / 2.0;
        (exp2(logarithm * std::f64::consts::LOG2_E), self.end)
    }
}

/// A rate that is constant until a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    end: u64,
    per_nano: f64,
    /// Nanoseconds per arrival, so that arrivals need no division; never used when the rate is
    /// zero.
    nanos: f64,
}

impl Step {
    pub(super) fn new(end: u64, per_nano: f64) -> Self {
        Self { end, per_nano, nanos: 1.0 / per_nano }
    }
}

/// Poisson arrivals under a rate that changes in steps: the integral of the rate between two
/// arrivals is exponential with mean 1.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    steps: Vec<Step>,
    current: usize,
    gaps: Exponentials,
    now: u64,
}

impl Steps {
    pub(super) const fn new(steps: Vec<Step>, gaps: Exponentials) -> Self {
        Self { steps, current: 0, gaps, now: 0 }
    }

    /// Returns when the last step ends.
    pub(super) fn end(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.end)
    }

    /// Returns the next arrival, in nanoseconds, if there is one before the last step ends.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        let mut wanted = self.gaps.draw();
        loop {
            let step = self.steps.get(self.current)?;
            let room = (step.end - self.now) as f64 * step.per_nano;
            if wanted < room {
                let nanos = floor(wanted * step.nanos);
                self.now = (self.now + nanos).min(step.end - 1);
                return Some(self.now);
            }
            wanted -= room;
            self.now = step.end;
            self.current += 1;
        }
    }
}

fn refuse(field: &'static str, value: Duration, expected: &'static str) -> Error {
    Error::Parameter { field, value: value.to_string(), expected }
}
