//! What the controller counts: numbers for those who watch, without meaning for its decisions.

use serde::{Deserialize, Serialize};

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Platters brought to a drive for customers.
    pub fetches: u64,
    /// Of those, from another partition.
    pub steals: u64,
    /// Times a shuttle left its way or its place for another.
    pub give_ways: u64,
    /// Times a shuttle had to wait for another.
    pub waits: u64,
    /// Times the borders of partitions were moved.
    pub rebalances: u64,
    /// Pieces of charging begun.
    #[serde(default)]
    pub charges: u64,
    /// The oldest read when a drive began with it, in nanoseconds since its arrival.
    pub age_max_ns: u64,
    /// The longest a platter was passed over for nearer ones of its batch, in nanoseconds: never
    /// more than the policy's age bound.
    pub passed_over_max_ns: u64,
}
