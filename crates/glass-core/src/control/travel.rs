//! How a shuttle reaches its goal, step by step, and what it does there.
//!
//! The next step is chosen when the last is done, so that a way can change with what stands in it.
//! Not here: which span is free (`traffic.rs`), and which shuttle makes way (`right_of_way.rs`).

use fulgurite_units::{Outbox, ShuttleIndex};

use crate::control::controller::Library;
use crate::control::floor::Position;
use crate::control::limits::STRAYS_MAX;
use crate::control::sequence::Actor;
use crate::control::shuttle_dispatch::storage_slot;
use crate::control::state::{Errand, TripKind};
use crate::control::traffic::{MAKING_WAY, Step};
use crate::control::{
    Action, CommandId, Destination, Fault, Movement, Output, RailPosition, Source,
};

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

    /// Whether a shuttle can reach the start of an errand, and from there its end.
    pub(crate) fn has_way_for(&self, index: ShuttleIndex, errand: &Errand) -> bool {
        let shuttle = self.fleet.get(index);
        let mut at = shuttle.position();
        if shuttle.cargo().is_none() {
            let source = self.source(errand.from, at);
            if self.fleet.traffic().shelf_around(at, source).is_none() {
                return false;
            }
            at = source;
        }
        self.fleet.traffic().shelf_around(at, self.destination(errand.to, at)).is_some()
    }

    /// Orders the next step of a trip, or the operation at its end. Returns whether it could.
    pub(crate) fn advance(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) -> bool {
        loop {
            let shuttle = self.fleet.get(index);
            let (at, number) = (shuttle.position(), index.get());
            let Some(trip) = shuttle.trip() else { return false };
            let detour = trip.detour();
            let (goal, rank) = match detour {
                Some(detour) => (detour, MAKING_WAY),
                None => (trip.goal(), trip.rank()),
            };
            let stray = detour.is_none() && trip.travel().strayed < STRAYS_MAX;
            let action = match self.fleet.traffic().next_step(number, rank, at, goal, stray) {
                Step::Arrived if detour.is_some() => {
                    if !self.end_detour(index) || self.yield_to_blocked(index) {
                        return true;
                    }
                    continue;
                }
                Step::Arrived => {
                    self.arrive(index, out);
                    return true;
                }
                Step::Move { to } => {
                    self.fleet.enter_rails(index, to);
                    let reports = self.reports(index);
                    Action::Move { shuttle: index, from: at.rail, to, reports }
                }
                Step::Crab { to } => {
                    let strays = to.get().abs_diff(goal.shelf.get())
                        > at.shelf.get().abs_diff(goal.shelf.get());
                    self.fleet.enter_shelf(index, to, strays);
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
            self.order(index, action, out);
            return true;
        }
    }

    /// Ends a detour. Returns whether the shuttle goes on to its own goal.
    fn end_detour(&mut self, index: ShuttleIndex) -> bool {
        self.fleet.end_detour(index);
        if self.fleet.trip(index).has_purpose() {
            return true;
        }
        self.end_trip(index);
        self.mark_shuttle(index);
        false
    }

    /// Lets blocked shuttles take what they need first, by rank, after a detour; otherwise this
    /// shuttle would take the place again that it just left. Returns `false` if none waits.
    fn yield_to_blocked(&mut self, index: ShuttleIndex) -> bool {
        if self.fleet.blocked().is_empty() {
            return false;
        }
        let at = self.fleet.get(index).position();
        let trip = self.fleet.trip(index);
        let (goal, rank) = (trip.goal(), trip.rank());
        let span = match self.fleet.traffic().next_step(index.get(), rank, at, goal, false) {
            Step::Arrived | Step::Cut => return false,
            Step::Move { to } => self.fleet.traffic().sweep(at, to),
            Step::Crab { to } => self.fleet.traffic().footprint(Position { shelf: to, ..at }),
            Step::Blocked(span) => span,
        };
        self.block(index, span);
        true
    }

    pub(crate) fn order(&mut self, index: ShuttleIndex, action: Action, out: &mut Outbox<Output>) {
        self.unblock(index);
        let command = self.command(Actor::Shuttle(index), action, out);
        self.fleet.work(index, command, action);
    }

    /// Handles arrival at the goal: picks, places or charges.
    fn arrive(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        if self.fleet.trip(index).charges() {
            self.arrive_to_charge(index, out);
            return;
        }
        let carries = self.fleet.get(index).cargo().is_some();
        let trip = self.fleet.trip(index);
        let (travel, goal) = (*trip.travel(), trip.goal());
        let errand =
            trip.errand().unwrap_or_else(|| unreachable!("a trip that arrives has an errand"));
        if let Destination::Drive(drive, _) = errand.to
            && self.drives.get(drive).is_broken()
        {
            self.turn_back(index, &errand);
            return;
        }
        if travel.steps > 0 {
            out.push(Output::Traveled(crate::control::Travel {
                shuttle: index,
                for_customers: matches!(errand.kind, TripKind::Fetch | TripKind::Return),
                took: self.sequence.now().since(travel.started),
                rail_um: travel.from.rail.get().abs_diff(goal.rail.get()),
                shelves: travel.from.shelf.get().abs_diff(goal.shelf.get()),
            }));
        }
        let platter = self.shelf.get(errand.platter).id();
        let action = if carries {
            Action::Place { shuttle: index, platter, to: errand.to }
        } else {
            Action::Pick { shuttle: index, platter, from: errand.from }
        };
        if let Some(slot) = storage_slot(action) {
            self.zones.obscure(slot);
        }
        self.order(index, action, out);
    }

    /// Ends a trip to a drive that broke meanwhile: the cargo is brought home, or elsewhere.
    fn turn_back(&mut self, index: ShuttleIndex, errand: &Errand) {
        self.end_trip(index);
        self.release(errand);
        if self.fleet.get(index).cargo().is_none() {
            self.release_claim(errand.platter);
        }
        self.mark_shuttle(index);
    }

    /// Abandons a trip whose goal broken machines cut off. The cargo stays in the picker.
    fn abandon(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        let trip = self.end_trip(index);
        let cargo = self.fleet.get(index).cargo();
        self.mark_shuttle(index);
        let Some(errand) = trip.and_then(|trip| trip.errand()) else { return };
        self.release(&errand);
        if cargo.is_some() {
            self.end_requests(errand.platter, Fault::Unreachable, out);
        } else {
            self.release_claim(errand.platter);
            if self.shelf.is_known(errand.platter) {
                self.end_if_out_of_reach(errand.platter, out);
            }
        }
    }

    /// Whether a shuttle reports its position: it does where it is not alone in a partition.
    fn reports(&self, index: ShuttleIndex) -> bool {
        let kind = self.fleet.get(index).errand().map(|errand| errand.kind);
        self.policy.movement != Movement::Partitions
            || !matches!(kind, Some(TripKind::Fetch | TripKind::Return))
    }

    /// Releases the span that a moving shuttle has left behind.
    pub(crate) fn shuttle_passed(
        &mut self,
        index: ShuttleIndex,
        command: CommandId,
        passed: RailPosition,
    ) {
        let shuttle = self.fleet.get(index);
        let Some((current, Action::Move { to, .. })) = shuttle.current() else { return };
        let here = shuttle.position().rail;
        if current != command || passed < here.min(to) || here.max(to) < passed {
            return;
        }
        self.fleet.pass(index, passed, to);
        if !self.fleet.blocked().is_empty() || self.fleet.has_batteries() {
            self.dirty.panel(self.floor.panel_of(index));
        }
    }
}
