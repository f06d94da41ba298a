//! The decisions of a rack of disks, most of which are spun down: which may spin together, and
//! which operation is next.
//!
//! ```text
//! Shape (TOML) --solve--> Assignment --check--> Proof     places, domains; groups, classes
//!                             |
//!   Event ------------> Rack (a scheduler a class) ----------> Command
//!   Submit, Up, Down,     waiting --switch--> spinning          SpinUp, SpinDown, Run,
//!   Done, Lost, Back                                            Refuse, Alarm
//! ```
//!
//! The hardware supplies power, cooling and other resources to few of its disks at once, and the
//! software must never exceed them (Pelican, OSDI 2014). The controller is a state machine without
//! clock, thread or file ([`fulgurite_units::Controller`]); live racks and the twin drive the same
//! one. It knows only places: no blobs, no bytes and no disks. Design note 0026.

mod assignment;
mod check;
mod disk_choice;
mod due;
mod error;
mod event;
mod failures;
mod fair_share;
mod ids;
mod invariants;
mod key;
pub mod limits;
mod order;
mod pace;
mod placement;
mod places;
mod policy;
pub mod presets;
mod queue;
mod rack;
mod search;
mod service;
mod shape;
mod side_queue;
mod solve;
mod spin_up_budget;
mod state;
mod switch;
mod token_bucket;
mod usage;

pub use fulgurite_disks::{Cause, GroupId, PlaceId};

pub use assignment::{Assignment, MemberSlot, Table};
pub use check::{DomainUse, Proof, UnitUse, check};
pub use error::Error;
pub use event::{Command, Event, Loss, Op, OpKind, Part, Refusal, Side};
pub use ids::{ClassId, Members, OpId};
pub use key::Axis;
pub use order::{Budget, Due, Order, SpinUps};
pub use placement::{Placement, place};
pub use policy::Policy;
pub use rack::{Counters, GroupState, PlaceState, Rack};
pub use shape::{Code, Domain, Groups, Kind, Pace, Shape, Shared, Watts};
pub use solve::solve;

#[cfg(test)]
mod tests;
