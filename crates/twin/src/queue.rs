//! A queue with several servers, M/M/n: the smallest system to simulate. Its waits are known in
//! closed form, so it shows whether the engine is correct. Every simulator can run it, so it also
//! serves to compare their speed.
//!
//! ```text
//! arrivals (exponential) --> waiting --> n servers (exponential) --> gone
//! ```
//!
//! Not a model of a library.

use std::collections::VecDeque;

use fulgurite_units::{Duration, Instant, Seed};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::engine::histogram::{Histogram, Quantiles};
use crate::engine::{Context, Ended, EventQueue, Observer, System};
use crate::experiment::{CompanionFigure, CompanionFigures, NoProbe, PaperSystem, Unit, median};
use crate::metrics::{DerivedMetric, Dimension, Measured};
use crate::scenario;
use crate::workload::Exponentials;

mod presentation;

pub use presentation::{Recorder, Timeline};

/// Customers that arrive at random and are served in order by equal servers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The system.
    #[serde(default)]
    pub system: SystemTag,
    /// Number of servers.
    pub servers: u32,
    /// Arrival rate over the service rate of all servers; below 1.
    pub load: f64,
    /// Mean service time.
    pub service: Duration,
    /// Number of customers until the end.
    pub customers: u64,
}

/// The name of the system in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemTag {
    /// A queue.
    #[default]
    Queue,
}

/// Measurements of a run of a queue; times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueResult {
    /// The seed.
    pub seed: u64,
    /// Waiting times of the customers.
    pub wait: Quantiles,
    /// Theoretical waiting times.
    pub theory: Theory,
    /// Utilization of the servers.
    pub busy: f64,
    /// Maximum number of waiting customers.
    pub queue_max: u64,
    /// Simulated time until the last customer left.
    pub makespan: f64,
    /// Number of events: arrivals and ends of service.
    pub events: u64,
    /// Hash of the run: it differs as soon as any event, its order or its time differs.
    pub hash: u64,
}

/// Steady-state waiting times, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Theory {
    /// Mean.
    pub mean: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Scenario {
    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        if !(1..=10_000).contains(&self.servers) {
            return refuse("servers", self.servers.to_string(), "from 1 to 10000");
        }
        if !(self.load > 0.0 && self.load < 1.0) {
            return refuse("load", self.load.to_string(), "above 0 and below 1");
        }
        if self.service == Duration::ZERO {
            return refuse("service", self.service.to_string(), "above 0");
        }
        if self.customers == 0 {
            return refuse("customers", "0".to_owned(), "at least 1");
        }
        Ok(())
    }

    /// Returns the theoretical waits. By Erlang's C formula a customer must wait with that
    /// probability, and then for an exponential time.
    #[must_use]
    pub fn theory(&self) -> Theory {
        let servers = f64::from(self.servers);
        let offered = servers * self.load;
        // Erlang B by its recursion, which cannot overflow, and C from it.
        let b = (1..=self.servers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
        let c = b / (1.0 - self.load * (1.0 - b));
        let each = self.service.as_secs_f64() / (servers * (1.0 - self.load));
        Theory { mean: c * each, p99: (c / 0.01).ln().max(0.0) * each }
    }
}

impl scenario::Scenario for Scenario {
    fn check(&self) -> Result<(), Error> {
        self.validate()
    }

    /// Measures all arrivals.
    fn window(&self) -> [Duration; 2] {
        [Duration::ZERO, Duration::from_nanos(u64::MAX)]
    }
}

impl Measured for QueueResult {
    const DERIVED_METRICS: &'static [DerivedMetric<Self>] =
        &[("wait_over_theory", |run| run.wait.mean / run.theory.mean)];

    fn seed(&self) -> u64 {
        self.seed
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn dimension(metric: &str) -> Dimension {
        match metric {
            "busy" => Dimension::Share,
            "makespan" => Dimension::Time,
            _ if metric.starts_with("wait.") && metric != "wait.count" => Dimension::Time,
            _ if metric.starts_with("theory.") => Dimension::Time,
            _ => Dimension::Number,
        }
    }
}

impl PaperSystem for Queue {
    type Probe = NoProbe;
    type Curve = NoProbe;
    const TIMES: &'static str = "wait.";

    fn companions(_: &Scenario, runs: &[&QueueResult]) -> CompanionFigures {
        let value = median(&runs.iter().map(|run| run.wait.mean).collect::<Vec<_>>());
        let (name, title) = ("wait_s", "Mean wait");
        let words = Some(format!("mean wait {value:.2} s"));
        let number = CompanionFigure { name, title, value, unit: Unit::Seconds, words };
        CompanionFigures { numbers: vec![number], ..CompanionFigures::default() }
    }
}

/// The queue system.
#[derive(Debug)]
pub struct Queue {
    scenario: Scenario,
    waiting: VecDeque<Instant>,
    free: u32,
    times: Exponentials,
    wait: Histogram,
    served: Duration,
    queue_max: usize,
}

/// The pending event of a queue: the end of a service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceEnd;

/// Observable events of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observation {
    /// A customer arrived.
    Arrived,
    /// The service of a customer starts.
    ServiceStarted {
        /// How long it waited.
        waited: Duration,
    },
    /// A customer left.
    Departed,
}

/// Generates the arrivals of customers.
#[derive(Debug)]
struct Customers {
    gaps: Exponentials,
    gap: f64,
    at: Instant,
    left: u64,
}

impl Iterator for Customers {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        self.left = self.left.checked_sub(1)?;
        self.at = self.at + Duration::from_secs_f64(self.gaps.draw() * self.gap);
        Some(self.at)
    }
}

impl System for Queue {
    type Scenario = Scenario;
    type Arrival = Instant;
    type PendingEvent = ServiceEnd;
    type Observation<'a> = Observation;
    type Result = QueueResult;

    fn new(
        scenario: &Scenario,
        seed: &Seed,
        _: &mut EventQueue<ServiceEnd>,
    ) -> Result<Self, Error> {
        scenario.validate()?;
        Ok(Self {
            scenario: *scenario,
            waiting: VecDeque::new(),
            free: scenario.servers,
            times: Exponentials::new(seed, b"service"),
            wait: Histogram::default(),
            served: Duration::ZERO,
            queue_max: 0,
        })
    }

    fn arrivals(scenario: &Scenario, seed: &Seed) -> Result<impl Iterator<Item = Instant>, Error> {
        let gaps = Exponentials::new(seed, b"arrivals");
        let rate = f64::from(scenario.servers) * scenario.load / scenario.service.as_secs_f64();
        let left = scenario.customers;
        Ok(Customers { gaps, gap: 1.0 / rate, at: Instant::ZERO, left })
    }

    fn arrival_time(arrival: &Instant) -> Instant {
        *arrival
    }

    fn handle_arrival<O: Observer<Self>>(&mut self, at: &Instant, ctx: &mut Context<'_, Self, O>) {
        ctx.record(&Observation::Arrived);
        ctx.notify(Observation::Arrived);
        self.waiting.push_back(*at);
        self.begin(ctx);
        self.queue_max = self.queue_max.max(self.waiting.len());
    }

    fn handle_event<O: Observer<Self>>(&mut self, _: ServiceEnd, ctx: &mut Context<'_, Self, O>) {
        ctx.record(&Observation::Departed);
        ctx.notify(Observation::Departed);
        self.free += 1;
        self.begin(ctx);
    }

    fn is_done(&self) -> bool {
        self.free == self.scenario.servers
    }

    fn result(self, ended: Ended) -> QueueResult {
        let makespan = ended.at.since(Instant::ZERO).as_secs_f64();
        let all = makespan * f64::from(self.scenario.servers);
        QueueResult {
            seed: ended.seed,
            wait: self.wait.quantiles(),
            theory: self.scenario.theory(),
            busy: if all > 0.0 { self.served.as_secs_f64() / all } else { 0.0 },
            queue_max: self.queue_max as u64,
            makespan,
            events: ended.events,
            hash: ended.hash,
        }
    }
}

impl Queue {
    /// Serves the longest waiting customer, if a server is free.
    fn begin<O: Observer<Self>>(&mut self, ctx: &mut Context<'_, Self, O>) {
        if self.free == 0 {
            return;
        }
        let Some(since) = self.waiting.pop_front() else { return };
        let waited = ctx.now().since(since);
        self.free -= 1;
        self.wait.add(waited);
        let mean = self.scenario.service.as_secs_f64();
        let takes = Duration::from_secs_f64(self.times.draw() * mean);
        self.served = self.served + takes;
        ctx.notify(Observation::ServiceStarted { waited });
        ctx.put(ctx.now() + takes, ServiceEnd);
    }
}

#[cfg(test)]
mod tests;
