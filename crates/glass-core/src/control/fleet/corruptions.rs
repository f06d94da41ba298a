//! Corrupted states that only the fleet itself could cause; `check()` must detect each.

use fulgurite_units::ShuttleIndex;

use super::{Fleet, Shuttle};
use crate::control::RailPosition;

pub(crate) type Corruption = fn(&mut Fleet);

pub(crate) const CORRUPTIONS: [(&str, Corruption); 3] = [
    ("a shuttle elsewhere than it holds", |fleet| {
        fleet.shuttles[0].at.rail = RailPosition::new(1);
    }),
    ("a shuttle that waits unknown", |fleet| fleet.blocked.push(ShuttleIndex::new(0))),
    ("a broken shuttle whose place is open", |fleet| fleet.shuttles[0].broken = true),
];

/// Returns the shuttle that charges.
fn charger(fleet: &mut Fleet) -> &mut Shuttle {
    &mut fleet.shuttles[1]
}

/// Corruptions of a fleet whose second shuttle is low and charges.
pub(crate) const CHARGER_CORRUPTIONS: [(&str, Corruption); 4] = [
    ("a low shuttle that rests", |fleet| charger(fleet).trip = None),
    ("a shuttle that does not know it is low", |fleet| charger(fleet).low = false),
    ("a shuttle that charges away from a dock", |fleet| {
        let at = charger(fleet).at;
        let before = fleet.traffic.footprint(at);
        fleet.traffic.leave(1, before.lane);
        let at = &mut charger(fleet).at;
        at.rail = RailPosition::new(at.rail.get() + 1);
        let at = *at;
        fleet.traffic.take(1, fleet.traffic.footprint(at));
    }),
    ("a battery in a library without", |fleet| fleet.has_batteries = false),
];
