//! A rack of cold disks of which few may spin at a time (Pelican, OSDI 2014), driven by the
//! controller that also serves live; and two racks to compare with: one that lets all of them spin,
//! and one whose blobs lie anywhere.
//!
//! ```text
//!   Scenario --> workload (when, which group, how large) --> run --> driven, provisioned, random
//!                                                             '--> latencies of disks
//!                                                                  share: fair share of links
//!                                                                  power: power of the disks
//!                                                                      '--> result
//! ```
//!
//! Everything here is simulated.

mod companions;
mod driven_rack;
mod fill;
mod latencies;
pub mod plan;
mod power;
mod presentation;
mod probe;
mod provisioned_rack;
mod random_rack;
mod reference_queue;
mod reference_rack;
mod result;
mod run;
mod scenario;
mod shape;
mod share;
mod spin_up_counter;
mod transfers;
mod workload;

pub use fill::{DiskSizes, Spread};
pub use latencies::Law;
pub use presentation::{Recorder, Timeline};
pub use probe::{CurveProbe, DiskOperation, Probe};
pub use result::{RebuildResult, RunResult};
pub use run::{GroupState, Observation, Rack, ScheduledEvent};
pub use scenario::{
    Configuration, Disks, Network, Rebuild, Scenario, Scheduler, ServiceOrder, SpinUpScope,
    SystemTag,
};
pub use workload::{Arrivals, Jobs, Promise, Promises, Read, Sizes, TraceRead, Workload};

#[cfg(test)]
mod tests;
