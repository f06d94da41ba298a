//! When staged bodies are moved to a tier: immediately, or when it has time for them.
//!
//! Disks are spun up for many bodies together, at low load (Pelican, OSDI 2014, section 3: writes
//! are staged, and the layer below decides when they are written).

use std::fmt;
use std::sync::Arc;

use fulgurite_units::{ByteCount, Duration, UnixTime};

/// When moves of waiting bodies to a tier begin. Once begun, they continue until none waits.
#[derive(Clone, Debug, Default)]
pub enum MovePolicy {
    /// As they arrive.
    #[default]
    AtOnce,
    /// When the tier is calm (lightly loaded) and the first body has waited for `calm_age`; or, in
    /// any case, when it has waited for `age`, or `bytes` wait.
    Deferred {
        /// How long the first body waits for a calm tier.
        calm_age: Duration,
        /// Maximum wait of the first body.
        age: Duration,
        /// Maximum plaintext bytes waiting, for all tiers together.
        bytes: ByteCount,
        /// Whether the tier is calm.
        calm: Calm,
    },
}

/// A callback that returns whether a tier is calm (lightly loaded). It must return immediately.
#[derive(Clone)]
pub struct Calm(Arc<dyn Fn() -> bool + Send + Sync>);

impl Calm {
    /// Wraps a callback.
    pub fn new(is_calm: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_calm))
    }
}

impl fmt::Debug for Calm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calm")
    }
}

impl MovePolicy {
    /// Whether moves are due, given the arrival of the first body and the bytes of all that wait.
    pub(super) fn is_due(&self, now: UnixTime, since: UnixTime, waiting: ByteCount) -> bool {
        match self {
            Self::AtOnce => true,
            Self::Deferred { calm_age, age, bytes, calm } => {
                let waits =
                    Duration::from_millis(now.as_millis().saturating_sub(since.as_millis()));
                waits >= *age || waiting >= *bytes || (waits >= *calm_age && (calm.0)())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn bodies_wait_for_low_load_up_to_a_limit() {
        let is_calm = Arc::new(AtomicBool::new(false));
        let polled = Arc::clone(&is_calm);
        let move_policy = MovePolicy::Deferred {
            calm_age: Duration::from_secs(10),
            age: Duration::from_secs(100),
            bytes: ByteCount::new(1000),
            calm: Calm::new(move || polled.load(Ordering::SeqCst)),
        };
        let is_due = |seconds: u64, bytes: u64| {
            let now = UnixTime::from_millis(5000 + seconds * 1000);
            move_policy.is_due(now, UnixTime::from_millis(5000), ByteCount::new(bytes))
        };
        assert!(!is_due(99, 999), "the tier is busy");
        assert!(is_due(100, 1), "the maximum wait is over");
        assert!(is_due(0, 1000), "staging fills up");
        is_calm.store(true, Ordering::SeqCst);
        assert!(!is_due(9, 999), "more bodies may arrive to be moved together");
        assert!(is_due(10, 1));
        // A clock that was set back only restarts the wait.
        assert!(!move_policy.is_due(
            UnixTime::from_millis(0),
            UnixTime::from_millis(5000),
            ByteCount::ZERO
        ));
        assert!(MovePolicy::AtOnce.is_due(
            UnixTime::from_millis(0),
            UnixTime::from_millis(9),
            ByteCount::ZERO
        ));
    }
}
