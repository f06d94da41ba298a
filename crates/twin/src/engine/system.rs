//! What can be simulated.

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
///   agenda: what the system put there --happen-+--> Stage: agenda, hash, observer
///                                              '--> is_done? result
/// ```
///
/// It owns no clock, no file and no thread, and draws only from streams of the seed it is given:
/// so a run is a function of its scenario and its seed. What it does goes through the [`Stage`].
/// Everything is known when a program is compiled: nothing in the loop of a run is looked up.
pub trait System: Debug + Sized {
    /// What a scenario file says behind `system =`.
    const NAME: &'static str;
    /// What is simulated.
    type Scenario: Scenario;
    /// What comes from without, like the read of a file.
    type Arrival;
    /// Something on the agenda.
    type Next: Copy + Debug;
    /// What an observer is shown.
    type Seen<'a>: Copy;
    /// What a run measures.
    type Result: Measured;

    /// Everything as it is before the first arrival; what will happen by itself is put on the
    /// agenda.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn new(
        scenario: &Self::Scenario,
        seed: &Seed,
        agenda: &mut Agenda<Self::Next>,
    ) -> Result<Self, Error>;

    /// What comes from without, in the order of time.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn arrivals(
        scenario: &Self::Scenario,
        seed: &Seed,
    ) -> Result<impl Iterator<Item = Self::Arrival>, Error>;

    /// When something comes.
    fn arrives_at(arrival: &Self::Arrival) -> Instant;

    /// Something comes from without. What is on the agenda for the same time has happened.
    fn arrive<O: Observer<Self>>(
        &mut self,
        arrival: &Self::Arrival,
        stage: &mut Stage<'_, Self, O>,
    );

    /// Something on the agenda happens.
    fn happen<O: Observer<Self>>(&mut self, next: Self::Next, stage: &mut Stage<'_, Self, O>);

    /// Whether everything that came has ended. When nothing more comes the run is over then,
    /// whatever is on the agenda.
    fn is_done(&self) -> bool;

    /// What was measured.
    fn result(self, ended: Ended) -> Self::Result;
}
