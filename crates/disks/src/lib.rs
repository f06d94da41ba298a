//! Disks that are mostly spun down: their power states, why they were spun up, and the only access
//! to their files.
//!
//! ```text
//!            a driver (of a rack, of tomes)
//!       spins up and down  |        | reads and writes
//!                          v        v
//!      Backend          Ledger    Guard ---> Lease ---> DiskFile
//!      a real disk,     spin-ups  power state of each disk; nothing of one
//!      or a simulated   and why,  that sleeps is opened, and none is spun
//!      one              by day    down while it is in use
//! ```
//!
//! After Pelican (OSDI 2014, section 3): programs that merely inspected disks spun them up, so
//! every access to a spun-down disk was refused. Here the [`Guard`] does that. External spin-ups,
//! which it cannot prevent, are detected by [`Backend::observe`] and recorded with the others in
//! the [`Ledger`].
//!
//! This crate makes no decisions over time. Which disks spin when is decided by a controller, which
//! learns of the [`Power`] that its driver sets.

pub mod backend;
mod error;
mod folder;
mod guard;
mod ids;
mod ledger;
pub mod limits;
mod linux;
mod pace;
mod power;
mod simulated;
mod spin_up;
mod start_count;
mod times;

pub use backend::{Backend, Health, Observed};
pub use error::{DisksError, Result, is_exhausted};
pub use folder::make_folder;
pub use guard::{DiskFile, DiskFolder, Entry, Guard, Lease, Space};
pub use ids::{GroupId, PlaceId};
pub use ledger::{Ledger, LedgerFile, LoadReport, Totals};
pub use linux::{LinuxDisk, LinuxDisks};
pub use pace::{Pace, Pacer};
pub use power::{Draw, Power};
pub use simulated::{Fault, Simulated};
pub use spin_up::{Cause, CauseKind, SpinUp};
pub use start_count::StartCount;
pub use times::{LogNormal, Times};

#[cfg(test)]
mod tests;
