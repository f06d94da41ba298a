//! The generator against its specification: every figure within 1 %, on millions of draws.

use fulgurite_units::{ByteCount, Duration, Instant, Seed, settings};

use super::draws::{AliasTable, Draws, exp2, ln};
use super::*;
use crate::TraceRead;

const DRAWS: usize = 16_000_000;

fn shares_of(sizes: Sizes, seed: u64) -> SizeShares {
    shares_of_draws(sizes, seed, DRAWS)
}

fn shares_of_draws(sizes: Sizes, seed: u64, draws: usize) -> SizeShares {
    let mut sampler = sizes.sampler(&Seed::new(seed)).unwrap();
    let mut shares = SizeShares::default();
    (0..draws).for_each(|_| shares.add(sampler.draw()));
    shares
}

/// Asserts that `value` is within `percent` of `expected`.
fn check(what: &str, value: f64, expected: f64, percent: f64) {
    let off = (value / expected - 1.0).abs() * 100.0;
    assert!(off <= percent, "{what}: {value}, expected {expected}, {off:.3} % off");
}

#[test]
fn logarithm_and_power_match_std() {
    let mut draws = Draws::new(&Seed::new(1), b"test");
    for _ in 0..100_000 {
        let x = draws.unit() * 60.0 - 30.0;
        assert!((exp2(x) / x.exp2() - 1.0).abs() < 1e-11, "2^{x}");
        let y = x.exp2();
        assert!((ln(y) - y.ln()).abs() < 1e-13 * (1.0 + y.ln().abs()), "ln {y}");
    }
    assert!(ln(1.0).abs() < 1e-15 && (exp2(40.0) - 40f64.exp2()).abs() < 1e-3);
}

#[test]
fn alias_table_preserves_weights() {
    let weights = [0.5, 0.0, 3.0, 1.5, 1e-3];
    let table = AliasTable::new(&weights);
    let mut draws = Draws::new(&Seed::new(2), b"test");
    let mut counts = [0u32; 5];
    (0..1_000_000).for_each(|_| counts[table.draw(draws.bits()) as usize] += 1);
    assert_eq!(counts[1], 0);
    for (count, weight) in counts.iter().zip(weights) {
        let expected = weight / 5.001 * 1e6;
        assert!((f64::from(*count) - expected).abs() <= 4.0 * expected.sqrt() + 1.0);
    }
}

#[test]
fn typical_sizes_match_shares_of_the_paper() {
    let shares = shares_of(Sizes::Table { profile: Profile::Typical }, 1);
    check("mean", shares.total().mean(), 100e6, 1.0);
    check("reads <= 4 MiB", shares.reads_up_to(ByteCount::mib(4)), 0.587, 1.0);
    check("bytes <= 4 MiB", shares.bytes_up_to(ByteCount::mib(4)), 0.012, 1.0);
    check("reads <= 10 MiB", shares.reads_up_to(ByteCount::mib(10)), 0.81, 1.0);
    check("reads > 256 MiB", 1.0 - shares.reads_up_to(ByteCount::mib(256)), 0.019, 1.0);
    let large = 1.0 - shares.bytes_up_to(ByteCount::mib(256));
    assert!((large - 0.85).abs() < 0.02, "bytes > 256 MiB: {large}");
    assert!(shares.reads_holding(0.8) < 0.02);
    assert!(shares.decades() > 9.5 && shares.quantile(0.8) <= ByteCount::mib(10));
}

#[test]
fn smooth_sizes_match_the_same_shares() {
    let shares = shares_of(Sizes::Smooth, 2);
    check("mean", shares.total().mean(), 99.8e6, 1.0);
    check("reads <= 4 MiB", shares.reads_up_to(ByteCount::mib(4)), 0.5867, 1.0);
    check("bytes <= 4 MiB", shares.bytes_up_to(ByteCount::mib(4)), 0.012, 1.0);
    check("reads > 256 MiB", 1.0 - shares.reads_up_to(ByteCount::mib(256)), 0.019, 1.0);
    let large = 1.0 - shares.bytes_up_to(ByteCount::mib(256));
    assert!((large - 0.8495).abs() < 0.02, "bytes > 256 MiB: {large}");
    // 8.96 MiB; a step is 4 to 6 % wide.
    check("p80", shares.quantile(0.8).get() as f64, 8.96 * 1_048_576.0, 6.0);
    check("holding 80 % of bytes", shares.reads_holding(0.8), 0.0068, 3.0);
}

#[test]
fn profiles_match_ratios_of_the_paper() {
    let mean = |profile| Sizes::Table { profile }.mean();
    check("typical", mean(Profile::Typical), 100e6, 0.1);
    check("iops", mean(Profile::Iops), 10e6, 0.1);
    check("volume", mean(Profile::Volume), 500e6, 0.1);
    // Means scatter by 1 to 2 % here: a few huge files hold many of the bytes.
    let [typical, iops, volume] = [Profile::Typical, Profile::Iops, Profile::Volume]
        .map(|profile| shares_of_draws(Sizes::Table { profile }, 4, 2_000_000).total());
    check("IOPS: reads for a byte", iops.reads_per_byte_over(&typical), 10.0, 6.0);
    check(
        "Volume: 25 times the bytes in 5 times the reads",
        volume.mean() / typical.mean(),
        5.0,
        6.0,
    );
    let of_mean = Sizes::TableOfMean { mean: ByteCount::new(27_000_000) };
    check("table of mean", shares_of_draws(of_mean, 5, 2_000_000).total().mean(), 27e6, 6.0);
}

#[test]
fn job_sizes_match_their_stated_mean() {
    check("mean of Pareto(1.1, 1..1000)", Jobs::PAPER.reads_mean(), 5.074_18, 0.001);
    let mut sampler = jobs::JobSampler::new(&Jobs::PAPER, &Seed::new(3));
    let (mut sum, mut largest) = (0u64, 0);
    for _ in 0..4_000_000 {
        let count = sampler.count();
        sum += u64::from(count);
        largest = largest.max(count);
    }
    check("drawn mean", sum as f64 / 4e6, 5.074_18, 1.0);
    assert!((900..1000).contains(&largest));
}

#[test]
fn envelope_matches_its_rates_and_bounds() {
    // Single reads, ten times as frequent, so that counts are exact to a percent.
    let mut workload = Workload { jobs: Jobs::SINGLE, ..Workload::iops() };
    workload.envelope.window_rate *= 10.0;
    workload.envelope.quiet_rate *= 10.0;
    let hours = |hours: u64| Instant::from_nanos(hours * 3_600_000_000_000);
    let half = Duration::from_secs(1_800);
    let (mut before, mut burst, mut window, mut after) = (0, 0, 0, 0);
    let mut last = Instant::ZERO;
    for read in workload.reads(Seed::new(6)).unwrap() {
        assert!(read.at >= last && read.at < hours(30));
        assert!((100..1_000_000_000_000).contains(&read.size.get()));
        last = read.at;
        match read.at {
            at if at < hours(6) => before += 1,
            at if at >= hours(18) => after += 1,
            at => {
                window += 1;
                burst += u32::from(at >= hours(9) && at < hours(9) + half);
            }
        }
    }
    check("warm-up", f64::from(before), 3.0 * 6.0 * 3600.0, 1.0);
    check("window", f64::from(window), 43.0 * 12.0 * 3600.0, 1.0);
    check("burst", f64::from(burst) / f64::from(window), 0.18, 1.0);
    check("cool-down", f64::from(after), 3.0 * 12.0 * 3600.0, 1.0);
}

#[test]
fn jobs_do_not_change_the_rate() {
    let mut workload = Workload::typical();
    workload.envelope.window = Duration::from_secs(180 * 86_400);
    let reads = workload.reads(Seed::new(7)).unwrap().count();
    check("reads", reads as f64, workload.envelope.reads_mean(), 1.0);
}

#[test]
fn streamed_and_generated_traces_are_equal() {
    for workload in [
        Workload::typical(),
        Workload::volume(),
        Workload::full_library(1.6),
        Workload { sizes: Sizes::Smooth, ..Workload::iops() },
    ] {
        let trace = workload.generate(Seed::new(8)).unwrap();
        assert_eq!(trace, workload.generate(Seed::new(8)).unwrap());
        assert_ne!(trace, workload.generate(Seed::new(9)).unwrap());
        let streamed: Vec<TraceRead> = workload.reads(Seed::new(8)).unwrap().collect();
        assert_eq!(trace.reads(), streamed);
    }
}

/// Reads are the same on every machine: no value depends on a system's mathematics library.
#[test]
fn reads_of_a_seed_are_stable() {
    let reads: Vec<_> = Workload::typical().reads(Seed::new(1)).unwrap().take(4).collect();
    let shown: Vec<_> =
        reads.iter().map(|r| format!("{} {} {:x}", r.at.as_nanos(), r.size.get(), r.key)).collect();
    expect_test::expect![[r#"
        12722123981 10345 f4cb02daefddf8bd
        12728366603 3108820 faa6437bfff81468
        31528205539 2573452 cd442c979fc802f9
        31551192337 1966749 3f8e8386bb8db3a6"#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn changing_sizes_keeps_arrivals() {
    let times = |workload: &Workload| -> Vec<Instant> {
        workload.reads(Seed::new(10)).unwrap().map(|read| read.at).take(1000).collect()
    };
    let smooth = Workload { sizes: Sizes::Smooth, ..Workload::typical() };
    assert_eq!(times(&Workload::typical()), times(&smooth));
}

#[test]
fn placement_is_uniform_or_zipf() {
    let counts = |placement| {
        let mut sampler = PlacementSampler::new(placement, 1000, Seed::new(11)).unwrap();
        let mut counts = vec![0u32; 1000];
        (0..4_000_000).for_each(|_| counts[sampler.draw() as usize] += 1);
        counts
    };
    let even = counts(Placement::Uniform);
    assert!(even.iter().all(|&count| (3600..4400).contains(&count)));
    let order = counts(Placement::Zipf { exponent: 0.95 });
    let mut ranked = order.clone();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    assert_ne!(ranked, order, "the order of platters is random");
    let sum: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.95)).sum();
    for rank in [1u32, 2, 5, 10, 20] {
        let expected = f64::from(rank).powf(-0.95) / sum * 4e6;
        check("rank", f64::from(ranked[rank as usize - 1]), expected, 2.0);
    }
    assert!(PlacementSampler::new(Placement::Uniform, 0, Seed::new(1)).is_err());
    assert!(PlacementSampler::new(Placement::Zipf { exponent: -1.0 }, 9, Seed::new(1)).is_err());
}

#[test]
fn invalid_parameters_are_named() {
    let check = |change: fn(&mut Workload), field: &str| {
        let mut workload = Workload::volume();
        change(&mut workload);
        let error = workload.validate().unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    };
    check(|w| w.envelope.window_rate = -1.0, "envelope.window_rate");
    check(|w| w.envelope.quiet_rate = f64::NAN, "envelope.quiet_rate");
    check(|w| w.envelope.window = Duration::from_secs(4 * 3600), "envelope.burst.length");
    check(|w| w.envelope.window = Duration::from_nanos(u64::MAX), "envelope.window");
    check(|w| w.jobs.reads_max = 0, "jobs.reads_max");
    check(|w| w.jobs.alpha = 0.0, "jobs.alpha");
    check(|w| w.sizes = Sizes::Fixed { size: ByteCount::ZERO }, "sizes.fixed.size");
    check(|w| w.placement = Placement::Zipf { exponent: 99.0 }, "placement.zipf.exponent");
    assert!(matches!(Workload::full_library(0.0).generate(Seed::new(1)), Err(Error::EmptyTrace)));
    let mut long = Workload::full_library(1e6);
    long.envelope.window = Duration::from_secs(86_400 * 365);
    assert!(matches!(long.generate(Seed::new(1)), Err(Error::TraceTooLong { .. })));
}

#[test]
fn workloads_round_trip_through_toml() {
    for workload in [
        Workload::typical(),
        Workload { placement: Placement::Zipf { exponent: 0.95 }, ..Workload::volume() },
        Workload::six_months(100),
    ] {
        let text = toml::to_string(&workload).unwrap();
        assert_eq!(settings::from_toml::<Workload>(&text).unwrap(), workload, "{text}");
        assert!(settings::from_toml::<Workload>(&format!("unknown = 1\n{text}")).is_err());
    }
}

#[test]
fn hourly_modulation_spreads_half_a_year() {
    let ratio = |deviation: f64| {
        let mut workload = Workload::six_months(1);
        workload.envelope.modulation.as_mut().unwrap().deviation = deviation;
        let mut bins = TimeBins::new(Duration::from_secs(3600), workload.envelope.length());
        let reads = workload.reads(Seed::new(12)).unwrap();
        reads.for_each(|read| bins.add(read.at, read.size));
        assert_eq!(bins.bins().len(), 181 * 24);
        tail_over_median(&bins.bytes())
    };
    let (steady, varied) = (ratio(0.0).unwrap(), ratio(2.0).unwrap());
    assert!(steady > 1.0 && varied > 10.0 * steady, "{steady}, {varied}");
}

#[test]
fn writes_match_ratios_and_peaks_of_the_paper() {
    let ingest = Ingest::for_reads(LIBRARY_RATE, FILE_SIZE_MEAN);
    check("mean write", ingest.sizes.mean(), 27e6, 0.1);
    let mut months: Vec<f64> = (0..41)
        .map(|seed| {
            let days = ingest.daily_factors(Seed::new(seed)).unwrap();
            assert_eq!(days, ingest.daily_factors(Seed::new(seed)).unwrap());
            check("mean day", days.iter().sum::<f64>() / 181.0, 1.0, 0.001);
            check("largest day", peak_over_mean(&days, 1).unwrap(), 16.0, 0.01);
            let curve = peak_over_mean_curve(&days, 60);
            assert_eq!(curve.len(), 60);
            curve[29]
        })
        .collect();
    months.sort_by(f64::total_cmp);
    check("30 days, median of seeds", months[20], 2.0, 12.5);
}

#[test]
fn writes_outweigh_reads_like_in_the_paper() {
    // Only a part of the writes, to keep this short; the factor cancels.
    const PART: f64 = 200.0;
    let mut workload = Workload { jobs: Jobs::SINGLE, ..Workload::six_months(1) };
    workload.envelope.modulation = None;
    workload.envelope.window_rate = LIBRARY_RATE;
    let (mut reads, mut writes) = (Totals::default(), Totals::default());
    workload.reads(Seed::new(13)).unwrap().for_each(|read| reads.add(read.size));
    let ingest = Ingest::for_reads(LIBRARY_RATE / PART, FILE_SIZE_MEAN);
    let mut last = Instant::ZERO;
    for write in ingest.writes(Seed::new(13)).unwrap() {
        assert!(write.at >= last);
        last = write.at;
        writes.add(write.size);
    }
    check("writes for a read", writes.count_over(&reads) * PART, 174.0, 1.0);
    check("bytes for a byte", writes.bytes_over(&reads) * PART, 47.0, 4.0);
}

#[test]
fn statistics_of_small_traces_match_hand_values() {
    let mut shares = SizeShares::default();
    for size in [1u64, 100, 4 << 20, (4 << 20) + 1, 10 << 20, u64::MAX / 2] {
        shares.add(ByteCount::new(size));
    }
    assert!((shares.reads_up_to(ByteCount::mib(4)) - 0.5).abs() < 1e-9);
    assert!((shares.reads_up_to(ByteCount::mib(10)) - 5.0 / 6.0).abs() < 1e-9);
    assert_eq!(shares.quantile(0.5), ByteCount::mib(4));
    assert_eq!(peak_over_mean(&[1.0, 1.0, 4.0, 2.0], 2), Some(6.0 / (13.0 / 3.0)));
    assert_eq!(peak_over_mean(&[1.0], 2), None);
    assert_eq!(peak_over_mean(&[0.0, 0.0], 1), None);
    assert_eq!(tail_over_median(&[3.0, 1.0, 2.0]), Some(1.5));
    assert_eq!(tail_over_median(&[0.0, 0.0, 2.0]), None);
    assert_eq!(tail_over_median(&[]), None);
}
