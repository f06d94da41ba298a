//! The interface of a simulated system.

use std::fmt::Debug;

use fulgurite_units::{Instant, Seed};

use super::{Context, Ended, EventQueue, Observer};
use crate::Error;
use crate::metrics::Measured;
use crate::scenario::Scenario;

/// A system that can be simulated.
///
/// ```text
///   arrivals (in the order of time) -------handle_arrival--.
///   event queue: what the system scheduled --handle_event--+--> Context: queue, hash, observer
///                                                          '--> is_done? result
/// ```
///
/// It owns no clock, file or thread, and draws only from streams of its seed: a run is a function
/// of scenario and seed. Its effects go through the [`Context`]. Everything is resolved at compile
/// time: the loop of a run has no dynamic dispatch.
pub trait System: Debug + Sized {
    /// The scenario to simulate.
    type Scenario: Scenario;
    /// An external arrival, like the read of a file.
    type Arrival;
    /// A pending event.
    type PendingEvent: Copy + Debug;
    /// What an observer sees.
    type Observation<'a>: Copy;
    /// The measurements of a run.
    type Result: Measured;

    /// Creates the state before the first arrival and schedules the events that need no arrival.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn new(
        scenario: &Self::Scenario,
        seed: &Seed,
        event_queue: &mut EventQueue<Self::PendingEvent>,
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
    fn arrival_time(arrival: &Self::Arrival) -> Instant;

    /// Handles an external arrival. Pending events of the same time have been handled already.
    fn handle_arrival<O: Observer<Self>>(
        &mut self,
        arrival: &Self::Arrival,
        ctx: &mut Context<'_, Self, O>,
    );

    /// Handles a pending event.
    fn handle_event<O: Observer<Self>>(
        &mut self,
        next: Self::PendingEvent,
        ctx: &mut Context<'_, Self, O>,
    );

    /// Returns whether all arrivals are finished. Once no more come, this ends the run, whatever is
    /// still pending.
    fn is_done(&self) -> bool;

    /// Returns the measurements.
    fn result(self, ended: Ended) -> Self::Result;
}
