//! The engine: one run of any system, event by event.
//!
//! ```text
//!   Scenario, seed --> System (what is simulated) --> Context --> event queue: pending events
//!                                                            '--> hash, observer: past events
//! ```
//!
//! Times are integer nanoseconds, events are ordered by (time, sequence), and random streams derive
//! from the seed of the run: the same scenario and seed give the same run. Not here: what is
//! simulated, and files.

mod event_queue;
mod hash;
pub mod histogram;
mod observer;
mod run;
mod system;

pub use event_queue::EventQueue;
pub(crate) use hash::RunHash;
pub use observer::{NullObserver, Observer};
pub use run::{Context, Ended, check, run, run_arrivals, run_observed};
pub use system::System;
