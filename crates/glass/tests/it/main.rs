//! Whole platters, written, damaged and read in memory.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails like the test")]

mod damage;
mod format;
mod set;
mod support;
