//! One run of any system: external arrivals and pending events, in the order of time.
//!
//! ```text
//!   arrivals --.                        .--> agenda (pending events)
//!              +--> System --> Stage ---+--> hash   (past events, their order and times)
//!   agenda ----'                        '--> observer
//! ```

use std::hash::{Hash, Hasher as _};

use fulgurite_units::{Instant, Seed};

use super::hash::RunHash;
use super::{Agenda, Observer, Silent, System};
use crate::Error;

/// The part of a run that its system can use.
#[derive(Debug)]
pub struct Stage<'o, S: System, O> {
    agenda: Agenda<S::Next>,
    hash: RunHash,
    events: u64,
    observer: &'o mut O,
    now: Instant,
    more_to_come: bool,
}

/// How a run ended, for its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The seed of the run.
    pub seed: u64,
    /// Time of the last event.
    pub at: Instant,
    /// Number of events.
    pub events: u64,
    /// Hash of the run: it differs as soon as any event, its order or its time differs.
    pub hash: u64,
}

impl<S: System, O: Observer<S>> Stage<'_, S, O> {
    /// Returns the current time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Schedules an event.
    pub fn put(&mut self, at: Instant, next: S::Next) {
        self.agenda.push(at, next);
    }

    /// Returns the event queue, for code that schedules events on behalf of the system.
    pub const fn agenda(&mut self) -> &mut Agenda<S::Next> {
        &mut self.agenda
    }

    /// Returns whether more arrivals will come.
    #[must_use]
    pub const fn more_to_come(&self) -> bool {
        self.more_to_come
    }

    /// Counts an event and adds it to the hash with the time. All events of a system are of one
    /// type, so two that differ in anything hash differently.
    #[inline]
    pub fn note(&mut self, event: &impl Hash) {
        self.events += 1;
        self.hash.note(self.now, event);
    }

    /// Shows something to the observer.
    #[inline]
    pub fn show(&mut self, seen: S::Seen<'_>) {
        self.observer.see(self.now, seen);
    }
}

/// Runs a scenario.
///
/// # Errors
/// When a parameter is out of range.
pub fn run<S: System>(scenario: &S::Scenario, seed: u64) -> Result<S::Result, Error> {
    run_observed::<S, _>(scenario, seed, &mut Silent)
}

/// Runs a scenario with an observer.
///
/// # Errors
/// When a parameter is out of range.
pub fn run_observed<S: System, O: Observer<S>>(
    scenario: &S::Scenario,
    seed: u64,
    observer: &mut O,
) -> Result<S::Result, Error> {
    let root = Seed::new(seed);
    let arrivals = S::arrivals(scenario, &root)?;
    run_arrivals::<S, O>(scenario, seed, arrivals, observer)
}

/// Runs a scenario with the given arrivals, in the order of time, instead of its own.
///
/// # Errors
/// When a parameter is out of range.
pub fn run_arrivals<S: System, O: Observer<S>>(
    scenario: &S::Scenario,
    seed: u64,
    arrivals: impl Iterator<Item = S::Arrival>,
    observer: &mut O,
) -> Result<S::Result, Error> {
    let mut agenda = Agenda::new();
    let system = S::new(scenario, &Seed::new(seed), &mut agenda)?;
    let stage = Stage {
        agenda,
        hash: RunHash::default(),
        events: 0,
        observer,
        now: Instant::ZERO,
        more_to_come: true,
    };
    let mut run = Run { system, stage };
    run.play(arrivals);
    let Run { system, stage } = run;
    let (events, hash) = (stage.events, stage.hash.finish());
    Ok(system.result(Ended { seed, at: stage.now, events, hash }))
}

/// Checks whether a scenario can be run, without running it.
///
/// # Errors
/// When a parameter is out of range.
pub fn check<S: System>(scenario: &S::Scenario) -> Result<(), Error> {
    let seed = Seed::new(0);
    S::arrivals(scenario, &seed).map(|_| ())?;
    S::new(scenario, &seed, &mut Agenda::new()).map(|_| ())
}

struct Run<'o, S: System, O> {
    system: S,
    stage: Stage<'o, S, O>,
}

impl<S: System, O: Observer<S>> Run<'_, S, O> {
    fn play(&mut self, arrivals: impl Iterator<Item = S::Arrival>) {
        for arrival in arrivals {
            let at = S::arrives_at(&arrival);
            self.happen_until(at);
            if self.stage.observer.has_enough() {
                return;
            }
            self.stage.now = at;
            self.system.arrive(&arrival, &mut self.stage);
        }
        self.stage.more_to_come = false;
        while !self.system.is_done()
            && !self.stage.observer.has_enough()
            && let Some((at, next)) = self.stage.agenda.pop()
        {
            self.happen(at, next);
        }
    }

    fn happen_until(&mut self, until: Instant) {
        while self.stage.agenda.next_at().is_some_and(|at| at <= until)
            && !self.stage.observer.has_enough()
            && let Some((at, next)) = self.stage.agenda.pop()
        {
            self.happen(at, next);
        }
    }

    fn happen(&mut self, at: Instant, next: S::Next) {
        self.stage.now = at;
        self.system.happen(next, &mut self.stage);
    }
}
