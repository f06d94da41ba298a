//! When a job runs: a state machine of notifications, deadlines and outcomes.
//!
//! ```text
//!            notified, tick, order                done
//!        idle ---------------------> running ----------------> idle, or at once again
//!                                     |   ^
//!                        failed, waits|   | the backoff is over, or an order
//!                                     v   |
//!                                    resting
//! stop: idle and resting end, running ends after its run
//! ```
//!
//! A notification during a run is not lost: the job runs once more. A notification does not cut a
//! backoff short, otherwise failing work would be retried as often as clients notify; an operator's
//! order does. Each backoff is twice the previous one, up to the maximum of the pace. A failure is
//! reported when it differs from the one before, and again when it is over.
//!
//! Not here: what a job does, threads, and the clock.

use fulgurite_units::{Controller, Duration, Instant, Outbox};

/// How often a job polls, and how long it backs off after a failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Polling interval, from the end of the last run; `None` runs only when notified.
    pub(crate) tick: Option<Duration>,
    /// Backoff after the first of consecutive failures, and after a run that has to wait.
    pub(crate) rest: Duration,
    /// Maximum backoff.
    pub(crate) rest_max: Duration,
}

/// What follows a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// No work is left: wait for a notification or the tick.
    Tick,
    /// More work is left: run again immediately.
    Again,
    /// As `Tick`, but at this time at the latest.
    By(Instant),
    /// The work has to wait one backoff, for this reason; the job has reported it already.
    Waits(String),
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(Next),
    Failed(String),
    /// The archive is stopping, and the run noticed it first.
    Stopping,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// There may be something to do.
    Rung,
    /// The operator ordered a run.
    Ordered,
    /// The deadline passed.
    Timer,
    /// The run has ended.
    Ended(Outcome),
    /// The archive is stopping.
    Stop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Answered by `Event::Ended`.
    Run,
    /// Report a new failure.
    Tell(String),
    /// Report that the reported failure is over.
    Recovered,
    /// It never runs again.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle {
        /// When it polls.
        at: Option<Instant>,
    },
    Running,
    Resting {
        until: Instant,
    },
    Ended,
}

/// When one job runs.
#[derive(Debug)]
pub(crate) struct Turns {
    pace: Pace,
    state: State,
    /// Notified during the run.
    is_rung: bool,
    /// Orders received during the run; each gets a run of its own.
    orders: u32,
    is_stopping: bool,
    /// Consecutive failures.
    in_row: u32,
    failures: u64,
    trouble: Option<String>,
    /// The failure that was reported and is not over.
    told: Option<String>,
}

impl Turns {
    /// Creates a job that is due immediately.
    pub(crate) const fn new(pace: Pace) -> Self {
        Self {
            pace,
            state: State::Idle { at: Some(Instant::ZERO) },
            is_rung: false,
            orders: 0,
            is_stopping: false,
            in_row: 0,
            failures: 0,
            trouble: None,
            told: None,
        }
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Returns the failure of its last run, or what that run waits for.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Number of failed runs.
    pub(crate) const fn failures(&self) -> u64 {
        self.failures
    }

    fn is_running(&self) -> bool {
        self.state == State::Running
    }

    fn run(&mut self, out: &mut Outbox<Command>) {
        (self.state, self.is_rung) = (State::Running, false);
        out.push(Command::Run);
    }

    fn end(&mut self, out: &mut Outbox<Command>) {
        (self.state, self.is_rung, self.orders) = (State::Ended, false, 0);
        out.push(Command::End);
    }

    fn ended(&mut self, now: Instant, outcome: Outcome, out: &mut Outbox<Command>) {
        let next = match outcome {
            Outcome::Done(next) => next,
            Outcome::Failed(error) => {
                self.failed(now, error, out);
                return self.go_on(out);
            }
            Outcome::Stopping => return self.end(out),
        };
        self.in_row = 0;
        let waits = if let Next::Waits(why) = &next { Some(why.clone()) } else { None };
        if waits.is_none() && self.told.take().is_some() {
            out.push(Command::Recovered);
        }
        self.trouble = waits;
        let tick = self.pace.tick.map(|tick| now + tick);
        self.state = match next {
            Next::Tick => State::Idle { at: tick },
            Next::By(at) => State::Idle { at: Some(tick.map_or(at, |tick| tick.min(at))) },
            Next::Again => State::Idle { at: Some(now) },
            Next::Waits(_) => State::Resting { until: now + self.pace.rest },
        };
        self.is_rung |= next == Next::Again;
        self.go_on(out);
    }

    fn failed(&mut self, now: Instant, error: String, out: &mut Outbox<Command>) {
        let doubled = self.pace.rest.as_nanos().saturating_mul(1 << self.in_row.min(32));
        let rest = Duration::from_nanos(doubled).min(self.pace.rest_max);
        self.in_row += 1;
        self.failures += 1;
        self.state = State::Resting { until: now + rest };
        if self.told.as_ref() != Some(&error) {
            self.told = Some(error.clone());
            out.push(Command::Tell(error.clone()));
        }
        self.trouble = Some(error);
    }

    /// Ends, or starts a run for what arrived during the last one.
    fn go_on(&mut self, out: &mut Outbox<Command>) {
        let is_idle = matches!(self.state, State::Idle { .. });
        if self.is_stopping {
            self.end(out);
        } else if self.orders > 0 || self.is_rung && is_idle {
            self.orders = self.orders.saturating_sub(1);
            self.run(out);
        }
    }
}

impl Controller for Turns {
    type Event = Event;
    type Command = Command;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Command>) {
        match (event, self.state) {
            (Event::Ended(outcome), State::Running) => self.ended(now, outcome, out),
            (Event::Ended(_), _) => unreachable!("only what runs ends"),
            (_, State::Ended) => {}
            (Event::Rung, State::Idle { .. }) | (Event::Ordered, _) if !self.is_running() => {
                self.run(out);
            }
            (Event::Rung, _) => self.is_rung = true,
            (Event::Ordered, _) => self.orders = self.orders.saturating_add(1),
            (Event::Timer, _) => {
                if self.deadline().is_some_and(|due| due <= now) {
                    self.run(out);
                }
            }
            (Event::Stop, State::Running) => self.is_stopping = true,
            (Event::Stop, _) => self.end(out),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Idle { at } => at,
            State::Resting { until } => Some(until),
            State::Running | State::Ended => None,
        }
    }

    fn check(&self) {
        let is_running = self.is_running();
        assert!(is_running || self.orders == 0, "an order waits for nothing but a run");
        assert!(is_running || !self.is_stopping || self.state == State::Ended, "it stopped");
        assert!(self.told.is_none() || self.trouble.is_some(), "what is told is not over");
        assert!(self.in_row == 0 || self.trouble.is_some(), "a failure is a trouble");
    }
}

#[cfg(test)]
mod tests;
