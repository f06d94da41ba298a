//! How busy drives and shuttles are with reads, while there is a platter for each drive.
//!
//! The input is the events and outputs of a library, live (from its log) or simulated. A drive is
//! busy while it executes a command for a read - mount, seek, read, unmount, switch slots - and
//! idle while it waits for a platter; verification counts as neither. A shuttle is busy while it
//! executes a command, with or without a platter. While fewer platters are wanted than there are
//! drives, some drive has nothing to do under any policy, so that time is left out.

use std::collections::BTreeMap;

use fulgurite_glass_core::control::{
    Action, CommandId, Event, LibraryShape, Machine, Output, RequestId,
};
use fulgurite_units::{Instant, PlatterId};

#[derive(Clone, Debug)]
pub(crate) struct ReadUtilization {
    drives: u16,
    shuttles: u16,
    since: Instant,
    /// The current command of each drive and shuttle.
    working: BTreeMap<Machine, (CommandId, Activity)>,
    requests: BTreeMap<RequestId, PlatterId>,
    /// Number of waiting reads of each platter.
    platters: BTreeMap<PlatterId, usize>,
    drive_time: MachineTime,
    shuttle_time: MachineTime,
}

/// Machine time in nanoseconds: available and used.
#[derive(Clone, Copy, Debug, Default)]
struct MachineTime {
    available_ns: u64,
    busy_ns: u64,
}

impl MachineTime {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    fn share(self) -> f64 {
        if self.available_ns > 0 { self.busy_ns as f64 / self.available_ns as f64 } else { 0.0 }
    }
}

/// Shares of machines that worked while there was a platter for each drive; 0 if that was never so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    pub(crate) drives: f64,
    pub(crate) shuttles: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Read,
    Verify,
    Transport,
}

impl ReadUtilization {
    pub(crate) const fn new(shape: &LibraryShape) -> Self {
        Self {
            drives: shape.drives_per_panel() * shape.panels,
            shuttles: shape.shuttles_per_panel * shape.panels,
            since: Instant::ZERO,
            working: BTreeMap::new(),
            requests: BTreeMap::new(),
            platters: BTreeMap::new(),
            drive_time: MachineTime { available_ns: 0, busy_ns: 0 },
            shuttle_time: MachineTime { available_ns: 0, busy_ns: 0 },
        }
    }

    pub(crate) fn shares(&self) -> Shares {
        Shares { drives: self.drive_time.share(), shuttles: self.shuttle_time.share() }
    }

    pub(crate) fn event(&mut self, now: Instant, event: &Event) {
        self.pass(now);
        match *event {
            Event::Read { request, platter, .. } => {
                self.requests.insert(request, platter);
                *self.platters.entry(platter).or_default() += 1;
            }
            Event::Completed { command }
            | Event::Halted { command, .. }
            | Event::Failed { command, .. } => {
                self.working.retain(|_, (of, _)| *of != command);
            }
            Event::Broke { machine } => {
                self.working.remove(&machine);
            }
            Event::Verify { .. }
            | Event::Store { .. }
            | Event::Cancel { .. }
            | Event::Passed { .. }
            | Event::Repaired { .. }
            | Event::Battery { .. }
            | Event::Timer => {}
        }
    }

    pub(crate) fn output(&mut self, now: Instant, output: &Output) {
        self.pass(now);
        match output {
            Output::Do(command) => {
                let machine = command.action.machine();
                let doing = match (machine, command.action) {
                    (Machine::Shuttle(_) | Machine::Rail { .. }, _) => Activity::Transport,
                    (Machine::Drive(_), Action::VerifyPass { .. }) => Activity::Verify,
                    (Machine::Drive(_), _) => Activity::Read,
                };
                self.working.insert(machine, (command.id, doing));
            }
            Output::Finished { request, .. } | Output::Rejected { request, .. } => {
                if let Some(platter) = self.requests.remove(request)
                    && let Some(count) = self.platters.get_mut(&platter)
                {
                    *count -= 1;
                    if *count == 0 {
                        self.platters.remove(&platter);
                    }
                }
            }
            Output::Halt { .. } | Output::Traveled(_) => {}
        }
    }

    fn pass(&mut self, now: Instant) {
        let passed = now.since(self.since).as_nanos();
        self.since = self.since.max(now);
        if self.platters.len() < usize::from(self.drives) {
            return;
        }
        let of = |doing| self.working.values().filter(|(_, other)| *other == doing).count() as u64;
        let drives = u64::from(self.drives).saturating_sub(of(Activity::Verify));
        self.drive_time.available_ns += passed * drives;
        self.drive_time.busy_ns += passed * of(Activity::Read);
        self.shuttle_time.available_ns += passed * u64::from(self.shuttles);
        self.shuttle_time.busy_ns += passed * of(Activity::Transport);
    }
}
