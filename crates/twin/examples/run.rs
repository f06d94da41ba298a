//! Runs a named scenario and prints what it measured: for those who work on the twin.

use std::time::Instant;

use fulgurite_library::{LibraryShape, MechanicsParameters, Policy, Throughput};
use fulgurite_twin::scenario::{Scenario, Writes};
use fulgurite_twin::{Workload, run};
use fulgurite_units::{ByteCount, Duration, Ratio};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let get = |index: usize, or: &str| args.get(index).cloned().unwrap_or_else(|| or.to_owned());
    let (workload, policy) = (get(0, "iops"), get(1, "silica"));
    let number = |index, or: &str| get(index, or).parse::<u64>().unwrap();
    let shuttles = number(2, "20");
    let throughput = number(3, "60");
    let seeds = number(4, "3");
    let platters = number(5, "0");
    let verify = get(6, "verify");
    let (work, default_platters, shard) = match workload.as_str() {
        "iops" => (Workload::iops(), 2000, 1_000_000_000),
        "typical" => (Workload::typical(), 2000, 1_000_000_000),
        "volume" => (Workload::volume(), 8000, 4_000_000_000),
        "full" => (Workload::full_library(1.6), 8500, 1_000_000_000),
        "zipf" => {
            let mut work = Workload::volume();
            work.placement = fulgurite_twin::workload::Placement::Zipf { exponent: 0.95 };
            (work, 4000, 4_000_000_000)
        }
        _ => panic!("no such workload"),
    };
    let mut library = LibraryShape::mdu();
    library.shuttles_per_panel = u16::try_from(shuttles / 2).unwrap();
    library.spare_slots_per_shelf = 1;
    let mut policy = Policy::named(&policy).unwrap();
    if let Some(slots) = args.get(7) {
        policy.customer_slots = slots.parse().unwrap();
    }
    let from = work.envelope.window_from().since(fulgurite_units::Instant::ZERO);
    let until = work.envelope.window_until().since(fulgurite_units::Instant::ZERO);
    let writes = if verify == "verify" {
        Writes::Saturated { platter_size: ByteCount::new(2_000_000_000_000) }
    } else {
        Writes::None
    };
    let scenario = Scenario {
        library,
        policy,
        mechanics: MechanicsParameters::PAPER,
        throughput: Throughput::new(u32::try_from(throughput).unwrap()).unwrap(),
        track_size: ByteCount::new(20_000_000),
        platters: if platters == 0 { default_platters } else { u32::try_from(platters).unwrap() },
        shard_size: ByteCount::new(shard),
        unavailable: Ratio::ZERO,
        recovery_reads: 16,
        workload: work,
        writes,
        faults: Vec::new(),
        measure_from: from,
        measure_until: until,
    };
    let _ = Duration::ZERO;
    for seed in 1..=seeds {
        let started = Instant::now();
        let r = run(&scenario, seed).unwrap();
        let wall = started.elapsed().as_secs_f64();
        println!(
            "seed {seed}: reads {} failed {} p50 {:.2} h p999 {:.3} h max {:.2} h | read {:.3} verify {:.3} \
             switch {:.3} idle {:.3} | travel p999 {:.1} s mean {:.1} cong {:.3} gives {} | fetches {} steals {} | \
             {:.2} M events, {:.2} M/s, makespan {:.1} h, age {:.2} h hash {:x}",
            r.reads,
            r.failed,
            r.completion.p50 / 3600.0,
            r.completion.p999 / 3600.0,
            r.completion.max / 3600.0,
            r.drive_time.read,
            r.drive_time.verify,
            r.drive_time.switch,
            r.drive_time.idle,
            r.travel.p999,
            r.travel.mean,
            r.congestion,
            r.give_ways,
            r.fetches,
            r.steals,
            r.events as f64 / 1e6,
            r.events as f64 / wall / 1e6,
            r.makespan / 3600.0,
            r.age_max / 3600.0,
            r.hash,
        );
    }
}
