//! The glass library as a system: the live controller, with simulated machines that only take time.
//!
//! ```text
//!   reads (a stream in order of time,
//!     as they are or as restores) ------.
//!   faults, timer, new platters ---------+--> next event --> Library::step --> outputs
//!   queue: commands in progress ---------'        ^                              |
//!                                                 '--- command + duration -------'
//! ```
//!
//! Each machine has its own random stream. Give-way between shuttles is not modeled here: it
//! results from the controller's commands.

mod arrivals;
mod backlog;
mod batteries;
mod companions;
pub mod constraints;
mod customers;
pub(crate) mod energy;
mod files;
pub mod fleet;
mod log;
pub mod log_comparison;
mod machines;
mod metrics;
pub mod plan;
mod presentation;
pub mod probe;
mod restore_driver;
pub mod result;
mod run;
pub mod scenario;
mod sets;
mod stats;
mod supply;
pub mod tape;
pub mod timeline;
mod utilization;

pub use arrivals::Arrival;
pub(crate) use files::shard_sizes;
pub use log::LibraryLog;
pub use machines::Device;
pub(crate) use machines::{Machines, Work};
pub(crate) use run::unavailable_platters;
pub use run::{Glass, Observation, PendingEvent, run, run_observed};
pub(crate) use supply::is_new;

#[cfg(test)]
mod hardware;
#[cfg(test)]
pub(crate) mod tests;
