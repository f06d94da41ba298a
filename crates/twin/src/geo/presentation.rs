//! How runs of several sites are shown: rows of numbers, and the operations in progress and bytes
//! sent between sites over time.

use fulgurite_units::Instant;
use serde::Serialize;

use super::result::RunResult;
use super::run::{Geo, Observation};
use super::scenario::Scenario;
use crate::columns::{Curve, Grid, Level};
use crate::engine::Observer;
use crate::metrics::Dimension;
use crate::presentation::{self, CurvePicture, Number, NumberFormat, Picture, ReportedSystem};

type Row = (&'static str, NumberFormat, fn(&RunResult) -> f64);

/// Several sites over time, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// The seed.
    pub seed: u64,
    /// Seconds per column; the last one may be shorter.
    pub column_s: f64,
    /// Seconds in total.
    pub end_s: f64,
    /// Operations in progress.
    pub under_way: Curve,
    /// Bytes sent between sites so far.
    pub crossed: Curve,
    /// Writes so far that needed more than a fast round.
    pub slow: Curve,
}

/// Records a run over time.
#[derive(Clone, Debug)]
pub struct Recorder {
    seed: u64,
    now: Instant,
    grid: Grid,
    under_way: Level,
    crossed: Level,
    slow: Level,
}

impl Recorder {
    /// Advances time: the current levels have held since the last event.
    fn pass(&mut self, now: Instant) {
        let mut levels = [&mut self.under_way, &mut self.crossed, &mut self.slow];
        while !self.grid.reaches(now) {
            self.grid.coarsen();
            levels.iter_mut().for_each(|level| level.coarsen());
        }
        for level in levels {
            level.hold(&self.grid, self.now, now);
        }
        self.now = now;
    }
}

impl Observer<Geo> for Recorder {
    fn observe(&mut self, now: Instant, observation: Observation) {
        self.pass(now);
        match observation {
            Observation::Begun(_) => self.under_way.change(1),
            Observation::Ended(..) => self.under_way.change(-1),
            Observation::Crossed(bytes) => {
                self.crossed.change(i64::try_from(bytes).unwrap_or(i64::MAX));
            }
            Observation::Slow => self.slow.change(1),
            Observation::RequestArrived(_) | Observation::Written(_) => {}
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

impl ReportedSystem for Geo {
    type Recorder = Recorder;
    type Timeline = Timeline;
    const HIGHLIGHTS: &'static [&'static str] =
        &["put p50", "get p50", "in one fast round", "stored for each byte", "failed"];
    const DEFAULT_METRICS: &'static [&'static str] =
        &["put.p50", "put.p99", "get.p50", "put_rounds"];

    fn recorder(_: &Scenario, seed: u64) -> Recorder {
        let [under_way, crossed, slow] = Default::default();
        Recorder { seed, now: Instant::ZERO, grid: Grid::default(), under_way, crossed, slow }
    }

    fn timeline(recorder: Recorder) -> Timeline {
        let grid = recorder.grid.until(recorder.now);
        Timeline {
            seed: recorder.seed,
            column_s: grid.column().as_secs_f64(),
            end_s: recorder.now.since(Instant::ZERO).as_secs_f64(),
            under_way: recorder.under_way.curve(&grid),
            crossed: recorder.crossed.curve(&grid),
            slow: recorder.slow.curve(&grid),
        }
    }

    fn pictures<'a>(_: &Scenario, timelines: &'a [Timeline]) -> Vec<Picture<'a>> {
        let picture = |title, dimension, curve: fn(&Timeline) -> &Curve| {
            let curves = timelines.iter().map(|timeline| curve(timeline).clone()).collect();
            let (note, bound) = (String::new(), None);
            Picture::Curve(CurvePicture { title, note, dimension, bound, curves })
        };
        vec![
            picture("Writes and reads in progress", Dimension::Number, |timeline| {
                &timeline.under_way
            }),
            picture("Bytes sent between sites", Dimension::Bytes, |timeline| &timeline.crossed),
            picture("Writes beyond one fast round", Dimension::Number, |timeline| &timeline.slow),
        ]
    }

    fn rows(scenario: &Scenario, _: &[RunResult]) -> Vec<Number<RunResult>> {
        #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
        let mut rows: Vec<Row> = vec![
            ("put p50", NumberFormat::Time, |run| run.put.p50),
            ("put p99", NumberFormat::Time, |run| run.put.p99),
            ("get p50", NumberFormat::Time, |run| run.get.p50),
            ("get p99", NumberFormat::Time, |run| run.get.p99),
            ("version decided p50", NumberFormat::Time, |run| run.metadata.p50),
            ("in one fast round", NumberFormat::Share, |run| run.fast),
            ("rounds of a put", NumberFormat::Decimal, |run| run.put_rounds),
            ("rounds of a get", NumberFormat::Decimal, |run| run.get_rounds),
            ("crossed, a byte put", NumberFormat::Decimal, |run| run.put_crossed),
            ("crossed, a byte got", NumberFormat::Decimal, |run| run.get_crossed),
            ("stored for each byte", NumberFormat::Decimal, |run| run.stored),
            ("bytes of a row", NumberFormat::Count, |run| run.row_bytes),
            ("fragments written", NumberFormat::Decimal, |run| run.fragment_writes),
            ("rows changed", NumberFormat::Decimal, |run| run.row_updates),
            ("puts", NumberFormat::Count, |run| run.puts as f64),
            ("gets", NumberFormat::Count, |run| run.gets as f64),
            ("failed", NumberFormat::Count, |run| run.failed as f64),
            ("events", NumberFormat::Count, |run| run.events as f64),
        ];
        if scenario.rebuilt.is_some() {
            #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
            let healed: [Row; 3] = [
                ("fragments rebuilt", NumberFormat::Count, |run| run.rebuilt as f64),
                ("crossed, a byte of them", NumberFormat::Decimal, |run| run.rebuild_crossed),
                ("heal p99", NumberFormat::Time, |run| run.heal.p99),
            ];
            rows.extend(healed);
        }
        rows.into_iter().map(|(name, format, value)| Number { name, format, value }).collect()
    }
}
