//! Scenarios of a set of tomes. Everything that a file omits is the paper's (Pergamum (FAST 2008),
//! sections 3 to 5), or marked as a value that the paper does not give.

use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::hardware::Hardware;
use super::layout::{Code, expansion};
use super::live_set::{DrivenSet, SetModel};
use crate::{Error, scenario};

/// Fields of a scenario that are tables and may be omitted.
const TABLES: [&str; 5] = ["rates", "hardware", "group", "segment", "driven"];
/// Maximum number of tomes.
const TOMES_MAX: u32 = 100_000;
/// Maximum number of clients that write at a time.
const CLIENTS_MAX: u32 = 10_000;

/// A set of tomes and its workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The system.
    pub system: SystemTag,
    /// Number of tomes.
    pub tomes: u32,
    /// Size of each disk.
    pub capacity: ByteCount,
    /// Share of disks that may spin; gives the number of tokens, rounded down.
    pub spinning: f64,
    /// The code of a redundancy group, in regions.
    pub group: Code,
    /// The code of a segment, in blocks.
    pub segment: Code,
    /// Throughput of tomes.
    pub rates: Rates,
    /// Spin-up time.
    pub spin_up: Duration,
    /// Duration of the limited scrub before a disk spins down (section 4.3.2).
    pub limited_scrub: Duration,
    /// Price and power of tomes.
    pub hardware: Hardware,
    /// Length of the run.
    pub until: Duration,
    /// The writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingest: Option<Ingest>,
    /// How a lost tome is rebuilt.
    pub rebuild: Rebuild,
    /// Utilization of a tome that is rebuilt.
    pub filled: f64,
    /// Whether the first tome fails at the beginning.
    pub one_fails: bool,
    /// Failures of a tome per hour.
    pub failures_per_hour: f64,
    /// What makes the decisions.
    pub model: SetModel,
    /// Settings for a set run by its tomes.
    pub driven: DrivenSet,
}

/// The name of the system in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemTag {
    /// A set of tomes.
    #[default]
    Tome,
}

/// Throughput of a tome, in MB/s (of 1,000,000 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// To ingest what a client writes (table 5, fully protected, client).
    pub ingest: f64,
    /// To compute the parity of its segments.
    pub segment: f64,
    /// To have one parity tome apply it.
    pub fold: f64,
    /// To read a region as a source of a rebuild (table 5, read, server).
    pub source: f64,
    /// To write a region being rebuilt (table 5, raw write, server), and to read it again.
    pub target: f64,
    /// To multiply one region and add it to another.
    pub multiply: f64,
    /// The network of a tome (table 5, raw transfer, server).
    pub network: f64,
}

/// Clients that write, one session after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ingest {
    /// Number of clients that write at a time, if there are tokens for them.
    pub clients: u32,
    /// Bytes that a client writes to one tome.
    pub session: ByteCount,
    /// Bytes that all clients write together; as many as fit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ByteCount>,
    /// What gets a token first.
    #[serde(default)]
    pub first: TokenPriority,
}

/// What gets a token first, after rebuilds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenPriority {
    /// Protecting data that has no parity on other tomes yet.
    #[default]
    Protection,
    /// Clients that write.
    Clients,
}

/// How a lost tome is rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rebuild {
    /// From one tome after the other (section 4.3.2).
    #[default]
    Staggered,
    /// From all tomes at once.
    Parallel,
}

/// The rates of table 5, and the rates of single steps derived from them: segment parity takes the
/// time that it adds to a write, and applying a delta takes half of what two parity tomes add to
/// that.
impl Default for Rates {
    fn default() -> Self {
        let segment = 1.0 / (1.0 / 1.67 - 1.0 / 4.25);
        let fold = 2.0 / (1.0 / 0.75 - 1.0 / 3.66 - 1.0 / segment);
        Self {
            ingest: 3.66,
            segment,
            fold,
            source: 5.78,
            target: 9.98,
            multiply: 2.0 * 3.13,
            network: 20.96,
        }
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            system: SystemTag::Tome,
            tomes: 1_000,
            capacity: ByteCount::new(1_000_000_000_000),
            spinning: 0.05,
            group: Code::new(13, 3),
            segment: Code::new(62, 2),
            rates: Rates::default(),
            spin_up: Duration::from_secs(8),
            limited_scrub: Duration::from_secs(3),
            hardware: Hardware::default(),
            until: Duration::from_secs(365 * 86_400),
            ingest: None,
            rebuild: Rebuild::Staggered,
            filled: 1.0,
            one_fails: false,
            failures_per_hour: 0.0,
            model: SetModel::Driven,
            driven: DrivenSet::default(),
        }
    }
}

impl Scenario {
    /// Returns how many disks may spin at a time.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of tomes")]
    pub fn tokens(&self) -> u32 {
        // A decimal share like 0.05 may be slightly less as a float.
        (f64::from(self.tomes) * self.spinning + 1e-9) as u32
    }

    /// Returns the user bytes that fit on a tome; parity is spread over all tomes.
    #[must_use]
    pub fn room(&self) -> f64 {
        bytes(self.capacity) / expansion(self.segment, self.group)
    }

    /// Returns how many tomes may be read at a time to rebuild a region.
    pub(crate) const fn together(&self) -> u32 {
        match self.rebuild {
            Rebuild::Staggered => 1,
            Rebuild::Parallel => self.group.data,
        }
    }

    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        self.group.validate("group")?;
        self.segment.validate("segment")?;
        if !(self.group.members()..=TOMES_MAX).contains(&self.tomes) {
            let expected = "from the members of a group to 100000";
            return refuse("tomes", self.tomes.to_string(), expected);
        }
        if self.capacity == ByteCount::ZERO || self.until == Duration::ZERO {
            return refuse("capacity, until", "0".to_owned(), "above 0");
        }
        let is_driven = self.model == SetModel::Driven;
        let least = if is_driven { 1 } else { 2 };
        if !(self.spinning > 0.0 && self.spinning <= 1.0) || self.tokens() < least {
            let expected = "a share of at least two tomes, or one where model is driven";
            return refuse("spinning", self.spinning.to_string(), expected);
        }
        if is_driven {
            self.driven.validate(self.tomes, self.segment, self.group)?;
            self.refuse_analytic()?;
        } else if self.fails() && self.tokens() <= self.together() {
            let expected = "a share with more tokens than a rebuild has spinning disks";
            return refuse("spinning", self.spinning.to_string(), expected);
        }
        if !(0.0..=1.0).contains(&self.filled) || !(0.0..=1.0).contains(&self.failures_per_hour) {
            let value = format!("{}, {}", self.filled, self.failures_per_hour);
            return refuse("filled, failures_per_hour", value, "from 0 to 1");
        }
        self.rates.validate()?;
        self.hardware.validate()?;
        let Some(ingest) = self.ingest else { return Ok(()) };
        if !(1..=CLIENTS_MAX).contains(&ingest.clients) {
            return refuse("ingest.clients", ingest.clients.to_string(), "from 1 to 10000");
        }
        if ingest.session == ByteCount::ZERO || bytes(ingest.session) > self.room() {
            let expected = "from one byte to the capacity of a tome";
            return refuse("ingest.session", ingest.session.to_string(), expected);
        }
        Ok(())
    }

    /// Refuses what only the analytic model has.
    fn refuse_analytic(&self) -> Result<(), Error> {
        let first = self.ingest.map(|ingest| ingest.first).unwrap_or_default();
        let is_default = [
            ("rebuild", self.rebuild == Rebuild::default()),
            ("ingest.first", first == TokenPriority::default()),
            ("filled", self.filled >= 1.0),
        ];
        let Some((field, _)) = is_default.iter().find(|(_, is_default)| !is_default) else {
            return Ok(());
        };
        let expected = "at the default unless model is analytic";
        Err(Error::Parameter { field, value: "set".to_owned(), expected })
    }

    /// Whether any tome fails.
    pub(crate) fn fails(&self) -> bool {
        self.one_fails || self.failures_per_hour > 0.0
    }
}

impl Rates {
    fn validate(&self) -> Result<(), Error> {
        for (field, rate) in [
            ("rates.ingest", self.ingest),
            ("rates.segment", self.segment),
            ("rates.fold", self.fold),
            ("rates.source", self.source),
            ("rates.target", self.target),
            ("rates.multiply", self.multiply),
            ("rates.network", self.network),
        ] {
            if !(1e-3..=1e6).contains(&rate) {
                let expected = "from 0.001 to 1000000 MB/s";
                return Err(Error::Parameter { field, value: rate.to_string(), expected });
            }
        }
        Ok(())
    }
}

impl scenario::Scenario for Scenario {
    fn check(&self) -> Result<(), Error> {
        self.validate()
    }

    fn window(&self) -> [Duration; 2] {
        [Duration::ZERO, self.until]
    }

    /// Fills in omitted tables, so that their fields can be set.
    fn resolve(table: Table) -> Result<Table, String> {
        scenario::fill_defaults(table, &Self::default(), &TABLES)
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
pub(crate) const fn bytes(size: ByteCount) -> f64 {
    size.get() as f64
}

/// Returns the time for this many bytes at this rate in MB/s.
#[expect(clippy::cast_precision_loss, reason = "a disk has far fewer than 2^53 bytes")]
pub(crate) fn takes(bytes: u64, mb_per_s: f64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / 1e6 / mb_per_s)
}
