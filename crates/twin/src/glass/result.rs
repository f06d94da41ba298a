//! Measurements of a run. All times are in seconds unless the name says otherwise; `serde` gives
//! `--json`.

use serde::{Deserialize, Serialize};

use crate::engine::histogram::Quantiles;

/// Shares of the drives' time, over all drives and the measured window; they add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveTime {
    /// Reading for customers, with the seeks, mounts and unmounts of their platters.
    pub read: f64,
    /// Verifying, with the mounts and unmounts of new platters.
    pub verify: f64,
    /// Switching between the two slots.
    pub switch: f64,
    /// Idle.
    pub idle: f64,
}

/// Restores of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RestoreResult {
    /// Time from request to readable copy of the measured Expedited restores.
    pub expedited: Quantiles,
    /// Time from request to readable copy of the measured Standard restores.
    pub standard: Quantiles,
    /// Time from request to readable copy of the measured Bulk restores.
    pub bulk: Quantiles,
    /// Visits to platters requested from the library.
    pub visits: u64,
    /// Share of the drives that worked for reads, over the time in which as many platters were
    /// wanted as there are drives, in the whole run.
    pub busy: f64,
    /// Share of the shuttles that moved or carried, over the same time.
    #[serde(default)]
    pub shuttles_busy: f64,
}

/// Measurements of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// Completion times of the measured reads: arrival to last byte of the last shard.
    pub completion: Quantiles,
    /// Reads that arrived in the window (files, not shards).
    pub reads: u64,
    /// Their user bytes.
    pub bytes: u64,
    /// Reads that could not be answered.
    pub failed: u64,
    /// Shares of the drives' time.
    pub drive_time: DriveTime,
    /// Travel times of shuttles: start to arrival, including waiting.
    pub travel: Quantiles,
    /// Time shuttles lost to each other, as a share of their undisturbed travel time.
    pub congestion: f64,
    /// How often a shuttle had to leave its way or place for another.
    pub give_ways: u64,
    /// Platters brought to a drive for customers.
    pub fetches: u64,
    /// Fetches from another partition.
    pub steals: u64,
    /// Platter operations (picks and places).
    pub platter_operations: u64,
    /// Starts of horizontal motion, all shuttles.
    pub starts: u64,
    /// Meters of horizontal motion, all shuttles.
    pub meters: f64,
    /// Crabs, all shuttles.
    pub crabs: u64,
    /// Charging steps, all shuttles.
    #[serde(default)]
    pub charges: u64,
    /// How often a battery went flat.
    #[serde(default)]
    pub flat: u64,
    /// The lowest level of a battery, in percent; 100 without batteries.
    #[serde(default)]
    pub battery_min: u64,
    /// User bytes verified in the window.
    pub verified_bytes: u64,
    /// The longest time that a new platter was unverified after it was ejected, in seconds; for
    /// those never verified, until the end of the measured window.
    #[serde(default)]
    pub unverified_age_max: f64,
    /// Bytes ingested but not verified over a window of two days, without those in drives at its
    /// end: the maximum over all windows up to the end of the measured one. `None` where new
    /// platters do not arrive at an interval, or no such window fits.
    #[serde(default)]
    pub verify_shortfall_bytes: Option<u64>,
    /// Maximum number of new platters waiting in eject bays.
    pub eject_bay_max: u64,
    /// Maximum age of a read when it was started; to compare with the age bound.
    pub age_max: f64,
    /// Maximum number of waiting reads.
    pub queue_max: u64,
    /// Simulated time until the last read ended.
    pub makespan: f64,
    /// Where reads are restores: their times by retrieval class, and how busy drives were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<RestoreResult>,
    /// Engine events.
    pub events: u64,
    /// Hash of the run: it differs as soon as any event, its order or its time differs.
    pub hash: u64,
    /// Processor time of the run, when the driver measured it; not part of the result proper.
    #[serde(skip)]
    pub wall_seconds: f64,
}
