//! Redundancy platters at other sites: which ones stay, and that no site gets too many.

use proptest::prelude::*;

use crate::plan::choose_far;

/// Counts how many of `places` each library gets.
fn counts(places: &[Option<usize>], libraries: usize) -> Vec<u64> {
    let mut counts = vec![0; libraries];
    places.iter().flatten().for_each(|&at| counts[at] += 1);
    counts
}

fn spread(counts: &[u64]) -> u64 {
    counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0)
}

#[test]
fn last_platters_go_to_far_libraries_if_there_are_any() {
    let three = [None; 3];
    assert_eq!(choose_far(&three, 2, &[0]), [None, Some(0), Some(0)]);
    assert_eq!(choose_far(&three, 2, &[5, 4]), [None, Some(1), Some(0)]);
    assert_eq!(choose_far(&three, 9, &[0, 0]), [Some(0), Some(1), Some(0)]);
    assert_eq!(choose_far(&three, 2, &[]), three);
    assert_eq!(choose_far(&[], 2, &[1]), []);
}

#[test]
fn placed_platters_stay_when_more_may_leave() {
    assert_eq!(choose_far(&[None, None, Some(1)], 2, &[9, 1]), [None, Some(0), Some(1)]);
    assert_eq!(choose_far(&[None, Some(0), Some(1)], 3, &[9, 9]), [Some(0), Some(0), Some(1)]);
    // With a lower `away`, none comes back. One is in a library that is not in the list any more.
    assert_eq!(choose_far(&[Some(0), None, None], 0, &[1]), [Some(0), None, None]);
    assert_eq!(choose_far(&[None, Some(7)], 2, &[1]), [Some(0), Some(7)]);
}

proptest! {
    #[test]
    fn far_libraries_fill_evenly_per_set_and_in_total(
        redundancy in 0_usize..9,
        away in 0_usize..9,
        libraries in 1_usize..6,
        sets in 1_usize..40,
    ) {
        let mut held = vec![0; libraries];
        for _ in 0..sets {
            let places = choose_far(&vec![None; redundancy], away, &held);
            prop_assert_eq!(places.len(), redundancy);
            let gone = places.iter().flatten().count();
            prop_assert_eq!(gone, away.min(redundancy));
            prop_assert!(places[..redundancy - gone].iter().all(Option::is_none));
            let per_library = counts(&places, libraries);
            prop_assert!(spread(&per_library) <= 1, "{:?}", per_library);
            held.iter_mut().zip(&per_library).for_each(|(held, more)| *held += more);
            prop_assert!(spread(&held) <= 1, "{:?}", held);
        }
    }
}
