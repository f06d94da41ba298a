//! A set of tomes: disks with a small computer each, nearly all of them spun down, in groups that
//! survive the loss of tomes and segments that survive bad blocks (Pergamum (FAST 2008)).
//!
//! ```text
//!   Scenario --> run (who spins, writes, protects, rebuilds) --> result
//!            '--> driven (the tomes of this project decide) --> result
//!   layout, hardware (closed form) -.
//!   group --> chain, sampled -------+--> probe --> statements of the paper
//! ```
//!
//! Everything here is simulated or computed. The model in `run` is separate: it has the paper's
//! rules, and no tome of this project runs in it. In `driven` they do.

mod chain;
mod driven;
mod group;
mod hardware;
mod jobs;
mod layout;
mod probe;
mod published;
mod reported;
mod result;
mod run;
mod sampled;
mod scenario;

pub use chain::mttdl_by_chain;
pub use driven::{Choosing, Decides, DrivenResult, DrivenSet, Jobs, Reading, Repair};
pub use group::Group;
pub use hardware::{Cost, Hardware, energy_dollars};
pub use layout::{Code, awake_bytes, expansion, raw, star};
pub use probe::{CostNumber, CurveProbe, LayoutNumber, Model, Over, Probe, RateNumber};
pub use reported::{Course, Recorder};
pub use result::RunResult;
pub use run::{Arrival, Planned, Seen, Tomes};
pub use sampled::{Sampled, sample};
pub use scenario::{First, Ingest, Named, Rates, Rebuild, Scenario};

#[cfg(test)]
mod tests;
