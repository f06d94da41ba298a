//! What the shuttles do: one trip at a time, planned whole before it starts.
//!
//! An idle shuttle takes, in this order: home a platter no drive needs any more (that frees a
//! drive); the platter with the oldest read of its partition, if a drive of the partition has its
//! customer slot free; a verified platter to its slot; the oldest new platter to a drive with its
//! verification slot free. New platters come first once [`FETCHES_IN_A_ROW_MAX`] fetches in a row
//! went before them.
//!
//! A platter that cannot be reached just now - on its way, in a drive, or behind another shuttle
//! that picks or places on the same shelf - is skipped and looked at again after the next event.
//!
//! Reads never take a shuttle out of its partition, unless a neighbor broke down and left a platter
//! in a drive they share. New platters do: the eject bay is in nobody's partition, and a slot may
//! be in anybody's. Give-way between shuttles is not modeled yet.

use std::collections::VecDeque;

use fulgurite_units::{DriveIndex, Outbox, PlatterId, ShuttleIndex, SlotIndex};

use crate::controller::{Actor, Library};
use crate::drives::is_wanted;
use crate::floor::Position;
use crate::limits::FETCHES_IN_A_ROW_MAX;
use crate::state::{Place, Stage, Trip, TripKind};
use crate::{
    Action, CommandId, Destination, DriveSlot, Fault, Outcome, Output, ShelfIndex, Source,
};

/// What a shelf up or down costs, as a distance along the rails: 3 s at 0.17 m/s. Only used to
/// compare drives.
const CRAB_METERS: f64 = 0.51;

/// A trip that is due, not planned yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand {
    kind: TripKind,
    platter: PlatterId,
    from: Source,
    to: Destination,
}

impl Library {
    /// Sends every idle shuttle on the trip that is due.
    pub(crate) fn dispatch_shuttles(&mut self, out: &mut Outbox<Output>) {
        for index in 0..self.shuttles.len() {
            let shuttle = &self.shuttles[index];
            if shuttle.broken || shuttle.trip.is_some() {
                continue;
            }
            let index = ShuttleIndex::new(u16::try_from(index).unwrap_or(u16::MAX));
            if let Some(errand) = self.next_errand(index) {
                self.start_trip(index, errand, out);
            }
        }
    }

    /// Where an idle shuttle goes next, if anywhere.
    pub(crate) fn next_errand(&self, index: ShuttleIndex) -> Option<Errand> {
        let patient = self.shuttles[index.as_usize()].fetches_in_a_row < FETCHES_IN_A_ROW_MAX;
        let home = self.return_errand(index);
        if patient {
            home.or_else(|| self.fetch_errand(index)).or_else(|| self.new_platter_errand(index))
        } else {
            home.or_else(|| self.new_platter_errand(index)).or_else(|| self.fetch_errand(index))
        }
    }

    fn new_platter_errand(&self, index: ShuttleIndex) -> Option<Errand> {
        self.shelve_errand(index).or_else(|| self.collect_errand(index))
    }

    /// A platter that lies released in a drive and is not needed there.
    fn return_errand(&self, index: ShuttleIndex) -> Option<Errand> {
        let slot = DriveSlot::Customer;
        self.floor.partition(index).drives.iter().find_map(|&at| {
            let drive = &self.drives[at.as_usize()];
            let id = drive.customer.platter?;
            let platter = self.platter(id);
            let home = platter.home()?;
            let due = platter.claim.is_none()
                && drive.releases(slot)
                && (drive.broken || !is_wanted(platter))
                && self.takes_home(index, home);
            let (from, to) = (Source::Drive(at, slot), Destination::Storage(home));
            due.then_some(Errand { kind: TripKind::Return, platter: id, from, to })
        })
    }

    /// Whether a shuttle brings platters back to a slot: it is in its partition, or in that of a
    /// broken neighbor it shares a drive with, whose platters would block the drive for ever.
    pub(crate) fn takes_home(&self, index: ShuttleIndex, home: SlotIndex) -> bool {
        let owner = self.floor.owner(home);
        owner == Some(index) || owner.is_some_and(|owner| self.shuttles[owner.as_usize()].broken)
    }

    /// The platter with the oldest read among those this shuttle can reach.
    fn fetch_errand(&self, index: ShuttleIndex) -> Option<Errand> {
        if !self.has_room(index, DriveSlot::Customer) {
            return None;
        }
        let mut waiting = self.fetchable[index.as_usize()].iter().map(|&(_, id)| id);
        let (id, home) = waiting.find_map(|id| {
            let home = self.platter(id).home()?;
            (!self.is_obscured(home, index)).then_some((id, home))
        })?;
        let at = self.floor.slot(home)?;
        let drive = self.nearest_drive(index, DriveSlot::Customer, at)?;
        let to = Destination::Drive(drive, DriveSlot::Customer);
        Some(Errand { kind: TripKind::Fetch, platter: id, from: Source::Storage(home), to })
    }

    /// The platter that has waited longest for its way to its first slot.
    fn shelve_errand(&self, index: ShuttleIndex) -> Option<Errand> {
        let slot = DriveSlot::Verification;
        let ready = self.floor.partition(index).drives.iter().filter_map(|&at| {
            let drive = &self.drives[at.as_usize()];
            let id = drive.verification.platter?;
            let platter = self.platter(id);
            let Stage::Storing { age, home, .. } = platter.stage else { return None };
            let reachable =
                platter.claim.is_none() && drive.releases(slot) && !self.is_obscured(home, index);
            reachable.then_some((age, id, at, home))
        });
        let (_, id, at, home) = ready.min()?;
        let (from, to) = (Source::Drive(at, slot), Destination::Storage(home));
        Some(Errand { kind: TripKind::Shelve, platter: id, from, to })
    }

    /// The oldest new platter of the panel.
    fn collect_errand(&self, index: ShuttleIndex) -> Option<Errand> {
        let slot = DriveSlot::Verification;
        let panel = self.floor.partition(index).panel;
        let &(_, id) = self.ejected[usize::from(panel.get())].first()?;
        let drive = self.nearest_drive(index, slot, self.floor.eject_bay(panel))?;
        let (from, to) = (Source::EjectBay(panel), Destination::Drive(drive, slot));
        Some(Errand { kind: TripKind::Collect, platter: id, from, to })
    }

    fn has_room(&self, index: ShuttleIndex, slot: DriveSlot) -> bool {
        let mut drives = self.floor.partition(index).drives.iter();
        drives.any(|drive| self.drives[drive.as_usize()].admits(slot))
    }

    /// The drive with room that is reached soonest; the lower index when two are equal.
    fn nearest_drive(
        &self,
        index: ShuttleIndex,
        slot: DriveSlot,
        from: Position,
    ) -> Option<DriveIndex> {
        let drives = self.floor.partition(index).drives.iter().copied();
        let meters = |drive| {
            let dock = self.floor.dock(drive, index, from.shelf);
            let shelves = dock.shelf.get().abs_diff(from.shelf.get());
            dock.rail.meters_to(from.rail) + CRAB_METERS * f64::from(shelves)
        };
        drives
            .filter(|drive| self.drives[drive.as_usize()].admits(slot))
            .min_by(|&a, &b| meters(a).total_cmp(&meters(b)))
    }

    /// Whether another shuttle picks or places on the same shelf of the same rack.
    pub(crate) fn is_obscured(&self, slot: SlotIndex, by_other_than: ShuttleIndex) -> bool {
        let zone = self.floor.zone(slot);
        let mut others = self.shuttles.iter().enumerate();
        others.any(|(index, shuttle)| {
            let current = shuttle.trip.as_ref().and_then(|trip| trip.current);
            let at = current.and_then(|(_, action)| storage_slot(action));
            index != by_other_than.as_usize() && at.is_some_and(|at| self.floor.zone(at) == zone)
        })
    }

    /// Every step of an errand, from where the shuttle stands.
    fn plan(&self, index: ShuttleIndex, errand: Errand) -> Trip {
        let Errand { kind, platter, from, to } = errand;
        let start = self.shuttles[index.as_usize()].at;
        let slot = |slot| self.floor.slot(slot).expect("a slot is checked when it is named");
        let source = match from {
            Source::EjectBay(panel) => self.floor.eject_bay(panel),
            Source::Storage(at) => slot(at),
            Source::Drive(drive, _) => self.floor.dock(drive, index, start.shelf),
        };
        let goal = match to {
            Destination::Storage(at) => slot(at),
            Destination::Drive(drive, _) => self.floor.dock(drive, index, source.shelf),
        };
        let mut rest = VecDeque::new();
        travel(index, start, source, &mut rest);
        rest.push_back(Action::Pick { shuttle: index, platter, from });
        travel(index, source, goal, &mut rest);
        rest.push_back(Action::Place { shuttle: index, platter, to });
        Trip { kind, platter, from, to, current: None, rest }
    }

    fn start_trip(&mut self, index: ShuttleIndex, errand: Errand, out: &mut Outbox<Output>) {
        let fetches = match errand.kind {
            TripKind::Fetch if self.new_platter_errand(index).is_some() => {
                self.shuttles[index.as_usize()].fetches_in_a_row + 1
            }
            TripKind::Return => self.shuttles[index.as_usize()].fetches_in_a_row,
            TripKind::Fetch | TripKind::Collect | TripKind::Shelve => 0,
        };
        let trip = self.plan(index, errand);
        let platter = self.platter_mut(trip.platter);
        assert!(platter.claim.is_none(), "one shuttle at a time goes for a platter");
        platter.claim = Some(index);
        self.settle(trip.platter);
        if let Destination::Drive(drive, slot) = trip.to {
            self.drives[drive.as_usize()].bay_mut(slot).reserved = Some(index);
        }
        let shuttle = &mut self.shuttles[index.as_usize()];
        shuttle.fetches_in_a_row = fetches;
        shuttle.trip = Some(trip);
        self.next_step(index, out);
    }

    /// Orders the next step of a trip, or ends it.
    fn next_step(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        let shuttle = &mut self.shuttles[index.as_usize()];
        let trip = shuttle.trip.as_mut().expect("a shuttle that works has a trip");
        let Some(action) = trip.rest.pop_front() else {
            shuttle.trip = None;
            return;
        };
        let command = self.command(Actor::Shuttle(index), action, out);
        let trip = self.shuttles[index.as_usize()].trip.as_mut();
        trip.expect("it has not ended").current = Some((command, action));
    }

    pub(crate) fn shuttle_completed(
        &mut self,
        index: ShuttleIndex,
        command: CommandId,
        out: &mut Outbox<Output>,
    ) {
        match self.end_step(index, command) {
            Action::Move { to, .. } => self.shuttles[index.as_usize()].at.rail = to,
            Action::Crab { to, .. } => self.shuttles[index.as_usize()].at.shelf = to,
            Action::Pick { platter, from, .. } => self.picked(index, platter, from),
            Action::Place { platter, to, .. } => self.placed(index, platter, to, out),
            Action::Mount { .. }
            | Action::Unmount { .. }
            | Action::Switch { .. }
            | Action::Seek { .. }
            | Action::Read { .. }
            | Action::VerifyPass { .. } => unreachable!("drives do this, not shuttles"),
        }
        self.next_step(index, out);
    }

    fn picked(&mut self, index: ShuttleIndex, id: PlatterId, from: Source) {
        if let Source::Drive(drive, slot) = from {
            self.drives[drive.as_usize()].bay_mut(slot).platter = None;
        }
        self.shuttles[index.as_usize()].cargo = Some(id);
        let platter = self.platter_mut(id);
        platter.place = Place::Shuttle(index);
        platter.claim = None;
    }

    fn placed(
        &mut self,
        index: ShuttleIndex,
        id: PlatterId,
        to: Destination,
        out: &mut Outbox<Output>,
    ) {
        self.shuttles[index.as_usize()].cargo = None;
        match to {
            Destination::Drive(drive, slot) => {
                let bay = self.drives[drive.as_usize()].bay_mut(slot);
                bay.reserved = None;
                bay.platter = Some(id);
                self.platter_mut(id).place = Place::Drive(drive, slot);
            }
            Destination::Storage(home) => {
                let platter = self.platter_mut(id);
                platter.place = Place::Storage(home);
                platter.visit_reads = 0;
                if let Stage::Storing { request, .. } = platter.stage {
                    platter.stage = Stage::Stored { home };
                    self.finish(request, Outcome::Stored, out);
                }
                self.settle(id);
            }
        }
    }

    pub(crate) fn shuttle_failed(
        &mut self,
        index: ShuttleIndex,
        command: CommandId,
        fault: Fault,
        out: &mut Outbox<Output>,
    ) {
        let action = self.end_step(index, command);
        let shuttle = &mut self.shuttles[index.as_usize()];
        let trip = shuttle.trip.take().expect("a shuttle that works has a trip");
        let cargo = shuttle.cargo;
        let missing = matches!(action, Action::Pick { .. }) && fault == Fault::PlatterMissing;
        if !missing {
            shuttle.broken = true;
            self.damaged = true;
        }
        if let Destination::Drive(drive, slot) = trip.to {
            self.drives[drive.as_usize()].bay_mut(slot).reserved = None;
        }
        if missing {
            self.lose(trip.platter, trip.from, out);
        } else if cargo.is_some() {
            self.end_requests(trip.platter, Fault::ShuttleBroken, out);
        } else {
            self.platter_mut(trip.platter).claim = None;
            self.settle(trip.platter);
        }
    }

    /// A platter is not where it should be: ends what was asked of it and forgets it.
    fn lose(&mut self, id: PlatterId, from: Source, out: &mut Outbox<Output>) {
        if let Source::Drive(drive, slot) = from {
            self.drives[drive.as_usize()].bay_mut(slot).platter = None;
        }
        // The claim keeps it known until here.
        self.end_requests(id, Fault::PlatterMissing, out);
        self.forget(id);
    }

    fn end_step(&mut self, index: ShuttleIndex, command: CommandId) -> Action {
        let trip = self.shuttles[index.as_usize()].trip.as_mut();
        let current = trip.and_then(|trip| trip.current.take());
        let (id, action) = current.expect("a shuttle that answers was at work");
        assert_eq!(id, command, "a shuttle does one thing at a time");
        action
    }
}

/// The slot a shuttle is picking from or placing into, if it does.
const fn storage_slot(action: Action) -> Option<SlotIndex> {
    if let Action::Pick { from: Source::Storage(slot), .. }
    | Action::Place { to: Destination::Storage(slot), .. } = action
    {
        return Some(slot);
    }
    None
}

/// Along the rails first, then shelf by shelf.
fn travel(shuttle: ShuttleIndex, from: Position, to: Position, steps: &mut VecDeque<Action>) {
    assert_eq!(from.panel, to.panel, "shuttles stay on their panel");
    if from.rail != to.rail {
        steps.push_back(Action::Move { shuttle, from: from.rail, to: to.rail });
    }
    let mut shelf = from.shelf.get();
    while shelf != to.shelf.get() {
        let next = if shelf < to.shelf.get() { shelf + 1 } else { shelf - 1 };
        let (from, to) = (ShelfIndex::new(shelf), ShelfIndex::new(next));
        steps.push_back(Action::Crab { shuttle, from, to });
        shelf = next;
    }
}
