//! Properties of every job schedule, whatever sequence of notifications, failures and time.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn pace(tick: Option<u64>) -> Pace {
    let tick = tick.map(Duration::from_secs);
    Pace { tick, backoff: SECOND, backoff_max: Duration::from_secs(8) }
}

/// A job schedule with a driver that keeps time.
struct World {
    schedule: JobSchedule,
    now: Instant,
    commands_seen: Vec<Command>,
}

impl World {
    fn new(tick: Option<u64>) -> Self {
        Self {
            schedule: JobSchedule::new(pace(tick)),
            now: Instant::from_nanos(1),
            commands_seen: Vec::new(),
        }
    }

    fn step(&mut self, event: Event) -> Vec<Command> {
        let mut out = Outbox::new();
        self.schedule.step(self.now, event, &mut out);
        self.schedule.check();
        let commands: Vec<Command> = out.drain().collect();
        self.commands_seen.extend(commands.iter().cloned());
        commands
    }

    fn done(&mut self, next: Next) -> Vec<Command> {
        self.step(Event::Ended(Outcome::Done(next)))
    }

    fn fails(&mut self, error: &str) -> Vec<Command> {
        self.step(Event::Ended(Outcome::Failed(error.to_owned())))
    }

    /// Advances to the deadline, lets the job run, and returns how long that took.
    fn waits(&mut self) -> u64 {
        let due = self.schedule.deadline().unwrap();
        let left = due.since(self.now).as_nanos() / SECOND.as_nanos();
        self.now = self.now.max(due);
        assert_eq!(self.step(Event::Timer), [Command::Run]);
        left
    }
}

#[test]
fn job_polls_at_start_then_on_tick_or_notification() {
    let mut world = World::new(Some(5));
    assert_eq!(world.waits(), 0);
    assert_eq!(world.done(Next::Tick), []);
    assert_eq!(world.step(Event::Timer), [], "its tick has not passed");
    assert_eq!(world.waits(), 5);
    assert_eq!(world.done(Next::NoLaterThan(world.now + SECOND)), []);
    assert_eq!(world.waits(), 1);
    assert_eq!(world.done(Next::NoLaterThan(world.now + Duration::from_secs(60))), []);
    assert_eq!(world.waits(), 5);
    assert_eq!(world.done(Next::Again), [Command::Run]);
    assert_eq!(world.step(Event::Notified), [], "it runs");
    assert_eq!(world.done(Next::Tick), [Command::Run], "once more, for the notification");
    assert_eq!(world.done(Next::Tick), []);
    assert_eq!(world.step(Event::Notified), [Command::Run]);
    let mut world = World::new(None);
    world.waits();
    world.done(Next::Tick);
    assert_eq!(world.schedule.deadline(), None, "it waits for a notification only");
}

#[test]
fn backoff_grows_and_orders_bypass_it() {
    let mut world = World::new(Some(1));
    world.waits();
    let mut backoffs = Vec::new();
    for _ in 0..6 {
        world.fails("disk");
        assert_eq!(world.step(Event::Notified), [], "a notification does not end a backoff");
        backoffs.push(world.waits());
    }
    assert_eq!(backoffs, [1, 2, 4, 8, 8, 8]);
    world.fails("disk");
    assert_eq!(world.step(Event::Ordered), [Command::Run]);
    assert_eq!(world.step(Event::Ordered), [], "it runs");
    assert_eq!(world.step(Event::Ordered), [], "it runs");
    assert_eq!(world.fails("disk"), [Command::Run], "for the second order, without a backoff");
    assert_eq!(world.fails("disk"), [Command::Run], "for the third");
    assert_eq!(world.done(Next::Tick), [Command::ReportRecovery]);
    world.waits();
    world.fails("disk");
    assert_eq!(world.waits(), 1, "the first backoff again");
}

#[test]
fn failure_and_recovery_are_reported_once() {
    let mut world = World::new(Some(1));
    let report = |what: &str| Command::Report(what.to_owned());
    world.waits();
    assert_eq!(world.fails("disk"), [report("disk")]);
    world.waits();
    assert_eq!(world.fails("disk"), []);
    world.waits();
    assert_eq!(world.fails("room"), [report("room")]);
    world.waits();
    assert_eq!(world.done(Next::Tick), [Command::ReportRecovery]);
    assert_eq!(world.schedule.failure(), None);
    world.waits();
    assert_eq!(world.done(Next::Tick), []);
    world.waits();
    assert_eq!(world.fails("disk"), [report("disk")]);
    assert_eq!(world.schedule.failures(), 4);
    // A run that has to wait is a failure that the job reports itself.
    world.waits();
    assert_eq!(world.done(Next::Deferred("a set".to_owned())), []);
    assert_eq!(world.schedule.failure(), Some("a set"));
    assert_eq!(world.waits(), 1);
    assert_eq!(world.done(Next::Tick), [Command::ReportRecovery]);
    assert_eq!(world.schedule.failure(), None);
}

#[derive(Clone, Debug)]
enum TestEvent {
    Notified,
    Ordered,
    Passes(u64),
    Ends(u8),
    Stop,
}

fn test_event() -> impl Strategy<Value = TestEvent> {
    prop_oneof![
        4 => Just(TestEvent::Notified),
        2 => Just(TestEvent::Ordered),
        6 => (0_u64..12_000).prop_map(TestEvent::Passes),
        8 => (0_u8..6).prop_map(TestEvent::Ends),
        1 => Just(TestEvent::Stop),
    ]
}

/// A simple model of the schedule: what must happen next.
#[derive(Default)]
struct Model {
    is_running: bool,
    /// A notification came after the last run began.
    owed: bool,
    orders: u32,
    stopped: bool,
    ends: u32,
    failure: Option<String>,
}

impl Model {
    fn observe(&mut self, commands: &[Command]) {
        for command in commands {
            match command {
                Command::Run => {
                    assert!(
                        !self.is_running && !self.stopped,
                        "one run at a time, none after a stop"
                    );
                    (self.is_running, self.owed) = (true, false);
                    self.orders = self.orders.saturating_sub(1);
                }
                Command::Report(error) => {
                    assert_ne!(self.failure.as_ref(), Some(error), "reported once");
                    self.failure = Some(error.clone());
                }
                Command::ReportRecovery => {
                    assert!(self.failure.take().is_some(), "a failure was reported")
                }
                Command::End => {
                    assert!(!self.is_running && self.ends == 0, "after its run, and once");
                    self.ends += 1;
                }
            }
        }
    }
}

fn outcome(kind: u8, now: Instant) -> Outcome {
    match kind {
        0 => Outcome::Done(Next::Again),
        1 => Outcome::Done(Next::NoLaterThan(now + SECOND)),
        2 => Outcome::Done(Next::Deferred("a set".to_owned())),
        3 => Outcome::Failed("disk".to_owned()),
        4 => Outcome::Failed("room".to_owned()),
        _ => Outcome::Done(Next::Tick),
    }
}

proptest! {
    #[test]
    fn no_notification_is_lost_and_runs_do_not_overlap(
        tick in proptest::option::of(1_u64..5),
        all in proptest::collection::vec(test_event(), 0..200),
    ) {
        let (mut world, mut model) = (World::new(tick), Model::default());
        for test_event in all {
            let commands = match test_event {
                TestEvent::Notified => {
                    model.owed = !model.stopped;
                    world.step(Event::Notified)
                }
                TestEvent::Ordered => {
                    model.orders += u32::from(!model.stopped);
                    world.step(Event::Ordered)
                }
                TestEvent::Passes(ms) => {
                    world.now = world.now + Duration::from_millis(ms);
                    world.step(Event::Timer)
                }
                TestEvent::Ends(kind) if model.is_running => {
                    model.is_running = false;
                    let outcome = outcome(kind, world.now);
                    world.step(Event::Ended(outcome))
                }
                TestEvent::Ends(_) => Vec::new(),
                TestEvent::Stop => {
                    model.stopped = true;
                    (model.owed, model.orders) = (false, 0);
                    world.step(Event::Stop)
                }
            };
            model.observe(&commands);
            let state = world.schedule.state();
            prop_assert_eq!(model.is_running, state == State::Running);
            prop_assert_eq!(model.ends == 1, state == State::Ended);
            prop_assert_eq!(model.ends == 1, model.stopped && !model.is_running);
            prop_assert!(model.orders == 0 || model.is_running, "an order starts a run");
            match state {
                State::Idle { at } => {
                    prop_assert!(!model.owed, "a notification starts a run");
                    prop_assert!(at.is_some() || tick.is_none(), "it polls by itself");
                }
                State::Resting { until } => {
                    let most = world.now + Duration::from_secs(8);
                    prop_assert!(until <= most, "the backoff is within the pace");
                }
                State::Running | State::Ended => {}
            }
        }
    }
}
