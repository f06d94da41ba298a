//! The shuttles: where each stands, what it carries, and what its trip is for.
//!
//! ```text
//!   idle --begin--> on a trip: blocked <--> works --end--> idle
//!                              |            |
//!                              claims       holds the lanes it covers  (traffic.rs)
//! ```
//!
//! A shuttle always holds exactly the spans that it covers, or will cover before its operation
//! ends. Claims are the spans that blocked shuttles wait for. So a shuttle moves, waits and breaks
//! only through the methods of [`Fleet`], which update both. Not here: where it goes (`errands.rs`,
//! `travel.rs`) and which shuttle gives way (`right_of_way.rs`).

#[cfg(test)]
pub(crate) mod corruptions;

use std::collections::BTreeSet;

use fulgurite_units::{Instant, ShuttleIndex};

use crate::control::floor::{Floor, Position};
use crate::control::sequence::{Actor, actor};
use crate::control::state::{Errand, PlatterKey, TripLeg};
use crate::control::traffic::{Span, Traffic};
use crate::control::{Action, CommandId, RailPosition, ShelfIndex};

/// All shuttles, by index, and the lanes they are on.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    shuttles: Vec<Shuttle>,
    traffic: Traffic,
    /// Shuttles that are blocked.
    blocked: Vec<ShuttleIndex>,
    /// Whether any shuttle's driver has ever reported a battery.
    has_batteries: bool,
}

/// One shuttle.
#[derive(Clone, Debug)]
pub(crate) struct Shuttle {
    position: Position,
    cargo: Option<PlatterKey>,
    trip: Option<Trip>,
    broken: bool,
    /// Battery level in percent, if its driver reports it.
    battery: Option<u8>,
    /// Whether the battery is so low that it takes no errand until it is full enough.
    low: bool,
}

/// The trip of a shuttle.
#[derive(Clone, Debug)]
pub(crate) struct Trip {
    /// The platter to carry, from where to where; `None` if it charges or only makes way.
    errand: Option<Errand>,
    /// Whether it goes to a charging point.
    charges: bool,
    /// Where it goes now: to the source, then to the destination.
    goal: Position,
    /// Where it goes first to make way.
    detour: Option<Position>,
    /// The command it carries out.
    current: Option<(CommandId, Action)>,
    /// The span it waits for, and since when.
    blocked: Option<(Span, Instant)>,
    /// Its right of way: the higher rank goes first.
    rank: u64,
    travel: TripLeg,
}

impl Trip {
    /// Creates a trip that carries a platter, first to `goal`.
    pub(crate) const fn carrying(
        errand: Errand,
        goal: Position,
        rank: u64,
        travel: TripLeg,
    ) -> Self {
        let (errand, current, blocked, detour) = (Some(errand), None, None, None);
        Self { errand, charges: false, goal, detour, current, blocked, rank, travel }
    }

    /// Creates a trip to a charging point.
    pub(crate) const fn charging(goal: Position, rank: u64, travel: TripLeg) -> Self {
        let (errand, current, blocked, detour) = (None, None, None, None);
        Self { errand, charges: true, goal, detour, current, blocked, rank, travel }
    }

    /// Creates a trip that only makes way.
    pub(crate) const fn aside(to: Position, travel: TripLeg) -> Self {
        let (errand, current, blocked, detour) = (None, None, None, Some(to));
        Self { errand, charges: false, goal: to, detour, current, blocked, rank: 0, travel }
    }

    /// The platter to carry, from where to where; `None` if it charges or only makes way.
    pub(crate) const fn errand(&self) -> Option<Errand> {
        self.errand
    }

    /// Whether it goes to a charging point.
    pub(crate) const fn charges(&self) -> bool {
        self.charges
    }

    /// Where it goes now: to the source, then to the destination.
    pub(crate) const fn goal(&self) -> Position {
        self.goal
    }

    /// Where it goes first to make way.
    pub(crate) const fn detour(&self) -> Option<Position> {
        self.detour
    }

    /// The command it carries out.
    pub(crate) const fn current(&self) -> Option<(CommandId, Action)> {
        self.current
    }

    /// Its right of way: the higher rank goes first.
    pub(crate) const fn rank(&self) -> u64 {
        self.rank
    }

    pub(crate) const fn travel(&self) -> &TripLeg {
        &self.travel
    }

    /// Whether it has a goal of its own, and does not only make way.
    pub(crate) const fn has_purpose(&self) -> bool {
        self.errand.is_some() || self.charges
    }
}

impl Shuttle {
    const fn new(position: Position) -> Self {
        let (cargo, trip, battery) = (None, None, None);
        Self { position, cargo, trip, broken: false, battery, low: false }
    }

    pub(crate) const fn position(&self) -> Position {
        self.position
    }

    pub(crate) const fn cargo(&self) -> Option<PlatterKey> {
        self.cargo
    }

    pub(crate) const fn trip(&self) -> Option<&Trip> {
        self.trip.as_ref()
    }

    pub(crate) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Battery level in percent, if its driver reports it.
    pub(crate) const fn battery(&self) -> Option<u8> {
        self.battery
    }

    /// Whether its battery is so low that it takes no errand until it is full enough.
    pub(crate) const fn is_low(&self) -> bool {
        self.low
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.trip.is_none() && !self.broken
    }

    /// Whether it takes errands now. It delivers its cargo however low its battery is.
    pub(crate) const fn is_ready(&self) -> bool {
        self.is_idle() && (!self.low || self.cargo.is_some())
    }

    /// Returns the command it carries out, if any.
    pub(crate) const fn current(&self) -> Option<(CommandId, Action)> {
        match &self.trip {
            Some(trip) => trip.current,
            None => None,
        }
    }

    /// Returns the errand it is on, if any.
    pub(crate) const fn errand(&self) -> Option<Errand> {
        match &self.trip {
            Some(trip) => trip.errand,
            None => None,
        }
    }

    /// Returns the span it waits for, and since when.
    pub(crate) const fn blocked(&self) -> Option<(Span, Instant)> {
        match &self.trip {
            Some(trip) => trip.blocked,
            None => None,
        }
    }

    /// Returns the rank of its trip; without a trip 0, the lowest.
    pub(crate) const fn rank(&self) -> u64 {
        match &self.trip {
            Some(trip) => trip.rank,
            None => 0,
        }
    }
}

impl Fleet {
    /// Creates the fleet, with every shuttle at its start position.
    pub(crate) fn new(floor: &Floor) -> Self {
        let shape = floor.shape();
        let mut traffic = Traffic::new(floor);
        let indices = (0..shape.panels * shape.shuttles_per_panel).map(ShuttleIndex::new);
        let place_at = |index: ShuttleIndex| {
            let at = floor.start(index);
            traffic.take(index.get(), traffic.footprint(at));
            Shuttle::new(at)
        };
        let shuttles = indices.map(place_at).collect();
        Self { shuttles, traffic, blocked: Vec::new(), has_batteries: false }
    }

    #[inline]
    pub(crate) fn get(&self, index: ShuttleIndex) -> &Shuttle {
        &self.shuttles[index.as_usize()]
    }

    pub(crate) const fn len(&self) -> usize {
        self.shuttles.len()
    }

    pub(crate) fn indexed(&self) -> impl Iterator<Item = (ShuttleIndex, &Shuttle)> + Clone {
        (0..).map(ShuttleIndex::new).zip(&self.shuttles)
    }

    /// The lanes, read-only.
    #[inline]
    pub(crate) const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Shuttles that are blocked.
    pub(crate) fn blocked(&self) -> &[ShuttleIndex] {
        &self.blocked
    }

    /// Whether any shuttle's driver has ever reported a battery.
    pub(crate) const fn has_batteries(&self) -> bool {
        self.has_batteries
    }

    pub(crate) fn is_any_broken(&self) -> bool {
        self.traffic.is_damaged() || self.shuttles.iter().any(|shuttle| shuttle.broken)
    }

    /// Returns the trip of a shuttle that must be on one.
    pub(crate) fn trip(&self, index: ShuttleIndex) -> &Trip {
        let trip = self.get(index).trip.as_ref();
        trip.unwrap_or_else(|| unreachable!("shuttle {index} is on a trip"))
    }

    /// Starts a trip.
    pub(crate) fn begin(&mut self, index: ShuttleIndex, trip: Trip) {
        let before = self.get_mut(index).trip.replace(trip);
        assert!(before.is_none(), "shuttle {index} is on one trip at a time");
    }

    /// Ends its trip.
    pub(crate) fn end(&mut self, index: ShuttleIndex) -> Option<Trip> {
        let trip = self.get_mut(index).trip.take();
        let waits = trip.as_ref().is_some_and(|trip| trip.blocked.is_some());
        assert!(!waits, "shuttle {index} ends a trip while it waits for its way");
        trip
    }

    /// Continues its trip after the pick, to the destination.
    pub(crate) fn continue_to(&mut self, index: ShuttleIndex, goal: Position, travel: TripLeg) {
        let trip = self.trip_mut(index);
        (trip.goal, trip.travel) = (goal, travel);
    }

    /// Starts a detour to make way.
    pub(crate) fn begin_detour(&mut self, index: ShuttleIndex, to: Position) {
        self.trip_mut(index).detour = Some(to);
    }

    /// Ends its detour.
    pub(crate) fn end_detour(&mut self, index: ShuttleIndex) {
        self.trip_mut(index).detour = None;
    }

    /// Takes the span of its lane that it is about to sweep.
    pub(crate) fn enter_rails(&mut self, index: ShuttleIndex, to: RailPosition) {
        let sweep = self.traffic.sweep(self.get(index).position, to);
        self.traffic.take(index.get(), sweep);
        self.trip_mut(index).travel.steps += 1;
    }

    /// Takes its place before another shelf that it is about to crab to; `strays` if that leads
    /// away from its goal.
    pub(crate) fn enter_shelf(&mut self, index: ShuttleIndex, to: ShelfIndex, strays: bool) {
        let there = Position { shelf: to, ..self.get(index).position };
        self.traffic.take(index.get(), self.traffic.footprint(there));
        let travel = &mut self.trip_mut(index).travel;
        travel.strayed += u32::from(strays);
        travel.steps += 1;
    }

    /// Updates its position along its way, and frees the lane behind it.
    pub(crate) fn pass(&mut self, index: ShuttleIndex, at: RailPosition, to: RailPosition) {
        // If it breaks or the controller restarts, it stands there.
        self.get_mut(index).position.rail = at;
        let sweep = self.traffic.sweep(self.get(index).position, to);
        self.traffic.take(index.get(), sweep);
    }

    /// Ends a move along the rails.
    pub(crate) fn leave_rails(&mut self, index: ShuttleIndex, to: RailPosition) {
        self.pass(index, to, to);
    }

    /// Ends a crab to another shelf.
    pub(crate) fn leave_shelf(&mut self, index: ShuttleIndex, to: ShelfIndex) {
        let at = self.get(index).position;
        self.traffic.leave(index.get(), self.traffic.lane(at.panel, at.shelf));
        self.get_mut(index).position.shelf = to;
    }

    /// Records the command it carries out. It waits for nothing then.
    pub(crate) fn work(&mut self, index: ShuttleIndex, command: CommandId, action: Action) {
        self.trip_mut(index).current = Some((command, action));
    }

    /// Returns the action of the command that a shuttle answers.
    pub(crate) fn answered_action(&self, index: ShuttleIndex, command: CommandId) -> Action {
        let current = self.get(index).current();
        let (id, action) =
            current.unwrap_or_else(|| panic!("shuttle {index} answers without a command"));
        assert_eq!(id, command, "a shuttle does one thing at a time");
        action
    }

    /// Clears the command it has carried out.
    pub(crate) fn clear_command(&mut self, index: ShuttleIndex) {
        self.trip_mut(index).current = None;
    }

    pub(crate) fn load(&mut self, index: ShuttleIndex, cargo: PlatterKey) {
        self.get_mut(index).cargo = Some(cargo);
    }

    pub(crate) fn unload(&mut self, index: ShuttleIndex) -> PlatterKey {
        let cargo = self.get_mut(index).cargo.take();
        cargo.unwrap_or_else(|| unreachable!("a shuttle places the platter that it carries"))
    }

    /// Blocks it on a span of its way and claims the span. Returns `None` if it already waited for
    /// this span, else whether it did not wait before.
    pub(crate) fn block(&mut self, index: ShuttleIndex, span: Span, now: Instant) -> Option<bool> {
        let trip = self.trip_mut(index);
        if trip.blocked.is_some_and(|(before, _)| before == span) {
            return None;
        }
        let since = trip.blocked.map(|(_, since)| since);
        trip.blocked = Some((span, since.unwrap_or(now)));
        let rank = trip.rank;
        if since.is_none() {
            self.blocked.push(index);
        }
        self.traffic.claim(index.get(), rank, span);
        Some(since.is_none())
    }

    /// Unblocks it, to go on or to give up. Returns whether it waited.
    pub(crate) fn unblock(&mut self, index: ShuttleIndex) -> bool {
        let trip = self.get_mut(index).trip.as_mut();
        let waited = trip.is_some_and(|trip| trip.blocked.take().is_some());
        if waited {
            self.traffic.unclaim(index.get());
            self.blocked.retain(|blocked| *blocked != index);
        }
        waited
    }

    /// Claims another span, for those that make way for a blocked shuttle.
    pub(crate) fn claim_for_others(&mut self, index: ShuttleIndex, rank: u64, span: Span) {
        self.traffic.claim_for_others(index.get(), rank, span);
    }

    pub(crate) fn unclaim_for_others(&mut self, index: ShuttleIndex) {
        self.traffic.unclaim_for_others(index.get());
    }

    /// Stops it where it is and bars the spans it held. Returns its trip; it waits for nothing any
    /// more.
    pub(crate) fn mark_broken(&mut self, index: ShuttleIndex) -> Option<Trip> {
        self.get_mut(index).broken = true;
        let spans: Vec<Span> = self.traffic.held_by(index.get()).collect();
        spans.into_iter().for_each(|span| self.traffic.bar(span));
        self.end(index)
    }

    /// Puts it back in service where it stands. Returns whether it was broken.
    pub(crate) fn mark_repaired(&mut self, index: ShuttleIndex) -> bool {
        let shuttle = self.get_mut(index);
        if !std::mem::replace(&mut shuttle.broken, false) {
            return false;
        }
        // The battery may have been swapped: its level is unknown until the driver reports it.
        (shuttle.battery, shuttle.low) = (None, false);
        let spans: Vec<Span> = self.traffic.held_by(index.get()).collect();
        for span in spans {
            self.traffic.unbar(span);
            self.traffic.leave(index.get(), span.lane);
        }
        let here = self.traffic.footprint(self.get(index).position);
        self.traffic.take(index.get(), here);
        true
    }

    pub(crate) fn bar_rail(&mut self, span: Span) {
        self.traffic.bar_rail(span);
    }

    pub(crate) fn unbar_rail(&mut self, span: Span) {
        self.traffic.unbar_rail(span);
    }

    /// Records its battery level. It is low below the first bound, and stays low up to the second.
    /// Returns whether that changed.
    pub(crate) fn set_battery(
        &mut self,
        index: ShuttleIndex,
        percent: u8,
        bounds: (u8, u8),
    ) -> bool {
        self.has_batteries = true;
        let (below, until) = bounds;
        let shuttle = self.get_mut(index);
        shuttle.battery = Some(percent);
        let was_low = shuttle.low;
        shuttle.low = percent < below || was_low && percent < until;
        shuttle.low != was_low
    }

    /// Takes all shuttles off their lanes, to place them elsewhere.
    pub(crate) fn lift_all(&mut self) {
        for (number, shuttle) in (0..).zip(&self.shuttles) {
            let lane = self.traffic.lane(shuttle.position.panel, shuttle.position.shelf);
            self.traffic.leave(number, lane);
        }
    }

    /// Places a shuttle that was lifted, unless another stands there. Returns whether it could.
    pub(crate) fn place(&mut self, index: ShuttleIndex, at: Position) -> bool {
        let footprint = self.traffic.footprint(at);
        if self.traffic.holders(footprint, index.get()).next().is_some() {
            return false;
        }
        self.traffic.take(index.get(), footprint);
        self.get_mut(index).position = at;
        true
    }

    fn get_mut(&mut self, index: ShuttleIndex) -> &mut Shuttle {
        &mut self.shuttles[index.as_usize()]
    }

    fn trip_mut(&mut self, index: ShuttleIndex) -> &mut Trip {
        let trip = self.get_mut(index).trip.as_mut();
        trip.unwrap_or_else(|| unreachable!("shuttle {index} is on a trip"))
    }

    /// Asserts that every shuttle is on its lanes, works or waits, and knows its battery.
    pub(crate) fn check(&self, now: Instant, bounds: (u8, u8)) {
        self.traffic.check();
        for (index, shuttle) in self.indexed() {
            self.check_battery(index, shuttle, bounds);
            self.check_lanes(index, shuttle);
            let at_work = shuttle.trip.is_some() && shuttle.broken;
            assert!(!at_work, "shuttle {index} is broken and on a trip");
            if let Some((command, _)) = shuttle.current() {
                assert_eq!(actor(command), Actor::Shuttle(index), "{command} is another's");
            }
        }
        self.check_waiting(now);
    }

    /// Asserts that a shuttle on a trip works or waits, and that those that wait are listed and
    /// claim what they wait for.
    fn check_waiting(&self, now: Instant) {
        let mut blocked = BTreeSet::new();
        let mut claims: Vec<(u16, Span)> = Vec::new();
        for (index, shuttle) in self.indexed() {
            let Some(trip) = &shuttle.trip else { continue };
            let works = trip.current.is_some();
            assert_ne!(works, trip.blocked.is_some(), "shuttle {index} works or waits");
            if let Some((span, since)) = trip.blocked {
                blocked.insert(index);
                assert!(since <= now, "shuttle {index} has waited since a time in the future");
                claims.push((index.get(), span));
            }
        }
        let listed: BTreeSet<ShuttleIndex> = self.blocked.iter().copied().collect();
        assert_eq!(listed.len(), self.blocked.len(), "a shuttle is listed as blocked twice");
        assert_eq!(listed, blocked, "blocked shuttles are listed");
        let mut made: Vec<_> = self.traffic.claims().collect();
        made.sort_unstable_by_key(|(shuttle, _)| *shuttle);
        assert_eq!(made, claims, "only blocked shuttles have claims");
    }

    /// Asserts that it holds exactly what it covers.
    fn check_lanes(&self, index: ShuttleIndex, shuttle: &Shuttle) {
        let spans: Vec<Span> = self.traffic.held_by(index.get()).collect();
        let here = self.traffic.footprint(shuttle.position);
        if shuttle.broken {
            let covers = spans
                .iter()
                .any(|span| span.lane == here.lane && span.from <= here.from && here.to <= span.to);
            assert!(covers, "shuttle {index} is not where it broke");
            let barred = spans.iter().all(|span| self.traffic.is_barred(span));
            assert!(barred, "the position of broken shuttle {index} is not barred");
            return;
        }
        let mut due = match shuttle.current().map(|(_, action)| action) {
            Some(Action::Move { to, .. }) => vec![self.traffic.sweep(shuttle.position, to)],
            Some(Action::Crab { to, .. }) => {
                vec![here, self.traffic.footprint(Position { shelf: to, ..shuttle.position })]
            }
            _ => vec![here],
        };
        due.sort_unstable_by_key(|span| span.lane);
        assert_eq!(spans, due, "shuttle {index} holds what it covers");
    }

    /// Asserts that the battery level decides whether a shuttle is low, except between the two
    /// bounds.
    fn check_battery(&self, index: ShuttleIndex, shuttle: &Shuttle, bounds: (u8, u8)) {
        let (below, until) = bounds;
        let due = match shuttle.battery {
            None => Some(false),
            Some(percent) if percent < below => Some(true),
            Some(percent) if percent >= until => Some(false),
            Some(_) => None,
        };
        let known = shuttle.battery.is_none() || self.has_batteries;
        let fits = due.is_none_or(|low| low == shuttle.low);
        assert!(known && fits, "the battery state of shuttle {index} is wrong");
    }
}
