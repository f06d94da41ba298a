//! Energies and powers of the machines, in one table. All are ASSUMED: the paper gives none, and
//! nobody sells such machines.
//!
//! Ratios of two policies are computed from the weights of a shuttle's operations, in units of a
//! start. [`START_JOULES`] gives the joules of a unit, unless a battery
//! ([`crate::glass::scenario::Battery`]) or a cost table ([`crate::glass::plan::CostTable`])
//! overrides it.

use fulgurite_glass_core::control::Action;

/// A start of horizontal motion.
pub(crate) const START_ENERGY: f64 = 1.0;
/// A meter of horizontal motion.
pub(crate) const METER_ENERGY: f64 = 0.5;
/// A crab.
pub(crate) const CRAB_ENERGY: f64 = 2.0;
/// A pick or a place. Used only for batteries and costs: the paper compares energy per such
/// operation.
pub(crate) const HANDLING_ENERGY: f64 = 0.5;

/// Joules of a start and stop of horizontal motion: about 10 W on the way, 70 W while crabbing.
pub(crate) const START_JOULES: f64 = 100.0;
/// Constant power of a shuttle, in watts: a small computer and its radio.
pub(crate) const SHUTTLE_IDLE_WATTS: f64 = 2.0;
/// Power of a charging shuttle, in watts: twice its battery's capacity per hour.
pub(crate) const CHARGING_WATTS: f64 = 120.0;
/// Power of an idle drive, in watts.
pub(crate) const DRIVE_IDLE_WATTS: f64 = 60.0;
/// Power of a drive that reads or verifies, in watts.
pub(crate) const DRIVE_BUSY_WATTS: f64 = 200.0;
/// Power of an idle library without drives and shuttles, in watts: its controller and its network.
pub(crate) const LIBRARY_WATTS: f64 = 150.0;

/// Returns the energy of a shuttle's operation, in units of a start.
pub(crate) fn for_action(action: &Action) -> f64 {
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
