//! The system's clock, read here and nowhere else; all others are handed a clock.

use fulgurite_units::{Clock, UnixTime};

/// The system's clock, in milliseconds; zero when it is before 1970.
pub(crate) fn system() -> Clock {
    Clock::new(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let ms = since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
        UnixTime::from_millis(ms)
    })
}
