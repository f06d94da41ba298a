//! Numbers of tomes that need no run: what a layout takes, what an archive costs, how long a group
//! lasts.

use serde::Deserialize;

use super::chain::mttdl_by_chain;
use super::group::Group;
use super::hardware::{YEAR_H, energy_dollars};
use super::layout::{awake_bytes, expansion, star};
use super::sampled::sample;
use super::scenario::{Scenario, bytes};
use crate::experiment::{self, Bases};

/// Cycles of a simulation: its interval is a quarter of a percent where three failures are survived
/// and times are exponential, and three times that where rebuilds take a fixed time.
const CYCLES: u32 = 200_000;
/// Bytes of a terabyte.
const TERABYTE: f64 = 1e12;

/// Something to measure, repeated with every seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// Something of a set's layout.
    Layout {
        /// The base scenario.
        base: String,
        /// What.
        of: LayoutNumber,
    },
    /// What an archive costs, in dollars, or is made of.
    Cost {
        /// The base scenario.
        base: String,
        /// Terabytes of users.
        terabytes: f64,
        /// What.
        of: CostNumber,
    },
    /// What a year of energy costs where terabytes draw this much, in dollars.
    Energy {
        /// Terabytes of disks.
        terabytes: f64,
        /// Watts of one.
        terabyte_w: f64,
        /// Dollars of a kWh.
        kwh_dollars: f64,
    },
    /// Rates of a set, by arithmetic alone.
    Rate {
        /// The base scenario.
        base: String,
        /// What.
        of: RateNumber,
    },
    /// Mean time until a group loses data, in hours.
    Mttdl {
        /// The group.
        group: Group,
        /// How.
        by: Model,
    },
    /// The same of one group over that of another, both by the chain.
    MttdlRatio {
        /// The first.
        group: Group,
        /// The second.
        over: Group,
    },
    /// The simulation over the chain.
    SampledOverChain {
        /// The group.
        group: Group,
    },
    /// Half the interval of a simulation that holds the true value in 95 of 100, over its value.
    Interval {
        /// The group.
        group: Group,
    },
    /// Mean time until an archive of 10 PB of users loses data, in years, by the chain.
    ArchiveYears {
        /// The base scenario, of which the number of groups is.
        base: String,
        /// A group.
        group: Group,
    },
    /// Hours until all of a disk has passed.
    DiskHours {
        /// The base scenario.
        base: String,
        /// At this rate.
        mb_per_s: f64,
    },
    /// Hours until one byte is not what was written.
    ErrorHours {
        /// Bytes that pass in a second.
        bytes_per_s: f64,
        /// The chance of each.
        chance: f64,
    },
}

/// Something of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutNumber {
    /// What is stored beside each byte of a user.
    Overhead,
    /// Bytes of users that a disk has room for.
    Room,
    /// Bytes that a tome of 1 TiB keeps awake for blocks of 128 KiB.
    Awake,
    /// Tomes of 48 switches of 48 ports below two.
    Star,
    /// Groups of 10 PB of users.
    Groups,
    /// What a tome draws whose disk turns, in W.
    ActiveWatts,
    /// What a terabyte of disks draws, where as many spin as may, in W.
    TerabyteWatts,
}

/// Something of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostNumber {
    /// Terabytes of disks.
    Raw,
    /// Tomes.
    Tomes,
    /// What they cost.
    Static,
    /// What a year of energy does.
    Yearly,
    /// What they cost for each gigabyte of users.
    Gigabyte,
    /// Both over ten years.
    TenYears,
}

/// A rate, by arithmetic: nobody waits for anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateNumber {
    /// What all that may spin take in, in MB/s.
    Ingest,
    /// Time to take in a terabyte, in s.
    IngestTerabyte,
    /// Time to protect one if all that may spin protect what they took in, in s.
    ProtectTerabyte,
    /// Time to protect as many bytes as all disks have, in s.
    ProtectRaw,
}

/// How the time until a loss is found.
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
        /// What changes.
        over: Over,
        /// Its values.
        values: Vec<f64>,
    },
    /// What a system costs after so many years, in millions of dollars.
    Spent {
        /// To buy, in thousands.
        fixed: f64,
        /// In a year, in thousands.
        yearly: f64,
        /// Years.
        years: Vec<f64>,
    },
    /// The same of tomes.
    SpentOnTomes {
        /// The base scenario.
        base: String,
        /// Terabytes of users.
        terabytes: f64,
        /// Years.
        years: Vec<f64>,
    },
    /// What a terabyte of disks draws, in W, over the share that spins in percent.
    TerabyteWatts {
        /// The base scenario.
        base: String,
        /// Shares, in percent.
        shares: Vec<f64>,
    },
}

/// What changes along a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Disks that may be lost.
    Inter,
    /// The chance that a latent error takes the next block, in percent.
    RunsOn,
    /// Latent errors of a disk in a year.
    Errors,
    /// Scrubs of a disk in a year.
    Scrubs,
    /// Spin-ups of a disk in a year.
    SpinUps,
    /// Mean time of a rebuild, in hours.
    Repair,
}

impl Over {
    /// The group with this at a value.
    fn at(self, group: Group, value: f64) -> Result<Group, String> {
        Ok(match self {
            Self::Inter => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a whole number of a file, which is looked at"
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

fn layout(scenario: &Scenario, of: LayoutNumber) -> f64 {
    let stored = expansion(scenario.segment, scenario.group);
    let terabytes = bytes(scenario.capacity) / TERABYTE;
    match of {
        LayoutNumber::Overhead => stored - 1.0,
        LayoutNumber::Room => scenario.room(),
        LayoutNumber::Awake => awake_bytes(1024.0 * 1024.0 * 1024.0 * 1024.0, 131_072.0),
        LayoutNumber::Star => f64::from(star(48, 2)),
        LayoutNumber::Groups => 10e3 * stored / terabytes / f64::from(scenario.group.members()),
        LayoutNumber::ActiveWatts => scenario.hardware.active_w(),
        LayoutNumber::TerabyteWatts => {
            scenario.hardware.mean_terabyte_w(scenario.spinning, terabytes)
        }
    }
}

fn cost(scenario: &Scenario, terabytes: f64, of: CostNumber) -> f64 {
    let raw = terabytes * expansion(scenario.segment, scenario.group);
    let each = bytes(scenario.capacity) / TERABYTE;
    let cost = scenario.hardware.cost(raw, each, scenario.spinning);
    match of {
        CostNumber::Raw => raw,
        CostNumber::Tomes => cost.tomes,
        CostNumber::Static => cost.fixed,
        CostNumber::Yearly => cost.yearly,
        CostNumber::Gigabyte => cost.fixed / (terabytes * 1e3),
        CostNumber::TenYears => cost.fixed + 10.0 * cost.yearly,
    }
}

fn rate(scenario: &Scenario, of: RateNumber) -> f64 {
    let rates = &scenario.rates;
    let tokens = f64::from(scenario.tokens());
    let folds = f64::from(scenario.group.parity) / rates.fold;
    let protects = tokens / (1.0 / rates.ingest + 1.0 / rates.segment + folds);
    let ingests = tokens * rates.ingest;
    match of {
        RateNumber::Ingest => ingests,
        RateNumber::IngestTerabyte => TERABYTE / 1e6 / ingests,
        RateNumber::ProtectTerabyte => TERABYTE / 1e6 / protects,
        RateNumber::ProtectRaw => {
            f64::from(scenario.tomes) * bytes(scenario.capacity) / 1e6 / protects
        }
    }
}

fn mttdl(group: &Group, by: Model, seed: u64) -> Result<f64, String> {
    match by {
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
