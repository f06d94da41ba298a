//! How runs of a set of tomes are shown: rows of numbers, and the spinning disks, unprotected data
//! and lost tomes over time.

use fulgurite_units::Instant;
use serde::Serialize;

use super::result::RunResult;
use super::run::{Observation, TomeSet};
use super::scenario::Scenario;
use crate::columns::{Curve, Grid, Level};
use crate::engine::Observer;
use crate::metrics::Dimension;
use crate::presentation::{self, CurvePicture, Number, NumberFormat, Picture, ReportedSystem};

type Row = (&'static str, NumberFormat, fn(&RunResult) -> f64);

/// A set of tomes over time, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// The seed.
    pub seed: u64,
    /// Seconds per column; the last one may be shorter.
    pub column_s: f64,
    /// Seconds in total.
    pub end_s: f64,
    /// Spinning disks.
    pub spinning: Curve,
    /// Bytes that have parity on other tomes.
    pub protected: Curve,
    /// Acknowledged bytes without parity on other tomes.
    pub unprotected: Curve,
    /// Tomes that are lost and not rebuilt yet.
    pub lost: Curve,
}

/// Records a run over time.
#[derive(Clone, Debug)]
pub struct Recorder {
    seed: u64,
    now: Instant,
    grid: Grid,
    spinning: Level,
    protected: Level,
    unprotected: Level,
    lost: Level,
}

impl Recorder {
    /// Advances time: the current levels have held since the last event.
    fn pass(&mut self, now: Instant) {
        let mut levels =
            [&mut self.spinning, &mut self.protected, &mut self.unprotected, &mut self.lost];
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

impl Observer<TomeSet> for Recorder {
    fn observe(&mut self, now: Instant, observation: Observation) {
        self.pass(now);
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        match observation {
            Observation::SpinningChanged(delta) => self.spinning.change(i64::from(delta)),
            Observation::Acknowledged(bytes) => self.unprotected.change(signed(bytes)),
            Observation::Protected(bytes) => {
                self.unprotected.change(-signed(bytes));
                self.protected.change(signed(bytes));
            }
            Observation::Dropped(bytes) => self.unprotected.change(-signed(bytes)),
            Observation::Lost(delta) => self.lost.change(i64::from(delta)),
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

impl ReportedSystem for TomeSet {
    type Recorder = Recorder;
    type Timeline = Timeline;
    const HIGHLIGHTS: &'static [&'static str] =
        &["spinning max", "tokens", "protected TB", "not protected max TB", "kW"];
    const DEFAULT_METRICS: &'static [&'static str] =
        &["protected_mb_per_s", "protection.p99", "spinning_max", "power"];

    fn recorder(_: &Scenario, seed: u64) -> Recorder {
        let [spinning, protected, unprotected, lost] = Default::default();
        let grid = Grid::default();
        Recorder { seed, now: Instant::ZERO, grid, spinning, protected, unprotected, lost }
    }

    fn timeline(recorder: Recorder) -> Timeline {
        let grid = recorder.grid.until(recorder.now);
        Timeline {
            seed: recorder.seed,
            column_s: grid.column().as_secs_f64(),
            end_s: recorder.now.since(Instant::ZERO).as_secs_f64(),
            spinning: recorder.spinning.curve(&grid),
            protected: recorder.protected.curve(&grid),
            unprotected: recorder.unprotected.curve(&grid),
            lost: recorder.lost.curve(&grid),
        }
    }

    fn pictures<'a>(scenario: &Scenario, timelines: &'a [Timeline]) -> Vec<Picture<'a>> {
        let picture = |title, dimension, bound, curve: fn(&Timeline) -> &Curve| {
            let curves = timelines.iter().map(|timeline| curve(timeline).clone()).collect();
            Picture::Curve(CurvePicture { title, note: String::new(), dimension, bound, curves })
        };
        let tokens = Some((f64::from(scenario.tokens()), "tokens"));
        let mut pictures = vec![picture("Spinning disks", Dimension::Number, tokens, |timeline| {
            &timeline.spinning
        })];
        if scenario.ingest.is_some() {
            pictures
                .push(picture("Protected", Dimension::Bytes, None, |timeline| &timeline.protected));
            let title = "Acknowledged and not protected";
            pictures.push(picture(title, Dimension::Bytes, None, |timeline| &timeline.unprotected));
        }
        if scenario.fails() {
            let title = "Tomes lost and not rebuilt";
            pictures.push(picture(title, Dimension::Number, None, |timeline| &timeline.lost));
        }
        pictures
    }

    fn rows(scenario: &Scenario, _: &[RunResult]) -> Vec<Number<RunResult>> {
        #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
        let mut rows: Vec<Row> = vec![
            ("spinning max", NumberFormat::Count, |run| run.spinning_max as f64),
            ("tokens", NumberFormat::Count, |run| run.tokens as f64),
            ("spinning", NumberFormat::Decimal, |run| run.spinning),
            ("kW", NumberFormat::Decimal, |run| run.power / 1e3),
            ("spin-ups of a disk", NumberFormat::Decimal, |run| run.spin_ups_a_year),
            ("events", NumberFormat::Count, |run| run.events as f64),
        ];
        if scenario.ingest.is_some() {
            #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
            let written: [Row; 7] = [
                ("acknowledged TB", NumberFormat::Decimal, |run| run.acknowledged as f64 / 1e12),
                ("acknowledged at", NumberFormat::Time, |run| run.acknowledged_at),
                ("protected TB", NumberFormat::Decimal, |run| run.protected as f64 / 1e12),
                ("protected at", NumberFormat::Time, |run| run.protected_at),
                ("protection p99", NumberFormat::Time, |run| run.protection.p99),
                ("not protected max TB", NumberFormat::Decimal, |run| {
                    run.unprotected_max as f64 / 1e12
                }),
                ("lost unprotected TB", NumberFormat::Decimal, |run| {
                    run.unprotected_lost as f64 / 1e12
                }),
            ];
            rows.extend(written);
        }
        if scenario.fails() {
            #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
            let failed: [Row; 5] = [
                ("failures", NumberFormat::Count, |run| run.failures as f64),
                ("rebuild mean", NumberFormat::Time, |run| run.rebuild.mean),
                ("rebuild p99", NumberFormat::Time, |run| run.rebuild.p99),
                ("rebuilds restarted", NumberFormat::Count, |run| run.restarts as f64),
                ("groups lost", NumberFormat::Count, |run| run.groups_lost as f64),
            ];
            rows.extend(failed);
        }
        rows.into_iter().map(|(name, format, value)| Number { name, format, value }).collect()
    }
}
