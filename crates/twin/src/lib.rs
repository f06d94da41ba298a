//! The digital twin: storage systems driven by a discrete-event engine instead of machines.
//!
//! ```text
//! scenario, seed --> engine <-- System: glass (the live controller of the library),
//!                       |                  rack (that of the disks), tome, geo, queue
//!                       '--> hash, observers, result --> experiments, sweeps, reports
//! ```
//!
//! Everything is simulated and says so; a run is a pure function of its scenario and its seed.

mod columns;
pub mod constraints;
pub mod engine;
pub mod error;
pub mod experiment;
pub mod geo;
pub mod glass;
pub mod import;
pub mod metrics;
pub mod plan;
pub mod presentation;
pub mod queue;
pub mod rack;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod sweep;
pub mod systems;
pub mod tome;
pub mod trace;
pub mod workload;

pub use fulgurite_units::ErrorKind;

pub use columns::Curve;
pub use error::Error;
pub use glass::constraints::Constraints;
pub use glass::fleet::{Fleet, FleetResult};
pub use glass::log_comparison::{ServedLog, ServedResult};
pub use glass::result::RunResult;
pub use glass::scenario::Scenario;
pub use runner::{Runner, Serial};
pub use trace::{Trace, TraceRead};
pub use workload::Workload;
