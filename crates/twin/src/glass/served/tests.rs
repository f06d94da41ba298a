//! The log of a twin, played by the twin: with the same seed nothing differs, with another little.

use std::io::BufReader;

use fulgurite_library::log::{End, LogWriter};
use fulgurite_library::{
    Library, LibraryShape, Machine, Mechanics, MechanicsParameters, Policy, Throughput,
};
use fulgurite_units::{ByteCount, DriveIndex, Ratio, ShuttleIndex};

use super::*;
use crate::engine::Observer;
use crate::glass::scenario::{FaultPlan, Named, Recovery, Scenario, Writes};
use crate::glass::{Glass, Seen, run_observed};
use crate::workload::{Envelope, Jobs, Placement, Profile, Sizes, Workload};

const TRACK: ByteCount = ByteCount::new(20_000_000);

struct Logging(LogWriter<Vec<u8>>);

impl Observer<Glass> for Logging {
    fn see(&mut self, now: Instant, seen: Seen<'_>) {
        match seen {
            Seen::Event(event) => self.0.event(now, event).unwrap(),
            Seen::Output(output) => self.0.output(output).unwrap(),
            Seen::Stepped(_) => {}
        }
    }
}

/// Reads for some hours, new platters, and machines that break.
fn scenario(policy: Policy) -> Scenario {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let workload = Workload {
        envelope: Envelope {
            warm_up: hours(1),
            window: hours(6),
            cool_down: hours(1),
            ..Envelope::twelve_hours(0.1, None)
        },
        jobs: Jobs::PAPER,
        sizes: Sizes::Table { profile: Profile::Typical },
        placement: Placement::Uniform,
    };
    let fault = |machine, at, repaired| FaultPlan {
        machine,
        at: Duration::from_secs(at),
        repaired_at: Some(Duration::from_secs(repaired)),
    };
    // Reads keep all drives busy: with a day for it nothing would be verified.
    let policy = Policy { verify_within: Duration::from_secs(1800), ..policy };
    Scenario {
        system: Named::Glass,
        library: LibraryShape::small(),
        policy,
        mechanics: MechanicsParameters::PAPER,
        throughput: Throughput::PAPER,
        track_size: TRACK,
        platters: 300,
        shard_size: ByteCount::new(1_000_000_000),
        unavailable: Ratio::ZERO,
        recovery_reads: 16,
        recovery: Recovery::Anywhere,
        workload,
        writes: Writes::Every {
            platter_size: ByteCount::new(2_000_000_000),
            interval: Duration::from_secs(600),
        },
        faults: vec![
            fault(Machine::Shuttle(ShuttleIndex::new(1)), 6_000, 9_000),
            fault(Machine::Drive(DriveIndex::new(2)), 12_000, 15_000),
        ],
        battery: None,
        measure_from: Duration::ZERO,
        measure_until: hours(8),
    }
}

fn served(scenario: &Scenario, seed: u64) -> Served {
    let library = Library::with_policy(&scenario.library, scenario.policy.clone()).unwrap();
    let mut logging = Logging(LogWriter::new(Vec::new(), &library).unwrap());
    run_observed(scenario, seed, &mut logging).unwrap();
    let log = logging.0.end(End::Stopped).unwrap();
    Served::read(BufReader::new(&log[..])).unwrap()
}

fn mechanics() -> Mechanics {
    Mechanics::new(Throughput::PAPER, TRACK)
}

#[test]
fn the_same_machines_serve_what_a_log_says_in_the_same_time() {
    for policy in [Policy::fulgurite(), Policy::silica()] {
        let served = served(&scenario(policy), 5);
        let same = served.run(mechanics(), 5).unwrap();
        assert!(same.reads.served.count >= 2_000, "{same:?}");
        assert!(same.verifications.served.count >= 10, "{same:?}");
        assert_eq!((same.reads.twin, same.ended_otherwise), (same.reads.served, 0));
        assert_eq!(same.due_later, same.reads, "all have the objective");
        assert_eq!(same.verifications.twin, same.verifications.served);

        let other = served.run(mechanics(), 6).unwrap();
        assert_ne!(other.reads.twin, other.reads.served, "other times are drawn");
        let ratio = other.reads.twin.p999 / other.reads.served.p999;
        assert!((0.95..1.05).contains(&ratio), "the tail differs by {ratio}");
    }
}

#[test]
fn machines_of_another_speed_show() {
    let served = served(&scenario(Policy::fulgurite()), 5);
    let slower = served.run(mechanics().with_time_scale(1.5), 5).unwrap();
    assert!(slower.reads.twin.p50 > 1.4 * slower.reads.served.p50, "{slower:?}");
}
