//! Disks that mostly sleep: what they may do, who woke them, and the only way to their files.
//!
//! ```text
//!            a driver (of a rack, of tomes)
//!     turns it up and down |        | reads and writes
//!                          v        v
//!      Backend          Ledger    Guard ---> Lease ---> DiskFile
//!      a real disk,     who woke  what power each disk has; nothing of one
//!      or a simulated   it, and   that sleeps is opened, and none is put
//!      one              its day   down while somebody has it open
//! ```
//!
//! After Pelican (OSDI 2014, section 3): disks were spun up by programs that only looked at them,
//! so every access to a disk that was put down was refused. Here that is the [`Guard`]; the wakes
//! that it cannot refuse, those of other programs, are found by [`Backend::observe`] and noted with
//! the others in the [`Ledger`].
//!
//! What this is not: it decides nothing over time. Which disks turn when is a controller's, which
//! is told of the [`Power`] that its driver gives them.

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
mod start_count;
mod times;
mod wake;

pub use backend::{Backend, Health, Observed};
pub use error::{DisksError, Result, is_exhausted};
pub use folder::make_folder;
pub use guard::{DiskFile, DiskFolder, Entry, Guard, Lease, Space};
pub use ids::{GroupId, PlaceId};
pub use ledger::{Ledger, LedgerFile, Reloaded, Totals};
pub use linux::{LinuxDisk, LinuxDisks};
pub use pace::{Pace, Pacer};
pub use power::{Draw, Power};
pub use simulated::{Fault, Simulated};
pub use start_count::StartCount;
pub use times::{Law, Times};
pub use wake::{Cause, CauseKind, Wake};

#[cfg(test)]
mod tests;
