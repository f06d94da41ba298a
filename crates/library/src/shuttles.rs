//! What the shuttles do: one trip at a time, one operation at a time, one piece of the way at a
//! time.
//!
//! ```text
//!   idle --errand--> to the source -> pick -> to the destination -> place --> idle
//!                        |  ^                     |  ^
//!                        v  |                     v  |
//!                       blocked: claims its way and waits (giveway.rs)
//! ```
//!
//! How it gets to a goal is in `travel.rs`.

use fulgurite_units::{Outbox, ShuttleIndex, SlotIndex};

use crate::controller::Library;
use crate::errands::Findings;
use crate::state::{Errand, Place, PlatterKey, Stage, Travel, Trip, TripKind};
use crate::traffic::MAKING_WAY;
use crate::{
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
            self.note_findings(&found);
            let Some((shuttle, errand)) = trip else { break };
            self.start_trip(group, shuttle, errand, out);
        }
        let is_stuck = |at: &ShuttleIndex| {
            let shuttle = &self.shuttles[at.as_usize()];
            shuttle.is_ready() && shuttle.cargo.is_some()
        };
        let is_stuck = self.partitions.group(group).shuttles.iter().any(is_stuck);
        self.dirty.looked_at(group, is_stuck);
    }

    /// An idle shuttle of a group and its errand, if there are such; those that hold a platter
    /// come first.
    pub(crate) fn next_trip(
        &self,
        group: u16,
        found: &mut Findings,
    ) -> Option<(ShuttleIndex, Errand)> {
        let shuttles = &self.partitions.group(group).shuttles;
        let idle = shuttles.iter().copied().filter(|at| self.shuttles[at.as_usize()].is_ready());
        let loaded = |at: &ShuttleIndex| self.shuttles[at.as_usize()].cargo.is_some();
        if let Some(trip) = idle.clone().filter(loaded).find_map(|shuttle| {
            self.next_errand(group, shuttle, found).map(|errand| (shuttle, errand))
        }) {
            return Some(trip);
        }
        let mut free = idle.filter(|at| !loaded(at));
        if self.damaged {
            // Broken machines may keep one from an errand that another can do.
            return free.find_map(|shuttle| {
                let errand = self.next_errand(group, shuttle, found)?;
                Some((self.nearest_shuttle(group, shuttle, &errand), errand))
            });
        }
        let shuttle = free.next()?;
        let errand = self.next_errand(group, shuttle, found)?;
        Some((self.nearest_shuttle(group, shuttle, &errand), errand))
    }

    /// The idle shuttle of a group nearest to where an errand begins.
    fn nearest_shuttle(&self, group: u16, found: ShuttleIndex, errand: &Errand) -> ShuttleIndex {
        let shuttles = &self.partitions.group(group).shuttles;
        if shuttles.len() == 1 || self.shuttles[found.as_usize()].cargo.is_some() {
            return found;
        }
        let idle = shuttles.iter().copied().filter(|index| {
            let shuttle = &self.shuttles[index.as_usize()];
            shuttle.is_ready()
                && shuttle.cargo.is_none()
                && (!self.damaged || self.has_way_for(*index, errand))
        });
        let cost = |index: &ShuttleIndex| {
            let at = self.shuttles[index.as_usize()].at;
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
        let carries = self.shuttles[index.as_usize()].cargo.is_some();
        let platter = self.platter_mut(errand.platter);
        assert!(platter.claim.is_none(), "one shuttle at a time goes for a platter");
        if !carries {
            platter.claim = Some(index);
        }
        self.settle(errand.platter);
        match errand.to {
            Destination::Drive(drive, slot) => {
                self.drives[drive.as_usize()].bay_mut(slot).reserved = Some(index);
                self.pace_if_new(errand.platter);
            }
            Destination::Storage(slot) if self.platter(errand.platter).home() != Some(slot) => {
                self.spares.insert(slot, errand.platter);
            }
            Destination::Storage(_) => {}
        }
        let at = self.shuttles[index.as_usize()].at;
        let goal =
            if carries { self.destination(errand.to, at) } else { self.source(errand.from, at) };
        assert_eq!(goal.panel, at.panel, "shuttles stay on their panel");
        self.note_sharers(group);
        let rank = self.next_rank(index);
        let travel = Travel { from: at, started: self.now, steps: 0, strayed: 0 };
        let (current, blocked, detour, charges) = (None, None, None, false);
        let errand = Some(errand);
        let trip = Trip { errand, charges, goal, detour, current, blocked, rank, travel };
        self.shuttles[index.as_usize()].trip = Some(trip);
        self.advance(index, out);
    }

    /// Those that share a drive with a group and left something to it look again.
    fn note_sharers(&mut self, group: u16) {
        for index in 0..self.partitions.group(group).drives.len() {
            let drive = self.partitions.group(group).drives[index];
            if self.partitions.of_drive(drive).len() > 1 {
                self.note_drive_groups(drive);
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
        let of = self.partitions.group_mut(group);
        of.fetches_in_a_row = if new_waits { of.fetches_in_a_row + 1 } else { 0 };
    }

    /// The rank of a trip that begins now.
    pub(crate) fn next_rank(&mut self, index: ShuttleIndex) -> u64 {
        match self.policy.right_of_way {
            RightOfWay::Identifier => u64::from(index.get()),
            RightOfWay::Age => {
                self.sequence += 1;
                MAKING_WAY - 1 - self.sequence
            }
        }
    }

    pub(crate) fn trip_mut(&mut self, index: ShuttleIndex) -> &mut Trip {
        let trip = self.shuttles[index.as_usize()].trip.as_mut();
        trip.unwrap_or_else(|| unreachable!("shuttle {index} is on a trip"))
    }

    pub(crate) fn shuttle_completed(
        &mut self,
        index: ShuttleIndex,
        command: CommandId,
        out: &mut Outbox<Output>,
    ) {
        let action = self.end_step(index, command);
        match action {
            Action::Move { to, .. } => {
                self.shuttles[index.as_usize()].at.rail = to;
                let at = self.shuttles[index.as_usize()].at;
                self.traffic.take(index.get(), self.traffic.footprint(at));
                self.dirty.panel(at.panel);
            }
            Action::Crab { to, .. } => {
                let at = self.shuttles[index.as_usize()].at;
                self.traffic.leave(index.get(), self.traffic.lane(at.panel, at.shelf));
                self.shuttles[index.as_usize()].at.shelf = to;
                self.dirty.panel(at.panel);
            }
            Action::Pick { from, .. } => self.picked(index, from),
            Action::Place { to, .. } => {
                self.placed(index, to, out);
                return;
            }
            Action::Charge { .. } => {
                self.charged(index, out);
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

    fn picked(&mut self, index: ShuttleIndex, from: Source) {
        let at = self.shuttles[index.as_usize()].at;
        let trip = self.trip_mut(index);
        let errand = trip.errand.unwrap_or_else(|| unreachable!("it picks for a reason"));
        let key = errand.platter;
        match from {
            Source::Drive(drive, slot) => self.emptied(drive, slot),
            Source::Storage(slot) => {
                self.unobscure(slot);
                self.spares.remove(&slot);
            }
            Source::EjectBay(panel) => {
                self.ejected[usize::from(panel.get())] -= 1;
                self.collected(panel);
            }
        }
        self.displaced.remove(&key);
        self.shuttles[index.as_usize()].cargo = Some(key);
        let platter = self.platter_mut(key);
        platter.place = Place::Shuttle(index);
        platter.claim = None;
        let goal = self.destination(errand.to, at);
        let started = self.now;
        let trip = self.trip_mut(index);
        trip.goal = goal;
        trip.travel = Travel { from: at, started, steps: 0, strayed: 0 };
    }

    /// The eject bay is free for the next shuttle.
    pub(crate) fn collected(&mut self, panel: crate::PanelIndex) {
        self.collecting[usize::from(panel.get())] = false;
        if !self.new_platters[usize::from(panel.get())].is_empty() {
            self.note_idle_groups(panel);
        }
    }

    /// A slot of a drive is free again: its shuttles may bring the next platter.
    fn emptied(&mut self, drive: fulgurite_units::DriveIndex, slot: DriveSlot) {
        if let Some(key) = self.drives[drive.as_usize()].bay(slot).platter {
            self.pace_if_new(key);
        }
        let of = &mut self.drives[drive.as_usize()];
        of.bay_mut(slot).platter = None;
        of.bay_mut(slot).brought_by = None;
        if slot == DriveSlot::Second {
            of.insists = false;
        }
        self.note_drive_groups(drive);
    }

    fn placed(&mut self, index: ShuttleIndex, to: Destination, out: &mut Outbox<Output>) {
        let shuttle = &mut self.shuttles[index.as_usize()];
        let key = shuttle.cargo.take();
        let key = key.unwrap_or_else(|| unreachable!("only what is carried is placed"));
        shuttle.trip = None;
        self.note_shuttle(index);
        match to {
            Destination::Drive(drive, slot) => {
                let bay = self.drives[drive.as_usize()].bay_mut(slot);
                bay.reserved = None;
                bay.platter = Some(key);
                bay.brought_by = Some(index);
                self.platter_mut(key).place = Place::Drive(drive, slot);
                self.pace_if_new(key);
                self.dirty.drive(drive);
                self.note_drive_groups(drive);
                self.end_if_out_of_reach(key, out);
            }
            Destination::Storage(slot) => {
                self.unobscure(slot);
                self.stored(key, slot, out);
            }
        }
    }

    fn stored(&mut self, key: PlatterKey, slot: SlotIndex, out: &mut Outbox<Output>) {
        let platter = self.platter_mut(key);
        platter.place = Place::Storage(slot);
        platter.visit_reads = 0;
        match platter.stage {
            Stage::Storing { request, home, .. } => {
                platter.stage = Stage::Stored { home };
                self.finish(request, Outcome::Stored, out);
            }
            Stage::Unverified { .. } | Stage::Checked { .. } | Stage::Stored { .. } => {}
        }
        if self.platter(key).home().is_some_and(|home| home != slot) {
            self.displace(key);
        }
        self.settle(key);
    }

    pub(crate) fn shuttle_failed(
        &mut self,
        index: ShuttleIndex,
        command: CommandId,
        fault: Fault,
        out: &mut Outbox<Output>,
    ) {
        let action = self.end_step(index, command);
        if fault == Fault::PlatterMissing && matches!(action, Action::Pick { .. }) {
            self.lose(index, action, out);
        } else {
            // It ends its step where it was, so that all it held is barred.
            self.trip_mut(index).current = Some((command, action));
            self.shuttle_broke(index, out);
        }
    }

    /// A platter is not where it should be: ends what was asked of it and forgets it.
    fn lose(&mut self, index: ShuttleIndex, pick: Action, out: &mut Outbox<Output>) {
        let trip = self.shuttles[index.as_usize()].trip.take();
        let errand = trip.and_then(|trip| trip.errand);
        let errand = errand.unwrap_or_else(|| unreachable!("it picks for a reason"));
        self.note_shuttle(index);
        self.release(&errand);
        if let Some(slot) = storage_slot(pick) {
            self.unobscure(slot);
            self.spares.remove(&slot);
        }
        match errand.from {
            Source::Drive(drive, slot) => self.emptied(drive, slot),
            Source::EjectBay(panel) => self.ejected[usize::from(panel.get())] -= 1,
            Source::Storage(_) => {}
        }
        // The claim keeps it known until here.
        self.end_requests(errand.platter, Fault::PlatterMissing, out);
        self.forget(errand.platter);
    }

    /// Gives up what an errand had reserved.
    pub(crate) fn release(&mut self, errand: &Errand) {
        if let (Source::EjectBay(panel), TripKind::Collect) = (errand.from, errand.kind) {
            self.collected(panel);
        }
        match errand.to {
            Destination::Drive(drive, slot) => {
                self.drives[drive.as_usize()].bay_mut(slot).reserved = None;
                self.note_pace();
                self.note_drive_groups(drive);
            }
            Destination::Storage(slot) => {
                if self.spares.get(&slot) == Some(&errand.platter) {
                    self.spares.remove(&slot);
                }
            }
        }
    }

    /// A shuttle is free, or cannot be used any more.
    pub(crate) fn note_shuttle(&mut self, index: ShuttleIndex) {
        if self.damaged {
            // Where it is now it may open a way for others.
            self.dirty.all_groups();
        } else if let Some(group) = self.partitions.of_shuttle(index) {
            self.dirty.group(group);
        }
        // Whoever waited for it may have to move it now; and it may charge.
        if self.is_anyone_blocked() || self.has_batteries {
            self.dirty.panel(self.floor.panel_of(index));
        }
    }

    pub(crate) fn obscure(&mut self, slot: SlotIndex) {
        let zone = slot.get() / u32::from(self.shape().slots_per_shelf);
        self.obscured[zone as usize] += 1;
    }

    pub(crate) fn unobscure(&mut self, slot: SlotIndex) {
        let zone = slot.get() / u32::from(self.shape().slots_per_shelf);
        self.obscured[zone as usize] -= 1;
        if self.passed_over {
            self.passed_over = false;
            self.dirty.all_groups();
        }
    }

    fn end_step(&mut self, index: ShuttleIndex, command: CommandId) -> Action {
        let trip = self.shuttles[index.as_usize()].trip.as_mut();
        let current = trip.and_then(|trip| trip.current.take());
        let (id, action) =
            current.unwrap_or_else(|| panic!("shuttle {index} answers, but was not at work"));
        assert_eq!(id, command, "a shuttle does one thing at a time");
        action
    }
}

/// The slot a shuttle is picking from or placing into, if it does.
pub(crate) const fn storage_slot(action: Action) -> Option<SlotIndex> {
    if let Action::Pick { from: Source::Storage(slot), .. }
    | Action::Place { to: Destination::Storage(slot), .. } = action
    {
        return Some(slot);
    }
    None
}
