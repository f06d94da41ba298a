//! The decisions of the glass tier: where bodies go, and how the library moves platters. Nothing
//! here does I/O, reads a clock, or draws a random number.
//!
//! ```text
//! plan      bodies to platters, platters to slots, racks to sets: pure functions
//! control   shuttles and drives: a state machine that the live library and the twin drive
//! ```

pub mod control;
pub mod plan;
