//! A rack of cold disks of which few may spin at a time (Pelican, OSDI 2014), driven by the
//! controller that also serves live; and two racks to compare with: one that lets all of them spin,
//! and one whose blobs lie anywhere.
//!
//! ```text
//!   Scenario --> workload (when, which group, how large) --> run --> pelican, provisioned, random
//!                                                             '--> laws: latencies of disks
//!                                                                  share: fair share of links
//!                                                                  power: power of the disks
//!                                                                      '--> result
//! ```
//!
//! Everything here is simulated.

mod driven;
mod fill;
mod laws;
pub mod plan;
mod power;
mod probe;
mod provisioned;
mod published;
mod random;
mod reference;
mod reported;
mod result;
mod run;
mod scenario;
mod shape;
mod share;
mod spins;
mod transfers;
mod walked;
mod workload;

pub use fill::{DiskSizes, Spread};
pub use laws::Law;
pub use probe::{CurveProbe, LawName, Probe};
pub use reported::{Course, Recorder};
pub use result::{RebuildResult, RunResult};
pub use run::{Doing, Planned, Rack, Seen};
pub use scenario::{
    Configuration, Disks, Named, Network, Rebuild, Scenario, Scheduler, Sequence, Woken,
};
pub use workload::{Arrivals, Jobs, Promise, Promises, Read, Sizes, TraceRead, Workload};

#[cfg(test)]
mod tests;
