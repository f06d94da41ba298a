//! Tests of the crate, by what they test.

mod guard;
mod ledger;
mod ledger_file;
mod power;
mod simulated;

use fulgurite_units::UnixTime;

use crate::{Cause, GroupId, PlaceId, SpinUp};

fn place(number: u32) -> PlaceId {
    PlaceId::new(number)
}

fn hour(hours: u64) -> UnixTime {
    UnixTime::from_millis(1_700_000_000_000 + hours * 3_600_000)
}

fn spin_up(at: UnixTime, places: &[u32], cause: Cause) -> SpinUp {
    let places = places.iter().copied().map(place).collect();
    SpinUp { at, group: Some(GroupId::new(0)), places, cause }
}
