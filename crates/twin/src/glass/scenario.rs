//! What is simulated: one library, one policy, one workload. A run is a function of this and of a
//! seed.

use fulgurite_library::{LibraryShape, MechanicsParameters, Policy, Throughput};
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
    /// What is simulated. A file may leave it out: it is a glass library then.
    #[serde(default)]
    pub system: Named,
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
    /// Which platters these are.
    #[serde(default)]
    pub recovery: Recovery,
    /// The reads.
    pub workload: Workload,
    /// Written platters that come out to be verified.
    pub writes: Writes,
    /// Machines that break and are repaired.
    pub faults: Vec<FaultPlan>,
    /// Reads are restores of an archive, which asks the library for them; if not given, they are
    /// asked of the library as they come, as in the paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<Restores>,
    /// What the shuttles run on; if not given, they need no power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// Reads that arrive from here on are measured.
    pub measure_from: Duration,
    /// Reads that arrive from here on are not measured any more.
    pub measure_until: Duration,
}

/// The name of the system in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Named {
    /// A glass library.
    #[default]
    Glass,
}

/// Which platters are read instead of one that cannot be fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Recovery {
    /// Any that can be fetched, drawn for each read anew.
    #[default]
    Anywhere,
    /// Others of its platter-set, of which no more than it can do without are out of reach.
    Set {
        /// Platters of a set beyond `recovery_reads`: it can do without as many.
        redundancy: u16,
    },
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

/// Reads as restores: the controller of restores of a live archive decides what the library is
/// asked for, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restores {
    /// Bytes that copies under way may take. What is readable already takes none of it here.
    pub room: ByteCount,
    /// Share of the workload's reads that are Expedited,
    #[serde(default)]
    pub expedited: Ratio,
    /// and Bulk; the others are Standard.
    #[serde(default)]
    pub bulk: Ratio,
    /// Restores beside those of the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<Batch>,
}

/// Restores that are all of one size and as fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// When the first of them is asked for.
    pub at: Duration,
    /// Time between two; all at once, if not given.
    #[serde(default)]
    pub every: Duration,
    /// How many.
    pub count: u32,
    /// Of how many bytes.
    pub size: ByteCount,
    /// How fast they are wanted.
    #[serde(default)]
    pub retrieval: Retrieval,
}

/// Restores of all batches of a scenario, at most: each is held in memory.
const BATCH_READS_MAX: u64 = 1 << 20;
/// Batches reach no further than a workload may: 100 years.
const BATCH_LENGTH_MAX: Duration = Duration::from_secs(36_525 * 86_400);

impl Batch {
    /// Its restores, in the order of time.
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
    /// The first value that cannot be, and what it has to be.
    fn wrong(&self) -> Option<(&'static str, String, &'static str)> {
        let shares = self.expedited.get() + self.bulk.get();
        if shares > 1.0 {
            return Some(("restores.bulk", shares.to_string(), "with expedited at most 1"));
        }
        let count: u64 = self.batches.iter().map(|batch| u64::from(batch.count)).sum();
        if count > BATCH_READS_MAX {
            return Some(("restores.batches", count.to_string(), "at most 1048576 restores"));
        }
        let last = self.batches.iter().map(Batch::last).max().unwrap_or(0);
        if last > BATCH_LENGTH_MAX.as_nanos() {
            let last = Duration::from_nanos(last).to_string();
            return Some(("restores.batches", last, "over within 100 years"));
        }
        None
    }
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

/// The battery of a shuttle. The paper says that there is one and gives no number: all are assumed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Battery {
    /// What it holds, in kJ. Assumed: 56 Wh, a battery of 0.3 kg.
    pub capacity_kj: f64,
    /// Power at a charging point, in W. Assumed.
    pub charging_w: f64,
    /// What a shuttle always needs, in W. Assumed.
    pub idle_w: f64,
    /// What a start needs, in J; a meter, a crab, a pick and a place in proportion. Assumed.
    pub start_j: f64,
    /// How long it takes until somebody has changed a flat battery for a full one. Assumed.
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

    /// The first value that no battery has.
    fn wrong(&self) -> Option<(&'static str, f64)> {
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
    /// Whether a read that arrives then is measured.
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
        if let Some((field, value, expected)) = self.restores.as_ref().and_then(Restores::wrong) {
            return refuse(field, value, expected);
        }
        if let Some((field, value)) = self.battery.and_then(|battery| battery.wrong()) {
            let expected = "a number above 0, and more charging_w than idle_w";
            return refuse(field, value.to_string(), expected);
        }
        Ok(())
    }
}

impl scenario::Scenario for Scenario {
    const WORDS: &'static [&'static str] = &["shuttles"];

    fn check(&self) -> Result<(), Error> {
        self.validate()?;
        self.workload.validate()
    }

    fn window(&self) -> [Duration; 2] {
        [self.measure_from, self.measure_until]
    }

    /// A policy given by name becomes the policy.
    fn resolve(mut table: Table) -> Result<Table, String> {
        if let Some(Value::String(name)) = table.get("policy") {
            let policy = Policy::named(name).map_err(|error| error.to_string())?;
            let value = Value::try_from(policy).map_err(|error| error.to_string())?;
            table.insert("policy".to_owned(), value);
        }
        Ok(table)
    }

    /// Shuttles of the library become shuttles of a panel.
    fn field(table: &Table, _: &str, value: &Value) -> Result<(String, Value), String> {
        let panels = table.get("library").and_then(|library| library.get("panels"));
        let panels = panels.and_then(Value::as_integer).ok_or("library.panels is not given")?;
        let shuttles = value.as_integer().ok_or("shuttles are a whole number")?;
        if panels < 1 || shuttles % panels != 0 {
            return Err(format!("{shuttles} shuttles cannot be shared by {panels} panels"));
        }
        Ok(("library.shuttles_per_panel".to_owned(), Value::Integer(shuttles / panels)))
    }
}
