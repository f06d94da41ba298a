//! What the operations of a shuttle need, in units of a start. Invented: the
//! paper gives no weights.
//!
//! Ratios of two policies are compared with it; what a unit is in joules only a battery says
//! ([`crate::scenario::Battery`]).

use fulgurite_library::Action;

/// A start of horizontal motion.
pub(crate) const START_ENERGY: f64 = 1.0;
/// A metre of it.
pub(crate) const METER_ENERGY: f64 = 0.5;
/// A crab.
pub(crate) const CRAB_ENERGY: f64 = 2.0;
/// A pick or a place. Only batteries know it: the paper compares energy per such operation.
const HANDLING_ENERGY: f64 = 0.5;

/// What an operation of a shuttle needs.
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
