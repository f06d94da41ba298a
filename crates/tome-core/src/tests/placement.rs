//! Choice of a tome for an object.

use fulgurite_units::{AffinityGroup, Duration, Instant};
use proptest::prelude::*;

use crate::TomeId;
use crate::limits::{AFFINITY_GROUPS_MAX, AFFINITY_RUN_BLOCKS_MAX, AFFINITY_WINDOW};
use crate::placement::{Candidate, LastPlacement, PlacementHistory, choose};

fn tome(number: u32, free: u64, is_spinning: bool) -> Candidate {
    Candidate { tome: TomeId::new(number), free, is_spinning }
}

fn last(number: u32, at: Instant, blocks: u64) -> LastPlacement {
    LastPlacement { tome: TomeId::new(number), at, blocks }
}

const NOW: Instant = Instant::from_nanos(AFFINITY_WINDOW.as_nanos() * 2);

#[test]
fn without_affinity_emptiest_spinning_tome_is_chosen() {
    let all = [tome(0, 90, false), tome(1, 50, true), tome(2, 60, true), tome(3, 60, true)];
    assert_eq!(choose(&all, None, 10, NOW), Some(TomeId::new(2)));
    assert_eq!(choose(&all, None, 70, NOW), Some(TomeId::new(0)), "the others have no room");
    assert_eq!(choose(&all, None, 91, NOW), None);
}

#[test]
fn affinity_group_stays_on_its_sleeping_tome() {
    let all = [tome(0, 60, false), tome(1, 50, false), tome(2, 60, true)];
    let chosen = |last: LastPlacement| choose(&all, Some(&last), 10, NOW).unwrap().get();
    assert_eq!(chosen(last(1, NOW, 20)), 1);
    let long_ago = Instant::from_nanos(NOW.as_nanos() - AFFINITY_WINDOW.as_nanos() - 1);
    assert_eq!(chosen(last(1, long_ago, 20)), 2, "the last put is too old");
    assert_eq!(chosen(last(1, NOW, AFFINITY_RUN_BLOCKS_MAX)), 2, "the run has its maximum length");
    assert_eq!(chosen(last(7, NOW, 20)), 2, "that tome is not a candidate");
    let full = [tome(0, 60, false), tome(1, 20, false)];
    assert_eq!(
        choose(&full, Some(&last(1, NOW, 20)), 10, NOW),
        Some(TomeId::new(0)),
        "the tome is too full"
    );
}

#[test]
fn affinity_run_is_counted_and_restarts() {
    let mut placements = PlacementHistory::default();
    placements.record(AffinityGroup::new(5), TomeId::new(1), 10, NOW);
    placements.record(AffinityGroup::new(5), TomeId::new(1), 10, NOW + Duration::from_secs(1));
    assert_eq!(placements.last(AffinityGroup::new(5)).unwrap().blocks, 20);
    placements.record(AffinityGroup::new(5), TomeId::new(2), 10, NOW + Duration::from_secs(2));
    assert_eq!(
        *placements.last(AffinityGroup::new(5)).unwrap(),
        last(2, NOW + Duration::from_secs(2), 10)
    );
    placements.record(
        AffinityGroup::new(5),
        TomeId::new(2),
        AFFINITY_RUN_BLOCKS_MAX,
        NOW + Duration::from_secs(3),
    );
    assert_eq!(placements.last(AffinityGroup::new(5)).unwrap().blocks, AFFINITY_RUN_BLOCKS_MAX);
}

#[test]
fn remembered_affinity_groups_are_bounded() {
    let mut placements = PlacementHistory::default();
    assert!(placements.is_empty());
    for affinity in 0..AFFINITY_GROUPS_MAX as u64 + 10 {
        placements.record(
            AffinityGroup::new(affinity),
            TomeId::new(1),
            1,
            NOW + Duration::from_nanos(affinity),
        );
    }
    assert_eq!(placements.len(), AFFINITY_GROUPS_MAX);
    assert!(
        placements.last(AffinityGroup::new(0)).is_none()
            && placements.last(AffinityGroup::new(AFFINITY_GROUPS_MAX as u64 + 9)).is_some()
    );
}

proptest! {
    #[test]
    fn chosen_tome_is_a_candidate_with_room(
        rooms in prop::collection::vec((0_u64..100, any::<bool>()), 0..12),
        affinity in 0_u32..14,
        blocks in 1_u64..100,
    ) {
        let all: Vec<Candidate> =
            (0..).zip(&rooms).map(|(number, (free, spins))| tome(number, *free, *spins)).collect();
        let last = last(affinity, NOW, 1);
        let chosen = choose(&all, Some(&last), blocks, NOW);
        let fits = |c: &&Candidate| c.free >= blocks;
        prop_assert_eq!(chosen.is_some(), all.iter().any(|c| fits(&c)));
        if let Some(chosen) = chosen {
            prop_assert!(all.iter().filter(fits).any(|c| c.tome == chosen));
        }
    }
}
