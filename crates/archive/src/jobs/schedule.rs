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
    pub(crate) backoff: Duration,
    /// Maximum backoff.
    pub(crate) backoff_max: Duration,
}

/// What follows a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// No work is left: wait for a notification or the tick.
    Tick,
    /// More work is left: run again immediately.
    Again,
    /// As `Tick`, but at this time at the latest.
    NoLaterThan(Instant),
    /// The work has to wait one backoff, for this reason; the job has reported it already.
    Deferred(String),
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
    Notified,
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
    Report(String),
    /// Report that the reported failure is over.
    ReportRecovery,
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
pub(crate) struct JobSchedule {
    pace: Pace,
    state: State,
    /// Notified during the run.
    is_notified: bool,
    /// Orders received during the run; each gets a run of its own.
    orders: u32,
    is_stopping: bool,
    /// Consecutive failures.
    consecutive_failures: u32,
    failures: u64,
    failure: Option<String>,
    /// The failure that was reported and is not over.
    reported: Option<String>,
}

impl JobSchedule {
    /// Creates a job that is due immediately.
    pub(crate) const fn new(pace: Pace) -> Self {
        Self {
            pace,
            state: State::Idle { at: Some(Instant::ZERO) },
            is_notified: false,
            orders: 0,
            is_stopping: false,
            consecutive_failures: 0,
            failures: 0,
            failure: None,
            reported: None,
        }
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Returns the failure of its last run, or what that run waits for.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Number of failed runs.
    pub(crate) const fn failures(&self) -> u64 {
        self.failures
    }

    fn is_running(&self) -> bool {
        self.state == State::Running
    }

    fn run(&mut self, out: &mut Outbox<Command>) {
        (self.state, self.is_notified) = (State::Running, false);
        out.push(Command::Run);
    }

    fn end(&mut self, out: &mut Outbox<Command>) {
        (self.state, self.is_notified, self.orders) = (State::Ended, false, 0);
        out.push(Command::End);
    }

    fn on_end(&mut self, now: Instant, outcome: Outcome, out: &mut Outbox<Command>) {
        let next = match outcome {
            Outcome::Done(next) => next,
            Outcome::Failed(error) => {
                self.on_failure(now, error, out);
                return self.proceed(out);
            }
            Outcome::Stopping => return self.end(out),
        };
        self.consecutive_failures = 0;
        let waits = if let Next::Deferred(reason) = &next { Some(reason.clone()) } else { None };
        if waits.is_none() && self.reported.take().is_some() {
            out.push(Command::ReportRecovery);
        }
        self.failure = waits;
        let tick = self.pace.tick.map(|tick| now + tick);
        self.state = match next {
            Next::Tick => State::Idle { at: tick },
            Next::NoLaterThan(at) => State::Idle { at: Some(tick.map_or(at, |tick| tick.min(at))) },
            Next::Again => State::Idle { at: Some(now) },
            Next::Deferred(_) => State::Resting { until: now + self.pace.backoff },
        };
        self.is_notified |= next == Next::Again;
        self.proceed(out);
    }

    fn on_failure(&mut self, now: Instant, error: String, out: &mut Outbox<Command>) {
        let doubled =
            self.pace.backoff.as_nanos().saturating_mul(1 << self.consecutive_failures.min(32));
        let backoff = Duration::from_nanos(doubled).min(self.pace.backoff_max);
        self.consecutive_failures += 1;
        self.failures += 1;
        self.state = State::Resting { until: now + backoff };
        if self.reported.as_ref() != Some(&error) {
            self.reported = Some(error.clone());
            out.push(Command::Report(error.clone()));
        }
        self.failure = Some(error);
    }

    /// Ends, or starts a run for what arrived during the last one.
    fn proceed(&mut self, out: &mut Outbox<Command>) {
        let is_idle = matches!(self.state, State::Idle { .. });
        if self.is_stopping {
            self.end(out);
        } else if self.orders > 0 || self.is_notified && is_idle {
            self.orders = self.orders.saturating_sub(1);
            self.run(out);
        }
    }
}

impl Controller for JobSchedule {
    type Event = Event;
    type Command = Command;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Command>) {
        match (event, self.state) {
            (Event::Ended(outcome), State::Running) => self.on_end(now, outcome, out),
            (Event::Ended(_), _) => unreachable!("only a running job ends"),
            (_, State::Ended) => {}
            (Event::Notified, State::Idle { .. }) | (Event::Ordered, _) if !self.is_running() => {
                self.run(out);
            }
            (Event::Notified, _) => self.is_notified = true,
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
        assert!(is_running || self.orders == 0, "an order waits only for a run");
        assert!(is_running || !self.is_stopping || self.state == State::Ended, "it stopped");
        assert!(self.reported.is_none() || self.failure.is_some(), "it still fails");
        assert!(self.consecutive_failures == 0 || self.failure.is_some(), "it has a reason");
    }
}

#[cfg(test)]
mod tests;
