//! Random libraries under random work: every request ends, every invariant holds after every event,
//! every command can be carried out, every platter gets home, and a seed is reproducible.

use std::collections::BTreeMap;

use fulgurite_units::{Duration, Instant, RandomStream, Ratio, Seed, SlotIndex, TrackIndex};
use proptest::prelude::*;

use super::batteries::Batteries;
use super::twin::{OBJECTIVE, Twin, distinct_slots, platter_id};
use crate::control::{
    Event, LibraryShape, Machine, Movement, Outcome, PanelIndex, Policy, RailPosition, RequestId,
    RightOfWay, ShelfIndex, TrackSpan,
};

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) instant: bool,
    pub(super) failures_per_mille: u64,
    /// Whether shuttles run on batteries, some so small that they go flat.
    pub(super) batteries: bool,
}

/// The longest a run may go on after the last request came or the last machine was repaired.
const REST_LIMIT: Duration = Duration::from_secs(12 * 3600);

fn small(random: &mut RandomStream, low: u64, high: u64) -> u16 {
    u16::try_from(low + random.below(high - low + 1)).unwrap()
}

fn any_shape(random: &mut RandomStream) -> LibraryShape {
    loop {
        let panels = small(random, 1, 2);
        let slots_per_shelf = small(random, 2, 12);
        let shape = LibraryShape {
            panels,
            write_racks: 1,
            read_racks: small(random, 1, 3),
            drives_per_read_rack: panels * small(random, 1, 4),
            storage_racks: small(random, 1, 4),
            shelves_per_panel: small(random, 1, 8),
            slots_per_shelf,
            shuttles_per_panel: small(random, 1, 12),
            rack_width_mm: 1200,
            shuttle_width_mm: u32::from(small(random, 100, 900)),
            spare_slots_per_shelf: small(random, 0, 1),
        };
        if shape.validate().is_ok() && shape.slot_count() >= 80 {
            return shape;
        }
    }
}

fn any_policy(random: &mut RandomStream) -> Policy {
    let movement = [
        Movement::Partitions,
        Movement::Partitions,
        Movement::Partitions,
        Movement::ShortestPaths,
        Movement::ShortestPaths,
        Movement::NoShuttles,
    ][usize::from(small(random, 0, 5))];
    Policy {
        movement,
        customer_slots: u8::try_from(1 + random.below(2)).unwrap(),
        pairs: random.below(2) == 0,
        candidates: small(random, 1, 8),
        age_bound: Duration::from_secs(random.below(4000)),
        help_platters: (random.below(2) == 0).then(|| small(random, 0, 4)),
        steal_tracks: (random.below(2) == 0).then(|| random.below(8)),
        rebalance: (random.below(2) == 0).then(|| Duration::from_secs(1 + random.below(600))),
        verify_within: Duration::from_secs(random.below(100_000)),
        hold: [Ratio::ZERO, Ratio::new(0.02).unwrap()][usize::from(small(random, 0, 1))],
        right_of_way: [RightOfWay::Age, RightOfWay::Identifier][usize::from(small(random, 0, 1))],
        ..Policy::silica()
    }
}

/// Plays a library that is read, verified and stored at random: a burst at the start, then a
/// trickle.
pub(super) fn set_up_run(run: Run) -> Twin {
    let mut random = Seed::new(run.seed).child(b"workload").stream();
    let (shape, policy) = (any_shape(&mut random), any_policy(&mut random));
    let has_shuttles = policy.movement != Movement::NoShuttles;
    let mut policy = policy;
    let batteries = run.batteries.then(|| Batteries::any(run.seed, &shape, &mut policy));
    let mut twin = Twin::with_policy(&shape, policy, run.seed);
    twin.batteries = batteries;
    if run.instant {
        twin = twin.instant();
    }
    twin.failures_per_mille = run.failures_per_mille;
    if random.below(3) > 0 {
        twin.repair_after = Some(Duration::from_secs(1 + random.below(10_000)));
    }
    let stored = u32::try_from(1 + random.below(15)).unwrap();
    let homes = shape.slot_count() * u32::from(shape.slots_per_shelf - shape.spare_slots_per_shelf)
        / u32::from(shape.slots_per_shelf);
    let slots = distinct_slots(&shape, &mut random, homes.min(35) as usize);
    let spread_ms = 1 + random.below(4_000_000);
    for request in 0..random.below(100) {
        let platter = u32::try_from(random.below(u64::from(stored))).unwrap();
        let at = random.below(2) * random.below(spread_ms);
        let track = u32::try_from(random.below(4)).unwrap();
        let due = Instant::from_nanos(at * 1_000_000)
            + Duration::from_nanos(random.below(OBJECTIVE.as_nanos()));
        twin.read_until(at, request, platter, slots[platter as usize], track, due);
        if random.below(8) == 0 {
            let at = at + random.below(200_000);
            twin.at(at, Event::Cancel { request: RequestId::new(request) });
        }
    }
    for number in 0..random.below(15) {
        let platter = 15 + u32::try_from(number).unwrap();
        let slot = slots[platter as usize];
        let tracks = u32::try_from(1 + random.below(300)).unwrap();
        let at = random.below(spread_ms);
        twin.verify(at, 1_000 + number, platter, slot, tracks);
        // Reads it, perhaps too early: the platter is known, its slot not used yet.
        let (request, platter) = (RequestId::new(2_000 + number), platter_id(platter));
        let (slot, tracks) = (SlotIndex::new(slot), TrackSpan::new(TrackIndex::new(0), 1));
        let at = at + 1 + random.below(2_000_000);
        let deadline = Instant::from_nanos(at * 1_000_000) + OBJECTIVE;
        twin.at(at, Event::Read { request, platter, slot, tracks, deadline });
    }
    if run.failures_per_mille > 0 && has_shuttles {
        break_rails(&mut twin, &mut random, spread_ms);
    }
    twin
}

fn break_rails(twin: &mut Twin, random: &mut RandomStream, spread_ms: u64) {
    let shape = twin.library.shape().clone();
    for _ in 0..random.below(3) {
        let from = random.below(shape.length_um());
        let machine = Machine::Rail {
            panel: PanelIndex::new(small(random, 0, u64::from(shape.panels) - 1)),
            shelf: ShelfIndex::new(small(random, 0, u64::from(shape.shelves_per_panel) - 1)),
            from: RailPosition::new(from),
            to: RailPosition::new(from + 1 + random.below(2_000_000)),
        };
        let at = random.below(spread_ms);
        twin.break_at(at, machine);
        twin.repair_at(at + random.below(spread_ms), machine);
    }
}

pub(super) fn assert_served(run: Run) -> Twin {
    let mut twin = set_up_run(run);
    twin.run_to_rest();
    let rest = twin.now.since(twin.last_arrival);
    assert!(rest <= REST_LIMIT, "it took {rest:?} to come to rest");
    let mut ends: Vec<_> = twin.finished.iter().map(|(request, ..)| *request).collect();
    ends.extend(twin.rejected.iter().map(|(request, _)| *request));
    ends.sort_unstable();
    let count = ends.len();
    ends.dedup();
    assert_eq!(ends.len(), count, "a request has one end");
    if run.failures_per_mille == 0
        && twin.batteries.as_ref().is_none_or(|batteries| batteries.flat == 0)
    {
        let failed = twin.finished.iter().find(|(_, end, _)| matches!(end, Outcome::Failed(_)));
        assert_eq!(failed, None, "nothing fails by itself");
    }
    twin
}

pub(super) fn cases(default: u32) -> u32 {
    #[expect(clippy::disallowed_methods, reason = "the long swarm is asked for by its variable")]
    let count = std::env::var("FULGURITE_SWARM");
    count.ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

proptest! {
    // A smaller seed does not fail the same way, so there is nothing to shrink.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(cases(150))
    })]

    #[test]
    fn every_request_is_served(seed: u64, instant: bool) {
        assert_served(Run { seed, instant, failures_per_mille: 0, batteries: false });
    }

    #[test]
    fn every_request_ends_with_batteries(
        seed: u64, instant: bool, failures_per_mille in 0u64..20,
    ) {
        let failures_per_mille = failures_per_mille.saturating_sub(8);
        assert_served(Run { seed, instant, failures_per_mille, batteries: true });
    }

    #[test]
    fn every_request_ends_despite_failures(
        seed: u64, instant: bool, failures_per_mille in 1u64..40,
    ) {
        assert_served(Run { seed, instant, failures_per_mille, batteries: false });
    }
}

/// A crowd in which a shuttle on its way out found the place taken, and no other place was looked
/// for.
#[test]
fn closed_way_out_is_replaced_by_another() {
    let seed = 16_262_186_878_997_694_214;
    assert_served(Run { seed, instant: false, failures_per_mille: 33, batteries: false });
}

/// A new platter in the picker, another one in its group's only drive, which that shuttle should
/// take out, and no spare slot: a deadlock.
#[test]
fn loaded_shuttle_uses_the_drive_of_another_group() {
    let seed = 15_932_703_909_584_809_464;
    assert_served(Run { seed, instant: false, failures_per_mille: 18, batteries: false });
}

#[test]
fn same_seed_gives_the_same_run() {
    let run = |seed| {
        let batteries = seed % 2 == 0;
        assert_served(Run { seed, instant: false, failures_per_mille: 5, batteries }).hash
    };
    let hashes: Vec<u64> = (0..12).map(run).collect();
    let again: Vec<u64> = (0..12).map(run).collect();
    assert_eq!(hashes, again);
    let mut distinct = hashes;
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > 10, "the hash distinguishes runs");
}

/// The runs above cover the cases they are there for.
#[test]
fn swarm_covers_rare_states() {
    let mut seen = BTreeMap::<&str, u32>::new();
    let words = [
        "halt",
        "Canceled",
        "Stored",
        "PlatterMissing",
        "Unreadable",
        "ShuttleBroken",
        "DriveBroken",
        "out of reach",
        "not stored yet",
        "Rail",
    ];
    for seed in 0..40 {
        for failures_per_mille in [0, 20] {
            let twin =
                assert_served(Run { seed, instant: false, failures_per_mille, batteries: false });
            for word in words {
                *seen.entry(word).or_default() += u32::from(twin.transcript.contains(word));
            }
            let counters = twin.library.counters();
            for (thing, count) in [
                ("steals", counters.steals),
                ("ways given", counters.give_ways),
                ("waits", counters.waits),
                ("passed over", counters.passed_over_max_ns),
            ] {
                *seen.entry(thing).or_default() += u32::from(count > 0);
            }
        }
    }
    assert!(seen.values().all(|count| *count > 0), "{seen:?}");
}
