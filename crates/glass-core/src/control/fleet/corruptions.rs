//! Corrupted states that only the fleet itself could cause; `check()` must detect each.

use fulgurite_units::ShuttleIndex;

use super::{Fleet, Shuttle};
use crate::control::RailPosition;

pub(crate) type Corruption = fn(&mut Fleet);

pub(crate) const CORRUPTIONS: [(&str, Corruption); 3] = [
    ("a shuttle that is not where its holds are", |fleet| {
        fleet.shuttles[0].position.rail = RailPosition::new(1);
    }),
    ("a blocked shuttle that is not listed", |fleet| fleet.blocked.push(ShuttleIndex::new(0))),
    ("a broken shuttle whose place is not barred", |fleet| fleet.shuttles[0].broken = true),
];

/// Returns the shuttle that charges.
fn charger(fleet: &mut Fleet) -> &mut Shuttle {
    &mut fleet.shuttles[1]
}

/// Corruptions of a fleet whose second shuttle is low and charges.
pub(crate) const CHARGER_CORRUPTIONS: [(&str, Corruption); 4] = [
    ("a low shuttle that is idle", |fleet| charger(fleet).trip = None),
    ("a low shuttle that is not marked low", |fleet| charger(fleet).low = false),
    ("a shuttle that charges away from a dock", |fleet| {
        let at = charger(fleet).position;
        let before = fleet.traffic.footprint(at);
        fleet.traffic.leave(1, before.lane);
        let at = &mut charger(fleet).position;
        at.rail = RailPosition::new(at.rail.get() + 1);
        let at = *at;
        fleet.traffic.take(1, fleet.traffic.footprint(at));
    }),
    ("a battery in a library without batteries", |fleet| fleet.has_batteries = false),
];
