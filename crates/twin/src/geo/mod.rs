//! Several sites that store objects together, using nothing but conditional writes and fragments
//! (Giza, USENIX ATC 2017).
//!
//! ```text
//!   Scenario --> run (the controllers and rows of this project, over simulated sites) --> result
//!            '-> baselines (a fragment, a local object, a model of a replicated database)
//!   cache (a reader's site over the ages of a trace), durability (closed forms) --> probe
//! ```
//!
//! Everything here is simulated or computed. The latencies of tables, stores and networks are
//! inputs; how often messages cross between sites follows from the controllers.

mod arrivals;
mod baselines;
mod cache;
mod companions;
mod durability;
mod latencies;
mod lifecycle;
mod messaging;
mod operation;
pub mod plan;
mod presentation;
mod probe;
mod result;
mod run;
mod scenario;
mod site;

pub use arrivals::Arrival;
pub use cache::{Cache, CacheFill, CacheResult};
pub use durability::{losses_a_year, overhead};
pub use latencies::{Blob, Coding, Disk, Network, Rows};
pub use presentation::{Recorder, Timeline};
pub use probe::{CacheNumber, CurveProbe, Probe};
pub use result::RunResult;
pub use run::{Geo, Observation, PendingEvent};
pub use scenario::{Design, Fetching, Layout, Place, ReadStrategy, Scenario, SystemTag, Workload};
pub use site::SiteUsage;

#[cfg(test)]
mod tests;
