//! How busy drives are with reads, while there is a platter to fetch for each of them.
//!
//! Told what a library is told and answers, live (its log) or simulated. A drive is busy while it
//! carries out a command for a read - to mount, to seek, to read, to unmount, to turn to its other
//! slot - and idle while it waits for a platter; what it verifies counts as neither. While fewer
//! platters are wanted than there are drives some drive has nothing to do, whoever decides, so that
//! time is left out.

use std::collections::BTreeMap;

use fulgurite_library::{Action, CommandId, Event, Machine, Output, RequestId};
use fulgurite_units::{DriveIndex, Instant, PlatterId};

#[derive(Clone, Debug)]
pub(crate) struct Busy {
    drives: usize,
    since: Instant,
    /// What each drive does.
    working: BTreeMap<DriveIndex, (CommandId, Doing)>,
    wishes: BTreeMap<RequestId, PlatterId>,
    /// Reads asked of each platter.
    platters: BTreeMap<PlatterId, usize>,
    /// Nanoseconds times drives: all that could have worked, and those that did.
    could_ns: u64,
    did_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Read,
    Verify,
}

impl Busy {
    pub(crate) const fn new(drives: usize) -> Self {
        Self {
            drives,
            since: Instant::ZERO,
            working: BTreeMap::new(),
            wishes: BTreeMap::new(),
            platters: BTreeMap::new(),
            could_ns: 0,
            did_ns: 0,
        }
    }

    /// The share of drives that worked, while each could; none if that was never so.
    pub(crate) fn share(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = self.did_ns as f64 / self.could_ns as f64;
        (self.could_ns > 0).then_some(share)
    }

    pub(crate) fn event(&mut self, now: Instant, event: &Event) {
        self.pass(now);
        match *event {
            Event::Read { request, platter, .. } => {
                self.wishes.insert(request, platter);
                *self.platters.entry(platter).or_default() += 1;
            }
            Event::Completed { command }
            | Event::Halted { command, .. }
            | Event::Failed { command, .. } => {
                self.working.retain(|_, (of, _)| *of != command);
            }
            Event::Broke { machine: Machine::Drive(drive) } => {
                self.working.remove(&drive);
            }
            Event::Verify { .. }
            | Event::Store { .. }
            | Event::Cancel { .. }
            | Event::Passed { .. }
            | Event::Broke { .. }
            | Event::Repaired { .. }
            | Event::Battery { .. }
            | Event::Timer => {}
        }
    }

    pub(crate) fn output(&mut self, now: Instant, output: &Output) {
        self.pass(now);
        match output {
            Output::Do(command) => {
                if let Machine::Drive(drive) = command.action.machine() {
                    let verifies = matches!(command.action, Action::VerifyPass { .. });
                    let doing = if verifies { Doing::Verify } else { Doing::Read };
                    self.working.insert(drive, (command.id, doing));
                }
            }
            Output::Finished { request, .. } | Output::Rejected { request, .. } => {
                if let Some(platter) = self.wishes.remove(request)
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
        if self.platters.len() < self.drives {
            return;
        }
        let of = |doing| self.working.values().filter(|(_, other)| *other == doing).count() as u64;
        let could = (self.drives as u64).saturating_sub(of(Doing::Verify));
        self.could_ns += passed * could;
        self.did_ns += passed * of(Doing::Read);
    }
}
