//! Speed of the twin of a set of tomes: the lifetime of a group by both models, and a year of 1,000
//! tomes.

use fulgurite_twin::engine;
use fulgurite_twin::tome::{
    Group, Ingest, Scenario, SetModel, TokenPriority, TomeSet, mttdl_by_chain, sample,
};
use fulgurite_units::ByteCount;

use super::measure::{Clock, peak_bytes};

/// Chains computed; a single one is too fast to time.
const CHAINS: u32 = 100_000;
/// What a client writes to one tome.
const SESSION: ByteCount = ByteCount::new(10_000_000_000);
/// Tome failures per hour (Pergamum (FAST 2008), table 4).
const FAILURES_PER_HOUR: f64 = 1e-5;

/// Computes the lifetime of the paper's group of 16 with three parities, by Markov chain and by
/// `cycles` simulated cycles.
pub(super) fn mttdl(cycles: u32) {
    let group = Group::default();
    let clock = Clock::start();
    let mut chain = 0.0;
    for _ in 0..CHAINS {
        chain = mttdl_by_chain(std::hint::black_box(&group)).unwrap();
    }
    let (_, chains_s) = clock.seconds();
    let clock = Clock::start();
    let sampled = sample(&group, cycles, 1).unwrap();
    let (processor, wall) = clock.seconds();
    println!(
        "{{\"chain_h\":{chain:.6e},\"chain_s\":{:.9},\"sampled_h\":{:.6e},\
         \"half_interval_h\":{:.3e},\"cycles\":{cycles},\"processor_s\":{processor:.4},\
         \"wall_s\":{wall:.4}}}",
        chains_s / f64::from(CHAINS),
        sampled.hours,
        sampled.half_interval
    );
}

/// Simulates a year of the paper's 1,000 tomes, with 50 clients that write all the time and with
/// tome failures.
pub(super) fn year() {
    let ingest =
        Ingest { clients: 50, session: SESSION, total: None, first: TokenPriority::Protection };
    let scenario = Scenario {
        ingest: Some(ingest),
        failures_per_hour: FAILURES_PER_HOUR,
        model: SetModel::Analytic,
        ..Scenario::default()
    };
    let clock = Clock::start();
    let result = engine::run::<TomeSet>(&scenario, 1).unwrap();
    let (processor, wall) = clock.seconds();
    println!(
        "{{\"events\":{},\"tomes\":{},\"failures\":{},\"protected\":{},\
         \"processor_s\":{processor:.4},\"wall_s\":{wall:.4},\"peak_bytes\":{},\
         \"hash\":\"{:016x}\"}}",
        result.events,
        scenario.tomes,
        result.failures,
        result.protected,
        peak_bytes(),
        result.hash
    );
}
