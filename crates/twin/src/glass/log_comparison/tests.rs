//! The log of a twin, replayed by the twin: with the same seed nothing differs, with another
//! little.

use std::io::BufReader;

use fulgurite_glass_core::control::log::{End, LogWriter};
use fulgurite_glass_core::control::{
    Library, LibraryShape, Machine, Mechanics, MechanicsParameters, Policy, Throughput,
};
use fulgurite_restore::log as restore_log;
use fulgurite_units::{ByteCount, DriveIndex, Ratio, ShuttleIndex};

use super::*;
use crate::engine::Observer;
use crate::glass::scenario::{self, Batch, FaultPlan, Recovery, Scenario, SystemTag, Writes};
use crate::glass::{Glass, Observation, run_observed};
use crate::workload::{Envelope, Jobs, Placement, Profile, Sizes, Workload};

const TRACK: ByteCount = ByteCount::new(20_000_000);

/// Both logs of a run; that of restores is empty where reads are no restores.
struct Logging(LogWriter<Vec<u8>>, restore_log::LogWriter<Vec<u8>>);

impl Observer<Glass> for Logging {
    fn observe(&mut self, now: Instant, observation: Observation<'_>) {
        match observation {
            Observation::Event(event) => self.0.event(now, event).unwrap(),
            Observation::Output(output) => self.0.output(output).unwrap(),
            Observation::Stepped(_) => {}
            Observation::RestoreEvent(event) => self.1.event(now, event).unwrap(),
            Observation::RestoreCommand(command) => self.1.command(command).unwrap(),
        }
    }
}

/// Returns reads for some hours, new platters, and machines that break.
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
    // Reads keep all drives busy: with a bound of a day, nothing would be verified.
    let policy = Policy { verify_within: Duration::from_secs(1800), ..policy };
    Scenario {
        system: SystemTag::Glass,
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
        restores: None,
        battery: None,
        measure_from: Duration::ZERO,
        measure_until: hours(8),
    }
}

/// Returns the logs of a run: its library's, and its restores'.
fn logs(scenario: &Scenario, seed: u64) -> [Vec<u8>; 2] {
    let library = Library::with_policy(&scenario.library, scenario.policy.clone()).unwrap();
    let restores = fulgurite_restore::Restores::new(4);
    let mut logging = Logging(
        LogWriter::new(Vec::new(), &library).unwrap(),
        restore_log::LogWriter::new(Vec::new(), &restores).unwrap(),
    );
    run_observed(scenario, seed, &mut logging).unwrap();
    let restores = logging.1.end(restore_log::End::Stopped).unwrap();
    [logging.0.end(End::Stopped).unwrap(), restores]
}

fn served(scenario: &Scenario, seed: u64) -> ServedLog {
    let [log, _] = logs(scenario, seed);
    ServedLog::read(BufReader::new(&log[..])).unwrap()
}

fn mechanics() -> Mechanics {
    Mechanics::new(Throughput::PAPER, TRACK)
}

#[test]
fn replay_with_same_machines_takes_the_logged_time() {
    for policy in [Policy::fulgurite(), Policy::silica()] {
        let served = served(&scenario(policy), 5);
        let same = served.run(mechanics(), 5).unwrap();
        assert!(same.reads.served.count >= 2_000, "{same:?}");
        assert!(same.verifications.served.count >= 10, "{same:?}");
        assert_eq!((same.reads.twin, same.ended_otherwise), (same.reads.served, 0));
        assert_eq!(same.due_later, same.reads, "all reads are due later");
        assert_eq!(same.verifications.twin, same.verifications.served);

        let other = served.run(mechanics(), 6).unwrap();
        assert_ne!(other.reads.twin, other.reads.served, "another seed draws other times");
        let ratio = other.reads.twin.p999 / other.reads.served.p999;
        assert!((0.95..1.05).contains(&ratio), "the tail differs by {ratio}");
    }
}

#[test]
fn different_machine_speed_is_detected() {
    let served = served(&scenario(Policy::fulgurite()), 5);
    let slower = served.run(mechanics().with_time_scale(1.5), 5).unwrap();
    assert!(slower.reads.twin.p50 > 1.4 * slower.reads.served.p50, "{slower:?}");
}

/// Returns restores of all classes, and verification.
fn restores() -> Scenario {
    let batch = |at, count, retrieval| Batch {
        at: Duration::from_secs(at),
        every: Duration::ZERO,
        count,
        size: ByteCount::new(30_000_000),
        retrieval,
    };
    let restores = scenario::Restores {
        room: ByteCount::gib(1024),
        expedited: Ratio::new(0.1).unwrap(),
        bulk: Ratio::new(0.5).unwrap(),
        batches: vec![batch(0, 200, Retrieval::Bulk), batch(9_000, 50, Retrieval::Standard)],
    };
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let mut scenario = scenario(Policy::fulgurite());
    scenario.workload.envelope.window = hours(1);
    Scenario { restores: Some(restores), faults: Vec::new(), measure_until: hours(3), ..scenario }
}

#[test]
fn replayed_restores_match_the_logs() {
    let [log, restores] = logs(&restores(), 5);
    // Both controllers make the same decisions in a replay.
    let played = fulgurite_glass_core::control::log::replay(&log[..]).unwrap();
    assert_eq!((played.divergence, played.events > 10_000), (None, true));
    let played = restore_log::replay(&restores[..]).unwrap();
    assert_eq!((played.divergence, played.commands > 1_000), (None, true));

    let served = ServedLog::read(BufReader::new(&log[..])).unwrap();
    let served = served.with_restores(&restores[..], TRACK).unwrap();
    let same = served.run(mechanics(), 5).unwrap();
    let of = same.restores.unwrap();
    assert!(of.all.served.count >= 900, "{of:?}");
    assert_eq!(of.platters_of_no_use, 0, "{of:?}");
    for compared in [of.all, of.expedited, of.standard, of.bulk, same.reads, same.verifications] {
        assert_eq!(compared.served, compared.twin);
        assert!(compared.served.count > 10);
    }
    assert_eq!((of.unended_twin, same.ended_otherwise), (0, 0));
    assert_eq!((of.order.by_timing, of.order.unexplained), (0, 0));
    assert_eq!(of.order.visits_served, of.order.visits_twin);
    for [served, twin] in
        [[of.busy_served, of.busy_twin], [of.shuttles_busy_served, of.shuttles_busy_twin]]
    {
        assert!(served > 0.1 && (served - twin).abs() < 1e-9, "{of:?}");
    }

    let other = served.run(mechanics(), 6).unwrap().restores.unwrap();
    assert_ne!(other.all.twin, other.all.served, "another seed draws other times");
    assert!(other.order.pairs > 1_000, "{other:?}");
    assert_eq!(other.order.unexplained, 0, "{other:?}");
}

#[test]
fn unexplained_fetch_order_is_detected() {
    let [log, restores] = logs(&restores(), 5);
    let served = ServedLog::read(BufReader::new(&log[..])).unwrap();
    let mut served = served.with_restores(&restores[..], TRACK).unwrap();
    // As if the archive had fetched the latest deadlines first.
    served.restores.as_mut().unwrap().history.visits.reverse();
    let order = served.run(mechanics(), 5).unwrap().restores.unwrap().order;
    assert!(order.unexplained > order.pairs / 4, "{order:?}");
}

/// The logs show which platters are unavailable, and which are read instead.
#[test]
fn substituted_platters_are_found_in_the_logs() {
    let scenario = Scenario {
        unavailable: Ratio::new(0.02).unwrap(),
        recovery: Recovery::Set { redundancy: 3 },
        ..restores()
    };
    let [log, restores] = logs(&scenario, 5);
    let served = ServedLog::read(BufReader::new(&log[..])).unwrap();
    let served = served.with_restores(&restores[..], TRACK).unwrap();
    let twin = served.run(mechanics(), 5).unwrap().restores.unwrap();
    assert!(twin.platters_of_no_use > 0, "{twin:?}");
    assert_eq!(twin.order.unexplained, 0, "{twin:?}");
    // If two platters of a set are requested at the same moment, one may be missed.
    assert!(20 * twin.unended_twin < twin.all.served.count, "{twin:?}");
}
