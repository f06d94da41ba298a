//! A set of tomes: disks with a small computer each, nearly all of them spun down, in groups that
//! survive the loss of tomes and segments that survive bad blocks (Pergamum (FAST 2008)).
//!
//! ```text
//!   Scenario --> live_set (driven: the tomes of this project decide) --> result
//!            '--> run (analytic: a model of spinning, writing, protecting, rebuilding) --> result
//!   layout, hardware (closed form) -.
//!   group --> chain, sampling ------+--> probe --> statements of the paper
//! ```
//!
//! Everything here is simulated or computed. In `live_set` the tomes of this project run. The model
//! in `run` has the paper's rules and none of them.

mod chain;
mod companions;
mod group;
mod hardware;
mod importance_sampling;
mod jobs;
mod layout;
mod live_set;
mod presentation;
mod probe;
mod result;
mod run;
mod scenario;

pub use chain::mttdl_by_chain;
pub use group::Group;
pub use hardware::{Cost, Hardware, energy_dollars};
pub use importance_sampling::{Estimate, sample};
pub use layout::{Code, expansion, metadata_bytes, raw, star};
pub use live_set::{DrivenResult, DrivenSet, Jobs, ReadStrategy, Repair, SetModel, TomeSelection};
pub use presentation::{Recorder, Timeline};
pub use probe::{CostNumber, CurveProbe, GroupParameter, LayoutNumber, Model, Probe, RateNumber};
pub use result::RunResult;
pub use run::{Arrival, Observation, ScheduledEvent, TomeSet};
pub use scenario::{Ingest, Rates, Rebuild, Scenario, SystemTag, TokenPriority};

#[cfg(test)]
mod tests;
