//! The machines: how long each command takes, and when it completes.
//!
//! A verification pass lasts for hours and is nearly always halted, so it gets no entry of its own
//! in the event queue. Instead each drive has one alarm there, and checks when it fires whether its
//! pass is over.

use fulgurite_glass_core::control::limits::REPORT_UM;
use fulgurite_glass_core::control::{
    Action, Command, CommandId, Event, LibraryShape, Machine, Mechanics, RailPosition, TrackSpan,
};
use fulgurite_units::{Duration, Instant, RandomStream, Seed};

use super::run::PendingEvent;
use crate::engine::EventQueue;
use crate::glass::scenario::Scenario;

/// All shuttles and drives.
#[derive(Debug)]
pub(crate) struct Machines {
    mechanics: Mechanics,
    shuttles: Vec<MachineState>,
    drives: Vec<MachineState>,
}

#[derive(Debug)]
struct MachineState {
    random: RandomStream,
    work: Option<Work>,
    /// The earliest alarm of a drive in the event queue.
    alarm: Option<Instant>,
    broken: bool,
}

/// Identifies a machine in the event queue. Small, because each event moves some of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// A shuttle, by its index.
    Shuttle(u16),
    /// A drive, by its index.
    Drive(u16),
}

const fn device_of(action: &Action) -> Device {
    match *action {
        Action::Move { shuttle, .. }
        | Action::Crab { shuttle, .. }
        | Action::Pick { shuttle, .. }
        | Action::Place { shuttle, .. }
        | Action::Charge { shuttle } => Device::Shuttle(shuttle.get()),
        Action::Mount { drive, .. }
        | Action::Unmount { drive, .. }
        | Action::Switch { drive, .. }
        | Action::Seek { drive, .. }
        | Action::Read { drive, .. }
        | Action::VerifyPass { drive, .. } => Device::Drive(drive.get()),
    }
}

/// A command in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) command: Command,
    pub(crate) started: Instant,
    pub(crate) ends: Instant,
}

impl Machines {
    pub(crate) fn new(scenario: &Scenario, drives: usize, seed: &Seed) -> Self {
        let mechanics = Mechanics::new(scenario.throughput, scenario.track_size);
        let mechanics = mechanics.with_parameters(scenario.mechanics);
        Self::with_mechanics(&scenario.library, mechanics, drives, seed)
    }

    /// Creates the machines of a library without a scenario.
    pub(crate) fn with_mechanics(
        shape: &LibraryShape,
        mechanics: Mechanics,
        drives: usize,
        seed: &Seed,
    ) -> Self {
        let shuttles = usize::from(shape.panels * shape.shuttles_per_panel);
        let devices = |kind: &str, count: usize| {
            let device = |index| {
                let seed = seed.child(format!("{kind} {index}").as_bytes());
                MachineState { random: seed.stream(), work: None, alarm: None, broken: false }
            };
            (0..count).map(device).collect()
        };
        Self { mechanics, shuttles: devices("shuttle", shuttles), drives: devices("drive", drives) }
    }

    fn machine_state(&mut self, device: Device) -> &mut MachineState {
        match device {
            Device::Shuttle(index) => &mut self.shuttles[usize::from(index)],
            Device::Drive(index) => &mut self.drives[usize::from(index)],
        }
    }

    /// Begins a command.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        command: &Command,
        event_queue: &mut EventQueue<PendingEvent>,
    ) {
        let name = device_of(&command.action);
        let device = match name {
            Device::Shuttle(index) => &mut self.shuttles[usize::from(index)],
            Device::Drive(index) => &mut self.drives[usize::from(index)],
        };
        let ends = now + self.mechanics.duration(&command.action, &mut device.random);
        device.work = Some(Work { command: *command, started: now, ends });
        if let Action::VerifyPass { drive, .. } = command.action {
            if device.alarm.is_none_or(|alarm| ends < alarm) {
                device.alarm = Some(ends);
                event_queue.push(ends, PendingEvent::Alarm(drive));
            }
            return;
        }
        if let Action::Move { reports: true, .. } = command.action {
            self.report(now, command, event_queue);
        }
        event_queue.push(ends, PendingEvent::Done(command.id, name));
    }

    /// Schedules the position reports of a moving shuttle.
    fn report(&self, now: Instant, command: &Command, event_queue: &mut EventQueue<PendingEvent>) {
        let Action::Move { from, to, .. } = command.action else { return };
        let meters = from.meters_to(to);
        for step in 1..from.get().abs_diff(to.get()).div_ceil(REPORT_UM) {
            let part = step * REPORT_UM;
            let at = if from < to { from.get() + part } else { from.get() - part };
            let at = RailPosition::new(at);
            let Some(after) = self.mechanics.passes(meters, from.meters_to(at)) else { return };
            event_queue.push(
                now + after,
                PendingEvent::Passed(command.id, device_of(&command.action), at),
            );
        }
    }

    /// Returns whether a command is still in progress.
    pub(crate) fn is_under_way(&mut self, command: CommandId, device: Device) -> bool {
        self.machine_state(device).work.is_some_and(|work| work.command.id == command)
    }

    /// Ends a command; `None` if its machine broke in the meantime.
    pub(crate) fn done(&mut self, command: CommandId, device: Device) -> Option<Work> {
        let device = self.machine_state(device);
        let due = device.work.is_some_and(|work| work.command.id == command);
        if due { device.work.take() } else { None }
    }

    /// Handles a drive's alarm: returns its pass if it is over, else sets a new alarm.
    pub(crate) fn alarm(
        &mut self,
        now: Instant,
        drive: fulgurite_units::DriveIndex,
        event_queue: &mut EventQueue<PendingEvent>,
    ) -> Option<Work> {
        let device = &mut self.drives[drive.as_usize()];
        if device.alarm != Some(now) {
            return None;
        }
        device.alarm = None;
        let passes = |work: &&mut Work| matches!(work.command.action, Action::VerifyPass { .. });
        let work = device.work.as_mut().filter(passes).copied()?;
        if work.ends <= now {
            device.work = None;
            return Some(work);
        }
        device.alarm = Some(work.ends);
        event_queue.push(work.ends, PendingEvent::Alarm(drive));
        None
    }

    /// Makes a pass end with its current track.
    pub(crate) fn halt(
        &mut self,
        now: Instant,
        command: CommandId,
        event_queue: &mut EventQueue<PendingEvent>,
    ) {
        let passes =
            |device: &&mut MachineState| device.work.is_some_and(|work| work.command.id == command);
        let Some(device) = self.drives.iter_mut().find(passes) else { return };
        let Some(work) = device.work.as_mut() else { return };
        let Action::VerifyPass { tracks, .. } = work.command.action else { return };
        let track = self.mechanics.read(TrackSpan::new(tracks.first, 1)).as_nanos().max(1);
        let passed = now.since(work.started).as_nanos().div_ceil(track);
        let ends = work.started + Duration::from_nanos(passed * track);
        work.ends = work.ends.min(ends.max(now));
        event_queue.push(work.ends, PendingEvent::Done(command, device_of(&work.command.action)));
    }

    /// Returns the event for the controller at the end of a command.
    pub(crate) fn answer(&self, work: &Work) -> Event {
        let command = work.command.id;
        let Action::VerifyPass { tracks, .. } = work.command.action else {
            return Event::Completed { command };
        };
        let tracks_done = self.tracks_done(work);
        if tracks_done >= tracks.track_count {
            Event::Completed { command }
        } else {
            Event::Halted { command, tracks_done }
        }
    }

    /// Returns the number of whole tracks that a pass read.
    pub(crate) fn tracks_done(&self, work: &Work) -> u32 {
        let Action::VerifyPass { tracks, .. } = work.command.action else { return 0 };
        let track = self.mechanics.read(TrackSpan::new(tracks.first, 1)).as_nanos().max(1);
        let done = work.ends.since(work.started).as_nanos() / track;
        u32::try_from(done).unwrap_or(u32::MAX).min(tracks.track_count)
    }

    /// Returns the number of whole tracks read so far by the passes in progress.
    pub(crate) fn passing_tracks(&self, now: Instant) -> u64 {
        let works = self.drives.iter().filter_map(|drive| drive.work);
        works
            .map(|work| u64::from(self.tracks_done(&Work { ends: work.ends.min(now), ..work })))
            .sum()
    }

    /// Breaks a machine: its command never completes.
    pub(crate) fn break_down(&mut self, machine: Machine) {
        if let Some(device) = self.named(machine) {
            device.work = None;
            device.broken = true;
        }
    }

    pub(crate) fn repair(&mut self, machine: Machine) {
        if let Some(device) = self.named(machine) {
            device.broken = false;
        }
    }

    pub(crate) fn is_broken(&mut self, machine: Machine) -> bool {
        self.named(machine).is_some_and(|device| device.broken)
    }

    fn named(&mut self, machine: Machine) -> Option<&mut MachineState> {
        match machine {
            Machine::Shuttle(shuttle) => self.shuttles.get_mut(shuttle.as_usize()),
            Machine::Drive(drive) => self.drives.get_mut(drive.as_usize()),
            Machine::Rail { .. } => None,
        }
    }
}
