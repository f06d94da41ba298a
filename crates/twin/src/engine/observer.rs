//! Observers of a run. The system defines what they can observe.

use fulgurite_units::Instant;

use super::System;

/// Observes a run, event by event.
pub trait Observer<S: System> {
    /// Observes an event.
    fn see(&mut self, now: Instant, seen: S::Seen<'_>);
    /// Returns whether the observer has seen enough: the run then ends, whatever is still pending.
    fn has_enough(&self) -> bool {
        false
    }
}

/// Observes nothing, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl<S: System> Observer<S> for Silent {
    #[inline]
    fn see(&mut self, _: Instant, _: S::Seen<'_>) {}
}

/// An optional observer.
impl<S: System, O: Observer<S>> Observer<S> for Option<O> {
    fn see(&mut self, now: Instant, seen: S::Seen<'_>) {
        self.iter_mut().for_each(|one| one.see(now, seen));
    }

    fn has_enough(&self) -> bool {
        self.as_ref().is_some_and(Observer::has_enough)
    }
}

/// A pair of observers; either may end the run.
impl<S: System, A: Observer<S>, B: Observer<S>> Observer<S> for (A, B) {
    fn see(&mut self, now: Instant, seen: S::Seen<'_>) {
        self.0.see(now, seen);
        self.1.see(now, seen);
    }

    fn has_enough(&self) -> bool {
        self.0.has_enough() || self.1.has_enough()
    }
}
