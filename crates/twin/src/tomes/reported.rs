//! How runs of a set of tomes are shown: rows of numbers, and the spinning disks, unprotected data
//! and lost tomes over time.

use fulgurite_units::Instant;
use serde::Serialize;

use super::result::RunResult;
use super::run::{Seen, Tomes};
use super::scenario::Scenario;
use crate::columns::{Curve, Grid, Level};
use crate::engine::Observer;
use crate::measured::Dimension;
use crate::reported::{self, CurvePicture, Number, Picture, Reported, Shown};

type Row = (&'static str, Shown, fn(&RunResult) -> f64);

/// A set of tomes over time, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
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

impl Observer<Tomes> for Recorder {
    fn see(&mut self, now: Instant, seen: Seen) {
        self.pass(now);
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        match seen {
            Seen::Spins(by) => self.spinning.change(i64::from(by)),
            Seen::Acknowledged(bytes) => self.unprotected.change(signed(bytes)),
            Seen::Protected(bytes) => {
                self.unprotected.change(-signed(bytes));
                self.protected.change(signed(bytes));
            }
            Seen::Dropped(bytes) => self.unprotected.change(-signed(bytes)),
            Seen::Lost(by) => self.lost.change(i64::from(by)),
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

impl Reported for Tomes {
    type Recorder = Recorder;
    type Course = Course;
    const TOTALS: &'static [&'static str] =
        &["spinning max", "tokens", "protected TB", "not protected max TB", "kW"];
    const SWEPT: &'static [&'static str] =
        &["protected_mb_per_s", "protection.p99", "spinning_max", "power"];

    fn recorder(_: &Scenario, seed: u64) -> Recorder {
        let [spinning, protected, unprotected, lost] = Default::default();
        let grid = Grid::default();
        Recorder { seed, now: Instant::ZERO, grid, spinning, protected, unprotected, lost }
    }

    fn course(recorder: Recorder) -> Course {
        let grid = recorder.grid.until(recorder.now);
        Course {
            seed: recorder.seed,
            column_s: grid.column().as_secs_f64(),
            end_s: recorder.now.since(Instant::ZERO).as_secs_f64(),
            spinning: recorder.spinning.curve(&grid),
            protected: recorder.protected.curve(&grid),
            unprotected: recorder.unprotected.curve(&grid),
            lost: recorder.lost.curve(&grid),
        }
    }

    fn pictures<'a>(scenario: &Scenario, courses: &'a [Course]) -> Vec<Picture<'a>> {
        let picture = |title, dimension, bound, of: fn(&Course) -> &Curve| {
            let curves = courses.iter().map(|course| of(course).clone()).collect();
            Picture::Curve(CurvePicture { title, note: String::new(), dimension, bound, curves })
        };
        let tokens = Some((f64::from(scenario.tokens()), "tokens"));
        let mut pictures =
            vec![picture("Disks that spin", Dimension::Number, tokens, |course| &course.spinning)];
        if scenario.ingest.is_some() {
            pictures.push(picture("Protected", Dimension::Bytes, None, |of| &of.protected));
            let title = "Acknowledged and not protected";
            pictures.push(picture(title, Dimension::Bytes, None, |course| &course.unprotected));
        }
        if scenario.fails() {
            let title = "Tomes lost and not rebuilt";
            pictures.push(picture(title, Dimension::Number, None, |course| &course.lost));
        }
        pictures
    }

    fn rows(scenario: &Scenario, _: &[RunResult]) -> Vec<Number<RunResult>> {
        #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
        let mut rows: Vec<Row> = vec![
            ("spinning max", Shown::Count, |run| run.spinning_max as f64),
            ("tokens", Shown::Count, |run| run.tokens as f64),
            ("spinning", Shown::Decimal, |run| run.spinning),
            ("kW", Shown::Decimal, |run| run.power / 1e3),
            ("spin-ups of a disk", Shown::Decimal, |run| run.spin_ups_a_year),
            ("events", Shown::Count, |run| run.events as f64),
        ];
        if scenario.ingest.is_some() {
            #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
            let written: [Row; 7] = [
                ("acknowledged TB", Shown::Decimal, |run| run.acknowledged as f64 / 1e12),
                ("acknowledged at", Shown::Time, |run| run.acknowledged_at),
                ("protected TB", Shown::Decimal, |run| run.protected as f64 / 1e12),
                ("protected at", Shown::Time, |run| run.protected_at),
                ("protection p99", Shown::Time, |run| run.protection.p99),
                ("not protected max TB", Shown::Decimal, |run| run.unprotected_max as f64 / 1e12),
                ("lost unprotected TB", Shown::Decimal, |run| run.unprotected_lost as f64 / 1e12),
            ];
            rows.extend(written);
        }
        if scenario.fails() {
            #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
            let failed: [Row; 5] = [
                ("failures", Shown::Count, |run| run.failures as f64),
                ("rebuild mean", Shown::Time, |run| run.rebuild.mean),
                ("rebuild p99", Shown::Time, |run| run.rebuild.p99),
                ("rebuilds begun anew", Shown::Count, |run| run.restarts as f64),
                ("groups lost", Shown::Count, |run| run.groups_lost as f64),
            ];
            rows.extend(failed);
        }
        rows.into_iter().map(|(name, shown, of)| Number { name, shown, of }).collect()
    }
}
