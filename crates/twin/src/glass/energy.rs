//! What machines need: the one table of energies and powers. All are ASSUMED: the paper gives none,
//! and nobody sells such machines.
//!
//! The weights of a shuttle's operations, in units of a start, are what ratios of two policies are
//! compared with. What a unit is in joules says [`START_JOULES`], unless a battery
//! ([`crate::glass::scenario::Battery`]) or a cost table ([`crate::glass::plan::CostTable`]) says
//! otherwise.

use fulgurite_library::Action;

/// A start of horizontal motion.
pub(crate) const START_ENERGY: f64 = 1.0;
/// A meter of it.
pub(crate) const METER_ENERGY: f64 = 0.5;
/// A crab.
pub(crate) const CRAB_ENERGY: f64 = 2.0;
/// A pick or a place. Only batteries and costs know it: the paper compares energy per such
/// operation.
pub(crate) const HANDLING_ENERGY: f64 = 0.5;

/// A start and stop of horizontal motion, in joules: about 10 W on the way, 70 W while it crabs.
pub(crate) const START_JOULES: f64 = 100.0;
/// What a shuttle always needs, in watts: a small computer and its radio.
pub(crate) const SHUTTLE_IDLE_WATTS: f64 = 2.0;
/// A shuttle at a charging point, in watts: two of its battery's capacity in an hour.
pub(crate) const CHARGING_WATTS: f64 = 120.0;
/// A drive that does nothing, in watts.
pub(crate) const DRIVE_IDLE_WATTS: f64 = 60.0;
/// A drive that reads or verifies, in watts.
pub(crate) const DRIVE_BUSY_WATTS: f64 = 200.0;
/// A library at rest without drives and shuttles, in watts: its controller and its network.
pub(crate) const LIBRARY_WATTS: f64 = 150.0;

/// What an operation of a shuttle needs, in units of a start.
pub(crate) fn of(action: &Action) -> f64 {
    match action {
        Action::Move { from, to, .. } => START_ENERGY + METER_ENERGY * from.meters_to(*to),
        Action::Crab { .. } => CRAB_ENERGY,
        Action::Pick { .. } | Action::Place { .. } => HANDLING_ENERGY,
        Action::Charge { .. }
        | Action::Mount { .. }
        | Action::Unmount { .. }
        | Action::Switch { .. }
        | Action::Seek { .. }
        | Action::Read { .. }
        | Action::VerifyPass { .. } => 0.0,
    }
}
