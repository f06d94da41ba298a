//! The digital twin of the glass library: the live controller, driven by a discrete-event engine
//! instead of machines.
//!
//! ```text
//! workload --> trace --> engine <-- Command, Event --> fulgurite_library::Library
//!                          '--> device models, failures --> run result --> experiments, reports
//! ```
//!
//! Everything is simulated and says so; a run is a pure function of its scenario and its seed.

pub mod engine;
pub mod error;
pub mod experiment;
pub mod glass;
pub mod import;
pub mod queue;
pub mod report;
pub mod runner;
pub mod sweep;
pub mod trace;
pub mod workload;

pub use error::{Error, ErrorKind};
pub use glass::constraints::Constraints;
pub use glass::fleet::{Fleet, FleetResult};
pub use glass::result::RunResult;
pub use glass::scenario::Scenario;
pub use glass::served::{Served, ServedResult};
pub use runner::{Runner, Serial};
pub use trace::{Trace, TraceRead};
pub use workload::Workload;
