//! What is simulated: one library, one policy, one workload. A run is a function of this and of a
//! seed.

use fulgurite_library::{LibraryShape, MechanicsParameters, Policy, Throughput};
use fulgurite_units::{ByteCount, Duration, Instant, Ratio};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::Error;
use crate::glass::energy;
use crate::scenario;
use crate::workload::Workload;

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
