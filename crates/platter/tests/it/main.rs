//! Whole platters, written, damaged and read in memory.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

mod audit;
mod damage;
mod faults;
mod format;
mod geometry;
mod list;
mod peer;
mod set;
mod support;
mod write;
