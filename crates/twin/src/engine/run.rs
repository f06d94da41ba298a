//! One run of any system: external arrivals and pending events, in the order of time.
//!
//! ```text
//!   arrivals -----.                          .--> event queue (pending events)
//!                 +--> System --> Context ---+--> hash   (past events, their order and times)
//!   event queue --'                          '--> observer
//! ```

use std::hash::{Hash, Hasher as _};

use fulgurite_units::{Instant, Seed};

use super::hash::RunHash;
use super::{EventQueue, NullObserver, Observer, System};
use crate::Error;

/// The part of a run that its system can use.
#[derive(Debug)]
pub struct Context<'o, S: System, O> {
    event_queue: EventQueue<S::PendingEvent>,
    hash: RunHash,
    events: u64,
    observer: &'o mut O,
    now: Instant,
    has_more_arrivals: bool,
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

impl<S: System, O: Observer<S>> Context<'_, S, O> {
    /// Returns the current time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Schedules an event.
    pub fn put(&mut self, at: Instant, next: S::PendingEvent) {
        self.event_queue.push(at, next);
    }

    /// Returns the event queue, for code that schedules events on behalf of the system.
    pub const fn event_queue(&mut self) -> &mut EventQueue<S::PendingEvent> {
        &mut self.event_queue
    }

    /// Returns whether more arrivals will come.
    #[must_use]
    pub const fn has_more_arrivals(&self) -> bool {
        self.has_more_arrivals
    }

    /// Counts an event and adds it to the hash with the time. All events of a system are of one
    /// type, so two that differ in anything hash differently.
    #[inline]
    pub fn record(&mut self, event: &impl Hash) {
        self.events += 1;
        self.hash.record(self.now, event);
    }

    /// Shows something to the observer.
    #[inline]
    pub fn notify(&mut self, observation: S::Observation<'_>) {
        self.observer.observe(self.now, observation);
    }
}

/// Runs a scenario.
///
/// # Errors
/// When a parameter is out of range.
pub fn run<S: System>(scenario: &S::Scenario, seed: u64) -> Result<S::Result, Error> {
    run_observed::<S, _>(scenario, seed, &mut NullObserver)
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
    let mut event_queue = EventQueue::new();
    let system = S::new(scenario, &Seed::new(seed), &mut event_queue)?;
    let ctx = Context {
        event_queue,
        hash: RunHash::default(),
        events: 0,
        observer,
        now: Instant::ZERO,
        has_more_arrivals: true,
    };
    let mut run = Run { system, ctx };
    run.play(arrivals);
    let Run { system, ctx } = run;
    let (events, hash) = (ctx.events, ctx.hash.finish());
    Ok(system.result(Ended { seed, at: ctx.now, events, hash }))
}

/// Checks whether a scenario can be run, without running it.
///
/// # Errors
/// When a parameter is out of range.
pub fn check<S: System>(scenario: &S::Scenario) -> Result<(), Error> {
    let seed = Seed::new(0);
    S::arrivals(scenario, &seed).map(|_| ())?;
    S::new(scenario, &seed, &mut EventQueue::new()).map(|_| ())
}

struct Run<'o, S: System, O> {
    system: S,
    ctx: Context<'o, S, O>,
}

impl<S: System, O: Observer<S>> Run<'_, S, O> {
    fn play(&mut self, arrivals: impl Iterator<Item = S::Arrival>) {
        for arrival in arrivals {
            let at = S::arrival_time(&arrival);
            self.run_until(at);
            if self.ctx.observer.is_satisfied() {
                return;
            }
            self.ctx.now = at;
            self.system.handle_arrival(&arrival, &mut self.ctx);
        }
        self.ctx.has_more_arrivals = false;
        while !self.system.is_done()
            && !self.ctx.observer.is_satisfied()
            && let Some((at, next)) = self.ctx.event_queue.pop()
        {
            self.handle_event(at, next);
        }
    }

    fn run_until(&mut self, until: Instant) {
        while self.ctx.event_queue.next_at().is_some_and(|at| at <= until)
            && !self.ctx.observer.is_satisfied()
            && let Some((at, next)) = self.ctx.event_queue.pop()
        {
            self.handle_event(at, next);
        }
    }

    fn handle_event(&mut self, at: Instant, next: S::PendingEvent) {
        self.ctx.now = at;
        self.system.handle_event(next, &mut self.ctx);
    }
}
