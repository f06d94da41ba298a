//! When a job runs: a state machine of bells, times and outcomes.
//!
//! ```text
//!               bell, tick, order                 done
//!        idle ---------------------> running ----------------> idle, or at once again
//!                                     |   ^
//!                        failed, waits|   | the rest is over, or an order
//!                                     v   |
//!                                    resting
//! stop: idle and resting end, running ends behind its run
//! ```
//!
//! What rings while it runs is not lost: it runs once more. A rest is not cut short by a bell, for
//! what fails would be tried as often as somebody knocks; an order of the operator waits for no
//! rest. Each rest is twice the one before up to the most of its pace, so nothing rests for good. A
//! trouble is told when it is another one than before, and when it is over.
//!
//! Not here: what a job does, threads, and the clock.

use fulgurite_units::{Controller, Duration, Instant, Outbox};

/// How often a job looks by itself, and how long it rests after a failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// It looks so long after its last run; none when only its bell has it run.
    pub(crate) tick: Option<Duration>,
    /// The rest after the first failure in a row, and after a run that has to wait.
    pub(crate) rest: Duration,
    /// The longest.
    pub(crate) rest_max: Duration,
}

/// What comes after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There was nothing more to do: the bell or the tick is waited for.
    Tick,
    /// There is more to do, at once.
    Again,
    /// As `Tick`, and at this time at the latest.
    By(Instant),
    /// What there is to do has to wait a rest, for this; the job has told it already.
    Waits(String),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(Next),
    Failed(String),
    /// The archive stops, and the job saw it first.
    Stopping,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// There may be something to do.
    Rung,
    /// The operator wants something done now.
    Ordered,
    /// The deadline passed.
    Timer,
    /// The run is over.
    Ended(Outcome),
    /// The archive stops.
    Stop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Answered by `Event::Ended`.
    Run,
    /// A trouble that was not told yet.
    Tell(String),
    /// The trouble that was told is over.
    Recovered,
    /// It never runs again.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle {
        /// When it looks by itself.
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
    /// Rung while it ran.
    is_rung: bool,
    /// Orders that came while it ran: each has a run of its own.
    orders: u32,
    is_stopping: bool,
    /// Failures in a row.
    in_row: u32,
    failures: u64,
    trouble: Option<String>,
    /// The trouble that was told and is not over.
    told: Option<String>,
}

impl Turns {
    /// A job that looks at once.
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

    /// What its last run failed with, or what that waits for.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Runs that failed.
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

    /// Ends, or takes what came while it ran.
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
