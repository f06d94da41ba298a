//! How runs of a queue are shown: the waiting and the served customers over time.

use fulgurite_units::Instant;
use serde::Serialize;

use super::{Queue, Scenario, Seen, Waits};
use crate::columns::{Curve, Grid, Level};
use crate::engine::Observer;
use crate::measured::Dimension;
use crate::reported::{self, CurvePicture, Number, Picture, Reported, Shown};

type Row = (&'static str, Shown, fn(&Waits) -> f64);

/// A queue over time, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
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
    fn see(&mut self, now: Instant, seen: Seen) {
        self.pass(now);
        match seen {
            Seen::Came => self.waiting.change(1),
            Seen::Begun { .. } => {
                self.waiting.change(-1);
                self.served.change(1);
            }
            Seen::Gone => self.served.change(-1),
        }
    }
}

impl reported::Course for Course {
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

impl Reported for Queue {
    type Recorder = Recorder;
    type Course = Course;
    const TOTALS: &'static [&'static str] = &["wait mean", "mean in theory", "servers busy"];
    const SWEPT: &'static [&'static str] = &["wait.mean", "wait.p99"];

    fn recorder(_: &Scenario, seed: u64) -> Recorder {
        let [waiting, served] = Default::default();
        Recorder { seed, now: Instant::ZERO, grid: Grid::default(), waiting, served }
    }

    fn course(recorder: Recorder) -> Course {
        let grid = recorder.grid.until(recorder.now);
        Course {
            seed: recorder.seed,
            column_s: grid.column().as_secs_f64(),
            end_s: recorder.now.since(Instant::ZERO).as_secs_f64(),
            waiting: recorder.waiting.curve(&grid),
            served: recorder.served.curve(&grid),
        }
    }

    fn pictures<'a>(_: &Scenario, courses: &'a [Course]) -> Vec<Picture<'a>> {
        let picture = |title, of: fn(&Course) -> &Curve| {
            let curves = courses.iter().map(|course| of(course).clone()).collect();
            let (note, dimension) = (String::new(), Dimension::Number);
            Picture::Curve(CurvePicture { title, note, dimension, bound: None, curves })
        };
        vec![
            picture("Customers waiting", |course| &course.waiting),
            picture("Customers being served", |course| &course.served),
        ]
    }

    fn rows(_: &Scenario, _: &[Waits]) -> Vec<Number<Waits>> {
        #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
        let rows: [Row; 9] = [
            ("wait mean", Shown::Time, |run| run.wait.mean),
            ("mean in theory", Shown::Time, |run| run.theory.mean),
            ("wait p99", Shown::Time, |run| run.wait.p99),
            ("p99 in theory", Shown::Time, |run| run.theory.p99),
            ("servers busy", Shown::Share, |run| run.busy),
            ("customers", Shown::Count, |run| run.wait.count as f64),
            ("queue max", Shown::Count, |run| run.queue_max as f64),
            ("makespan", Shown::Time, |run| run.makespan),
            ("events", Shown::Count, |run| run.events as f64),
        ];
        rows.map(|(name, shown, of)| Number { name, shown, of }).into()
    }
}
