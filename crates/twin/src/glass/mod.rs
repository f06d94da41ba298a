//! The glass library as a system: the live controller, with simulated machines that only take time.
//!
//! ```text
//!   reads (a stream in order of time,
//!     as they are or as restores) ------.
//!   faults, timer, new platters ---------+--> next event --> Library::step --> outputs
//!   agenda: commands in progress --------'        ^                              |
//!                                                 '--- command + duration -------'
//! ```
//!
//! Each machine has its own random stream. Give-way between shuttles is not modeled here: it
//! results from the controller's commands.

mod accounts;
mod arrivals;
mod backlog;
mod batteries;
mod busy;
pub mod constraints;
pub mod course;
mod customers;
pub(crate) mod energy;
mod files;
pub mod fleet;
mod log;
mod machines;
mod metrics;
pub mod plan;
pub mod probe;
mod published;
mod reported;
mod restoring;
pub mod result;
mod run;
pub mod scenario;
pub mod served;
mod sets;
mod supply;
pub mod tape;

pub use arrivals::Arrival;
pub(crate) use files::shard_sizes;
pub use log::LibraryLog;
pub use machines::Device;
pub(crate) use machines::{Machines, Work};
pub(crate) use run::unavailable_platters;
pub use run::{Glass, Next, Seen, run, run_observed};
pub(crate) use supply::is_new;

#[cfg(test)]
mod hardware;
#[cfg(test)]
pub(crate) mod tests;
