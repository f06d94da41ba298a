//! Numbers of a rack that need no run: latency distributions, the power of all disks, how full a
//! rack becomes.

use fulgurite_units::Seed;
use serde::Deserialize;

use super::fill::{DiskSizes, FullRack, Spread};
use super::latencies::{Law, OrderStatistic, stream};
use super::scenario::{Disks, Scenario};
use super::shape::{DISKS, DISKS_OF_GROUP, GROUPS_OF_CLASS};
use crate::experiment::{self, Bases};

/// Number of group spin-ups per mean.
const ROUNDS: u32 = 10_000;
/// Points of the curve of a distribution.
const PLACES: u32 = 200;

/// A number to measure, once per seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// Mean time of an operation of a disk, in s.
    Law {
        /// The base scenario.
        base: String,
        /// The operation.
        of: DiskOperation,
    },
    /// Mean time of an operation of a group, the slowest of its disks, in s.
    Group {
        /// The base scenario.
        base: String,
        /// The operations; their times are added.
        of: Vec<DiskOperation>,
    },
    /// Time to unmount, spin up and mount each group of a class once, one after the other, in s.
    Boot {
        /// The base scenario.
        base: String,
    },
    /// Power of all disks if some are spinning up and some are spinning, in W.
    Power {
        /// The base scenario.
        base: String,
        /// Disks spinning up.
        spinning_up: u32,
        /// Disks spinning.
        turning: u32,
    },
    /// Bytes stored over the capacity of the disks, when a write is rejected.
    Utilization {
        /// Sizes of the disks.
        disks: DiskSizes,
        /// Which disks of its group a blob goes to.
        spread: Spread,
    },
    /// The free space then, in numbers of disks.
    EmptyDisks {
        /// Sizes of the disks.
        disks: DiskSizes,
        /// Which disks of its group a blob goes to.
        spread: Spread,
    },
    /// Bytes stored over the capacity of disks that are all clipped to this many bytes and full.
    OverClipped {
        /// Sizes of the disks.
        disks: DiskSizes,
        /// Size to which the others are clipped.
        clip: f64,
    },
}

/// An operation with a latency distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskOperation {
    /// To spin up.
    SpinUp,
    /// To unmount.
    Unmount,
    /// To mount while few reads wait.
    Mount,
    /// To mount while many reads wait.
    MountBusy,
}

/// A curve that needs no run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CurveProbe {
    /// The cumulative distribution of a disk's time for an operation, in s.
    Law {
        /// The base scenario.
        base: String,
        /// The operation.
        of: DiskOperation,
    },
    /// The cumulative distribution of the disks' utilization, in percent.
    Utilization {
        /// Sizes of the disks.
        disks: DiskSizes,
        /// Which disks of its group a blob goes to.
        spread: Spread,
    },
}

impl DiskOperation {
    const fn law(self, disks: &Disks) -> Law {
        match self {
            Self::SpinUp => disks.spin_up,
            Self::Unmount => disks.unmount,
            Self::Mount => disks.mount,
            Self::MountBusy => disks.mount_busy,
        }
    }
}

fn disks(bases: &Bases, base: &str) -> Result<Disks, String> {
    Ok(bases.scenario::<Scenario>(base)?.disks)
}

fn filled(sizes: DiskSizes, spread: Spread, seed: u64) -> Result<FullRack, String> {
    FullRack::new(sizes, spread, seed).map_err(|error| error.to_string())
}

impl experiment::Probe for Probe {
    fn measure(&self, bases: &Bases, seed: u64) -> Result<f64, String> {
        Ok(match self {
            Self::Law { base, of } => of.law(&disks(bases, base)?).mean_s(),
            Self::Group { base, of } => {
                let disks = disks(bases, base)?;
                of.iter().map(|name| slowest(name.law(&disks), disks.awake, seed)).sum()
            }
            Self::Boot { base } => {
                let disks = disks(bases, base)?;
                let latencies = [disks.unmount, disks.spin_up, disks.mount];
                let each: f64 =
                    latencies.iter().map(|law| slowest(*law, DISKS_OF_GROUP, seed)).sum();
                each * f64::from(GROUPS_OF_CLASS)
            }
            Self::Power { base, spinning_up, turning } => {
                let of = disks(bases, base)?;
                let standby = DISKS.checked_sub(spinning_up + turning);
                let standby = standby.ok_or("a rack has 1,152 disks")?;
                f64::from(standby) * of.standby_w
                    + f64::from(*spinning_up) * of.spin_up_w
                    + f64::from(*turning) * of.active_w
            }
            Self::Utilization { disks, spread } => filled(*disks, *spread, seed)?.utilization(),
            Self::EmptyDisks { disks, spread } => {
                f64::from(DISKS) * (1.0 - filled(*disks, *spread, seed)?.utilization())
            }
            Self::OverClipped { disks, clip } => {
                let rack = filled(*disks, Spread::Backplanes, seed)?;
                rack.utilization() * rack.disk_mean() / clip
            }
        })
    }
}

impl experiment::CurveProbe for CurveProbe {
    fn points(&self, bases: &Bases) -> Result<Vec<(f64, String, f64)>, String> {
        let points: Vec<(f64, f64)> = match self {
            Self::Law { base, of } => {
                let law = of.law(&disks(bases, base)?);
                let share = |place: u32| (f64::from(place) + 0.5) / f64::from(PLACES);
                (0..PLACES).map(|place| (law.quantile_s(share(place)), share(place))).collect()
            }
            Self::Utilization { disks, spread } => {
                let shares = filled(*disks, *spread, 1)?.shares();
                shares.into_iter().step_by(4).map(|(full, share)| (full * 100.0, share)).collect()
            }
        };
        Ok(points.into_iter().map(|(x, y)| (x, String::new(), y)).collect())
    }
}

/// Returns the mean of the slowest of the needed disks of a group.
fn slowest(law: Law, disks: u32, seed: u64) -> f64 {
    let statistic = OrderStatistic::new(law, DISKS_OF_GROUP, disks);
    let mut draws = stream(&Seed::new(seed), b"probe");
    (0..ROUNDS).map(|_| statistic.draw_s(&mut draws)).sum::<f64>() / f64::from(ROUNDS)
}
