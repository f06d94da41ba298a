//! Whole platters, written, damaged and read in memory.

mod damage;
mod format;
mod set;
mod support;
