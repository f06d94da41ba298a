//! A set of tomes on directories, with simulated disks, through its public interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod affinity;
mod copies;
mod degraded_reads;
mod faults;
mod inventory;
mod lost_tomes;
mod mounted;
mod no_file_access;
mod operator;
mod persistence;
mod rebuilt;
mod rejections;
mod removals;
mod shelf;
mod unplugged;
mod whole;
