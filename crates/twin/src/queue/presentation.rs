//! How runs of a queue are shown: the waiting and the served customers over time.

use fulgurite_units::Instant;
use serde::Serialize;

use super::{Observation, Queue, QueueResult, Scenario};
use crate::columns::{Curve, Grid, Level};
use crate::engine::Observer;
use crate::metrics::Dimension;
use crate::presentation::{self, CurvePicture, Number, NumberFormat, Picture, ReportedSystem};

type Row = (&'static str, NumberFormat, fn(&QueueResult) -> f64);

/// A queue over time, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// The seed.
    pub seed: u64,
    /// Seconds per column; the last one may be shorter.
    pub column_s: f64,
    /// Seconds in total.
    pub end_s: f64,
    /// Customers waiting.
    pub waiting: Curve,
    /// Customers being served.
    pub served: Curve,
}

/// Records a run over time.
#[derive(Clone, Debug)]
pub struct Recorder {
    seed: u64,
    now: Instant,
    grid: Grid,
    waiting: Level,
    served: Level,
}

impl Recorder {
    /// Advances time: the current levels have held since the last event.
    fn pass(&mut self, now: Instant) {
        while !self.grid.reaches(now) {
            self.grid.coarsen();
            self.waiting.coarsen();
            self.served.coarsen();
        }
        for level in [&mut self.waiting, &mut self.served] {
            level.hold(&self.grid, self.now, now);
        }
        self.now = now;
    }
}

impl Observer<Queue> for Recorder {
    fn observe(&mut self, now: Instant, observation: Observation) {
        self.pass(now);
        match observation {
            Observation::Arrived => self.waiting.change(1),
            Observation::ServiceStarted { .. } => {
                self.waiting.change(-1);
                self.served.change(1);
            }
            Observation::Departed => self.served.change(-1),
        }
    }
}

impl presentation::Timeline for Timeline {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn column_s(&self) -> f64 {
        self.column_s
    }

    fn end_s(&self) -> f64 {
        self.end_s
    }
}

impl ReportedSystem for Queue {
    type Recorder = Recorder;
    type Timeline = Timeline;
    const HIGHLIGHTS: &'static [&'static str] = &["wait mean", "mean in theory", "servers busy"];
    const DEFAULT_METRICS: &'static [&'static str] = &["wait.mean", "wait.p99"];

    fn recorder(_: &Scenario, seed: u64) -> Recorder {
        let [waiting, served] = Default::default();
        Recorder { seed, now: Instant::ZERO, grid: Grid::default(), waiting, served }
    }

    fn timeline(recorder: Recorder) -> Timeline {
        let grid = recorder.grid.until(recorder.now);
        Timeline {
            seed: recorder.seed,
            column_s: grid.column().as_secs_f64(),
            end_s: recorder.now.since(Instant::ZERO).as_secs_f64(),
            waiting: recorder.waiting.curve(&grid),
            served: recorder.served.curve(&grid),
        }
    }

    fn pictures<'a>(_: &Scenario, timelines: &'a [Timeline]) -> Vec<Picture<'a>> {
        let picture = |title, curve: fn(&Timeline) -> &Curve| {
            let curves = timelines.iter().map(|timeline| curve(timeline).clone()).collect();
            let (note, dimension) = (String::new(), Dimension::Number);
            Picture::Curve(CurvePicture { title, note, dimension, bound: None, curves })
        };
        vec![
            picture("Customers waiting", |timeline| &timeline.waiting),
            picture("Customers being served", |timeline| &timeline.served),
        ]
    }

    fn rows(_: &Scenario, _: &[QueueResult]) -> Vec<Number<QueueResult>> {
        #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
        let rows: [Row; 9] = [
            ("wait mean", NumberFormat::Time, |run| run.wait.mean),
            ("mean in theory", NumberFormat::Time, |run| run.theory.mean),
            ("wait p99", NumberFormat::Time, |run| run.wait.p99),
            ("p99 in theory", NumberFormat::Time, |run| run.theory.p99),
            ("servers busy", NumberFormat::Share, |run| run.busy),
            ("customers", NumberFormat::Count, |run| run.wait.count as f64),
            ("queue max", NumberFormat::Count, |run| run.queue_max as f64),
            ("makespan", NumberFormat::Time, |run| run.makespan),
            ("events", NumberFormat::Count, |run| run.events as f64),
        ];
        rows.map(|(name, format, value)| Number { name, format, value }).into()
    }
}
