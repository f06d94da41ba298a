//! What is simulated: one library, one policy, one workload. A run is a function of this and of a
//! seed.

use fulgurite_library::{LibraryShape, MechanicsParameters, Policy, Throughput};
use fulgurite_units::{ByteCount, Duration, Ratio};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::workload::Workload;

/// One simulated library under one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Racks, drives, shuttles.
    pub library: LibraryShape,
    /// How the controller decides.
    pub policy: Policy,
    /// What the machines need for each operation.
    pub mechanics: MechanicsParameters,
    /// What a drive reads per second.
    pub throughput: Throughput,
    /// User bytes of a track; whole tracks are read.
    pub track_size: ByteCount,
    /// Platters stored before the first read, spread over the blast zones.
    pub platters: u32,
    /// Files above this are split over platters.
    pub shard_size: ByteCount,
    /// Share of platters that cannot be fetched; a read of one becomes reads of `recovery_reads`.
    pub unavailable: Ratio,
    /// Platters read instead of one that cannot be fetched (16 of a set of 16+3).
    pub recovery_reads: u16,
    /// The reads.
    pub workload: Workload,
    /// Written platters that come out to be verified.
    pub writes: Writes,
    /// Machines that break and are repaired.
    pub faults: Vec<FaultPlan>,
    /// Reads that arrive from here on are measured.
    pub measure_from: Duration,
    /// Reads that arrive from here on are not measured any more.
    pub measure_until: Duration,
}

/// Written platters that come out to be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// None: drives have nothing to do but read.
    None,
    /// A panel's eject bay always holds a new platter of this size.
    Saturated {
        /// User bytes of a platter.
        platter_size: ByteCount,
    },
    /// A new platter each `interval`, panels in turn.
    Every {
        /// User bytes of a platter.
        platter_size: ByteCount,
        /// Time between two platters.
        interval: Duration,
    },
}

/// A machine that breaks, and is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    /// Which.
    pub machine: fulgurite_library::Machine,
    /// When it breaks.
    pub at: Duration,
    /// When it works again; never, if not given.
    pub repaired_at: Option<Duration>,
}

impl Scenario {
    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        self.library.validate()?;
        self.policy.validate()?;
        self.mechanics.validate()?;
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        if self.track_size.get() == 0 {
            return refuse("track_size", "0".to_owned(), "at least 1 byte");
        }
        if self.shard_size < self.track_size {
            let expected = "at least the track size";
            return refuse("shard_size", self.shard_size.to_string(), expected);
        }
        if self.recovery_reads == 0 {
            return refuse("recovery_reads", "0".to_owned(), "at least 1");
        }
        if self.unavailable.get() >= 1.0 {
            return refuse("unavailable", self.unavailable.get().to_string(), "below 1");
        }
        if self.measure_until <= self.measure_from {
            let expected = "after measure_from";
            return refuse("measure_until", self.measure_until.to_string(), expected);
        }
        Ok(())
    }
}
