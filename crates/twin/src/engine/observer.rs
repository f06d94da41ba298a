//! Who watches a run. What there is to see is the system's to say.

use fulgurite_units::Instant;

use super::System;

/// Watches a run, event by event.
pub trait Observer<S: System> {
    /// Something happened.
    fn see(&mut self, now: Instant, seen: S::Seen<'_>);
    /// Whether enough was seen: the run ends here, whatever is still to come.
    fn has_enough(&self) -> bool {
        false
    }
}

/// Watches nothing, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl<S: System> Observer<S> for Silent {
    #[inline]
    fn see(&mut self, _: Instant, _: S::Seen<'_>) {}
}

/// Watches if there is somebody.
impl<S: System, O: Observer<S>> Observer<S> for Option<O> {
    fn see(&mut self, now: Instant, seen: S::Seen<'_>) {
        self.iter_mut().for_each(|one| one.see(now, seen));
    }

    fn has_enough(&self) -> bool {
        self.as_ref().is_some_and(Observer::has_enough)
    }
}

/// Two watch; either may end the run.
impl<S: System, A: Observer<S>, B: Observer<S>> Observer<S> for (A, B) {
    fn see(&mut self, now: Instant, seen: S::Seen<'_>) {
        self.0.see(now, seen);
        self.1.see(now, seen);
    }

    fn has_enough(&self) -> bool {
        self.0.has_enough() || self.1.has_enough()
    }
}
