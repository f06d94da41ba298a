//! What the drives do: customers first, verification in the time that is left.
//!
//! ```text
//!   a customer's platter:  Mount -> (Switch) -> [Seek ->] Read -> ... -> Unmount -> returned home
//!   a new platter:         Mount -> (Switch) -> VerifyPass -> ... -> Unmount -> shelved
//!                                                  ^  |
//!                                                  |  '--- halted when a customer needs the drive
//!                                                  '------ goes on when none does any more
//! ```
//!
//! A drive does one thing at a time. Both slots can hold a mounted platter; a switch (1 s) is
//! needed to turn from one to the other. New platters use the second slot only; customers use the
//! first, and with two customer slots also the second while no new platter is in it.

use fulgurite_units::{DriveIndex, Outbox, TrackIndex};

use crate::control::controller::Library;
use crate::control::drive::{Drive, Work};
use crate::control::limits::READS_PER_VISIT_MAX;
use crate::control::platter_table::Platter;
use crate::control::sequence::Actor;
use crate::control::state::{PlatterKey, Stage};
use crate::control::{Action, CommandId, DriveSlot, Fault, Movement, Outcome, Output, RequestId};

impl Library {
    /// Gives a drive something to do, or asks it to make way for a customer.
    pub(crate) fn dispatch_drive(&mut self, index: DriveIndex, out: &mut Outbox<Output>) {
        if self.policy.movement == Movement::NoShuttles {
            self.exchange_without_shuttles(index, out);
        }
        if self.drives.get(index).work().is_some() {
            self.halt_for_customer(index, out);
        } else {
            self.start_next(index, out);
        }
    }

    fn start_next(&mut self, index: DriveIndex, out: &mut Outbox<Output>) {
        let Some(action) = self.next_action(index) else { return };
        if let Action::Read { .. } = action {
            self.begin_read(index);
        }
        let command = self.command(Actor::Drive(index), action, out);
        self.drives.get_mut(index).begin(command, action, self.sequence.now());
    }

    /// Returns what an idle drive does next, if anything.
    pub(crate) fn next_action(&self, index: DriveIndex) -> Option<Action> {
        let drive = self.drives.get(index);
        if drive.is_broken() {
            return None;
        }
        self.customer_action(index, drive).or_else(|| self.verification_action(index, drive))
    }

    fn halt_for_customer(&mut self, index: DriveIndex, out: &mut Outbox<Output>) {
        let due = self.drives.get(index).work().is_some_and(|work| self.is_halt_due(index, &work));
        if due && let Some(command) = self.drives.get_mut(index).halt() {
            out.push(Output::Halt { command });
        }
    }

    /// Whether a drive has to halt its verification because a customer needs it.
    pub(crate) fn is_halt_due(&self, index: DriveIndex, work: &Work) -> bool {
        let drive = self.drives.get(index);
        matches!(work.action, Action::VerifyPass { .. })
            && !work.halting
            && self.customer_action(index, drive).is_some()
    }

    /// Returns what a drive does next for its customer platters: unmount those that are done, read
    /// from the one it faces, mount those that came, switch to the other.
    fn customer_action(&self, index: DriveIndex, drive: &Drive) -> Option<Action> {
        let mut wanted: [Option<&Platter>; 2] = [None; 2];
        for slot in DriveSlot::BOTH {
            let bay = drive.bay(slot);
            let Some(platter) = bay.platter().map(|key| self.shelf.get(key)) else { continue };
            if !matches!(platter.stage(), Stage::Stored { .. }) {
                continue;
            }
            // A drive that insists on verifying releases them all.
            if is_wanted(platter) && !drive.is_verify_only() {
                wanted[slot.as_usize()] = Some(platter);
            } else if bay.is_mounted() {
                return Some(Action::Unmount { drive: index, slot, platter: platter.id() });
            }
        }
        if let Some(platter) = drive.facing().and_then(|slot| wanted[slot.as_usize()]) {
            return Some(read_action(index, drive, platter));
        }
        // The platter that has waited longest comes first: a slot that is refilled at once must not
        // starve the other.
        let age = |platter: &Platter| platter.first_read().map(|read| read.age);
        let (slot, platter) = match wanted {
            [Some(first), Some(second)] if age(second) < age(first) => (DriveSlot::Second, second),
            [Some(first), _] => (DriveSlot::First, first),
            [None, second] => (DriveSlot::Second, second?),
        };
        Some(if drive.bay(slot).is_mounted() {
            Action::Switch { drive: index, to: slot }
        } else {
            Action::Mount { drive: index, slot, platter: platter.id() }
        })
    }

    /// Returns what a drive does next for the new platter in its second slot.
    fn verification_action(&self, index: DriveIndex, drive: &Drive) -> Option<Action> {
        let slot = DriveSlot::Second;
        let bay = drive.bay(slot);
        let platter = self.shelf.get(bay.platter()?);
        let id = platter.id();
        match platter.stage() {
            Stage::Unverified { .. } if platter.claim().is_some() => None,
            Stage::Unverified { .. } if !bay.is_mounted() => {
                Some(Action::Mount { drive: index, slot, platter: id })
            }
            Stage::Unverified { .. } if drive.facing() != Some(slot) => {
                Some(Action::Switch { drive: index, to: slot })
            }
            Stage::Unverified { request, tracks, .. } => {
                Some(Action::VerifyPass { drive: index, platter: id, request, tracks })
            }
            Stage::Checked { .. } | Stage::Storing { .. } => {
                bay.is_mounted().then_some(Action::Unmount { drive: index, slot, platter: id })
            }
            Stage::Stored { .. } => None,
        }
    }

    /// Starts a read. From here on it cannot be canceled.
    fn begin_read(&mut self, index: DriveIndex) {
        let key = self.drives.get(index).faced();
        let key = key.unwrap_or_else(|| unreachable!("a drive reads the platter that it faces"));
        let first = self.shelf.get(key).first_read().map(|read| read.age);
        let read = first.and_then(|age| self.remove_read(key, age));
        let read = read.unwrap_or_else(|| unreachable!("a listed read has not begun"));
        self.shelf.count_read(key);
        let waited = self.sequence.now().since(read.arrived).as_nanos();
        self.counters.age_max_ns = self.counters.age_max_ns.max(waited);
    }

    pub(crate) fn drive_completed(
        &mut self,
        index: DriveIndex,
        command: CommandId,
        out: &mut Outbox<Output>,
    ) {
        let work = self.end_work(index, command);
        match work.action {
            Action::Mount { slot, .. } => self.drives.get_mut(index).mounted(slot),
            Action::Unmount { slot, .. } => self.unmounted(index, slot),
            Action::Switch { to, .. } => self.drives.get_mut(index).face(to),
            Action::Seek { track, .. } => self.set_head(index, Some(track)),
            Action::Read { request, tracks, .. } => {
                self.set_head(index, tracks.end());
                self.finish(request, Outcome::Read, out);
            }
            Action::VerifyPass { request, tracks, .. } => {
                self.set_head(index, None);
                self.pace
                    .update_estimate(self.sequence.now().since(work.began), tracks.track_count);
                self.end_verification(index, request, Outcome::Verified, out);
            }
            Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. }
            | Action::Charge { .. } => unreachable!("shuttles do this, not drives"),
        }
    }

    fn unmounted(&mut self, index: DriveIndex, slot: DriveSlot) {
        self.drives.get_mut(index).unmounted(slot);
        // A shuttle can take it now.
        self.mark_drive_groups(index);
    }

    /// Marks the groups whose shuttles use a drive.
    pub(crate) fn mark_drive_groups(&mut self, index: DriveIndex) {
        for &group in self.partitions.groups_of_drive(index) {
            self.dirty.group(group);
        }
    }

    /// Handles a verification pass that stopped early; the rest of the platter still has to be
    /// verified.
    pub(crate) fn verify_halted(
        &mut self,
        index: DriveIndex,
        command: CommandId,
        tracks_done: u32,
        out: &mut Outbox<Output>,
    ) {
        let work = self.end_work(index, command);
        assert!(
            matches!(work.action, Action::VerifyPass { .. }),
            "drive {index} was not verifying when command {command} was halted"
        );
        self.pace.update_estimate(self.sequence.now().since(work.began), tracks_done);
        let key = self.platter_in_verification(index);
        let Stage::Unverified { request, age, panel, tracks } = self.shelf.get(key).stage() else {
            unreachable!("only unverified platters are verified");
        };
        if tracks_done >= tracks.track_count {
            self.end_verification(index, request, Outcome::Verified, out);
            return;
        }
        let tracks = tracks.without_first(tracks_done);
        self.shelf.set_stage(key, Stage::Unverified { request, age, panel, tracks });
        self.set_head(index, None);
    }

    pub(crate) fn drive_failed(
        &mut self,
        index: DriveIndex,
        command: CommandId,
        fault: Fault,
        out: &mut Outbox<Output>,
    ) {
        let action = self.end_work(index, command).action;
        match action {
            Action::Mount { slot, .. } => {
                let inside = self.drives.get(index).bay(slot).platter();
                let key =
                    inside.unwrap_or_else(|| unreachable!("a drive mounts the platter inside"));
                self.end_requests(key, fault, out);
                self.mark_drive_groups(index);
            }
            Action::Seek { track, .. } => {
                self.set_head(index, None);
                self.end_sought_read(index, track, fault, out);
            }
            Action::Read { request, .. } => {
                self.set_head(index, None);
                self.finish(request, Outcome::Failed(fault), out);
            }
            Action::VerifyPass { request, .. } => {
                self.end_verification(index, request, Outcome::Failed(fault), out);
            }
            // Requests for platters inside are ended with everything that became unreachable.
            Action::Unmount { .. } | Action::Switch { .. } => {}
            Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. }
            | Action::Charge { .. } => unreachable!("shuttles do this, not drives"),
        }
        // A drive that cannot release a platter or turn its optics is of no use.
        let stuck = matches!(action, Action::Unmount { .. } | Action::Switch { .. });
        if stuck || fault == Fault::DriveBroken {
            self.drive_broke(index, out);
        }
    }

    /// Ends the read a seek was for, unless it was canceled in the meantime.
    fn end_sought_read(
        &mut self,
        index: DriveIndex,
        track: TrackIndex,
        fault: Fault,
        out: &mut Outbox<Output>,
    ) {
        let Some(key) = self.drives.get(index).faced() else { return };
        let first = self.shelf.get(key).first_read().copied();
        if let Some(read) = first.filter(|read| read.tracks.first == track) {
            self.remove_read(key, read.age);
            self.finish(read.request, Outcome::Failed(fault), out);
        }
    }

    fn end_verification(
        &mut self,
        index: DriveIndex,
        request: RequestId,
        outcome: Outcome,
        out: &mut Outbox<Output>,
    ) {
        let key = self.platter_in_verification(index);
        let Stage::Unverified { panel, .. } = self.shelf.get(key).stage() else {
            unreachable!("only unverified platters are verified");
        };
        self.shelf.set_stage(key, Stage::Checked { panel });
        self.mark_pace_stale();
        self.finish(request, outcome, out);
    }

    /// Returns the platter that a drive verifies.
    fn platter_in_verification(&self, index: DriveIndex) -> PlatterKey {
        let inside = self.drives.get(index).bay(DriveSlot::Second).platter();
        inside.unwrap_or_else(|| unreachable!("drive {index} verifies nothing"))
    }

    fn end_work(&mut self, index: DriveIndex, command: CommandId) -> Work {
        let work = self.drives.get_mut(index).end();
        let work = work.expect("a drive that answers has work");
        assert_eq!(work.command, command, "a drive does one thing at a time");
        self.dirty.drive(index);
        work
    }

    fn set_head(&mut self, index: DriveIndex, head: Option<TrackIndex>) {
        self.drives.get_mut(index).set_head(head);
    }
}

/// Whether a drive should read from the customer's platter inside: reads wait, no shuttle is on its
/// way to take it home, and it has not kept the drive for too long.
pub(crate) fn is_wanted(platter: &Platter) -> bool {
    !platter.reads().is_empty()
        && platter.claim().is_none()
        && platter.visit_reads() < READS_PER_VISIT_MAX
}

/// Returns what a drive does for the most urgent read of the platter it faces.
fn read_action(index: DriveIndex, drive: &Drive, platter: &Platter) -> Action {
    let read = platter.first_read();
    let read = read.unwrap_or_else(|| unreachable!("the platter has waiting reads"));
    if drive.head() == Some(read.tracks.first) {
        let (request, tracks) = (read.request, read.tracks);
        return Action::Read { drive: index, platter: platter.id(), request, tracks };
    }
    Action::Seek { drive: index, platter: platter.id(), track: read.tracks.first }
}
