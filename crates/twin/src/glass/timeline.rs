//! A run over time: the queue, the age of its requests, and the work of each machine.
//!
//! ```text
//! events, outputs --> Recorder --> columns of equal time, at most 240 --> Timeline --> report
//! ```
//!
//! The recorder is just another observer: it draws no random numbers and does not affect the
//! engine, so an observed run is the same run. Columns begin narrow; whenever the run outgrows
//! them, each pair is merged into one.

mod pictures;

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_glass_core::control::{
    Action, CommandId, Event, Machine, Outcome, Output, RequestId,
};
use fulgurite_units::Instant;
use serde::Serialize;

use crate::columns::{Ages, Curve, Grid, Level, Times};
use crate::engine::Observer;
use crate::glass::scenario::Scenario;
use crate::glass::{Glass, Observation, is_new};

/// What a drive did, as shares of each column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DriveTimeline {
    /// Reading for customers, with the seeks, mounts and unmounts of their platters.
    pub read: Vec<f64>,
    /// Verifying, with the mounts and unmounts of new platters.
    pub verify: Vec<f64>,
    /// Switching between the two slots.
    pub switch: Vec<f64>,
}

/// What a shuttle did, as shares of each column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShuttleTimeline {
    /// Moving, crabbing, picking and placing.
    pub work: Vec<f64>,
    /// Charging.
    pub charge: Vec<f64>,
}

/// One run over time, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// The seed.
    pub seed: u64,
    /// Seconds per column; the last one may be shorter.
    pub column_s: f64,
    /// Seconds in total.
    pub end_s: f64,
    /// Requests that wait or are being read; a file has one request for each of its platters.
    pub requests: Curve,
    /// User bytes of those requests, in whole tracks.
    pub backlog_bytes: Curve,
    /// New platters that are not verified yet.
    pub unverified: Curve,
    /// Maximum age of the oldest request, in seconds.
    pub oldest_request_s: Vec<f64>,
    /// Maximum age of the oldest unverified new platter, in seconds.
    pub oldest_unverified_s: Vec<f64>,
    /// All drives, by number.
    pub drives: Vec<DriveTimeline>,
    /// All shuttles, by number.
    pub shuttles: Vec<ShuttleTimeline>,
}

/// The kinds of work of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Read,
    Verify,
    Switch,
    Travel,
    Charge,
}

/// Records a run over time.
#[derive(Clone, Debug)]
pub struct Recorder {
    seed: u64,
    track_size: u64,
    now: Instant,
    grid: Grid,
    requests: Level,
    backlog: Level,
    unverified: Level,
    oldest_request: Ages,
    oldest_unverified: Ages,
    drives: Vec<[Times; 3]>,
    shuttles: Vec<[Times; 2]>,
    /// Reads in progress: their start and their bytes.
    reads: BTreeMap<RequestId, (Instant, u64)>,
    reads_by_age: BTreeSet<(Instant, RequestId)>,
    /// New platters that are not verified yet. Their numbers rise with time.
    new_platters: BTreeMap<RequestId, Instant>,
    in_progress: BTreeMap<CommandId, (Machine, Work, Instant)>,
}

impl Recorder {
    /// Creates a recorder for a run of this scenario with this seed.
    #[must_use]
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let shape = &scenario.library;
        let drives = usize::from(shape.drives_per_panel() * shape.panels);
        let shuttles = usize::from(shape.panels * shape.shuttles_per_panel);
        Self {
            seed,
            track_size: scenario.track_size.get(),
            now: Instant::ZERO,
            grid: Grid::default(),
            requests: Level::default(),
            backlog: Level::default(),
            unverified: Level::default(),
            oldest_request: Ages::default(),
            oldest_unverified: Ages::default(),
            drives: vec![Default::default(); drives],
            shuttles: vec![Default::default(); shuttles],
            reads: BTreeMap::new(),
            reads_by_age: BTreeSet::new(),
            new_platters: BTreeMap::new(),
            in_progress: BTreeMap::new(),
        }
    }

    /// Returns the recording, up to the last event.
    #[must_use]
    pub fn finish(mut self) -> Timeline {
        for (machine, work, since) in std::mem::take(&mut self.in_progress).into_values() {
            self.worked(machine, work, since);
        }
        let grid = self.grid.until(self.now);
        let seconds = |ages: &Ages| ages.seconds(&grid);
        Timeline {
            seed: self.seed,
            column_s: grid.column().as_secs_f64(),
            end_s: self.now.since(Instant::ZERO).as_secs_f64(),
            requests: self.requests.curve(&grid),
            backlog_bytes: self.backlog.curve(&grid),
            unverified: self.unverified.curve(&grid),
            oldest_request_s: seconds(&self.oldest_request),
            oldest_unverified_s: seconds(&self.oldest_unverified),
            drives: self
                .drives
                .iter()
                .map(|[read, verify, switch]| DriveTimeline {
                    read: read.shares(&grid),
                    verify: verify.shares(&grid),
                    switch: switch.shares(&grid),
                })
                .collect(),
            shuttles: self
                .shuttles
                .iter()
                .map(|[work, charge]| ShuttleTimeline {
                    work: work.shares(&grid),
                    charge: charge.shares(&grid),
                })
                .collect(),
        }
    }

    /// Advances time: the current levels have held since the last event.
    fn pass(&mut self, now: Instant) {
        if now <= self.now {
            return;
        }
        while !self.grid.reaches(now) {
            self.coarsen();
        }
        let (grid, from) = (&self.grid, self.now);
        for level in [&mut self.requests, &mut self.backlog, &mut self.unverified] {
            level.hold(grid, from, now);
        }
        let oldest = self.reads_by_age.first().map(|(since, _)| *since);
        self.oldest_request.pass(grid, oldest, from, now);
        let oldest = self.new_platters.values().next().copied();
        self.oldest_unverified.pass(grid, oldest, from, now);
        self.now = now;
    }

    fn coarsen(&mut self) {
        self.grid.coarsen();
        for level in [&mut self.requests, &mut self.backlog, &mut self.unverified] {
            level.coarsen();
        }
        self.oldest_request.coarsen();
        self.oldest_unverified.coarsen();
        self.drives.iter_mut().flatten().for_each(Times::coarsen);
        self.shuttles.iter_mut().flatten().for_each(Times::coarsen);
    }

    fn worked(&mut self, machine: Machine, work: Work, since: Instant) {
        let times = match (machine, work) {
            (Machine::Drive(drive), Work::Read) => &mut self.drives[drive.as_usize()][0],
            (Machine::Drive(drive), Work::Verify) => &mut self.drives[drive.as_usize()][1],
            (Machine::Drive(drive), _) => &mut self.drives[drive.as_usize()][2],
            (Machine::Shuttle(shuttle), Work::Charge) => &mut self.shuttles[shuttle.as_usize()][1],
            (Machine::Shuttle(shuttle), _) => &mut self.shuttles[shuttle.as_usize()][0],
            (Machine::Rail { .. }, _) => return,
        };
        times.add(&self.grid, since, self.now);
    }

    fn ended(&mut self, command: CommandId) {
        if let Some((machine, work, since)) = self.in_progress.remove(&command) {
            self.worked(machine, work, since);
        }
    }

    /// Ends the work of a machine that broke; it will never complete.
    fn broke(&mut self, broken: Machine) {
        let of = |(command, (machine, ..)): (&CommandId, &(Machine, Work, Instant))| {
            (*machine == broken).then_some(*command)
        };
        for command in self.in_progress.iter().filter_map(of).collect::<Vec<_>>() {
            self.ended(command);
        }
    }

    fn read_ended(&mut self, request: RequestId) {
        if let Some((since, bytes)) = self.reads.remove(&request) {
            self.reads_by_age.remove(&(since, request));
            self.requests.change(-1);
            self.backlog.change(-signed(bytes));
        }
    }
}

impl Observer<Glass> for Recorder {
    fn observe(&mut self, now: Instant, observation: Observation<'_>) {
        match observation {
            Observation::Event(event) => self.event(now, event),
            Observation::Output(output) => self.output(now, output),
            Observation::Stepped(_)
            | Observation::RestoreEvent(_)
            | Observation::RestoreCommand(_) => {}
        }
    }
}

impl Recorder {
    fn event(&mut self, now: Instant, event: &Event) {
        self.pass(now);
        match *event {
            Event::Read { request, tracks, .. } => {
                let bytes = u64::from(tracks.track_count) * self.track_size;
                self.reads.insert(request, (now, bytes));
                self.reads_by_age.insert((now, request));
                self.requests.change(1);
                self.backlog.change(signed(bytes));
            }
            Event::Verify { request, .. } => {
                self.new_platters.insert(request, now);
                self.unverified.change(1);
            }
            Event::Completed { command }
            | Event::Halted { command, .. }
            | Event::Failed { command, .. } => self.ended(command),
            Event::Broke { machine } => self.broke(machine),
            Event::Store { .. }
            | Event::Cancel { .. }
            | Event::Passed { .. }
            | Event::Repaired { .. }
            | Event::Battery { .. }
            | Event::Timer => {}
        }
    }

    fn output(&mut self, now: Instant, output: &Output) {
        match *output {
            Output::Do(command) => {
                let action = &command.action;
                self.in_progress.insert(command.id, (action.machine(), work_of(action), now));
            }
            Output::Finished { request, outcome: Outcome::Verified } => {
                let known = self.new_platters.remove(&request).is_some();
                self.unverified.change(-i64::from(known));
            }
            Output::Finished { request, .. } | Output::Rejected { request, .. } => {
                self.read_ended(request);
            }
            Output::Halt { .. } | Output::Traveled(_) => {}
        }
    }
}

fn work_of(action: &Action) -> Work {
    match *action {
        Action::VerifyPass { .. } => Work::Verify,
        Action::Mount { platter, .. } | Action::Unmount { platter, .. } if is_new(platter) => {
            Work::Verify
        }
        Action::Mount { .. }
        | Action::Unmount { .. }
        | Action::Seek { .. }
        | Action::Read { .. } => Work::Read,
        Action::Switch { .. } => Work::Switch,
        Action::Charge { .. } => Work::Charge,
        Action::Move { .. } | Action::Crab { .. } | Action::Pick { .. } | Action::Place { .. } => {
            Work::Travel
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
