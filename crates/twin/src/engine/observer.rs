//! Observers of a run. The system defines what they can observe.

use fulgurite_units::Instant;

use super::System;

/// Observes a run, event by event.
pub trait Observer<S: System> {
    /// Observes an event.
    fn observe(&mut self, now: Instant, observation: S::Observation<'_>);
    /// Returns whether the observer has seen enough. The run then ends, even with events pending.
    fn is_satisfied(&self) -> bool {
        false
    }
}

/// Observes nothing, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl<S: System> Observer<S> for NullObserver {
    #[inline]
    fn observe(&mut self, _: Instant, _: S::Observation<'_>) {}
}

/// An optional observer.
impl<S: System, O: Observer<S>> Observer<S> for Option<O> {
    fn observe(&mut self, now: Instant, observation: S::Observation<'_>) {
        self.iter_mut().for_each(|one| one.observe(now, observation));
    }

    fn is_satisfied(&self) -> bool {
        self.as_ref().is_some_and(Observer::is_satisfied)
    }
}

/// A pair of observers; either may end the run.
impl<S: System, A: Observer<S>, B: Observer<S>> Observer<S> for (A, B) {
    fn observe(&mut self, now: Instant, observation: S::Observation<'_>) {
        self.0.observe(now, observation);
        self.1.observe(now, observation);
    }

    fn is_satisfied(&self) -> bool {
        self.0.is_satisfied() || self.1.is_satisfied()
    }
}
