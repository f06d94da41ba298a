//! The one clock of an archive: wall-clock time and monotonic time. It is passed in, so that a test
//! can let days pass in an instant.
//!
//! Expiry and age use the wall clock, which may be set; backoff and timeouts use monotonic time,
//! which only grows. Nothing here reads a system clock: the creator of a [`Clock`] supplies the
//! readings, and [`ManualClock`] shows what its test set last.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Duration, Instant, UnixTime};

/// A callback for when a manual clock is advanced.
type Listener = Box<dyn Fn() + Send + Sync>;

/// A source of time.
trait TimeSource: Send + Sync {
    fn wall(&self) -> UnixTime;
    fn passed(&self) -> Instant;
    /// Whether time advances by itself. If not, listeners are called when it did.
    fn is_live(&self) -> bool;
    fn listen(&self, listener: Listener);
}

/// Returns wall-clock and monotonic time.
#[derive(Clone)]
pub struct Clock(Arc<dyn TimeSource>);

impl Clock {
    /// Creates a clock that advances by itself: `wall` returns wall-clock time, and `passed` the
    /// time since an origin of its own.
    #[must_use]
    pub fn new(
        wall: impl Fn() -> UnixTime + Send + Sync + 'static,
        passed: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(LiveTime { wall, passed }))
    }

    /// Returns the same clock with another wall clock.
    #[must_use]
    pub fn with_wall(&self, wall: impl Fn() -> UnixTime + Send + Sync + 'static) -> Self {
        let clock = self.clone();
        Self::new(wall, move || clock.passed())
    }

    /// Returns wall-clock time.
    #[must_use]
    pub fn now(&self) -> UnixTime {
        self.0.wall()
    }

    /// Returns monotonic time: the time since an origin that all users of this clock share.
    #[must_use]
    pub fn passed(&self) -> Instant {
        self.0.passed()
    }

    /// Returns how long a thread may sleep until monotonic time reaches `at`. `None` for a clock
    /// that does not advance by itself: a listener has to wake the thread instead.
    #[must_use]
    pub fn sleep_until(&self, at: Instant) -> Option<Duration> {
        self.0.is_live().then(|| at.since(self.0.passed()))
    }

    /// Calls `listener` after each advance of a manual clock. Other clocks never call it.
    pub fn listen(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.0.listen(Box::new(listener));
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).field(&self.passed()).finish()
    }
}

struct LiveTime<W, P> {
    wall: W,
    passed: P,
}

impl<W, P> TimeSource for LiveTime<W, P>
where
    W: Fn() -> UnixTime + Send + Sync,
    P: Fn() -> Instant + Send + Sync,
{
    fn wall(&self) -> UnixTime {
        (self.wall)()
    }

    fn passed(&self) -> Instant {
        (self.passed)()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn listen(&self, _: Listener) {}
}

/// A clock that stands still until its test advances it.
#[derive(Clone)]
pub struct ManualClock(Arc<ManualTime>);

struct ManualTime {
    current: Mutex<(UnixTime, Instant)>,
    listeners: Mutex<Vec<Listener>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ManualClock {
    /// Creates a clock that shows this wall-clock time.
    #[must_use]
    pub fn at(wall: UnixTime) -> Self {
        let current = Mutex::new((wall, Instant::ZERO));
        Self(Arc::new(ManualTime { current, listeners: Mutex::default() }))
    }

    /// Returns the `Clock` to pass to code under test.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock(Arc::clone(&self.0) as Arc<dyn TimeSource>)
    }

    /// Lets time pass and calls the listeners.
    pub fn advance(&self, duration: Duration) {
        {
            let mut current = lock(&self.0.current);
            let wall = current.0.as_millis() + duration.as_nanos() / 1_000_000;
            *current = (UnixTime::from_millis(wall), current.1 + duration);
        }
        lock(&self.0.listeners).iter().for_each(|listener| listener());
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&*lock(&self.0.current)).finish()
    }
}

impl TimeSource for ManualTime {
    fn wall(&self) -> UnixTime {
        lock(&self.current).0
    }

    fn passed(&self) -> Instant {
        lock(&self.current).1
    }

    fn is_live(&self) -> bool {
        false
    }

    fn listen(&self, listener: Listener) {
        lock(&self.listeners).push(listener);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn manual_clock_calls_listeners_when_advanced() {
        let manual = ManualClock::at(UnixTime::from_millis(5_000));
        let clock = manual.clock();
        let calls = Arc::new(AtomicU32::new(0));
        let (counter, observed) = (Arc::clone(&calls), clock.clone());
        clock.listen(move || {
            // The new time is visible when the listener runs.
            assert_eq!(observed.passed(), Instant::from_nanos(2_500_000_000));
            counter.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!((clock.now().as_millis(), clock.passed()), (5_000, Instant::ZERO));
        assert_eq!(clock.sleep_until(Instant::ZERO), None);
        manual.advance(Duration::from_millis(2_500));
        assert_eq!(clock.now().as_millis(), 7_500);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn running_clock_reports_how_long_to_sleep() {
        let at = Instant::from_nanos;
        let clock = Clock::new(|| UnixTime::from_millis(1), || Instant::from_nanos(70));
        assert_eq!(clock.sleep_until(at(100)), Some(Duration::from_nanos(30)));
        assert_eq!(clock.sleep_until(at(20)), Some(Duration::ZERO));
        let other = clock.with_wall(|| UnixTime::from_millis(9));
        assert_eq!((other.now().as_millis(), other.passed()), (9, at(70)));
    }
}
