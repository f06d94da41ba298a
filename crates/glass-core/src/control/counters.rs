//! Counters of the controller, for monitoring: its decisions do not depend on them.

use serde::{Deserialize, Serialize};

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Platters brought to a drive for customers.
    pub fetches: u64,
    /// Fetches from another partition.
    pub steals: u64,
    /// Times a shuttle left its way or its place to give way to another.
    pub give_ways: u64,
    /// Times a shuttle had to wait for another.
    pub waits: u64,
    /// Times the partition boundaries were moved.
    pub rebalances: u64,
    /// Charging intervals started.
    #[serde(default)]
    pub charges: u64,
    /// Longest wait of a read until a drive started it, in nanoseconds since its arrival.
    pub age_max_ns: u64,
    /// Longest time a platter was passed over for nearer ones of its batch, in nanoseconds: at most
    /// the policy's age bound.
    pub passed_over_max_ns: u64,
}
