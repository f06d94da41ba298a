//! How a shuttle gets to its goal: piece by piece, and what it does there.
//!
//! The next piece of a way is chosen when the last is done, so that a way can change with what
//! stands in it. Not here: which piece is free (`traffic.rs`), and who makes way (`giveway.rs`).

use fulgurite_units::{Outbox, ShuttleIndex};

use crate::controller::{Actor, Library};
use crate::floor::Position;
use crate::limits::STRAYS_MAX;
use crate::shuttles::storage_slot;
use crate::state::{Errand, TripKind};
use crate::traffic::{MAKING_WAY, Step};
use crate::{Action, CommandId, Destination, Fault, Movement, Output, RailPosition, Source};

impl Library {
    pub(crate) fn source(&self, from: Source, near: Position) -> Position {
        match from {
            Source::EjectBay(panel) => self.floor.eject_bay(panel),
            Source::Storage(slot) => self.floor.slot(slot),
            Source::Drive(drive, _) => self.floor.dock(drive, near.shelf),
        }
    }

    pub(crate) fn destination(&self, to: Destination, near: Position) -> Position {
        match to {
            Destination::Storage(slot) => self.floor.slot(slot),
            Destination::Drive(drive, _) => self.floor.dock(drive, near.shelf),
        }
    }

    /// Whether a shuttle gets to where an errand begins, and from there to where it ends.
    pub(crate) fn has_way_for(&self, index: ShuttleIndex, errand: &Errand) -> bool {
        let shuttle = &self.shuttles[index.as_usize()];
        let mut at = shuttle.at;
        if shuttle.cargo.is_none() {
            let source = self.source(errand.from, at);
            if self.traffic.shelf_around(at, source).is_none() {
                return false;
            }
            at = source;
        }
        self.traffic.shelf_around(at, self.destination(errand.to, at)).is_some()
    }

    /// Orders the next piece of a way, or what is to be done at its end. Whether it could.
    pub(crate) fn advance(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) -> bool {
        loop {
            let shuttle = &self.shuttles[index.as_usize()];
            let (at, number) = (shuttle.at, index.get());
            let Some(trip) = &shuttle.trip else { return false };
            let (goal, rank) = match trip.detour {
                Some(detour) => (detour, MAKING_WAY),
                None => (trip.goal, trip.rank),
            };
            let stray = trip.detour.is_none() && trip.travel.strayed < STRAYS_MAX;
            let action = match self.traffic.next_step(number, rank, at, goal, stray) {
                Step::Arrived if trip.detour.is_some() => {
                    if !self.end_detour(index) || self.lets_others_go_first(index) {
                        return true;
                    }
                    continue;
                }
                Step::Arrived => {
                    self.arrive(index, out);
                    return true;
                }
                Step::Move { to } => {
                    self.traffic.take(number, self.traffic.sweep(at, to));
                    let reports = self.reports(index);
                    Action::Move { shuttle: index, from: at.rail, to, reports }
                }
                Step::Crab { to } => {
                    let strays = to.get().abs_diff(goal.shelf.get())
                        > at.shelf.get().abs_diff(goal.shelf.get());
                    self.trip_mut(index).travel.strayed += u32::from(strays);
                    let there = Position { shelf: to, ..at };
                    self.traffic.take(number, self.traffic.footprint(there));
                    Action::Crab { shuttle: index, from: at.shelf, to }
                }
                Step::Blocked(span) => {
                    self.block(index, span);
                    return false;
                }
                Step::Cut => {
                    self.abandon(index, out);
                    return false;
                }
            };
            self.trip_mut(index).travel.steps += 1;
            self.order(index, action, out);
            return true;
        }
    }

    /// Made way; whether it goes on to where it wanted to go.
    fn end_detour(&mut self, index: ShuttleIndex) -> bool {
        let trip = self.trip_mut(index);
        trip.detour = None;
        if trip.has_purpose() {
            return true;
        }
        self.unblock(index);
        self.shuttles[index.as_usize()].trip = None;
        self.note_shuttle(index);
        false
    }

    /// Made way, and waits until those that wait have taken what they need, by rank: it would
    /// take the place again that it just left. Not if nobody waits.
    fn lets_others_go_first(&mut self, index: ShuttleIndex) -> bool {
        if !self.is_anyone_blocked() {
            return false;
        }
        let at = self.shuttles[index.as_usize()].at;
        let (goal, rank) = (self.trip_mut(index).goal, self.trip_mut(index).rank);
        let span = match self.traffic.next_step(index.get(), rank, at, goal, false) {
            Step::Arrived | Step::Cut => return false,
            Step::Move { to } => self.traffic.sweep(at, to),
            Step::Crab { to } => self.traffic.footprint(Position { shelf: to, ..at }),
            Step::Blocked(span) => span,
        };
        self.block(index, span);
        true
    }

    pub(crate) fn order(&mut self, index: ShuttleIndex, action: Action, out: &mut Outbox<Output>) {
        self.unblock(index);
        let command = self.command(Actor::Shuttle(index), action, out);
        self.trip_mut(index).current = Some((command, action));
    }

    /// At the goal: picks, places or charges.
    fn arrive(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        if self.trip_mut(index).charges {
            self.arrive_to_charge(index, out);
            return;
        }
        let shuttle = &self.shuttles[index.as_usize()];
        let carries = shuttle.cargo.is_some();
        let trip = self.trip_mut(index);
        let (travel, goal) = (trip.travel, trip.goal);
        let errand = trip.errand.unwrap_or_else(|| unreachable!("it has a goal"));
        if let Destination::Drive(drive, _) = errand.to
            && self.drives[drive.as_usize()].broken
        {
            self.turn_back(index, &errand);
            return;
        }
        if travel.steps > 0 {
            out.push(Output::Traveled(crate::Travel {
                shuttle: index,
                for_customers: matches!(errand.kind, TripKind::Fetch | TripKind::Return),
                took: self.now.since(travel.started),
                rail_um: travel.from.rail.get().abs_diff(goal.rail.get()),
                shelves: travel.from.shelf.get().abs_diff(goal.shelf.get()),
            }));
        }
        let platter = self.platter(errand.platter).id;
        let action = if carries {
            Action::Place { shuttle: index, platter, to: errand.to }
        } else {
            Action::Pick { shuttle: index, platter, from: errand.from }
        };
        if let Some(slot) = storage_slot(action) {
            self.obscure(slot);
        }
        self.order(index, action, out);
    }

    /// The drive it was to go to broke meanwhile: what it carries is brought home, or elsewhere.
    fn turn_back(&mut self, index: ShuttleIndex, errand: &Errand) {
        self.unblock(index);
        self.shuttles[index.as_usize()].trip = None;
        self.release(errand);
        if self.shuttles[index.as_usize()].cargo.is_none() {
            self.platter_mut(errand.platter).claim = None;
            self.touch(errand.platter);
            self.settle(errand.platter);
        }
        self.note_shuttle(index);
    }

    /// Gives up a trip whose goal broken machines cut off. What it carries stays in its picker.
    fn abandon(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        self.unblock(index);
        let shuttle = &mut self.shuttles[index.as_usize()];
        let (trip, cargo) = (shuttle.trip.take(), shuttle.cargo);
        self.note_shuttle(index);
        let Some(errand) = trip.and_then(|trip| trip.errand) else { return };
        self.release(&errand);
        if cargo.is_some() {
            self.end_requests(errand.platter, Fault::Unreachable, out);
        } else {
            self.platter_mut(errand.platter).claim = None;
            self.touch(errand.platter);
            self.settle(errand.platter);
            if !self.unused.contains(&errand.platter) {
                self.end_if_out_of_reach(errand.platter, out);
            }
        }
    }

    /// Whether others may want to know where a shuttle is: it moves where it is not alone.
    fn reports(&self, index: ShuttleIndex) -> bool {
        let errand = self.shuttles[index.as_usize()].trip.as_ref().and_then(|trip| trip.errand);
        let kind = errand.map(|errand| errand.kind);
        self.policy.movement != Movement::Partitions
            || !matches!(kind, Some(TripKind::Fetch | TripKind::Return))
    }

    /// A shuttle gives up what it has left behind.
    pub(crate) fn shuttle_passed(
        &mut self,
        index: ShuttleIndex,
        command: CommandId,
        passed: RailPosition,
    ) {
        let shuttle = &self.shuttles[index.as_usize()];
        let Some((current, Action::Move { to, .. })) = shuttle.current() else { return };
        let here = shuttle.at.rail;
        if current != command || passed < here.min(to) || here.max(to) < passed {
            return;
        }
        // If it breaks or the controller starts again, it stands there.
        self.shuttles[index.as_usize()].at.rail = passed;
        let at = self.shuttles[index.as_usize()].at;
        self.traffic.take(index.get(), self.traffic.sweep(at, to));
        if self.is_anyone_blocked() || self.has_batteries {
            self.dirty.panel(at.panel);
        }
    }
}
