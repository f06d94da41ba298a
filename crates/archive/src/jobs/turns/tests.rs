//! Properties of every job schedule, whatever sequence of notifications, failures and time.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn pace(tick: Option<u64>) -> Pace {
    let tick = tick.map(Duration::from_secs);
    Pace { tick, rest: SECOND, rest_max: Duration::from_secs(8) }
}

/// A job schedule with a driver that keeps time.
struct World {
    turns: Turns,
    now: Instant,
    said: Vec<Command>,
}

impl World {
    fn new(tick: Option<u64>) -> Self {
        Self { turns: Turns::new(pace(tick)), now: Instant::from_nanos(1), said: Vec::new() }
    }

    fn step(&mut self, event: Event) -> Vec<Command> {
        let mut out = Outbox::new();
        self.turns.step(self.now, event, &mut out);
        self.turns.check();
        let commands: Vec<Command> = out.drain().collect();
        self.said.extend(commands.iter().cloned());
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
        let due = self.turns.deadline().unwrap();
        let left = due.since(self.now).as_nanos() / SECOND.as_nanos();
        self.now = self.now.max(due);
        assert_eq!(self.step(Event::Timer), [Command::Run]);
        left
    }
}

#[test]
fn it_looks_at_once_and_then_by_its_tick_or_its_bell() {
    let mut world = World::new(Some(5));
    assert_eq!(world.waits(), 0);
    assert_eq!(world.done(Next::Tick), []);
    assert_eq!(world.step(Event::Timer), [], "its tick has not passed");
    assert_eq!(world.waits(), 5);
    assert_eq!(world.done(Next::By(world.now + SECOND)), []);
    assert_eq!(world.waits(), 1);
    assert_eq!(world.done(Next::By(world.now + Duration::from_secs(60))), []);
    assert_eq!(world.waits(), 5);
    assert_eq!(world.done(Next::Again), [Command::Run]);
    assert_eq!(world.step(Event::Rung), [], "it runs");
    assert_eq!(world.done(Next::Tick), [Command::Run], "once more, for the bell");
    assert_eq!(world.done(Next::Tick), []);
    assert_eq!(world.step(Event::Rung), [Command::Run]);
    let mut world = World::new(None);
    world.waits();
    world.done(Next::Tick);
    assert_eq!(world.turns.deadline(), None, "nothing but its bell");
}

#[test]
fn rests_grow_and_end_and_an_order_waits_for_none() {
    let mut world = World::new(Some(1));
    world.waits();
    let mut rests = Vec::new();
    for _ in 0..6 {
        world.fails("disk");
        assert_eq!(world.step(Event::Rung), [], "a bell does not end a rest");
        rests.push(world.waits());
    }
    assert_eq!(rests, [1, 2, 4, 8, 8, 8]);
    world.fails("disk");
    assert_eq!(world.step(Event::Ordered), [Command::Run]);
    assert_eq!(world.step(Event::Ordered), [], "it runs");
    assert_eq!(world.step(Event::Ordered), [], "it runs");
    assert_eq!(world.fails("disk"), [Command::Run], "for the second order, without a rest");
    assert_eq!(world.fails("disk"), [Command::Run], "for the third");
    assert_eq!(world.done(Next::Tick), [Command::Recovered]);
    world.waits();
    world.fails("disk");
    assert_eq!(world.waits(), 1, "the first in a row again");
}

#[test]
fn a_trouble_is_told_once_and_its_end_once() {
    let mut world = World::new(Some(1));
    let tell = |what: &str| Command::Tell(what.to_owned());
    world.waits();
    assert_eq!(world.fails("disk"), [tell("disk")]);
    world.waits();
    assert_eq!(world.fails("disk"), []);
    world.waits();
    assert_eq!(world.fails("room"), [tell("room")]);
    world.waits();
    assert_eq!(world.done(Next::Tick), [Command::Recovered]);
    assert_eq!(world.turns.trouble(), None);
    world.waits();
    assert_eq!(world.done(Next::Tick), []);
    world.waits();
    assert_eq!(world.fails("disk"), [tell("disk")]);
    assert_eq!(world.turns.failures(), 4);
    // A run that has to wait is a failure that the job reports itself.
    world.waits();
    assert_eq!(world.done(Next::Waits("a set".to_owned())), []);
    assert_eq!(world.turns.trouble(), Some("a set"));
    assert_eq!(world.waits(), 1);
    assert_eq!(world.done(Next::Tick), [Command::Recovered]);
    assert_eq!(world.turns.trouble(), None);
}

#[derive(Clone, Debug)]
enum Happens {
    Rung,
    Ordered,
    Passes(u64),
    Ends(u8),
    Stop,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => Just(Happens::Rung),
        2 => Just(Happens::Ordered),
        6 => (0_u64..12_000).prop_map(Happens::Passes),
        8 => (0_u8..6).prop_map(Happens::Ends),
        1 => Just(Happens::Stop),
    ]
}

/// A simple model of the schedule: what must happen next.
#[derive(Default)]
struct Told {
    is_running: bool,
    /// A notification came after the last run began.
    owed: bool,
    orders: u32,
    stopped: bool,
    ends: u32,
    trouble: Option<String>,
}

impl Told {
    fn hears(&mut self, commands: &[Command]) {
        for command in commands {
            match command {
                Command::Run => {
                    assert!(!self.is_running && !self.stopped, "one run at a time, none behind");
                    (self.is_running, self.owed) = (true, false);
                    self.orders = self.orders.saturating_sub(1);
                }
                Command::Tell(error) => {
                    assert_ne!(self.trouble.as_ref(), Some(error), "told once");
                    self.trouble = Some(error.clone());
                }
                Command::Recovered => assert!(self.trouble.take().is_some(), "of a trouble"),
                Command::End => {
                    assert!(!self.is_running && self.ends == 0, "behind its run, and once");
                    self.ends += 1;
                }
            }
        }
    }
}

fn outcome(kind: u8, now: Instant) -> Outcome {
    match kind {
        0 => Outcome::Done(Next::Again),
        1 => Outcome::Done(Next::By(now + SECOND)),
        2 => Outcome::Done(Next::Waits("a set".to_owned())),
        3 => Outcome::Failed("disk".to_owned()),
        4 => Outcome::Failed("room".to_owned()),
        _ => Outcome::Done(Next::Tick),
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_nothing_rests_for_good_and_one_run_is_under_way(
        tick in proptest::option::of(1_u64..5),
        all in proptest::collection::vec(happens(), 0..200),
    ) {
        let (mut world, mut told) = (World::new(tick), Told::default());
        for happens in all {
            let commands = match happens {
                Happens::Rung => {
                    told.owed = !told.stopped;
                    world.step(Event::Rung)
                }
                Happens::Ordered => {
                    told.orders += u32::from(!told.stopped);
                    world.step(Event::Ordered)
                }
                Happens::Passes(ms) => {
                    world.now = world.now + Duration::from_millis(ms);
                    world.step(Event::Timer)
                }
                Happens::Ends(kind) if told.is_running => {
                    told.is_running = false;
                    let outcome = outcome(kind, world.now);
                    world.step(Event::Ended(outcome))
                }
                Happens::Ends(_) => Vec::new(),
                Happens::Stop => {
                    told.stopped = true;
                    (told.owed, told.orders) = (false, 0);
                    world.step(Event::Stop)
                }
            };
            told.hears(&commands);
            let state = world.turns.state();
            prop_assert_eq!(told.is_running, state == State::Running);
            prop_assert_eq!(told.ends == 1, state == State::Ended);
            prop_assert_eq!(told.ends == 1, told.stopped && !told.is_running);
            prop_assert!(told.orders == 0 || told.is_running, "an order is taken");
            match state {
                State::Idle { at } => {
                    prop_assert!(!told.owed, "a bell is answered");
                    prop_assert!(at.is_some() || tick.is_none(), "it looks by itself");
                }
                State::Resting { until } => {
                    let most = world.now + Duration::from_secs(8);
                    prop_assert!(until <= most, "it rests no longer than its pace says");
                }
                State::Running | State::Ended => {}
            }
        }
    }
}
