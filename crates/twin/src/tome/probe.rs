//! Numbers of tomes that need no run: the overhead of a layout, the cost of an archive, the
//! lifetime of a group.

use serde::Deserialize;

use super::chain::mttdl_by_chain;
use super::group::Group;
use super::hardware::{YEAR_H, energy_dollars};
use super::importance_sampling::sample;
use super::layout::{expansion, metadata_bytes, star};
use super::scenario::{Scenario, bytes};
use crate::experiment::{self, Bases};

/// Cycles per simulation: its confidence interval is a quarter of a percent where three failures
/// are survived and times are exponential, and three times that where rebuilds take a fixed time.
const CYCLES: u32 = 200_000;
/// Bytes per terabyte.
const TERABYTE: f64 = 1e12;

/// A number to measure, once per seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// A number of a set's layout.
    Layout {
        /// The base scenario.
        base: String,
        /// The number.
        of: LayoutNumber,
    },
    /// A cost of an archive, in dollars, or a part of it.
    Cost {
        /// The base scenario.
        base: String,
        /// Terabytes of user data.
        terabytes: f64,
        /// The number.
        of: CostNumber,
    },
    /// Energy cost of a year if a terabyte draws this power, in dollars.
    Energy {
        /// Terabytes of disks.
        terabytes: f64,
        /// Watts per terabyte.
        terabyte_w: f64,
        /// Dollars per kWh.
        kwh_dollars: f64,
    },
    /// A rate of a set, in closed form.
    Rate {
        /// The base scenario.
        base: String,
        /// The rate.
        of: RateNumber,
    },
    /// Mean time until a group loses data, in hours.
    Mttdl {
        /// The group.
        group: Group,
        /// The model.
        by: Model,
    },
    /// The ratio of this time of two groups, both by the chain.
    MttdlRatio {
        /// The group in the numerator.
        group: Group,
        /// The group in the denominator.
        over: Group,
    },
    /// The ratio of the simulated time to that of the chain.
    SampledOverChain {
        /// The group.
        group: Group,
    },
    /// Half the 95 % confidence interval of a simulation, over its value.
    Interval {
        /// The group.
        group: Group,
    },
    /// Mean time until an archive of 10 PB of user data loses data, in years, by the chain.
    ArchiveYears {
        /// The base scenario that gives the number of groups.
        base: String,
        /// A group.
        group: Group,
    },
    /// Hours to transfer a whole disk.
    DiskHours {
        /// The base scenario.
        base: String,
        /// The rate, in MB/s.
        mb_per_s: f64,
    },
    /// Hours until one byte differs from what was written.
    ErrorHours {
        /// Bytes transferred per second.
        bytes_per_s: f64,
        /// Probability of an error per byte.
        chance: f64,
    },
}

/// A number of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutNumber {
    /// Bytes stored in addition to each user byte.
    Overhead,
    /// User bytes that fit on a disk.
    Room,
    /// Metadata bytes of a tome of 1 TiB with blocks of 128 KiB.
    Awake,
    /// Tomes connected by 48 switches of 48 ports below two.
    Star,
    /// Groups for 10 PB of user data.
    Groups,
    /// Power of a tome with a spinning disk, in W.
    ActiveWatts,
    /// Power of a terabyte of disks with as many spinning as allowed, in W.
    TerabyteWatts,
}

/// A number of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostNumber {
    /// Terabytes of disks.
    Raw,
    /// Number of tomes.
    Tomes,
    /// Their price.
    Static,
    /// Energy cost of a year.
    Yearly,
    /// Price of the tomes per gigabyte of user data.
    Gigabyte,
    /// Both over ten years.
    TenYears,
}

/// A rate in closed form, without contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateNumber {
    /// Ingest of all disks that may spin, in MB/s.
    Ingest,
    /// Time to ingest a terabyte, in s.
    IngestTerabyte,
    /// Time to protect a terabyte if all disks that may spin protect what they ingested, in s.
    ProtectTerabyte,
    /// Time to protect as many bytes as the capacity of all disks, in s.
    ProtectRaw,
}

/// How the time until a loss is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// By the Markov chain.
    Chain,
    /// By simulation.
    Sampling,
}

/// A curve that needs no run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CurveProbe {
    /// Mean time until a group loses data, in hours, by the chain.
    Mttdl {
        /// The group.
        group: Group,
        /// The parameter to vary.
        over: GroupParameter,
        /// Its values.
        values: Vec<f64>,
    },
    /// Cumulative cost of a system after some years, in millions of dollars.
    Spent {
        /// Purchase price, in thousands.
        fixed: f64,
        /// Yearly cost, in thousands.
        yearly: f64,
        /// Years.
        years: Vec<f64>,
    },
    /// Cumulative cost of tomes after some years, in millions of dollars.
    SpentOnTomes {
        /// The base scenario.
        base: String,
        /// Terabytes of user data.
        terabytes: f64,
        /// Years.
        years: Vec<f64>,
    },
    /// Power of a terabyte of disks, in W, over the share that spins in percent.
    TerabyteWatts {
        /// The base scenario.
        base: String,
        /// Shares, in percent.
        shares: Vec<f64>,
    },
}

/// The parameter that varies along a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupParameter {
    /// Disks that may be lost.
    Inter,
    /// Probability that a latent error extends to the next block, in percent.
    RunsOn,
    /// Latent errors of a disk per year.
    Errors,
    /// Scrubs of a disk per year.
    Scrubs,
    /// Spin-ups of a disk per year.
    SpinUps,
    /// Mean time of a rebuild, in hours.
    Repair,
}

impl GroupParameter {
    /// Returns the group with this parameter set to a value.
    fn at(self, group: Group, value: f64) -> Result<Group, String> {
        Ok(match self {
            Self::Inter => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a whole number, which is checked"
                )]
                let inter = value as u32;
                if (f64::from(inter) - value).abs() > 0.0 {
                    return Err(format!("{value} is not a number of disks"));
                }
                Group { inter, ..group }
            }
            Self::RunsOn => Group { runs_on: value / 100.0, ..group },
            Self::Errors => Group { latent_h: YEAR_H / value, ..group },
            Self::Scrubs => Group { scrub_h: YEAR_H / value, ..group },
            Self::SpinUps => Group { spin_ups: value, ..group },
            Self::Repair => Group { repair_h: value, ..group },
        })
    }
}

fn layout(scenario: &Scenario, number: LayoutNumber) -> f64 {
    let stored = expansion(scenario.segment, scenario.group);
    let terabytes = bytes(scenario.capacity) / TERABYTE;
    match number {
        LayoutNumber::Overhead => stored - 1.0,
        LayoutNumber::Room => scenario.room(),
        LayoutNumber::Awake => metadata_bytes(1024.0 * 1024.0 * 1024.0 * 1024.0, 131_072.0),
        LayoutNumber::Star => f64::from(star(48, 2)),
        LayoutNumber::Groups => 10e3 * stored / terabytes / f64::from(scenario.group.members()),
        LayoutNumber::ActiveWatts => scenario.hardware.active_w(),
        LayoutNumber::TerabyteWatts => {
            scenario.hardware.mean_terabyte_w(scenario.spinning, terabytes)
        }
    }
}

fn cost(scenario: &Scenario, terabytes: f64, number: CostNumber) -> f64 {
    let raw = terabytes * expansion(scenario.segment, scenario.group);
    let each = bytes(scenario.capacity) / TERABYTE;
    let cost = scenario.hardware.cost(raw, each, scenario.spinning);
    match number {
        CostNumber::Raw => raw,
        CostNumber::Tomes => cost.tomes,
        CostNumber::Static => cost.fixed,
        CostNumber::Yearly => cost.yearly,
        CostNumber::Gigabyte => cost.fixed / (terabytes * 1e3),
        CostNumber::TenYears => cost.fixed + 10.0 * cost.yearly,
    }
}

fn rate(scenario: &Scenario, number: RateNumber) -> f64 {
    let rates = &scenario.rates;
    let tokens = f64::from(scenario.tokens());
    let folds = f64::from(scenario.group.parity) / rates.fold;
    let protects = tokens / (1.0 / rates.ingest + 1.0 / rates.segment + folds);
    let ingests = tokens * rates.ingest;
    match number {
        RateNumber::Ingest => ingests,
        RateNumber::IngestTerabyte => TERABYTE / 1e6 / ingests,
        RateNumber::ProtectTerabyte => TERABYTE / 1e6 / protects,
        RateNumber::ProtectRaw => {
            f64::from(scenario.tomes) * bytes(scenario.capacity) / 1e6 / protects
        }
    }
}

fn mttdl(group: &Group, model: Model, seed: u64) -> Result<f64, String> {
    match model {
        Model::Chain => mttdl_by_chain(group),
        Model::Sampling => Ok(sample(group, CYCLES, seed)?.hours),
    }
}

impl experiment::Probe for Probe {
    fn measure(&self, bases: &Bases, seed: u64) -> Result<f64, String> {
        Ok(match self {
            Self::Layout { base, of } => layout(&bases.scenario(base)?, *of),
            Self::Cost { base, terabytes, of } => cost(&bases.scenario(base)?, *terabytes, *of),
            Self::Energy { terabytes, terabyte_w, kwh_dollars } => {
                energy_dollars(terabytes * terabyte_w, *kwh_dollars)
            }
            Self::Rate { base, of } => rate(&bases.scenario(base)?, *of),
            Self::Mttdl { group, by } => mttdl(group, *by, seed)?,
            Self::MttdlRatio { group, over } => mttdl_by_chain(group)? / mttdl_by_chain(over)?,
            Self::SampledOverChain { group } => {
                sample(group, CYCLES, seed)?.hours / mttdl_by_chain(group)?
            }
            Self::Interval { group } => {
                let found = sample(group, CYCLES, seed)?;
                found.half_interval / found.hours
            }
            Self::ArchiveYears { base, group } => {
                let groups = layout(&bases.scenario(base)?, LayoutNumber::Groups);
                mttdl_by_chain(group)? / groups / YEAR_H
            }
            Self::DiskHours { base, mb_per_s } => {
                let scenario: Scenario = bases.scenario(base)?;
                bytes(scenario.capacity) / (mb_per_s * 1e6) / 3_600.0
            }
            Self::ErrorHours { bytes_per_s, chance } => 1.0 / (bytes_per_s * chance) / 3_600.0,
        })
    }
}

impl experiment::CurveProbe for CurveProbe {
    fn points(&self, bases: &Bases) -> Result<Vec<(f64, String, f64)>, String> {
        let named = |x: f64, y: f64| (x, x.to_string(), y);
        match self {
            Self::Mttdl { group, over, values } => {
                let point = |value: &f64| {
                    let hours = mttdl_by_chain(&over.at(*group, *value)?)?;
                    Ok(named(*value, hours))
                };
                values.iter().map(point).collect()
            }
            Self::Spent { fixed, yearly, years } => {
                let spent = |year: f64| (fixed + yearly * year) / 1e3;
                Ok(years.iter().map(|year| named(*year, spent(*year))).collect())
            }
            Self::SpentOnTomes { base, terabytes, years } => {
                let scenario: Scenario = bases.scenario(base)?;
                let fixed = cost(&scenario, *terabytes, CostNumber::Static);
                let yearly = cost(&scenario, *terabytes, CostNumber::Yearly);
                let spent = |year: f64| (fixed + yearly * year) / 1e6;
                Ok(years.iter().map(|year| named(*year, spent(*year))).collect())
            }
            Self::TerabyteWatts { base, shares } => {
                let scenario: Scenario = bases.scenario(base)?;
                let terabytes = bytes(scenario.capacity) / TERABYTE;
                let watts =
                    |share: f64| scenario.hardware.mean_terabyte_w(share / 100.0, terabytes);
                Ok(shares.iter().map(|share| named(*share, watts(*share))).collect())
            }
        }
    }
}
