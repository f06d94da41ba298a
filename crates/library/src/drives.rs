//! What the drives do: customers first, verification in the time that is left.
//!
//! ```text
//!   customer slot:      Mount -> (Switch) -> [Seek ->] Read -> ... -> Unmount -> returned home
//!   verification slot:  Mount -> (Switch) -> VerifyPass -> ... -> Unmount -> shelved
//!                                               ^  |
//!                                               |  '--- halted when a customer's platter arrives
//!                                               '------ goes on when the customer's is released
//! ```
//!
//! A drive does one thing at a time. Both slots can hold a mounted platter; a switch (1 s) is
//! needed to turn from one to the other.

use fulgurite_units::{DriveIndex, Outbox, PlatterId, TrackIndex};

use crate::controller::{Actor, Library};
use crate::limits::READS_PER_VISIT_MAX;
use crate::state::{Job, Platter, Stage, Work};
use crate::{Action, CommandId, DriveSlot, Fault, Outcome, Output, RequestId};

impl Library {
    /// Gives every idle drive something to do, and asks verifying drives to make way for customers.
    pub(crate) fn dispatch_drives(&mut self, out: &mut Outbox<Output>) {
        for index in 0..self.drives.len() {
            let drive = DriveIndex::new(u16::try_from(index).unwrap_or(u16::MAX));
            match self.drives[index].work {
                Some(work) => self.halt_for_customer(drive, work, out),
                None => self.start_next(drive, out),
            }
        }
    }

    fn start_next(&mut self, index: DriveIndex, out: &mut Outbox<Output>) {
        let Some(action) = self.next_action(index) else { return };
        if let Action::Read { platter, request, .. } = action {
            self.begin_read(platter, request);
        }
        let command = self.command(Actor::Drive(index), action, out);
        self.drives[index.as_usize()].work = Some(Work { command, action, halting: false });
    }

    /// What an idle drive does next, if anything.
    pub(crate) fn next_action(&self, index: DriveIndex) -> Option<Action> {
        if self.drives[index.as_usize()].broken {
            return None;
        }
        self.customer_action(index).or_else(|| self.verification_action(index))
    }

    fn halt_for_customer(&mut self, index: DriveIndex, work: Work, out: &mut Outbox<Output>) {
        let verifying = matches!(work.action, Action::VerifyPass { .. });
        if verifying && !work.halting && self.customer_action(index).is_some() {
            out.push(Output::Halt { command: work.command });
            self.drives[index.as_usize()].work = Some(Work { halting: true, ..work });
        }
    }

    /// What a drive does next for the platter in its customer slot.
    fn customer_action(&self, index: DriveIndex) -> Option<Action> {
        let slot = DriveSlot::Customer;
        let drive = &self.drives[index.as_usize()];
        let id = drive.customer.platter?;
        let platter = self.platter(id);
        if !drive.customer.mounted {
            return is_wanted(platter).then_some(Action::Mount { drive: index, slot, platter: id });
        }
        if !is_wanted(platter) {
            return Some(Action::Unmount { drive: index, slot, platter: id });
        }
        if drive.facing != Some(slot) {
            return Some(Action::Switch { drive: index, to: slot });
        }
        let (_, request) = platter.oldest_read()?;
        let Job::Read { tracks } = self.requests[&request].job else {
            unreachable!("only reads are listed as reads of a platter");
        };
        if drive.head == Some(tracks.first) {
            return Some(Action::Read { drive: index, platter: id, request, tracks });
        }
        Some(Action::Seek { drive: index, platter: id, track: tracks.first })
    }

    /// What a drive does next for the platter in its verification slot.
    fn verification_action(&self, index: DriveIndex) -> Option<Action> {
        let slot = DriveSlot::Verification;
        let drive = &self.drives[index.as_usize()];
        let id = drive.verification.platter?;
        let mounted = drive.verification.mounted;
        match self.platter(id).stage {
            Stage::Unverified { .. } if !mounted => {
                Some(Action::Mount { drive: index, slot, platter: id })
            }
            Stage::Unverified { .. } if drive.facing != Some(slot) => {
                Some(Action::Switch { drive: index, to: slot })
            }
            Stage::Unverified { request, tracks, .. } => {
                Some(Action::VerifyPass { drive: index, platter: id, request, tracks })
            }
            Stage::Checked { .. } | Stage::Storing { .. } | Stage::Stored { .. } => {
                mounted.then_some(Action::Unmount { drive: index, slot, platter: id })
            }
        }
    }

    /// From here on the read cannot be canceled.
    fn begin_read(&mut self, platter: PlatterId, request: RequestId) {
        let age = self.requests[&request].age;
        let platter = self.platter_mut(platter);
        platter.visit_reads += 1;
        let listed = platter.reads.remove(&age);
        assert_eq!(listed, Some(request), "a read begins once");
    }

    pub(crate) fn drive_completed(
        &mut self,
        index: DriveIndex,
        command: CommandId,
        out: &mut Outbox<Output>,
    ) {
        match self.end_work(index, command).action {
            Action::Mount { slot, .. } => {
                let drive = &mut self.drives[index.as_usize()];
                drive.bay_mut(slot).mounted = true;
                if drive.facing.is_none() && !drive.bay(other(slot)).mounted {
                    drive.facing = Some(slot);
                }
                drive.head = None;
            }
            Action::Unmount { slot, .. } => {
                let drive = &mut self.drives[index.as_usize()];
                drive.bay_mut(slot).mounted = false;
                if drive.facing == Some(slot) {
                    drive.facing = None;
                }
            }
            Action::Switch { to, .. } => {
                let drive = &mut self.drives[index.as_usize()];
                drive.facing = Some(to);
                drive.head = None;
            }
            Action::Seek { track, .. } => self.set_head(index, Some(track)),
            Action::Read { request, tracks, .. } => {
                self.set_head(index, tracks.end());
                self.finish(request, Outcome::Read, out);
            }
            Action::VerifyPass { platter, request, .. } => {
                self.end_verification(platter, request, Outcome::Verified, out);
            }
            Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. } => unreachable!("shuttles do this, not drives"),
        }
    }

    /// A pass stopped early; the rest of the platter is still to be verified.
    pub(crate) fn verify_halted(
        &mut self,
        index: DriveIndex,
        command: CommandId,
        tracks_done: u32,
        out: &mut Outbox<Output>,
    ) {
        let work = self.end_work(index, command);
        let Action::VerifyPass { platter: id, .. } = work.action else {
            panic!("drive {index} was not verifying when command {command} was halted");
        };
        let platter = self.platter_mut(id);
        let Stage::Unverified { request, age, panel, tracks } = platter.stage else {
            unreachable!("a platter under verification is unverified");
        };
        if tracks_done >= tracks.track_count {
            self.end_verification(id, request, Outcome::Verified, out);
            return;
        }
        let tracks = tracks.without_first(tracks_done);
        platter.stage = Stage::Unverified { request, age, panel, tracks };
    }

    pub(crate) fn drive_failed(
        &mut self,
        index: DriveIndex,
        command: CommandId,
        fault: Fault,
        out: &mut Outbox<Output>,
    ) {
        let action = self.end_work(index, command).action;
        // A drive that cannot let go of a platter or turn its optics is of no use.
        let stuck = matches!(action, Action::Unmount { .. } | Action::Switch { .. });
        if stuck || fault == Fault::DriveBroken {
            self.drives[index.as_usize()].broken = true;
            self.damaged = true;
        }
        match action {
            Action::Mount { platter, .. } => self.end_requests(platter, fault, out),
            Action::Seek { platter, track, .. } => {
                self.set_head(index, None);
                self.end_sought_read(platter, track, fault, out);
            }
            Action::Read { request, .. } => {
                self.set_head(index, None);
                self.finish(request, Outcome::Failed(fault), out);
            }
            Action::VerifyPass { platter, request, .. } => {
                self.end_verification(platter, request, Outcome::Failed(fault), out);
            }
            // Whoever is inside is ended with all that is out of reach.
            Action::Unmount { .. } | Action::Switch { .. } => {}
            Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. } => unreachable!("shuttles do this, not drives"),
        }
    }

    /// Ends the read a seek was for, unless it was canceled in the meantime.
    fn end_sought_read(
        &mut self,
        id: PlatterId,
        track: TrackIndex,
        fault: Fault,
        out: &mut Outbox<Output>,
    ) {
        let Some((age, request)) = self.platter(id).oldest_read() else { return };
        if matches!(self.requests[&request].job, Job::Read { tracks } if tracks.first == track) {
            self.platter_mut(id).reads.remove(&age);
            self.finish(request, Outcome::Failed(fault), out);
        }
    }

    fn end_verification(
        &mut self,
        id: PlatterId,
        request: RequestId,
        outcome: Outcome,
        out: &mut Outbox<Output>,
    ) {
        let platter = self.platter_mut(id);
        let Stage::Unverified { panel, .. } = platter.stage else {
            unreachable!("a platter under verification is unverified");
        };
        platter.stage = Stage::Checked { panel };
        self.finish(request, outcome, out);
    }

    fn end_work(&mut self, index: DriveIndex, command: CommandId) -> Work {
        let work = self.drives[index.as_usize()].work.take();
        let work = work.expect("a drive that answers was at work");
        assert_eq!(work.command, command, "a drive does one thing at a time");
        work
    }

    fn set_head(&mut self, index: DriveIndex, head: Option<TrackIndex>) {
        self.drives[index.as_usize()].head = head;
    }
}

/// Whether the drive a customer's platter is in shall read from it: somebody waits, no shuttle is
/// on its way to take it home, and it has not kept the drive for too long.
pub(crate) fn is_wanted(platter: &Platter) -> bool {
    !platter.reads.is_empty()
        && platter.claim.is_none()
        && platter.visit_reads < READS_PER_VISIT_MAX
}

const fn other(slot: DriveSlot) -> DriveSlot {
    match slot {
        DriveSlot::Customer => DriveSlot::Verification,
        DriveSlot::Verification => DriveSlot::Customer,
    }
}
