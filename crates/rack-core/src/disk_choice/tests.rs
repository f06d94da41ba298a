//! Tests the greedy choice of disks against all possible choices.

use proptest::prelude::*;

use super::fewest_disks;
use crate::Members;

fn members(positions: &[usize]) -> Members {
    positions.iter().copied().collect()
}

#[test]
fn read_takes_the_least_used_disks_it_needs() {
    let spun_up = [5, 1, 4, 1, 0, 9];
    let chosen = fewest_disks(&[(members(&[0, 1, 2, 3]), 2)], Members::first(6), |at| spun_up[at]);
    assert_eq!(chosen, members(&[1, 3]));
}

#[test]
fn reads_share_disks() {
    let reads = [(members(&[0, 1, 2]), 2), (members(&[1, 2, 3]), 2)];
    assert_eq!(fewest_disks(&reads, Members::first(4), |_| 0), members(&[1, 2]));
}

/// A read with too few usable disks gets those there are; refusing it is the task of others.
#[test]
fn disk_that_may_not_spin_up_is_not_chosen() {
    let reads = [(members(&[0, 1, 2]), 2), (members(&[4, 5]), 2)];
    let chosen = fewest_disks(&reads, members(&[1, 2, 3, 4]), |_| 0);
    assert_eq!(chosen, members(&[1, 2, 4]));
}

proptest! {
    /// Each read has enough disks of its own and no choice of disks is smaller than two thirds of
    /// this one.
    #[test]
    fn each_read_has_enough_disks_and_few_are_spun_up(
        sets in proptest::collection::vec((1u32..256, 1u32..5), 1..6),
        spun_up in proptest::collection::vec(0u64..4, 8),
    ) {
        let reads: Vec<(Members, u32)> = sets
            .iter()
            .map(|(bits, enough)| {
                let of: Members = (0..8).filter(|at| bits >> at & 1 == 1).collect();
                (of, (*enough).min(of.count()))
            })
            .collect();
        let is_enough = |chosen: Members| {
            reads.iter().all(|(of, least)| chosen.intersection(*of).count() >= *least)
        };
        let chosen = fewest_disks(&reads, Members::first(8), |at| spun_up[at]);
        prop_assert!(is_enough(chosen));
        let all = (0u32..256).map(|bits| (0..8).filter(|at| bits >> at & 1 == 1).collect());
        let least = all.filter(|of: &Members| is_enough(*of)).map(Members::count).min().unwrap();
        prop_assert!(chosen.count() * 2 <= least * 3, "{} for {least}", chosen.count());
    }
}
