//! Statistics of the generated reads and writes, computed the way the paper does.

use std::collections::BTreeMap;

use fulgurite_units::{ByteCount, Duration, Ratio, Seed};
use serde::Deserialize;

use super::to_f64;
use crate::Error;
use crate::experiment::Bases;
use crate::glass::scenario::Scenario;
use crate::glass::shard_sizes;
use crate::workload::{
    FILE_SIZE_MEAN, Ingest, LIBRARY_RATE, Modulation, PlacementSampler, SizeShares, TimeBins,
    Totals, Workload, peak_over_mean, tail_over_median,
};

/// Sizes drawn per statistic.
const SIZES_DRAWN: usize = 1_000_000;
/// Reads per second to compare writes with: few, because there are 174 writes per read.
const INGEST_READ_RATE: f64 = 0.002;
/// Days shown in Figure 2.
const INGRESS_DAYS: usize = 60;
/// Seeds per curve.
const CURVE_SEEDS: u64 = 7;
const HOUR: Duration = Duration::from_secs(3600);

/// Size classes of Figure 1(b): name and upper bound in MiB.
const CLASSES: [(&str, u64); 7] = [
    ("4 MiB", 4),
    ("16 MiB", 16),
    ("64 MiB", 64),
    ("256 MiB", 256),
    ("1 GiB", 1 << 10),
    ("16 GiB", 1 << 14),
    ("more", 1 << 30),
];

/// A statistic of read sizes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeStatistic {
    /// The mean, in bytes.
    Mean,
    /// The size that this share of reads does not exceed.
    Quantile(f64),
    /// The share of reads up to this size.
    ReadsUpTo(ByteCount),
    /// The share of bytes in reads up to this size.
    BytesUpTo(ByteCount),
    /// The share of bytes in reads above this size.
    BytesAbove(ByteCount),
    /// The share of reads above this size.
    ReadsAbove(ByteCount),
    /// The share of reads, largest first, that hold this share of the bytes.
    ReadsHolding(f64),
    /// Powers of ten between the smallest and the largest size.
    Decades,
}

/// The quantity to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Reads or writes.
    Count,
    /// Their bytes.
    Bytes,
    /// Reads per byte.
    CountPerByte,
}

impl Quantity {
    fn over(self, numerator: &Totals, denominator: &Totals) -> f64 {
        match self {
            Self::Count => numerator.count_over(denominator),
            Self::Bytes => numerator.bytes_over(denominator),
            Self::CountPerByte => numerator.reads_per_byte_over(denominator),
        }
    }
}

/// Returns the workload of a base scenario.
pub(super) fn workload(bases: &Bases, name: &str) -> Result<Workload, String> {
    Ok(bases.scenario::<Scenario>(name)?.workload)
}

/// Computes a statistic of read sizes.
pub(super) fn sizes(
    workload: &Workload,
    statistic: SizeStatistic,
    seed: u64,
) -> Result<f64, String> {
    let shares = shares(workload, seed)?;
    Ok(match statistic {
        SizeStatistic::Mean => shares.total().mean(),
        SizeStatistic::Quantile(share) => bytes(shares.quantile(share)),
        SizeStatistic::ReadsUpTo(size) => shares.reads_up_to(size),
        SizeStatistic::BytesUpTo(size) => shares.bytes_up_to(size),
        SizeStatistic::BytesAbove(size) => 1.0 - shares.bytes_up_to(size),
        SizeStatistic::ReadsAbove(size) => 1.0 - shares.reads_up_to(size),
        SizeStatistic::ReadsHolding(share) => shares.reads_holding(share),
        SizeStatistic::Decades => shares.decades(),
    })
}

/// Returns the ratio of a quantity in the windows of two workloads.
pub(super) fn windows(
    of: &Workload,
    over: &Workload,
    quantity: Quantity,
    seed: u64,
) -> Result<f64, String> {
    Ok(quantity.over(&window(of, seed)?, &window(over, seed)?))
}

/// Returns the bytes read in the window from the most-read platter over those from the second.
/// Platters and shards are the same as in a run with this seed.
pub(super) fn hottest_over_second(scenario: &Scenario, seed: u64) -> Result<f64, String> {
    let envelope = &scenario.workload.envelope;
    let (from, until) = (envelope.window_from(), envelope.window_until());
    let (seed, say) = (Seed::new(seed), |error: Error| error.to_string());
    let placement = scenario.workload.placement;
    let placement = PlacementSampler::new(placement, scenario.platters, seed.child(b"placement"));
    let mut placement = placement.map_err(say)?;
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for read in scenario.workload.reads(seed.child(b"workload")).map_err(say)? {
        for size in shard_sizes(read.size, scenario.shard_size) {
            let platter = placement.draw();
            if (from..until).contains(&read.at) {
                *bytes.entry(platter).or_default() += size.get();
            }
        }
    }
    let mut bytes: Vec<u64> = bytes.into_values().collect();
    bytes.sort_unstable_by(|a, b| b.cmp(a));
    match bytes.as_slice() {
        [hottest, second, ..] => {
            Ok(self::bytes(ByteCount::new(*hottest)) / self::bytes(ByteCount::new(*second)))
        }
        [] | [_] => Err("fewer than two platters are read".to_owned()),
    }
}

/// Returns the reads per second in the window.
pub(super) fn rate(workload: &Workload, seed: u64) -> Result<f64, String> {
    let totals = window(workload, seed)?;
    let seconds = workload.envelope.window.as_secs_f64();
    Ok(to_f64(usize::try_from(totals.count).unwrap_or(usize::MAX)) / seconds)
}

/// Returns the ratio of writes to reads in half a year.
pub(super) fn written_over_read(quantity: Quantity, seed: u64) -> Result<f64, String> {
    let mut workload = Workload::six_months(1);
    workload.envelope.window_rate = INGEST_READ_RATE;
    workload.envelope.modulation = None;
    let mut reads = Totals::default();
    for read in workload.reads(Seed::new(seed)).map_err(|error| error.to_string())? {
        reads.add(read.size);
    }
    let ingest = Ingest::for_reads(INGEST_READ_RATE, FILE_SIZE_MEAN);
    let mut writes = Totals::default();
    for write in ingest.writes(Seed::new(seed)).map_err(|error| error.to_string())? {
        writes.add(write.size);
    }
    Ok(quantity.over(&writes, &reads))
}

/// Returns the 99.9th percentile over the median of the hourly bytes read, over half a year.
pub(super) fn hourly_tail(deviation: f64, seed: u64) -> Result<f64, String> {
    let mut workload = Workload::six_months(1);
    let correlation = Ratio::new(0.8).unwrap_or(Ratio::ZERO);
    workload.envelope.modulation = Some(Modulation { interval: HOUR, deviation, correlation });
    let mut bins = TimeBins::new(HOUR, workload.envelope.length());
    for read in workload.reads(Seed::new(seed)).map_err(|error| error.to_string())? {
        bins.add(read.at, read.size);
    }
    tail_over_median(&bins.bytes()).ok_or_else(|| "nothing is read in most hours".to_owned())
}

/// Returns the largest volume written in a window of `days`, over the mean.
pub(super) fn ingress_peak(days: usize, seed: u64) -> Result<f64, String> {
    let ingest = Ingest::for_reads(LIBRARY_RATE, FILE_SIZE_MEAN);
    let factors = ingest.daily_factors(Seed::new(seed)).map_err(|error| error.to_string())?;
    peak_over_mean(&factors, days).ok_or_else(|| format!("there are no {days} days"))
}

/// Returns [`ingress_peak`] for windows of 1 to 60 days, the median over seeds.
pub(super) fn ingress_curve() -> Result<Vec<(f64, String, f64)>, String> {
    let mut points = Vec::new();
    for days in 1..=INGRESS_DAYS {
        let peaks: Result<Vec<f64>, String> =
            (1..=CURVE_SEEDS).map(|seed| ingress_peak(days, seed)).collect();
        points.push((to_f64(days), String::new(), super::Statistic::Quantile(0.5).compute(peaks?)));
    }
    Ok(points)
}

/// Returns the shares of the reads, or of their bytes, by size class.
pub(super) fn size_classes(
    workload: &Workload,
    quantity: Quantity,
) -> Result<Vec<(f64, String, f64)>, String> {
    let shares = shares(workload, 1)?;
    let up_to = |mib: u64| match quantity {
        Quantity::Count | Quantity::CountPerByte => shares.reads_up_to(ByteCount::mib(mib)),
        Quantity::Bytes => shares.bytes_up_to(ByteCount::mib(mib)),
    };
    let mut below = 0.0;
    let mut classes = Vec::new();
    for (index, (name, mib)) in CLASSES.into_iter().enumerate() {
        let share = up_to(mib);
        classes.push((to_f64(index), name.to_owned(), share - below));
        below = share;
    }
    Ok(classes)
}

fn shares(workload: &Workload, seed: u64) -> Result<SizeShares, String> {
    let mut sampler =
        workload.sizes.sampler(&Seed::new(seed)).map_err(|error| error.to_string())?;
    let mut shares = SizeShares::default();
    for _ in 0..SIZES_DRAWN {
        shares.add(sampler.draw());
    }
    Ok(shares)
}

fn window(workload: &Workload, seed: u64) -> Result<Totals, String> {
    let (from, until) = (workload.envelope.window_from(), workload.envelope.window_until());
    let mut totals = Totals::default();
    for read in workload.reads(Seed::new(seed)).map_err(|error| error.to_string())? {
        if (from..until).contains(&read.at) {
            totals.add(read.size);
        }
    }
    Ok(totals)
}

#[expect(clippy::cast_precision_loss, reason = "a file is smaller than 2^53 bytes")]
const fn bytes(size: ByteCount) -> f64 {
    size.get() as f64
}
