//! A third-party system for the twin, as described in docs/design/plug-in-a-system.md: a disk that
//! spins down when idle for a while.

use fulgurite_twin::Error;
use fulgurite_twin::engine::{Context, Ended, EventQueue, Observer, System, run};
use fulgurite_twin::metrics::{DerivedMetric, Dimension, Measured};
use fulgurite_twin::scenario::{self, with_overrides};
use fulgurite_twin::sweep::{Sweep, SweepAxis};
use fulgurite_units::{Duration, Instant, Seed};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Reads at equal intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    reads: u64,
    every: Duration,
    read: Duration,
    spin_up: Duration,
    idle: Duration,
}

impl scenario::Scenario for Scenario {
    fn check(&self) -> Result<(), Error> {
        if self.every == Duration::ZERO {
            let (field, value) = ("every", self.every.to_string());
            return Err(Error::Parameter { field, value, expected: "above 0" });
        }
        Ok(())
    }

    fn window(&self) -> [Duration; 2] {
        [Duration::ZERO, Duration::from_nanos(u64::MAX)]
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Slept {
    seed: u64,
    hash: u64,
    spin_ups: u64,
    slowest_s: f64,
}

impl Measured for Slept {
    const DERIVED_METRICS: &'static [DerivedMetric<Self>] = &[];

    fn seed(&self) -> u64 {
        self.seed
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn dimension(metric: &str) -> Dimension {
        if metric == "slowest_s" { Dimension::Time } else { Dimension::Number }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Standby,
    SpinningUp,
    Reading,
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PendingEvent {
    Up,
    Read,
    /// It spins down, if nothing has been read since.
    Sleep {
        reads: u64,
    },
}

#[derive(Debug)]
struct SleepingDisk {
    scenario: Scenario,
    state: State,
    waiting: std::collections::VecDeque<Instant>,
    reads: u64,
    spin_ups: u64,
    slowest: Duration,
}

impl SleepingDisk {
    fn begin<O: Observer<Self>>(&mut self, ctx: &mut Context<'_, Self, O>) {
        let now = ctx.now();
        match self.state {
            State::Standby if !self.waiting.is_empty() => {
                (self.state, self.spin_ups) = (State::SpinningUp, self.spin_ups + 1);
                ctx.put(now + self.scenario.spin_up, PendingEvent::Up);
            }
            State::Idle if !self.waiting.is_empty() => {
                self.state = State::Reading;
                ctx.put(now + self.scenario.read, PendingEvent::Read);
            }
            State::Idle => {
                ctx.put(now + self.scenario.idle, PendingEvent::Sleep { reads: self.reads });
            }
            State::Standby | State::SpinningUp | State::Reading => {}
        }
    }
}

impl System for SleepingDisk {
    type Scenario = Scenario;
    type Arrival = Instant;
    type PendingEvent = PendingEvent;
    type Observation<'a> = PendingEvent;
    type Result = Slept;

    fn new(scenario: &Scenario, _: &Seed, _: &mut EventQueue<PendingEvent>) -> Result<Self, Error> {
        let (scenario, state, waiting) = (scenario.clone(), State::Standby, [].into());
        Ok(Self { scenario, state, waiting, reads: 0, spin_ups: 0, slowest: Duration::ZERO })
    }

    fn arrivals(scenario: &Scenario, _: &Seed) -> Result<impl Iterator<Item = Instant>, Error> {
        let every = scenario.every.as_nanos();
        Ok((1..=scenario.reads).map(move |n| Instant::ZERO + Duration::from_nanos(n * every)))
    }

    fn arrival_time(arrival: &Instant) -> Instant {
        *arrival
    }

    fn handle_arrival<O: Observer<Self>>(&mut self, at: &Instant, ctx: &mut Context<'_, Self, O>) {
        self.waiting.push_back(*at);
        self.begin(ctx);
    }

    fn handle_event<O: Observer<Self>>(
        &mut self,
        next: PendingEvent,
        ctx: &mut Context<'_, Self, O>,
    ) {
        ctx.record(&next);
        ctx.notify(next);
        match next {
            PendingEvent::Up => self.state = State::Idle,
            PendingEvent::Read => {
                self.state = State::Idle;
                self.reads += 1;
                if let Some(since) = self.waiting.pop_front() {
                    self.slowest = self.slowest.max(ctx.now().since(since));
                }
            }
            PendingEvent::Sleep { reads } if self.state == State::Idle && reads == self.reads => {
                self.state = State::Standby;
            }
            PendingEvent::Sleep { .. } => return,
        }
        self.begin(ctx);
    }

    fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }

    fn result(self, ended: Ended) -> Slept {
        let (seed, hash, slowest_s) = (ended.seed, ended.hash, self.slowest.as_secs_f64());
        Slept { seed, hash, spin_ups: self.spin_ups, slowest_s }
    }
}

const FILE: &str =
    "reads = 10\nevery = \"60s\"\nread = \"1s\"\nspin_up = \"10s\"\nidle = \"20s\"\n";

#[test]
fn disk_spins_down_only_between_rare_reads() {
    let rare: Scenario = with_overrides(FILE.parse().unwrap(), &Table::new()).unwrap();
    let slept = run::<SleepingDisk>(&rare, 1).unwrap();
    assert_eq!((slept.spin_ups, slept.slowest_s), (10, 11.0));

    let often = Scenario { every: Duration::from_secs(15), ..rare };
    let slept = run::<SleepingDisk>(&often, 1).unwrap();
    assert_eq!((slept.spin_ups, slept.slowest_s), (1, 11.0), "only the first one waits");
    assert_ne!(slept.hash, 0);
}

#[test]
fn generic_tools_work_for_a_third_party_system() {
    let idle = |text: &str| Value::from(text);
    let values = vec![idle("20s"), idle("120s")];
    let over = vec![SweepAxis { field: "idle".to_owned(), values }];
    let sweep = Sweep::<SleepingDisk>::new(&FILE.parse().unwrap(), &Table::new(), over).unwrap();
    let jobs = sweep.jobs(&[1]);
    let runs = jobs.iter().map(|job| run::<SleepingDisk>(&job.scenario, job.seed).unwrap());
    let result = sweep.result(&["spin_ups".to_owned()], &[1], &runs.collect::<Vec<_>>()).unwrap();
    let spin_ups: Vec<f64> = result.metrics[0].cells.iter().map(|cell| cell.median).collect();
    assert_eq!(spin_ups, [10.0, 1.0]);

    let zero = Table::from_iter([("every".to_owned(), idle("0s"))]);
    let refused = with_overrides::<Scenario>(FILE.parse().unwrap(), &zero).unwrap_err();
    assert!(refused.starts_with("every is 0"), "{refused}");
}
