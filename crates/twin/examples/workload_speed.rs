//! Prints how many reads per second the generator of each workload yields. A figure, not a test.
//!
//! `cargo run --release --example workload_speed -p fulgurite-twin [MILLIONS]`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement for a terminal: it prints, and needs the time"
)]

use std::time::Instant;

use fulgurite_twin::workload::{Ingest, Placement, PlacementSampler, Sizes};
use fulgurite_twin::{Error, Workload};
use fulgurite_units::{Duration, Seed};

/// Counts and sums what `items` yields, and prints the rate.
fn measure(name: &str, items: impl Iterator<Item = u64>) {
    let (begin, used) = (Instant::now(), processor_seconds());
    let (count, sum) = items.fold((0u64, 0u64), |(n, sum), item| (n + 1, sum.wrapping_add(item)));
    let elapsed = begin.elapsed().as_secs_f64();
    let seconds = used.zip(processor_seconds()).map_or(elapsed, |(from, to)| to - from);
    let rate = count as f64 / seconds / 1e6;
    println!(
        "{name:28} {count:>11} in {seconds:6.2} s ({elapsed:6.2} s by the clock) = {rate:6.1} M/s, \
         sum {sum:x}"
    );
}

/// Returns the CPU seconds of this process, where the system reports them: on a shared machine the
/// wall clock says little.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanos: f64 = text.split(' ').next()?.parse().ok()?;
    Some(nanos / 1e9)
}

fn main() -> Result<(), Error> {
    let millions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    let count = millions * 1_000_000;
    let seed = Seed::new(1);
    let mut long = Workload::typical();
    long.envelope.window = Duration::from_secs(365 * 86_400 * 20);
    let smooth = Workload { sizes: Sizes::Smooth, ..long.clone() };
    let mut full = Workload::full_library(1.6);
    full.envelope.window = long.envelope.window;
    let cases = [
        ("typical", long),
        ("smooth sizes", smooth),
        ("full library", full),
        ("six months, 100 libraries", Workload::six_months(100)),
    ];
    for (name, workload) in cases {
        let reads = workload.reads(seed)?.take(count);
        measure(name, reads.map(|read| read.at.as_nanos() ^ read.size.get() ^ read.key));
    }
    let ingest = Ingest::for_reads(0.3, fulgurite_twin::workload::FILE_SIZE_MEAN);
    let writes = ingest.writes(seed)?.take(count);
    measure("writes, one library", writes.map(|write| write.at.as_nanos() ^ write.size.get()));
    for (name, placement) in
        [("uniform", Placement::Uniform), ("zipf", Placement::Zipf { exponent: 0.95 })]
    {
        let mut sampler = PlacementSampler::new(placement, 8_500, seed)?;
        let draws = std::iter::repeat_with(|| u64::from(sampler.draw())).take(count);
        measure(name, draws);
    }
    Ok(())
}
