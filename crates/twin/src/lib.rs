//! The digital twin of the glass library: the live controller, driven by a discrete-event engine
//! instead of machines.
//!
//! ```text
//! workload --> trace --> engine <-- Command, Event --> fulgurite_library::Library
//!                          '--> device models, failures --> run result --> experiments, reports
//! ```
//!
//! Everything is simulated and says so; a run is a pure function of its scenario and its seed.

pub mod experiment;
pub mod report;
pub mod result;
pub mod scenario;
pub mod tape;
pub mod trace;
pub mod workload;
