//! Several sites that store objects together, using nothing but conditional writes and fragments
//! (Giza, USENIX ATC 2017).
//!
//! ```text
//!   Scenario --> run (the controllers and rows of this project, over simulated sites) --> result
//!            '-> plain (baselines, a model of a replicated database)
//!   cache (a reader's site over the ages of a trace), lasting (closed forms) --> probe
//! ```
//!
//! Everything here is simulated or computed. The latencies of tables, stores and networks are
//! inputs; how often messages cross between sites follows from the controllers.

mod arrivals;
mod begin;
mod cache;
mod drive;
mod lasting;
mod operation;
mod plain;
pub mod plan;
mod probe;
mod published;
mod reported;
mod result;
mod run;
mod scenario;
mod site;
mod times;

pub use arrivals::Arrival;
pub use cache::{Cache, Cached, Filled};
pub use lasting::{losses_a_year, overhead};
pub use probe::{CacheNumber, CurveProbe, Probe};
pub use reported::{Course, Recorder};
pub use result::RunResult;
pub use run::{Next, Seen, Sites};
pub use scenario::{Design, Fetching, Layout, Named, Place, Reading, Scenario, Workload};
pub use site::Use;
pub use times::{Blob, Coding, Disk, Network, Rows};

#[cfg(test)]
mod tests;
