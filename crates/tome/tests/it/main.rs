//! A set of tomes on directories, with simulated disks, through its public interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod affinity;
mod copies;
mod degraded_reads;
mod faults;
mod full_disks;
mod healthy_groups;
mod inventory;
mod lost_tomes;
mod no_file_access;
mod operator;
mod persistence;
mod rebuild;
mod rejections;
mod removals;
mod shelf;
mod unplugged;
