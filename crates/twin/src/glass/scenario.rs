//! A scenario: one library, one policy, one workload. A run is a function of a scenario and a seed.

use fulgurite_glass_core::control::{LibraryShape, MechanicsParameters, Policy, Throughput};
use fulgurite_restore::Retrieval;
use fulgurite_units::{ByteCount, Duration, Instant, Ratio};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::glass::arrivals::Arrival;
use crate::glass::energy;
use crate::scenario;
use crate::workload::Workload;
use crate::{Error, TraceRead};

/// One simulated library under one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The system. A file may omit it, which means a glass library.
    #[serde(default)]
    pub system: SystemTag,
    /// Racks, drives, shuttles.
    pub library: LibraryShape,
    /// The policy of the controller.
    pub policy: Policy,
    /// Times of the machines for each operation.
    pub mechanics: MechanicsParameters,
    /// Read throughput of a drive.
    pub throughput: Throughput,
    /// User bytes per track; whole tracks are read.
    pub track_size: ByteCount,
    /// Platters stored before the first read, spread over the blast zones.
    pub platters: u32,
    /// Larger files are split over platters.
    pub shard_size: ByteCount,
    /// Share of platters that cannot be fetched; a read of one becomes `recovery_reads` reads.
    pub unavailable: Ratio,
    /// Number of platters to read instead of one that cannot be fetched (16 of a set of 16+3).
    pub recovery_reads: u16,
    /// Which platters to read instead.
    #[serde(default)]
    pub recovery: Recovery,
    /// The reads.
    pub workload: Workload,
    /// Written platters that are ejected and must be verified.
    pub writes: Writes,
    /// Machines that break and are repaired.
    pub faults: Vec<FaultPlan>,
    /// Makes reads restores of an archive, which requests them from the library. If omitted, reads
    /// go directly to the library as they arrive, as in the paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<Restores>,
    /// The battery of the shuttles; if omitted, they need no power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// Reads that arrive from this time on are measured.
    pub measure_from: Duration,
    /// Reads that arrive from this time on are no longer measured.
    pub measure_until: Duration,
}

/// The name of the system in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemTag {
    /// A glass library.
    #[default]
    Glass,
}

/// Which platters are read instead of one that cannot be fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Recovery {
    /// Any available ones, drawn separately for each read.
    #[default]
    Anywhere,
    /// Others of its platter-set. No set has more unavailable platters than its redundancy.
    Set {
        /// Platters of a set beyond `recovery_reads`: how many may be unavailable.
        redundancy: u16,
    },
}

/// Written platters that are ejected and must be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// None: drives only read.
    None,
    /// A new platter of this size always waits in each panel's eject bay.
    Saturated {
        /// User bytes per platter.
        platter_size: ByteCount,
    },
    /// A new platter every `interval`, panels round robin.
    Every {
        /// User bytes per platter.
        platter_size: ByteCount,
        /// Time between two platters.
        interval: Duration,
    },
}

/// Reads as restores: the restore controller of a live archive decides what to request from the
/// library, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restores {
    /// Space for copies in progress, in bytes. Finished copies take no space here.
    pub room: ByteCount,
    /// Share of the workload's reads that are Expedited.
    #[serde(default)]
    pub expedited: Ratio,
    /// Share of the workload's reads that are Bulk; the rest are Standard.
    #[serde(default)]
    pub bulk: Ratio,
    /// Restores in addition to those of the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<Batch>,
}

/// Restores with the same size and retrieval class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// When the first of them is requested.
    pub at: Duration,
    /// Time between two requests; all at once if omitted.
    #[serde(default)]
    pub every: Duration,
    /// Number of restores.
    pub count: u32,
    /// Size of each.
    pub size: ByteCount,
    /// Their retrieval class.
    #[serde(default)]
    pub retrieval: Retrieval,
}

/// Maximum number of restores in all batches of a scenario: each is held in memory.
const BATCH_READS_MAX: u64 = 1 << 20;
/// Batches must end within 100 years, like workloads.
const BATCH_LENGTH_MAX: Duration = Duration::from_secs(36_525 * 86_400);

impl Batch {
    /// Returns its restores, in the order of time.
    pub(crate) fn reads(&self) -> impl Iterator<Item = Arrival> + use<> {
        let Self { at, every, count, size, retrieval } = *self;
        (0..u64::from(count)).map(move |number| {
            let after = Duration::from_nanos(every.as_nanos().saturating_mul(number));
            let at = Instant::ZERO + at + after;
            Arrival { read: TraceRead { at, size, key: number }, retrieval }
        })
    }

    fn last(&self) -> u64 {
        let between = u64::from(self.count.saturating_sub(1));
        self.at.as_nanos().saturating_add(self.every.as_nanos().saturating_mul(between))
    }
}

impl Restores {
    /// Returns the first invalid value, and what it must be.
    fn invalid_value(&self) -> Option<(&'static str, String, &'static str)> {
        let shares = self.expedited.get() + self.bulk.get();
        if shares > 1.0 {
            return Some((
                "restores.bulk",
                shares.to_string(),
                "at most 1 together with expedited",
            ));
        }
        let count: u64 = self.batches.iter().map(|batch| u64::from(batch.count)).sum();
        if count > BATCH_READS_MAX {
            return Some(("restores.batches", count.to_string(), "at most 1048576 restores"));
        }
        let last = self.batches.iter().map(Batch::last).max().unwrap_or(0);
        if last > BATCH_LENGTH_MAX.as_nanos() {
            let last = Duration::from_nanos(last).to_string();
            return Some(("restores.batches", last, "within 100 years"));
        }
        None
    }
}

/// A machine that breaks, and is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    /// The machine.
    pub machine: fulgurite_glass_core::control::Machine,
    /// When it breaks.
    pub at: Duration,
    /// When it is repaired; never if omitted.
    pub repaired_at: Option<Duration>,
}

/// The battery of a shuttle. The paper mentions one but gives no numbers: all are assumed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Battery {
    /// Capacity, in kJ. Assumed: 56 Wh, a battery of 0.3 kg.
    pub capacity_kj: f64,
    /// Power at a charging point, in W. Assumed.
    pub charging_w: f64,
    /// Constant power of a shuttle, in W. Assumed.
    pub idle_w: f64,
    /// Energy of a start, in J; a meter, a crab, a pick and a place in proportion. Assumed.
    pub start_j: f64,
    /// Time until someone has replaced a flat battery. Assumed.
    pub swap: Duration,
}

impl Battery {
    /// The values above.
    pub const ASSUMED: Self = Self {
        capacity_kj: 200.0,
        charging_w: energy::CHARGING_WATTS,
        idle_w: energy::SHUTTLE_IDLE_WATTS,
        start_j: energy::START_JOULES,
        swap: Duration::from_secs(3600),
    };

    /// Returns the first invalid value.
    fn invalid_value(&self) -> Option<(&'static str, f64)> {
        let values = [
            ("battery.capacity_kj", self.capacity_kj),
            ("battery.charging_w", self.charging_w),
            ("battery.idle_w", self.idle_w),
            ("battery.start_j", self.start_j),
        ];
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let no_gain = self.charging_w <= self.idle_w;
        let weak = no_gain.then_some(("battery.charging_w", self.charging_w));
        values.into_iter().find(|(_, value)| !positive(*value)).or(weak)
    }
}

impl Default for Battery {
    fn default() -> Self {
        Self::ASSUMED
    }
}

impl Scenario {
    /// Returns whether a read that arrives at this time is measured.
    pub(crate) fn is_measured(&self, at: Instant) -> bool {
        let [from, until] = [self.measure_from, self.measure_until].map(|at| Instant::ZERO + at);
        from <= at && at < until
    }

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
        if let Recovery::Set { redundancy } = self.recovery {
            let size = f64::from(self.recovery_reads) + f64::from(redundancy);
            if redundancy == 0 {
                return refuse("recovery.set.redundancy", "0".to_owned(), "at least 1");
            }
            if self.unavailable.get() * size > f64::from(redundancy) {
                let expected = "at most the share of redundant platters in a set";
                return refuse("unavailable", self.unavailable.get().to_string(), expected);
            }
        }
        if self.measure_until <= self.measure_from {
            let expected = "after measure_from";
            return refuse("measure_until", self.measure_until.to_string(), expected);
        }
        if let Some((field, value, expected)) =
            self.restores.as_ref().and_then(Restores::invalid_value)
        {
            return refuse(field, value, expected);
        }
        if let Some((field, value)) = self.battery.and_then(|battery| battery.invalid_value()) {
            let expected = "a number above 0, and more charging_w than idle_w";
            return refuse(field, value.to_string(), expected);
        }
        Ok(())
    }
}

impl scenario::Scenario for Scenario {
    const ALIASES: &'static [&'static str] = &["shuttles"];

    fn check(&self) -> Result<(), Error> {
        self.validate()?;
        self.workload.validate()
    }

    fn window(&self) -> [Duration; 2] {
        [self.measure_from, self.measure_until]
    }

    /// Replaces the name of a policy by its settings.
    fn resolve(mut table: Table) -> Result<Table, String> {
        if let Some(Value::String(name)) = table.get("policy") {
            let policy = Policy::named(name).map_err(|error| error.to_string())?;
            let value = Value::try_from(policy).map_err(|error| error.to_string())?;
            table.insert("policy".to_owned(), value);
        }
        Ok(table)
    }

    /// Converts shuttles per library to shuttles per panel.
    fn field(table: &Table, _: &str, value: &Value) -> Result<(String, Value), String> {
        let panels = table.get("library").and_then(|library| library.get("panels"));
        let panels = panels.and_then(Value::as_integer).ok_or("library.panels is missing")?;
        let shuttles = value.as_integer().ok_or("shuttles must be a whole number")?;
        if panels < 1 || shuttles % panels != 0 {
            return Err(format!("{shuttles} shuttles cannot be shared by {panels} panels"));
        }
        Ok(("library.shuttles_per_panel".to_owned(), Value::Integer(shuttles / panels)))
    }
}
