//! A set of tomes on directories, with simulated disks, through its public interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod around;
mod copies;
mod faults;
mod kept;
mod kin;
mod mounted;
mod operated;
mod pulled;
mod rebuilt;
mod refused;
mod removed;
mod shelf;
mod survey;
mod traced;
mod vanished;
mod whole;
