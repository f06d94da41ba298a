//! Numbers that need no run: the draws of the generators, the times of the machines, the shape of a
//! library, and the placement of sets.

mod arithmetic;
mod machines;
mod placement;
mod reads;

use fulgurite_units::Ratio;
use serde::Deserialize;

use crate::experiment::{self, Bases};
use crate::glass::scenario::Scenario;
use crate::glass::unavailable_platters;
pub use machines::MachineOperation;
pub use reads::{Quantity, SizeStatistic};

/// A number to measure, once per seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// A statistic of the time of an operation.
    Machine {
        /// The operation.
        operation: MachineOperation,
        /// The statistic, over many operations.
        statistic: Statistic,
    },
    /// How much longer a pick takes than a place on average, in s.
    PickMinusPlace,
    /// A statistic of crabs up minus that of crabs down, in s.
    CrabUpMinusDown {
        /// The statistic, over many crabs.
        statistic: Statistic,
    },
    /// The time of a shuttle's motion beyond its trapezoidal speed profile, in s.
    FineTuning {
        /// Length of the motion.
        meters: f64,
    },
    /// A statistic of the read sizes of a base scenario's workload.
    ReadSizes {
        /// The base.
        base: String,
        /// The statistic, over a million sizes.
        statistic: SizeStatistic,
    },
    /// Reads per second in the window of a base scenario's workload.
    ReadRate {
        /// The base.
        base: String,
    },
    /// The ratio of a quantity in the windows of two bases.
    Windows {
        /// The base in the numerator.
        of: String,
        /// The base in the denominator.
        over: String,
        /// The quantity.
        quantity: Quantity,
    },
    /// Bytes read in the window of a base scenario from the most-read platter, over those from the
    /// second.
    HottestOverSecond {
        /// The base.
        base: String,
    },
    /// Platters of a base scenario that cannot be fetched if this share of them is unavailable.
    UnavailablePlatters {
        /// The base.
        base: String,
        /// The share.
        share: Ratio,
    },
    /// The ratio of writes to reads in half a year.
    WrittenOverRead {
        /// The quantity.
        quantity: Quantity,
    },
    /// The 99.9th percentile over the median of the hourly bytes read, over half a year.
    HourlyTail {
        /// Standard deviation of the logarithm of the hourly rate.
        deviation: f64,
    },
    /// The largest volume written in a window of this many days, over the mean.
    IngressPeak {
        /// Days.
        days: usize,
    },
    /// A number in a base scenario.
    Scenario {
        /// The base.
        base: String,
        /// The dotted path of the field.
        field: String,
    },
    /// 1 if a library of this shape is accepted, 0 if not; other counts are those of the minimum
    /// deployment.
    ShapeAccepted {
        /// Drives per read rack.
        drives_per_read_rack: u16,
        /// Shuttles per panel.
        shuttles_per_panel: u16,
    },
    /// Redundancy platters of a set over its information platters.
    SetOverhead {
        /// Information platters.
        information: u16,
        /// Redundancy platters.
        redundancy: u16,
    },
    /// The smallest number of storage racks for a set.
    StorageRacks {
        /// Information platters.
        information: u16,
        /// Redundancy platters.
        redundancy: u16,
    },
    /// The most platters of one set in one blast zone, after a library of the minimum deployment is
    /// filled with as many sets as fit.
    SetPlattersInZone {
        /// Platters of a set.
        platters: u16,
        /// Sets.
        sets: u16,
    },
    /// The most platters of one set that one failure makes unavailable, in a library of as few
    /// storage racks as the set needs.
    SetPlattersLost {
        /// Information platters.
        information: u16,
        /// Redundancy platters.
        redundancy: u16,
        /// Platters of the set in the drive or the shuttles that failed.
        held: u16,
    },
    /// The probability that a track is lost when sectors are lost independently.
    TrackLoss {
        /// Information sectors.
        information: u32,
        /// Redundancy sectors.
        redundancy: u32,
        /// The probability that a sector is lost.
        sector_loss: f64,
    },
    /// The read rate of a library that is `folds` times as old, when older data is read less and
    /// partly deleted.
    GrowthRate {
        /// Reads per second now.
        start: f64,
        /// Age-folds into the future.
        folds: u32,
        /// Share of data deleted per fold.
        deletion: f64,
        /// Share by which kept data cools down per fold.
        cool_down: f64,
    },
}

/// A statistic of many numbers.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Largest minus smallest.
    Range,
    /// The value that this share of them stays below.
    Quantile(f64),
    /// The share of them at or below this value.
    ShareBelow(f64),
}

/// A curve that needs no run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CurveProbe {
    /// The cumulative distribution of an operation's time in s.
    Machine(MachineOperation),
    /// The time of a shuttle's motion in s, as a function of its length in m.
    MotionTime {
        /// Maximum length.
        meters: f64,
    },
    /// Shares of the reads, or of their bytes, by size class.
    SizeClasses {
        /// The base with the workload.
        base: String,
        /// The quantity to take shares of.
        quantity: Quantity,
    },
    /// The largest volume written in a window of days, over the mean.
    IngressPeak,
}

impl experiment::Probe for Probe {
    fn measure(&self, bases: &Bases, seed: u64) -> Result<f64, String> {
        match self {
            Self::Machine { operation, statistic } => {
                Ok(statistic.compute(machines::times(*operation, seed)))
            }
            Self::PickMinusPlace => Ok(machines::pick_minus_place(seed)),
            Self::CrabUpMinusDown { statistic } => {
                Ok(machines::crab_up_minus_down(*statistic, seed))
            }
            Self::FineTuning { meters } => Ok(machines::fine_tuning(*meters, seed)),
            Self::ReadSizes { base, statistic } => {
                reads::sizes(&reads::workload(bases, base)?, *statistic, seed)
            }
            Self::ReadRate { base } => reads::rate(&reads::workload(bases, base)?, seed),
            Self::Windows { of, over, quantity } => {
                let [of, over] = [of, over].map(|name| reads::workload(bases, name));
                reads::windows(&of?, &over?, *quantity, seed)
            }
            Self::HottestOverSecond { base } => {
                reads::hottest_over_second(&bases.scenario(base)?, seed)
            }
            Self::UnavailablePlatters { base, share } => {
                let scenario =
                    Scenario { unavailable: *share, ..bases.scenario::<Scenario>(base)? };
                let count = unavailable_platters(&scenario, seed);
                count.map(to_f64).map_err(|error| error.to_string())
            }
            Self::WrittenOverRead { quantity } => reads::written_over_read(*quantity, seed),
            Self::HourlyTail { deviation } => reads::hourly_tail(*deviation, seed),
            Self::IngressPeak { days } => reads::ingress_peak(*days, seed),
            Self::Scenario { base, field } => bases.number(base, field),
            Self::ShapeAccepted { drives_per_read_rack, shuttles_per_panel } => {
                Ok(placement::shape_accepted(*drives_per_read_rack, *shuttles_per_panel))
            }
            Self::SetOverhead { information, redundancy } => {
                Ok(f64::from(*redundancy) / f64::from(*information))
            }
            Self::StorageRacks { information, redundancy } => {
                placement::storage_racks(*information, *redundancy)
            }
            Self::SetPlattersInZone { platters, sets } => {
                placement::set_platters_in_zone(usize::from(*platters), *sets)
            }
            Self::SetPlattersLost { information, redundancy, held } => {
                placement::set_platters_lost(*information, *redundancy, *held)
            }
            Self::TrackLoss { information, redundancy, sector_loss } => {
                Ok(arithmetic::binomial_tail(information + redundancy, *redundancy, *sector_loss))
            }
            Self::GrowthRate { start, folds, deletion, cool_down } => {
                Ok(arithmetic::growth_rate(*start, *folds, *deletion, *cool_down))
            }
        }
    }
}

impl experiment::CurveProbe for CurveProbe {
    fn points(&self, bases: &Bases) -> Result<Vec<(f64, String, f64)>, String> {
        let plain = |points: Vec<(f64, f64)>| {
            points.into_iter().map(|(x, y)| (x, String::new(), y)).collect::<Vec<_>>()
        };
        Ok(match self {
            Self::Machine(operation) => plain(machines::shares(*operation)),
            Self::MotionTime { meters } => plain(machines::motion(*meters)),
            Self::SizeClasses { base, quantity } => {
                reads::size_classes(&reads::workload(bases, base)?, *quantity)?
            }
            Self::IngressPeak => reads::ingress_curve()?,
        })
    }
}

impl Statistic {
    /// Computes the statistic of these numbers; NaN when there are none.
    pub(crate) fn compute(self, mut numbers: Vec<f64>) -> f64 {
        numbers.sort_by(f64::total_cmp);
        let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else {
            return f64::NAN;
        };
        let count = to_f64(numbers.len());
        match self {
            Self::Mean => numbers.iter().sum::<f64>() / count,
            Self::Min => first,
            Self::Max => last,
            Self::Range => last - first,
            Self::Quantile(share) => {
                let at = numbers.len().saturating_sub(1);
                numbers[to_index(share * count).min(at)]
            }
            Self::ShareBelow(limit) => {
                to_f64(numbers.partition_point(|&number| number <= limit)) / count
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 samples")]
pub(super) const fn to_f64(count: usize) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and the caller cuts at the last index"
)]
const fn to_index(at: f64) -> usize {
    at as usize
}
