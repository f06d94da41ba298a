//! Batteries: when a shuttle charges, and where.
//!
//! ```text
//!   idle --(low, or nothing else to do)--> to a dock -> a piece of charging --> idle
//! ```
//!
//! Charging points are assumed to be at the docks of the read drives, on each shelf from which a
//! drive takes platters. Shuttles go there with every platter, so charging adds little travel. A
//! charging interval is short, and none starts while an errand waits for the place, so a charging
//! shuttle never blocks it for longer. Afterwards it stands idle and can be sent away
//! (`right_of_way.rs`). Not here: how much energy an operation needs, which only the battery knows.

use fulgurite_units::{Outbox, ShuttleIndex};

use crate::control::controller::Library;
use crate::control::fleet::{Shuttle, Trip};
use crate::control::floor::Position;
use crate::control::limits::{BATTERY_PERCENT_MAX, TOP_UP_PERCENT};
use crate::control::state::TripLeg;
use crate::control::{Action, Movement, Output, PanelIndex, ShelfIndex};

impl Library {
    /// Records the battery level that a shuttle's driver reports.
    pub(crate) fn record_battery(&mut self, index: ShuttleIndex, percent: u8) {
        let percent = percent.min(BATTERY_PERCENT_MAX);
        let bounds = (self.policy.charge_below, self.policy.charge_until);
        let panel = self.floor.panel_of(index);
        if self.fleet.set_battery(index, percent, bounds) {
            // The shuttle takes errands again, or others take over its errands.
            self.partitions.groups_of_panel(panel).for_each(|group| self.dirty.group(group));
        }
        self.dirty.panel(panel);
    }

    /// Sends idle shuttles of a panel to charge if they should, the emptiest first.
    pub(crate) fn charge_idle(&mut self, panel: PanelIndex, out: &mut Outbox<Output>) {
        if !self.fleet.has_batteries() {
            return;
        }
        let mut idle: Vec<(Option<u8>, ShuttleIndex)> = self
            .fleet
            .indexed()
            .filter(|(index, _)| self.floor.panel_of(*index) == panel)
            .filter(|(_, shuttle)| self.wants_to_charge(shuttle))
            .map(|(index, shuttle)| (shuttle.battery(), index))
            .collect();
        idle.sort_unstable();
        for (_, index) in idle {
            if let Some(point) = self.charging_due(index) {
                self.start_charging(index, point, out);
            }
        }
    }

    /// Returns where a shuttle should go now to charge, if it should.
    pub(crate) fn charging_due(&self, index: ShuttleIndex) -> Option<Position> {
        let shuttle = self.fleet.get(index);
        if self.wants_to_charge(shuttle) { self.charging_point(index) } else { None }
    }

    /// Whether a shuttle should charge. One that is still idle after errands were assigned has
    /// nothing else to do.
    fn wants_to_charge(&self, shuttle: &Shuttle) -> bool {
        let below = shuttle.battery().is_some_and(|percent| percent < self.policy.charge_until);
        below && shuttle.is_idle() && self.policy.movement != Movement::NoShuttles
    }

    /// Returns the charging point for a shuttle: where it stands, or the nearest free one,
    /// preferring its own group's drives. If none is free and its battery is low: the nearest one
    /// that no other shuttle waits for. It waits there, and idle shuttles there are sent away.
    fn charging_point(&self, index: ShuttleIndex) -> Option<Position> {
        let (at, number) = (self.fleet.get(index).position(), index.get());
        let group = self.partitions.group_of_shuttle(index);
        let must_go = self.is_due_to_charge(index);
        let (mut free, mut occupied) = (None, None);
        for (drive, site) in (0..).map(fulgurite_units::DriveIndex::new).zip(self.floor.drives()) {
            if site.panel != at.panel {
                continue;
            }
            let is_foreign_group =
                !group.is_some_and(|own| self.partitions.groups_of_drive(drive).contains(&own));
            for shelf in site.shelves.clone().map(ShelfIndex::new) {
                let point = Position { panel: site.panel, rail: site.rail, shelf };
                if point != at && !must_go {
                    continue;
                }
                let span = self.fleet.traffic().footprint(point);
                let claimed = self.fleet.traffic().claimants(span, number).next().is_some();
                if claimed || !self.can_reach_dock(at, point) {
                    continue;
                }
                let holders = self.fleet.traffic().holders(span, number).next().is_some();
                let best = if holders { &mut occupied } else { &mut free };
                let order = (point != at, is_foreign_group, at.cost_to(point), drive, shelf);
                if best.is_none_or(|(least, _)| order < least) {
                    *best = Some((order, point));
                }
            }
        }
        let occupied = occupied.filter(|_| self.fleet.get(index).is_low());
        free.or(occupied).map(|(_, point)| point)
    }

    /// Whether a shuttle lacks enough charge to travel to a charging point.
    fn is_due_to_charge(&self, index: ShuttleIndex) -> bool {
        let shuttle = self.fleet.get(index);
        let worth = self.policy.charge_until.saturating_sub(TOP_UP_PERCENT);
        shuttle.is_low() || shuttle.battery().is_some_and(|percent| percent < worth)
    }

    /// Whether the dock is open and can be reached around broken machines.
    fn can_reach_dock(&self, from: Position, dock: Position) -> bool {
        !self.damaged
            || from == dock
            || self.fleet.traffic().shelf_around(from, dock).is_some()
                && !self.fleet.traffic().is_barred(&self.fleet.traffic().footprint(dock))
    }

    fn start_charging(&mut self, index: ShuttleIndex, goal: Position, out: &mut Outbox<Output>) {
        let from = self.fleet.get(index).position();
        let rank = self.next_rank(index);
        let travel = TripLeg { from, started: self.sequence.now(), steps: 0, strayed: 0 };
        self.fleet.begin(index, Trip::charging(goal, rank, travel));
        self.advance(index, out);
    }

    /// Handles arrival at a charging point. A shuttle that is not low leaves it to any that waits
    /// for the place. A low shuttle charges for one interval, because it ranked higher or was there
    /// first.
    pub(crate) fn arrive_to_charge(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        let shuttle = self.fleet.get(index);
        let span = self.fleet.traffic().footprint(shuttle.position());
        if shuttle.is_low() || self.fleet.traffic().claimants(span, index.get()).next().is_none() {
            self.charge(index, out);
        } else {
            self.end_charging(index);
        }
    }

    /// Handles the end of a charging interval. A shuttle that is still low goes on, unless an
    /// errand waits for the place. Shuttles that wait to charge wait until it is full enough;
    /// otherwise all would spend their energy on taking turns.
    pub(crate) fn complete_charge(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        let shuttle = self.fleet.get(index);
        let span = self.fleet.traffic().footprint(shuttle.position());
        let needed = self.fleet.traffic().claimants(span, index.get()).any(|other| {
            let trip = self.fleet.get(ShuttleIndex::new(other)).trip();
            trip.is_some_and(|trip| !trip.charges())
        });
        if shuttle.is_low() && !needed {
            self.charge(index, out);
        } else {
            self.end_charging(index);
        }
    }

    fn charge(&mut self, index: ShuttleIndex, out: &mut Outbox<Output>) {
        self.counters.charges += 1;
        self.order(index, Action::Charge { shuttle: index }, out);
    }

    /// Ends the charging trip, so that what comes next is decided again.
    fn end_charging(&mut self, index: ShuttleIndex) {
        self.end_trip(index);
        self.mark_shuttle(index);
    }
}
