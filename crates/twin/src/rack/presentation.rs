//! How runs of a rack are shown: rows of numbers, and the queue and the state of each group over
//! time.

use fulgurite_units::Instant;
use serde::Serialize;

use super::result::RunResult;
use super::run::{GroupState, Observation, Rack};
use super::scenario::{Configuration, Scenario};
use super::shape::{DISKS_OF_GROUP, GROUPS};
use crate::columns::{Curve, Grid, Level, Times};
use crate::engine::Observer;
use crate::metrics::Dimension;
use crate::presentation::{
    self, CurvePicture, Number, NumberFormat, Picture, ReportedSystem, StripPicture,
};

type Row = (&'static str, NumberFormat, fn(&RunResult) -> f64);

/// A rack over time, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// The seed.
    pub seed: u64,
    /// Seconds per column; the last one may be shorter.
    pub column_s: f64,
    /// Seconds in total.
    pub end_s: f64,
    /// Reads waiting.
    pub waiting: Curve,
    /// Reads in service.
    pub reading: Curve,
    /// Disks spinning up.
    pub spinning_up: Curve,
    /// For each group, the share of each column in which it could be read.
    pub groups: Vec<Vec<f64>>,
}

/// Records a run over time.
#[derive(Clone, Debug)]
pub struct Recorder {
    seed: u64,
    now: Instant,
    grid: Grid,
    waiting: Level,
    reading: Level,
    spinning_up: Level,
    groups: Vec<Group>,
}

/// A group over time.
#[derive(Clone, Debug)]
struct Group {
    served: Times,
    is: GroupState,
    since: Instant,
}

impl Recorder {
    /// Advances time: the current levels have held since the last event.
    fn pass(&mut self, now: Instant) {
        while !self.grid.reaches(now) {
            self.grid.coarsen();
            for level in [&mut self.waiting, &mut self.reading, &mut self.spinning_up] {
                level.coarsen();
            }
            self.groups.iter_mut().for_each(|group| group.served.coarsen());
        }
        for level in [&mut self.waiting, &mut self.reading, &mut self.spinning_up] {
            level.hold(&self.grid, self.now, now);
        }
        self.now = now;
    }

    fn change(&mut self, group: u32, is: GroupState) {
        let disks = i64::from(DISKS_OF_GROUP);
        let Some(group) = self.groups.get_mut(group as usize) else { return };
        if group.is == GroupState::Serve {
            group.served.add(&self.grid, group.since, self.now);
        }
        match (group.is, is) {
            (GroupState::SpinUp, _) => self.spinning_up.change(-disks),
            (_, GroupState::SpinUp) => self.spinning_up.change(disks),
            (
                GroupState::Sleep | GroupState::Mount | GroupState::Serve | GroupState::Unmount,
                GroupState::Sleep | GroupState::Mount | GroupState::Serve | GroupState::Unmount,
            ) => {}
        }
        (group.is, group.since) = (is, self.now);
    }
}

impl Observer<Rack> for Recorder {
    fn observe(&mut self, now: Instant, observation: Observation) {
        self.pass(now);
        match observation {
            Observation::Arrived { .. } => self.waiting.change(1),
            Observation::Rejected { .. } => self.waiting.change(-1),
            Observation::ServiceStarted { .. } => {
                self.waiting.change(-1);
                self.reading.change(1);
            }
            Observation::Departed { .. } => self.reading.change(-1),
            Observation::Group { group, is } => self.change(group, is),
            Observation::FirstByte { .. } | Observation::Rebuilt { .. } => {}
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

impl ReportedSystem for Rack {
    type Recorder = Recorder;
    type Timeline = Timeline;
    const HIGHLIGHTS: &'static [&'static str] =
        &["first byte mean", "first byte p99", "rejected", "Gbit/s", "kW", "spin-ups of a disk"];
    const DEFAULT_METRICS: &'static [&'static str] =
        &["first_byte.mean", "first_byte.p99", "reject_rate", "throughput_gbps", "power_kw"];

    fn recorder(_: &Scenario, seed: u64) -> Recorder {
        let [waiting, reading, spinning_up] = Default::default();
        let asleep =
            Group { served: Times::default(), is: GroupState::Sleep, since: Instant::ZERO };
        let groups = vec![asleep; GROUPS as usize];
        let grid = Grid::default();
        Recorder { seed, now: Instant::ZERO, grid, waiting, reading, spinning_up, groups }
    }

    fn timeline(mut recorder: Recorder) -> Timeline {
        for group in 0..GROUPS {
            recorder.change(group, GroupState::Sleep);
        }
        let grid = recorder.grid.until(recorder.now);
        Timeline {
            seed: recorder.seed,
            column_s: grid.column().as_secs_f64(),
            end_s: recorder.now.since(Instant::ZERO).as_secs_f64(),
            waiting: recorder.waiting.curve(&grid),
            reading: recorder.reading.curve(&grid),
            spinning_up: recorder.spinning_up.curve(&grid),
            groups: recorder.groups.iter().map(|group| group.served.shares(&grid)).collect(),
        }
    }

    fn pictures<'a>(scenario: &Scenario, timelines: &'a [Timeline]) -> Vec<Picture<'a>> {
        let picture = |title, curve: fn(&Timeline) -> &Curve| {
            let curves = timelines.iter().map(|timeline| curve(timeline).clone()).collect();
            let (note, dimension) = (String::new(), Dimension::Number);
            Picture::Curve(CurvePicture { title, note, dimension, bound: None, curves })
        };
        let mut pictures = vec![
            picture("Reads waiting", |timeline| &timeline.waiting),
            picture("Reads in service", |timeline| &timeline.reading),
        ];
        let sleeps = [Configuration::Driven, Configuration::Reference];
        if !sleeps.contains(&scenario.configuration) {
            return pictures;
        }
        pictures.push(picture("Disks spinning up", |timeline| &timeline.spinning_up));
        if let Some(timeline) = timelines.first() {
            pictures.push(Picture::Strip(StripPicture {
                title: "Groups that can be read",
                note: "First seed; each class has 12 groups, one active at a time.",
                machine: "group",
                rows: timeline.groups.iter().map(Vec::as_slice).collect(),
            }));
        }
        pictures
    }

    fn rows(scenario: &Scenario, _: &[RunResult]) -> Vec<Number<RunResult>> {
        #[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
        let mut rows: Vec<Row> = vec![
            ("first byte mean", NumberFormat::Time, |run| run.first_byte.mean),
            ("first byte p95", NumberFormat::Time, |run| run.first_byte_p95),
            ("first byte p99", NumberFormat::Time, |run| run.first_byte.p99),
            ("first byte max", NumberFormat::Time, |run| run.first_byte.max),
            ("service mean", NumberFormat::Time, |run| run.service.mean),
            ("completion mean", NumberFormat::Time, |run| run.completion.mean),
            ("completion p99", NumberFormat::Time, |run| run.completion.p99),
            ("reads", NumberFormat::Count, |run| run.offered as f64),
            ("rejected", NumberFormat::Share, |run| run.reject_rate),
            ("Gbit/s", NumberFormat::Decimal, |run| run.throughput * 8.0 / 1e9),
            ("kW", NumberFormat::Decimal, |run| run.power / 1e3),
            ("kW max", NumberFormat::Decimal, |run| run.power_max / 1e3),
            ("spin-ups of a disk", NumberFormat::Count, |run| run.spin_ups),
            ("TB of a disk", NumberFormat::Decimal, |run| run.disk_bytes / 1e12),
            ("waiting max", NumberFormat::Count, |run| run.queue_max as f64),
            ("makespan", NumberFormat::Time, |run| run.makespan),
            ("events", NumberFormat::Count, |run| run.events as f64),
        ];
        if scenario.rebuild.is_some() {
            let rebuilt: [Row; 3] = [
                ("rebuild", NumberFormat::Time, |run| run.rebuild.took),
                ("p95 of its class", NumberFormat::Time, |run| run.rebuild.class_p95),
                ("p95 of others", NumberFormat::Time, |run| run.rebuild.others_p95),
            ];
            rows.extend(rebuilt);
        }
        rows.into_iter().map(|(name, format, value)| Number { name, format, value }).collect()
    }
}
