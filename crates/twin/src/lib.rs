//! The digital twin of the glass library: the live controller, driven by a discrete-event engine
//! instead of machines.
//!
//! ```text
//! workload --> trace --> engine <-- Command, Event --> fulgurite_library::Library
//!                          '--> device models, failures --> run result --> experiments, reports
//! ```
//!
//! Everything is simulated and says so; a run is a pure function of its scenario and its seed.

pub mod constraints;
pub mod course;
mod energy;
pub mod engine;
pub mod error;
pub mod experiment;
pub mod fleet;
pub mod histogram;
pub mod import;
pub mod plan;
pub mod queue;
pub mod report;
pub mod result;
pub mod runner;
pub mod scenario;
pub mod served;
pub mod sweep;
pub mod tape;
pub mod trace;
pub mod workload;

pub use constraints::Constraints;
pub use engine::{Observer, run, run_observed, run_reads};
pub use error::{Error, ErrorKind};
pub use fleet::{Fleet, FleetResult};
pub use result::RunResult;
pub use runner::{Runner, Serial};
pub use scenario::Scenario;
pub use served::{Served, ServedResult};
pub use trace::{Trace, TraceRead};
pub use workload::Workload;
