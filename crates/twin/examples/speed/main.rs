//! How fast the twin is: one measurement per run, printed as one JSON object per line.
//!
//! `cargo run --release --example speed -p fulgurite-twin WHAT`, where WHAT is one of `interval
//! WORKLOAD POLICY`, `six-months`, `fleet LIBRARIES DAYS`, `decision QUEUED`, `curve [SVG]`, `queue
//! CUSTOMERS`, `rack RATE HOURS`, `rack-paper FOLDER`, `mttdl CYCLES` and `tome-year`. `cargo
//! xtask bench twin`, `bench rack` and `bench tomes` run them all.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a measurement for a terminal: it prints, needs the time, and stops at nonsense"
)]

mod curve;
mod decision;
mod measure;
mod rack;
mod tome;

use std::sync::atomic::{AtomicUsize, Ordering};

use fulgurite_glass_core::control::{LibraryShape, MechanicsParameters, Policy, Throughput};
use fulgurite_twin::engine;
use fulgurite_twin::glass::run;
use fulgurite_twin::glass::scenario::{Recovery, Scenario, SystemTag, Writes};
use fulgurite_twin::queue::{self, Queue};
use fulgurite_twin::{Fleet, Runner, Workload};
use fulgurite_units::{ByteCount, Duration, Instant, Ratio};

use measure::{Clock, peak_bytes};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["interval", workload, policy] => interval(workload, policy),
        ["six-months"] => six_months(),
        ["fleet", libraries, days] => fleet(libraries.parse().unwrap(), days.parse().unwrap()),
        ["decision", queued] => decision::print(queued.parse().unwrap()),
        ["curve"] => curve::print(None),
        ["curve", svg] => curve::print(Some(svg)),
        ["rack", rate, hours] => rack::hours(rate.parse().unwrap(), hours.parse().unwrap()),
        ["rack-paper", folder] => rack::paper(folder),
        ["mttdl", cycles] => tome::mttdl(cycles.parse().unwrap()),
        ["tome-year"] => tome::year(),
        ["queue", customers] => queue(customers.parse().unwrap()),
        _ => panic!("no such measurement: {words:?}"),
    }
}

/// Measures events per second in one of the paper's intervals: 20 drives and 20 shuttles, with
/// saturated verification.
fn interval(workload: &str, policy: &str) {
    let (workload, platters) = match workload {
        "iops" => (Workload::iops(), 2000),
        "typical" => (Workload::typical(), 2000),
        _ => panic!("no such interval"),
    };
    let mut scenario = scenario(workload, policy, platters);
    scenario.writes = Writes::Saturated { platter_size: ByteCount::new(2_000_000_000_000) };
    one(&scenario);
}

/// Simulates half a year of typical reads in one library.
fn six_months() {
    one(&scenario(Workload::six_months(1), "silica", 2000));
}

fn one(scenario: &Scenario) {
    let clock = Clock::start();
    let result = run(scenario, 1).unwrap();
    let (processor, wall) = clock.seconds();
    println!(
        "{{\"events\":{},\"reads\":{},\"processor_s\":{processor:.4},\"wall_s\":{wall:.4},\
         \"peak_bytes\":{},\"tail_h\":{:.3},\"hash\":\"{:016x}\"}}",
        result.events,
        result.reads,
        peak_bytes(),
        result.completion.p999 / 3600.0,
        result.hash
    );
}

/// Simulates many libraries, on all cores.
fn fleet(libraries: u32, days: u64) {
    let mut workload = Workload::six_months(libraries);
    workload.envelope.window = Duration::from_secs(days * 86_400);
    let fleet = Fleet { each: scenario(workload, "silica", 2000), libraries };
    let threads = Threads(std::thread::available_parallelism().map_or(1, usize::from));
    let clock = Clock::start();
    let result = fleet.run(1, &threads).unwrap();
    let (processor, wall) = clock.seconds();
    println!(
        "{{\"events\":{},\"reads\":{},\"processor_s\":{processor:.2},\"wall_s\":{wall:.2},\
         \"peak_bytes\":{},\"threads\":{},\"tail_h\":{:.3},\"queue_max\":{},\"failed\":{},\
         \"hash\":\"{:016x}\"}}",
        result.events,
        result.reads,
        peak_bytes(),
        threads.0,
        result.completion.p999 / 3600.0,
        result.queue_max,
        result.failed,
        result.hash
    );
}

/// Simulates an M/M/20 queue at 90 % load.
fn queue(customers: u64) {
    let service = Duration::from_secs(1);
    let scenario = queue::Scenario {
        system: queue::SystemTag::Queue,
        servers: 20,
        load: 0.9,
        service,
        customers,
    };
    let clock = Clock::start();
    let waits = engine::run::<Queue>(&scenario, 1).unwrap();
    let (processor, wall) = clock.seconds();
    println!(
        "{{\"events\":{},\"processor_s\":{processor:.4},\"wall_s\":{wall:.4},\"wait_mean\":{:.4},\
         \"wait_in_theory\":{:.4}}}",
        waits.events, waits.wait.mean, waits.theory.mean
    );
}

/// Builds a scenario of the paper's library under a workload.
fn scenario(workload: Workload, policy: &str, platters: u32) -> Scenario {
    let mut library = LibraryShape::mdu();
    library.spare_slots_per_shelf = 1;
    let from = workload.envelope.window_from().since(Instant::ZERO);
    let until = workload.envelope.window_until().since(Instant::ZERO);
    Scenario {
        system: SystemTag::Glass,
        library,
        policy: Policy::named(policy).unwrap(),
        mechanics: MechanicsParameters::PAPER,
        throughput: Throughput::PAPER,
        track_size: ByteCount::new(20_000_000),
        platters,
        shard_size: ByteCount::new(1_000_000_000),
        unavailable: Ratio::ZERO,
        recovery_reads: 16,
        recovery: Recovery::Anywhere,
        workload,
        writes: Writes::None,
        faults: Vec::new(),
        restores: None,
        battery: None,
        measure_from: from,
        measure_until: until,
    }
}

/// Runs jobs on this many threads.
struct Threads(usize);

impl Runner for Threads {
    fn for_each(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.0.min(count) {
                scope.spawn(|| {
                    while let number = next.fetch_add(1, Ordering::Relaxed)
                        && number < count
                    {
                        job(number);
                    }
                });
            }
        });
    }
}
