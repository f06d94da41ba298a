//! The system clock, read here and nowhere else; all other code is passed a clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fulgurite_units::{Clock, UnixTime};

/// Returns the system clock: wall-clock time in milliseconds, zero when it is before 1970, and the
/// time since this call.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where the system's clock is read")]
pub fn system() -> Clock {
    let wall = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let ms = since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
        UnixTime::from_millis(ms)
    };
    let started = Instant::now();
    let passed = move || {
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        fulgurite_units::Instant::from_nanos(ns)
    };
    Clock::new(wall, passed)
}
