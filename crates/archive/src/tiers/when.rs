//! When staged bodies are brought to a tier: at once, or when it has time for them.
//!
//! Disks that sleep are woken for many bodies together, at low load (Pelican, OSDI 2014, section
//! 3: writes are staged, and what is beneath decides when they come).

use std::fmt;
use std::sync::Arc;

use fulgurite_units::{ByteCount, Duration, UnixTime};

/// When bodies that wait for a tier begin to be brought there. Once begun it goes on until none
/// waits.
#[derive(Clone, Debug, Default)]
pub enum MoveWhen {
    /// As they come.
    #[default]
    AtOnce,
    /// When the tier is calm and the first waits for `calm_age`; or, calm or not, when it waits for
    /// `age`, or so many bytes do.
    Waits {
        /// How long the first waits while the tier is calm.
        calm_age: Duration,
        /// How long it waits at most.
        age: Duration,
        /// Plain bytes that wait at most, for all tiers together.
        bytes: ByteCount,
        /// Whether the tier is calm.
        calm: Calm,
    },
}

/// Tells whether a tier is calm. Asks nothing that takes time.
#[derive(Clone)]
pub struct Calm(Arc<dyn Fn() -> bool + Send + Sync>);

impl Calm {
    /// What tells it.
    pub fn new(is_calm: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_calm))
    }
}

impl fmt::Debug for Calm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calm")
    }
}

impl MoveWhen {
    /// Whether bodies begin to be brought, of which the first came `since` and all have so many
    /// bytes.
    pub(super) fn is_due(&self, now: UnixTime, since: UnixTime, waiting: ByteCount) -> bool {
        match self {
            Self::AtOnce => true,
            Self::Waits { calm_age, age, bytes, calm } => {
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
    fn bodies_wait_for_calm_and_not_for_ever() {
        let is_calm = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_calm);
        let when = MoveWhen::Waits {
            calm_age: Duration::from_secs(10),
            age: Duration::from_secs(100),
            bytes: ByteCount::new(1000),
            calm: Calm::new(move || asked.load(Ordering::SeqCst)),
        };
        let is_due = |seconds: u64, bytes: u64| {
            let now = UnixTime::from_millis(5000 + seconds * 1000);
            when.is_due(now, UnixTime::from_millis(5000), ByteCount::new(bytes))
        };
        assert!(!is_due(99, 999), "it is not calm");
        assert!(is_due(100, 1), "it waited for as long as anything may");
        assert!(is_due(0, 1000), "staging fills up");
        is_calm.store(true, Ordering::SeqCst);
        assert!(!is_due(9, 999), "others may come to go along");
        assert!(is_due(10, 1));
        // A clock that was put back waits anew, and no more.
        assert!(!when.is_due(
            UnixTime::from_millis(0),
            UnixTime::from_millis(5000),
            ByteCount::ZERO
        ));
        assert!(MoveWhen::AtOnce.is_due(
            UnixTime::from_millis(0),
            UnixTime::from_millis(9),
            ByteCount::ZERO
        ));
    }
}
