//! What the shuttles do: one trip, one operation and one step of the way at a time.
//!
//! ```text
//!   idle --errand--> to the source -> pick -> to the destination -> place --> idle
//!                        |  ^                     |  ^
//!                        v  |                     v  |
//!                       blocked: claims its way and waits (right_of_way.rs)
//! ```
//!
//! How a shuttle reaches its goal is in `travel.rs`.

use fulgurite_units::{Outbox, ShuttleIndex, SlotIndex};

use crate::control::controller::Library;
use crate::control::errands::Findings;
use crate::control::fleet::Trip;
use crate::control::state::{Errand, Place, PlatterKey, Stage, TripKind, TripLeg};
use crate::control::{
    Action, CommandId, Destination, DriveSlot, Fault, Movement, Outcome, Output, RightOfWay, Source,
};

impl Library {
    /// Sends the idle shuttles of a group on the trips that are due.
    pub(crate) fn dispatch_group(&mut self, group: u16, out: &mut Outbox<Output>) {
        if self.policy.movement == Movement::NoShuttles {
            self.dispatch_without_shuttles(out);
            return;
        }
        loop {
            let mut found = Findings::default();
            let trip = self.next_trip(group, &mut found);
            self.apply_findings(&found);
            let Some((shuttle, errand)) = trip else { break };
            self.start_trip(group, shuttle, errand, out);
        }
        let is_stuck = |at: &ShuttleIndex| {
            let shuttle = self.fleet.get(*at);
            shuttle.is_ready() && shuttle.cargo().is_some()
        };
        let is_stuck = self.partitions.group(group).shuttles().iter().any(is_stuck);
        self.dirty.record_dispatch(group, is_stuck);
    }

    /// Returns an idle shuttle of a group and its errand, if any; shuttles that hold a platter come
    /// first.
    pub(crate) fn next_trip(
        &self,
        group: u16,
        found: &mut Findings,
    ) -> Option<(ShuttleIndex, Errand)> {
        let shuttles = &self.partitions.group(group).shuttles();
        let idle = shuttles.iter().copied().filter(|at| self.fleet.get(*at).is_ready());
        let loaded = |at: &ShuttleIndex| self.fleet.get(*at).cargo().is_some();
        if let Some(trip) = idle.clone().filter(loaded).find_map(|shuttle| {
            self.next_errand(group, shuttle, found).map(|errand| (shuttle, errand))
        }) {
            return Some(trip);
        }
        let mut free = idle.filter(|at| !loaded(at));
        if self.damaged {
            // Broken machines may keep one shuttle from an errand that another can do.
            return free.find_map(|shuttle| {
                let errand = self.next_errand(group, shuttle, found)?;
                Some((self.nearest_shuttle(group, shuttle, &errand), errand))
            });
        }
        let shuttle = free.next()?;
        let errand = self.next_errand(group, shuttle, found)?;
        Some((self.nearest_shuttle(group, shuttle, &errand), errand))
    }

    /// Returns the idle shuttle of a group nearest to where an errand begins.
    fn nearest_shuttle(&self, group: u16, found: ShuttleIndex, errand: &Errand) -> ShuttleIndex {
        let shuttles = &self.partitions.group(group).shuttles();
        if shuttles.len() == 1 || self.fleet.get(found).cargo().is_some() {
            return found;
        }
        let idle = shuttles.iter().copied().filter(|index| {
            let shuttle = self.fleet.get(*index);
            shuttle.is_ready()
                && shuttle.cargo().is_none()
                && (!self.damaged || self.has_way_for(*index, errand))
        });
        let cost = |index: &ShuttleIndex| {
            let at = self.fleet.get(*index).position();
            at.cost_to(self.source(errand.from, at))
        };
        idle.min_by_key(cost).unwrap_or(found)
    }

    fn start_trip(
        &mut self,
        group: u16,
        index: ShuttleIndex,
        errand: Errand,
        out: &mut Outbox<Output>,
    ) {
        self.count_fetches(group, &errand);
        let carries = self.fleet.get(index).cargo().is_some();
        if !carries {
            self.shelf.claim(errand.platter, index);
        }
        self.settle(errand.platter);
        match errand.to {
            Destination::Drive(drive, slot) => {
                self.drives.get_mut(drive).reserve(slot, index);
                self.mark_pace_stale_if_new(errand.platter);
            }
            Destination::Storage(slot) if self.shelf.get(errand.platter).home() != Some(slot) => {
                self.shelf.reserve_spare(slot, errand.platter);
            }
            Destination::Storage(_) => {}
        }
        let at = self.fleet.get(index).position();
        let goal =
            if carries { self.destination(errand.to, at) } else { self.source(errand.from, at) };
        assert_eq!(goal.panel, at.panel, "shuttles stay on their panel");
        self.mark_drive_sharers(group);
        let rank = self.next_rank(index);
        let travel = TripLeg { from: at, started: self.sequence.now(), steps: 0, strayed: 0 };
        self.fleet.begin(index, Trip::carrying(errand, goal, rank, travel));
        self.advance(index, out);
    }

    /// Marks the groups that share a drive with a group and left something to it.
    fn mark_drive_sharers(&mut self, group: u16) {
        for index in 0..self.partitions.group(group).drives().len() {
            let drive = self.partitions.group(group).drives()[index];
            if self.partitions.groups_of_drive(drive).len() > 1 {
                self.mark_drive_groups(drive);
            }
        }
    }

    fn count_fetches(&mut self, group: u16, errand: &Errand) {
        let new_waits = match errand.kind {
            TripKind::Fetch => {
                self.counters.fetches += 1;
                self.new_platter_errand(group, &mut Findings::default()).is_some()
            }
            TripKind::Return => return,
            TripKind::Collect | TripKind::Shelve => false,
        };
        self.partitions.group_mut(group).count_fetch(new_waits);
    }

    /// Returns the rank of a trip that begins now.
    pub(crate) fn next_rank(&mut self, index: ShuttleIndex) -> u64 {
        match self.policy.right_of_way {
            RightOfWay::Identifier => u64::from(index.get()),
            RightOfWay::Age => self.sequence.rank(),
        }
    }

    pub(crate) fn shuttle_completed(
        &mut self,
        index: ShuttleIndex,
        command: CommandId,
        out: &mut Outbox<Output>,
    ) {
        let action = self.fleet.answered_action(index, command);
        self.fleet.clear_command(index);
        match action {
            Action::Move { to, .. } => {
                self.fleet.leave_rails(index, to);
                self.dirty.panel(self.floor.panel_of(index));
            }
            Action::Crab { to, .. } => {
                self.fleet.leave_shelf(index, to);
                self.dirty.panel(self.floor.panel_of(index));
            }
            Action::Pick { from, .. } => self.complete_pick(index, from),
            Action::Place { to, .. } => {
                self.complete_place(index, to, out);
                return;
            }
            Action::Charge { .. } => {
                self.complete_charge(index, out);
                return;
            }
            Action::Mount { .. }
            | Action::Unmount { .. }
            | Action::Switch { .. }
            | Action::Seek { .. }
            | Action::Read { .. }
            | Action::VerifyPass { .. } => unreachable!("drives do this, not shuttles"),
        }
        self.advance(index, out);
    }

    fn complete_pick(&mut self, index: ShuttleIndex, from: Source) {
        let errand = self.fleet.trip(index).errand();
        let errand = errand.unwrap_or_else(|| unreachable!("a shuttle that picks has an errand"));
        let key = errand.platter;
        match from {
            Source::Drive(drive, slot) => self.empty_slot(drive, slot),
            Source::Storage(slot) => self.unobscure(slot),
            Source::EjectBay(panel) => {
                self.arrivals.take(panel);
                self.mark_collectors(panel);
            }
        }
        self.fleet.load(index, key);
        self.shelf.set_place(key, Place::Shuttle(index));
        self.shelf.unclaim(key);
        let at = self.fleet.get(index).position();
        let goal = self.destination(errand.to, at);
        let travel = TripLeg { from: at, started: self.sequence.now(), steps: 0, strayed: 0 };
        self.fleet.continue_to(index, goal, travel);
    }

    /// Marks idle groups after the eject bay became free for the next shuttle.
    pub(crate) fn mark_collectors(&mut self, panel: crate::control::PanelIndex) {
        if self.arrivals.waiting(panel) > 0 {
            self.mark_idle_groups(panel);
        }
    }

    /// Empties a slot of a drive, so that its shuttles may bring the next platter.
    fn empty_slot(&mut self, drive: fulgurite_units::DriveIndex, slot: DriveSlot) {
        if let Some(key) = self.drives.get_mut(drive).empty(slot) {
            self.mark_pace_stale_if_new(key);
        }
        self.mark_drive_groups(drive);
    }

    fn complete_place(&mut self, index: ShuttleIndex, to: Destination, out: &mut Outbox<Output>) {
        let key = self.fleet.unload(index);
        self.fleet.end(index);
        self.mark_shuttle(index);
        match to {
            Destination::Drive(drive, slot) => {
                self.drives.get_mut(drive).receive(slot, key, index);
                self.shelf.set_place(key, Place::Drive(drive, slot));
                self.mark_pace_stale_if_new(key);
                self.dirty.drive(drive);
                self.mark_drive_groups(drive);
                self.end_if_out_of_reach(key, out);
            }
            Destination::Storage(slot) => {
                self.unobscure(slot);
                self.complete_store(key, slot, out);
            }
        }
    }

    fn complete_store(&mut self, key: PlatterKey, slot: SlotIndex, out: &mut Outbox<Output>) {
        self.shelf.set_place(key, Place::Storage(slot));
        if let Stage::Storing { request, home, .. } = self.shelf.get(key).stage() {
            self.shelf.set_stage(key, Stage::Stored { home });
            self.finish(request, Outcome::Stored, out);
        }
        self.mark_if_displaced(key);
        self.settle(key);
    }

    pub(crate) fn shuttle_failed(
        &mut self,
        index: ShuttleIndex,
        command: CommandId,
        fault: Fault,
        out: &mut Outbox<Output>,
    ) {
        let action = self.fleet.answered_action(index, command);
        if fault == Fault::PlatterMissing && matches!(action, Action::Pick { .. }) {
            self.forget_missing(index, action, out);
        } else {
            self.shuttle_broke(index, out);
        }
    }

    /// Handles a platter that is not where it should be: ends its requests and forgets it.
    fn forget_missing(&mut self, index: ShuttleIndex, pick: Action, out: &mut Outbox<Output>) {
        let errand = self.fleet.end(index).and_then(|trip| trip.errand());
        let errand = errand.unwrap_or_else(|| unreachable!("a shuttle that picks has an errand"));
        self.mark_shuttle(index);
        self.release(&errand);
        if let Some(slot) = storage_slot(pick) {
            self.unobscure(slot);
        }
        match errand.from {
            Source::Drive(drive, slot) => self.empty_slot(drive, slot),
            Source::EjectBay(panel) => self.arrivals.take(panel),
            Source::Storage(_) => {}
        }
        // The claim keeps it known until here.
        self.end_requests(errand.platter, Fault::PlatterMissing, out);
        self.shelf.forget(errand.platter);
    }

    /// Releases what an errand had reserved.
    pub(crate) fn release(&mut self, errand: &Errand) {
        if let (Source::EjectBay(panel), TripKind::Collect) = (errand.from, errand.kind) {
            self.mark_collectors(panel);
        }
        match errand.to {
            Destination::Drive(drive, slot) => {
                self.drives.get_mut(drive).cancel_reservation(slot);
                self.mark_pace_stale();
                self.mark_drive_groups(drive);
            }
            Destination::Storage(slot) => self.shelf.release_spare(slot, errand.platter),
        }
    }

    /// Marks what may follow when a shuttle is free, or cannot be used any more.
    pub(crate) fn mark_shuttle(&mut self, index: ShuttleIndex) {
        if self.damaged {
            // From where it is now it may open a way for others.
            self.dirty.mark_all_groups();
        } else if let Some(group) = self.partitions.group_of_shuttle(index) {
            self.dirty.group(group);
        }
        // Shuttles that waited for it may have to move it now; and it may charge.
        if !self.fleet.blocked().is_empty() || self.fleet.has_batteries() {
            self.dirty.panel(self.floor.panel_of(index));
        }
    }

    /// Clears the obstruction by a shuttle that picked from a slot or placed there.
    pub(crate) fn unobscure(&mut self, slot: SlotIndex) {
        if self.zones.clear(slot) {
            self.dirty.mark_all_groups();
        }
    }

    /// Releases a platter that a shuttle no longer comes for.
    pub(crate) fn release_claim(&mut self, key: PlatterKey) {
        self.shelf.unclaim(key);
        self.mark_platter(key);
        self.settle(key);
    }
}

/// Returns the slot a shuttle is picking from or placing into, if any.
pub(crate) const fn storage_slot(action: Action) -> Option<SlotIndex> {
    if let Action::Pick { from: Source::Storage(slot), .. }
    | Action::Place { to: Destination::Storage(slot), .. } = action
    {
        return Some(slot);
    }
    None
}
