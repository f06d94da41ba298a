//! The tape library against sums worked out by hand, and its time accounting.

use fulgurite_units::settings;

use super::*;
use crate::workload::LIBRARY_RATE;
use crate::{ErrorKind, Workload};

const ALL: Range<Instant> = Instant::ZERO..Instant::from_nanos(u64::MAX);

fn read(at_seconds: u64, size: u64) -> TraceRead {
    let at = Instant::ZERO + Duration::from_secs(at_seconds);
    TraceRead { at, size: ByteCount::new(size), key: 0 }
}

/// Asserts that `value` is `expected`, except for rounding to nanoseconds.
fn check(what: &str, value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-5, "{what}: {value}, expected {expected}");
}

fn run(library: &TapeLibrary, reads: &[TraceRead]) -> TapeResult {
    library.run(reads.iter().copied(), ALL, Placement::Uniform, Seed::new(1)).unwrap()
}

/// Returns a library with one cartridge, and a read that fills it, so that its offset is zero.
fn full() -> (TapeLibrary, u64) {
    let library = TapeLibrary::lto8(1, 1, 1);
    let size = library.cartridge_capacity.get();
    (library, size)
}

#[test]
fn single_read_takes_the_sum_of_its_steps() {
    let (library, size) = full();
    let result = run(&library, &[read(10, size)]);
    // Robot, load, settle at the load point, 12 TB at 360 MB/s.
    let transfer = 12e12 / 360e6;
    check("completion", result.completion.max, 12.5 + 15.0 + 5.0 + transfer);
    // 208 wraps are even, so that the tape ends where it began: nothing to rewind.
    check("makespan", result.makespan, 10.0 + 12.5 + 15.0 + 5.0 + transfer + 24.0 + 12.5);
    check("read", result.drive_time.read, transfer / result.makespan);
    check("robots", result.robots_busy, 25.0 / result.makespan);
    assert_eq!((result.mounts, result.completion.count, result.bytes), (1, 1, size));
}

#[test]
fn wraps_alternate_in_direction() {
    let library = TapeLibrary { wraps: 2, ..TapeLibrary::lto8(1, 1, 1) };
    let tb = 1_000_000_000_000;
    for (offset, along) in [(0, 0.0), (3 * tb, 0.5), (6 * tb, 1.0), (9 * tb, 0.5), (12 * tb, 0.0)] {
        check("along", library.along(offset), along);
    }
    // From the load point to the middle is the average of the specification.
    check("locate", library.locate(0.0, 0.5) as f64 / 1e9, 59.0);
    check("rewind and unload", library.unmount(0.5, 0) as f64 / 1e9, 59.0 + 24.0);
    let lto9 = TapeLibrary::lto9(1, 1, 1);
    check("locate", lto9.locate(0.0, 0.5) as f64 / 1e9, 45.0);
    check("little read", lto9.unmount(0.5, 1) as f64 / 1e9, 55.0 + 30.0);
    check("much read", lto9.unmount(0.5, 5_000_000_000) as f64 / 1e9, 110.0 + 30.0);
}

#[test]
fn mounted_cartridge_serves_all_waiting_reads() {
    let library = TapeLibrary::lto8(1, 1, 1);
    let reads: Vec<_> = (0..50).map(|at| read(at, 1000)).collect();
    let result = run(&library, &reads);
    assert_eq!((result.mounts, result.completion.count), (1, 50));
    assert!(result.queue_max >= 27, "27 reads come before the first begins");
}

#[test]
fn older_reads_of_other_cartridges_go_first() {
    // Two cartridges, one drive, batches of one: after each read the oldest decides.
    let library = TapeLibrary { batch_reads_max: 1, ..TapeLibrary::lto8(1, 1, 2) };
    let reads: Vec<_> = (0..40).map(|at| read(at, 1000)).collect();
    let batched = run(&TapeLibrary { batch_reads_max: 1000, ..library.clone() }, &reads);
    let single = run(&library, &reads);
    assert!(single.mounts > 3 * batched.mounts, "{} {}", single.mounts, batched.mounts);
}

#[test]
fn nearest_order_reduces_winding() {
    let reads: Vec<_> = (0..200).map(|_| read(0, 1000)).collect();
    let locate = |order| {
        let library = TapeLibrary { order, ..TapeLibrary::lto9(1, 1, 1) };
        let result = run(&library, &reads);
        result.drive_time.locate * result.makespan
    };
    let orders = [BatchOrder::Arrival, BatchOrder::Offset, BatchOrder::Nearest].map(locate);
    assert!(orders[2] < 0.5 * orders[0] && orders[2] < orders[1], "{orders:?}");
}

#[test]
fn robots_are_shared() {
    let reads: Vec<_> = (0..40).map(|_| read(0, 1000)).collect();
    let wait = |robots| run(&TapeLibrary::lto8(20, robots, 1000), &reads).drive_time.robot;
    assert!(wait(1) > wait(4));
}

#[test]
fn typical_day_has_consistent_shares() {
    let workload = Workload::typical();
    let library = TapeLibrary::lto8(20, 4, 1000);
    let measured = workload.envelope.window_from()..workload.envelope.window_until();
    let result = |seed| {
        let reads = workload.reads(Seed::new(seed)).unwrap();
        library.run(reads, measured.clone(), Placement::Uniform, Seed::new(seed)).unwrap()
    };
    let first = result(1);
    assert_eq!(first, result(1));
    assert_ne!(first.hash, result(2).hash);
    let expected = LIBRARY_RATE * 12.0 * 3600.0;
    assert!((first.completion.count as f64 / expected - 1.0).abs() < 0.4);
    let quantiles = first.completion;
    let ordered = [quantiles.p50, quantiles.p99, quantiles.p999, quantiles.max];
    assert!(ordered.is_sorted() && quantiles.p50 > 30.0, "{quantiles:?}");
    let time = first.drive_time;
    let busy = time.read + time.locate + time.load + time.unmount + time.robot;
    check("shares", busy + time.idle, 1.0);
    assert!((0.0..1.0).contains(&time.idle) && (0.0..=1.0).contains(&first.robots_busy));
}

#[test]
fn invalid_parameters_are_named() {
    let error = |library: TapeLibrary, size| {
        let reads = [read(0, size)];
        library.run(reads, ALL, Placement::Uniform, Seed::new(1)).unwrap_err()
    };
    let base = TapeLibrary::lto8(1, 1, 1);
    let drives = error(TapeLibrary { drives: 0, ..base.clone() }, 1);
    assert_eq!(drives.to_string(), "drives is 0, but must be at least 1");
    assert_eq!(drives.kind(), ErrorKind::Invalid);
    let unload = Duration::from_secs(100_000);
    let unload = error(TapeLibrary { unload, ..base.clone() }, 1);
    assert_eq!(unload.to_string(), "unload is 100000s, but must be at most a day");
    let large = error(base.clone(), 13_000_000_000_000);
    assert!(large.to_string().starts_with("cartridge_capacity is"));
    let unordered = base.run([read(2, 1), read(1, 1)], ALL, Placement::Uniform, Seed::new(1));
    assert!(matches!(unordered, Err(Error::OutOfOrder { line: 2, .. })));
    let text = toml::to_string(&TapeLibrary::lto9(2, 1, 9)).unwrap();
    assert_eq!(settings::from_toml::<TapeLibrary>(&text).unwrap(), TapeLibrary::lto9(2, 1, 9));
}
