//! The engine: one run of any system, event by event.
//!
//! ```text
//!   Scenario, seed --> System (what is simulated) --> Stage --> agenda: what is to come
//!                                                          '--> hash, observer: what happened
//! ```
//!
//! Integer nanoseconds, the order (time, sequence), random streams made of the run's seed: the same
//! scenario and seed give the same run. Not here: what is simulated, and files.

mod agenda;
mod hash;
pub mod histogram;
mod observer;
mod run;
mod system;

pub use agenda::Agenda;
pub(crate) use hash::RunHash;
pub use observer::{Observer, Silent};
pub use run::{Ended, Stage, check, run, run_arrivals, run_observed};
pub use system::System;
