//! The interface of a simulated system.

use std::fmt::Debug;

use fulgurite_units::{Instant, Seed};

use super::{Agenda, Ended, Observer, Stage};
use crate::Error;
use crate::measured::Measured;
use crate::scenario::Scenario;

/// A system that can be simulated.
///
/// ```text
///   arrivals (in the order of time) --arrive--.
///   agenda: what the system scheduled --happen-+--> Stage: agenda, hash, observer
///                                              '--> is_done? result
/// ```
///
/// It owns no clock, file or thread, and draws only from streams of its seed: a run is a function
/// of scenario and seed. Its effects go through the [`Stage`]. Everything is resolved at compile
/// time: the loop of a run has no dynamic dispatch.
pub trait System: Debug + Sized {
    /// The value of `system =` in a scenario file.
    const NAME: &'static str;
    /// The scenario to simulate.
    type Scenario: Scenario;
    /// An external arrival, like the read of a file.
    type Arrival;
    /// A pending event.
    type Next: Copy + Debug;
    /// What an observer sees.
    type Seen<'a>: Copy;
    /// The measurements of a run.
    type Result: Measured;

    /// Creates the state before the first arrival and schedules the events that need no arrival.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn new(
        scenario: &Self::Scenario,
        seed: &Seed,
        agenda: &mut Agenda<Self::Next>,
    ) -> Result<Self, Error>;

    /// Returns the external arrivals, in the order of time.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn arrivals(
        scenario: &Self::Scenario,
        seed: &Seed,
    ) -> Result<impl Iterator<Item = Self::Arrival>, Error>;

    /// Returns the time of an arrival.
    fn arrives_at(arrival: &Self::Arrival) -> Instant;

    /// Handles an external arrival. Pending events of the same time have been handled already.
    fn arrive<O: Observer<Self>>(
        &mut self,
        arrival: &Self::Arrival,
        stage: &mut Stage<'_, Self, O>,
    );

    /// Handles a pending event.
    fn happen<O: Observer<Self>>(&mut self, next: Self::Next, stage: &mut Stage<'_, Self, O>);

    /// Returns whether all arrivals are finished. Once no more come, this ends the run, whatever is
    /// still pending.
    fn is_done(&self) -> bool;

    /// Returns the measurements.
    fn result(self, ended: Ended) -> Self::Result;
}
