//! A set run by its tomes. Invariants asserted during a run are not asserted here again.

use fulgurite_units::{ByteCount, Duration};

use super::{DrivenSet, Jobs, ReadStrategy, Repair, SetModel, TomeSelection};
use crate::engine::run;
use crate::tome::{Code, Ingest, RunResult, Scenario, TokenPriority, TomeSet};

const HOUR: u64 = 3_600;

/// Returns twenty tomes with small segments and a token per ten tomes, checked often.
fn set(driven: DrivenSet, hours: u64) -> Scenario {
    Scenario {
        tomes: 20,
        spinning: 0.1,
        group: Code::new(3, 2),
        segment: Code::new(14, 2),
        until: Duration::from_secs(hours * HOUR),
        model: SetModel::Driven,
        driven: DrivenSet { regions: 5, segments: 6, object: 7, checked_each: 50, ..driven },
        ..Scenario::default()
    }
}

fn written(megabytes: u64, clients: u32) -> Option<Ingest> {
    let session = ByteCount::new(megabytes * 1_000_000);
    let total = Some(ByteCount::new(megabytes * 1_000_000 * u64::from(clients)));
    Some(Ingest { clients, session, total, first: TokenPriority::Protection })
}

fn ran(scenario: &Scenario, seed: u64) -> RunResult {
    run::<TomeSet>(scenario, seed).unwrap()
}

#[test]
fn writes_are_protected_and_disks_spin_down() {
    let scenario = Scenario { ingest: written(28, 4), ..set(DrivenSet::default(), 3) };
    let one = ran(&scenario, 1);
    assert_eq!((one.acknowledged, one.protected), (112_000_000, 112_000_000), "{one:?}");
    assert!((1..=2).contains(&one.spinning_max), "{one:?}");
    assert!(one.driven.checks > 20 && one.spinning < 1.0, "{one:?}");
    assert_eq!(one, ran(&scenario, 1), "the same seed is the same run");
    assert_ne!(one.hash, ran(&scenario, 2).hash);
}

#[test]
fn one_token_suffices_for_a_write() {
    let scenario =
        Scenario { spinning: 0.05, ingest: written(28, 1), ..set(DrivenSet::default(), 3) };
    let one = ran(&scenario, 1);
    assert_eq!((one.protected, one.spinning_max), (28_000_000, 1), "{one:?}");
}

#[test]
fn degraded_read_avoids_spin_up_when_group_spins() {
    let driven = |reading| {
        let (stored, reads_per_hour) = (0.5, 200.0);
        let scenario =
            set(DrivenSet { stored, reads_per_hour, reading, ..DrivenSet::default() }, 3);
        ran(&Scenario { spinning: 0.8, ..scenario }, 1).driven
    };
    let (own, group) = (driven(ReadStrategy::Own), driven(ReadStrategy::Group));
    assert!(own.read.count > 400 && own.read_group.count == 0, "{own:?}");
    assert!(group.read_group.count > 0 && group.without_wake > own.without_wake, "{group:?}");
    assert!(group.bytes_sent > own.bytes_sent, "degraded reads send more bytes");
}

#[test]
fn affinity_places_one_writers_objects_together() {
    let tomes_a_job = |choosing| {
        let of = |minutes: u64| Duration::from_secs(60 * minutes);
        let jobs = Jobs {
            writers: 3,
            episodes: 2,
            objects: 4,
            gap: of(5),
            writing: of(240),
            reading: of(360),
            every: of(30),
        };
        let driven = DrivenSet { choosing, jobs: Some(jobs), ..DrivenSet::default() };
        let one = ran(&set(driven, 12), 1).driven;
        assert_eq!(one.job.count, 6, "{one:?}");
        one.tomes_a_job
    };
    let [affinity, random] = [TomeSelection::Affinity, TomeSelection::Random].map(tomes_a_job);
    assert!(affinity < 1.5 && random > 2.0, "{affinity} and {random}");
}

#[test]
fn bad_blocks_are_repaired_even_beyond_their_segment() {
    for repair in [Repair::InTurns, Repair::AtOnce] {
        let bad =
            DrivenSet { stored: 0.5, bad_per_hour: 1.0, bad_blocks: 4, ..DrivenSet::default() };
        let driven = DrivenSet { reads_per_hour: 20.0, repair, ..bad };
        let one = ran(&set(driven, 24), 1).driven;
        assert!(one.segments_lost > 3 && one.repaired.count > 20, "{one:?}");
        assert!(one.repaired.count <= one.bad && one.discovered.count <= one.bad, "{one:?}");
    }
}

#[test]
fn full_scrub_reads_all_blocks_within_its_period() {
    let year = |full_scrub| {
        let driven = DrivenSet { stored: 0.5, full_scrub, ..DrivenSet::default() };
        ran(&set(driven, 336 * 24), 1)
    };
    let (whole, none) = (year(true), year(false));
    assert!(whole.driven.scrubbed_min >= 1.0, "{whole:?}");
    assert!(none.driven.spin_ups < whole.driven.spin_ups, "{none:?}");
}

#[test]
fn lost_tome_is_rebuilt_in_three_write_passes() {
    let driven = DrivenSet { stored: 1.0, ..DrivenSet::default() };
    let scenario = Scenario { one_fails: true, ..set(driven, 48) };
    let driven = DrivenSet { regions: 6, free_regions: 1, ..scenario.driven.clone() };
    let one = ran(&Scenario { driven, ..scenario }, 1);
    assert_eq!((one.failures, one.rebuild.count, one.groups_lost), (1, 1, 0), "{one:?}");
    assert_eq!((one.rebuild_writes, one.rebuild_reads), (3, 2), "{one:?}");
}

#[test]
fn invalid_driven_set_is_rejected() {
    let refused = |driven: DrivenSet, named: &str| {
        let scenario = Scenario { driven, ..set(DrivenSet::default(), 1) };
        let error = run::<TomeSet>(&scenario, 1).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
    };
    let all = DrivenSet::default();
    refused(DrivenSet { object: 0, ..all.clone() }, "driven.object");
    refused(DrivenSet { free_regions: 9, ..all.clone() }, "driven.free_regions");
    refused(DrivenSet { stored: 2.0, ..all.clone() }, "driven.stored");
    refused(DrivenSet { bad_blocks: 0, ..all.clone() }, "driven.bad_blocks");
    refused(DrivenSet { checked_each: 0, ..all }, "driven.block");
}
