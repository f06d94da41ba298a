//! Choice of a tome for an object.

use fulgurite_units::{Duration, Instant, Kin};
use proptest::prelude::*;

use crate::TomeId;
use crate::limits::{KIN_BLOCKS_MAX, KIN_WITHIN, KINS_MAX};
use crate::placement::{Candidate, Kins, Last, choose};

fn tome(number: u32, free: u64, turns: bool) -> Candidate {
    Candidate { tome: TomeId::new(number), free, turns }
}

fn last(number: u32, at: Instant, blocks: u64) -> Last {
    Last { tome: TomeId::new(number), at, blocks }
}

const NOW: Instant = Instant::from_nanos(KIN_WITHIN.as_nanos() * 2);

#[test]
fn without_kin_the_most_room_of_those_that_turn_decides() {
    let all = [tome(0, 90, false), tome(1, 50, true), tome(2, 60, true), tome(3, 60, true)];
    assert_eq!(choose(&all, None, 10, NOW), Some(TomeId::new(2)));
    assert_eq!(choose(&all, None, 70, NOW), Some(TomeId::new(0)), "the others have no room");
    assert_eq!(choose(&all, None, 91, NOW), None);
}

#[test]
fn kin_stays_together_though_its_tome_sleeps() {
    let all = [tome(0, 60, false), tome(1, 50, false), tome(2, 60, true)];
    let chosen = |last: Last| choose(&all, Some(&last), 10, NOW).unwrap().get();
    assert_eq!(chosen(last(1, NOW, 20)), 1);
    let long_ago = Instant::from_nanos(NOW.as_nanos() - KIN_WITHIN.as_nanos() - 1);
    assert_eq!(chosen(last(1, long_ago, 20)), 2, "it was put too long ago");
    assert_eq!(chosen(last(1, NOW, KIN_BLOCKS_MAX)), 2, "a run ends");
    assert_eq!(chosen(last(7, NOW, 20)), 2, "that tome cannot be used");
    let full = [tome(0, 60, false), tome(1, 20, false)];
    assert_eq!(choose(&full, Some(&last(1, NOW, 20)), 10, NOW), Some(TomeId::new(0)), "too full");
}

#[test]
fn a_run_is_counted_and_begins_anew() {
    let mut kins = Kins::default();
    kins.note(Kin::new(5), TomeId::new(1), 10, NOW);
    kins.note(Kin::new(5), TomeId::new(1), 10, NOW + Duration::from_secs(1));
    assert_eq!(kins.last(Kin::new(5)).unwrap().blocks, 20);
    kins.note(Kin::new(5), TomeId::new(2), 10, NOW + Duration::from_secs(2));
    assert_eq!(*kins.last(Kin::new(5)).unwrap(), last(2, NOW + Duration::from_secs(2), 10));
    kins.note(Kin::new(5), TomeId::new(2), KIN_BLOCKS_MAX, NOW + Duration::from_secs(3));
    assert_eq!(kins.last(Kin::new(5)).unwrap().blocks, KIN_BLOCKS_MAX);
}

#[test]
fn no_more_kins_are_known_than_there_is_memory_for() {
    let mut kins = Kins::default();
    assert!(kins.is_empty());
    for kin in 0..KINS_MAX as u64 + 10 {
        kins.note(Kin::new(kin), TomeId::new(1), 1, NOW + Duration::from_nanos(kin));
    }
    assert_eq!(kins.len(), KINS_MAX);
    assert!(kins.last(Kin::new(0)).is_none() && kins.last(Kin::new(KINS_MAX as u64 + 9)).is_some());
}

proptest! {
    #[test]
    fn what_is_chosen_has_room_and_is_there(
        rooms in prop::collection::vec((0_u64..100, any::<bool>()), 0..12),
        kin in 0_u32..14,
        blocks in 1_u64..100,
    ) {
        let all: Vec<Candidate> =
            (0..).zip(&rooms).map(|(number, (free, turns))| tome(number, *free, *turns)).collect();
        let last = last(kin, NOW, 1);
        let chosen = choose(&all, Some(&last), blocks, NOW);
        let fits = |c: &&Candidate| c.free >= blocks;
        prop_assert_eq!(chosen.is_some(), all.iter().any(|c| fits(&c)));
        if let Some(chosen) = chosen {
            prop_assert!(all.iter().filter(fits).any(|c| c.tome == chosen));
        }
    }
}
