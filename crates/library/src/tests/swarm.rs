//! Random libraries under random work: every request ends, every invariant holds after every event,
//! every command can be carried out, no read is overtaken, and a seed repeats itself.

use fulgurite_units::{Seed, SlotIndex, TrackIndex};
use proptest::prelude::*;

use super::twin::{Twin, distinct_slots, platter_id};
use crate::{Event, LibraryShape, Outcome, RequestId, TrackSpan};

/// How a run is made.
#[derive(Clone, Copy, Debug)]
struct Run {
    seed: u64,
    instant: bool,
    faults_per_mille: u64,
}

fn shapes() -> [LibraryShape; 5] {
    let small = LibraryShape::small();
    [
        small.clone(),
        LibraryShape::mdu(),
        // One of everything.
        LibraryShape {
            read_racks: 1,
            drives_per_read_rack: 1,
            storage_racks: 1,
            shuttles_per_panel: 1,
            ..small.clone()
        },
        // Two shuttles share each drive.
        LibraryShape { shuttles_per_panel: 8, storage_racks: 3, ..small.clone() },
        // Many drives for few shuttles.
        LibraryShape { drives_per_read_rack: 10, shuttles_per_panel: 3, ..small },
    ]
}

/// A library that is read, verified and stored by chance: a crowd at the start, then a trickle.
fn play(run: Run) -> Twin {
    let mut random = Seed::new(run.seed).child(b"workload").stream();
    let shapes = shapes();
    let shape = &shapes[usize::try_from(random.below(5)).unwrap()];
    let mut twin =
        if run.instant { Twin::instant(shape, run.seed) } else { Twin::new(shape, run.seed) };
    twin.faults_per_mille = run.faults_per_mille;
    let stored = u8::try_from(1 + random.below(40)).unwrap();
    let slots = distinct_slots(shape, &mut random, 100);
    let spread_ms = 1 + random.below(4_000_000);
    for request in 0..random.below(150) {
        let platter = u8::try_from(random.below(u64::from(stored))).unwrap();
        let at = random.below(2) * random.below(spread_ms);
        let track = u32::try_from(random.below(4)).unwrap();
        twin.read(at, request, platter, slots[usize::from(platter)], track);
        if random.below(8) == 0 {
            let at = at + random.below(200_000);
            twin.at(at, Event::Cancel { request: RequestId::new(request) });
        }
    }
    for number in 0..random.below(20) {
        let platter = 100 + u8::try_from(number).unwrap();
        let slot = slots[usize::from(platter) - 50];
        let tracks = u32::try_from(1 + random.below(300)).unwrap();
        let at = random.below(spread_ms);
        twin.verify(at, 1_000 + number, platter, slot, tracks);
        // Somebody reads it, perhaps too early: the platter is known, its slot not used yet.
        let (request, platter) = (RequestId::new(2_000 + number), platter_id(platter));
        let (slot, tracks) = (SlotIndex::new(slot), TrackSpan::new(TrackIndex::new(0), 1));
        let at = at + random.below(2_000_000);
        twin.at(at, Event::Read { request, platter, slot, tracks });
    }
    twin
}

fn assert_served(run: Run) -> Twin {
    let mut twin = play(run);
    if run.faults_per_mille == 0 {
        twin.run_to_rest();
    } else {
        twin.run();
        assert_eq!(twin.library.request_count(), 0, "requests are left");
    }
    let mut ends: Vec<_> = twin.finished.iter().map(|(request, ..)| *request).collect();
    ends.extend(twin.rejected.iter().map(|(request, _)| *request));
    ends.sort_unstable();
    let count = ends.len();
    ends.dedup();
    assert_eq!(ends.len(), count, "a request has one end");
    if run.faults_per_mille == 0 {
        let failed = twin.finished.iter().find(|(_, end, _)| matches!(end, Outcome::Failed(_)));
        assert_eq!(failed, None, "nothing fails by itself");
    }
    twin
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_request_is_served(seed: u64, instant: bool) {
        assert_served(Run { seed, instant, faults_per_mille: 0 });
    }

    #[test]
    fn every_request_ends_whatever_breaks(seed: u64, instant: bool, faults_per_mille in 1u64..60) {
        assert_served(Run { seed, instant, faults_per_mille });
    }
}

#[test]
fn a_seed_repeats_itself() {
    let run = |seed| assert_served(Run { seed, instant: false, faults_per_mille: 5 }).hash();
    let hashes: Vec<u64> = (0..12).map(run).collect();
    let again: Vec<u64> = (0..12).map(run).collect();
    assert_eq!(hashes, again);
    let mut distinct = hashes;
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > 10, "the hash tells runs apart");
}

/// The runs above meet what they are there for.
#[test]
fn the_swarm_sees_rare_things() {
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..60 {
        for faults_per_mille in [0, 30] {
            let twin = assert_served(Run { seed, instant: false, faults_per_mille });
            for thing in
                ["halt", "Canceled", "Stored", "PlatterMissing", "Unreadable", "ShuttleBroken"]
            {
                let found = twin.transcript.lines().any(|line| line.contains(thing));
                *seen.entry(thing).or_default() += u32::from(found);
            }
            for thing in ["DriveBroken", "out of reach", "not stored yet"] {
                *seen.entry(thing).or_default() += u32::from(twin.transcript.contains(thing));
            }
        }
    }
    assert_eq!(seen.len(), 9);
    assert!(seen.values().all(|count| *count > 0), "{seen:?}");
}
