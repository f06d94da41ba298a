//! One version: at most one value is chosen, whatever is late, lost, repeated or forgotten.

use fulgurite_geo_core::{QuorumRule, Quorums};

use super::search::{Extent, is_broken, is_nightly, is_safe, nightly_extent, walk};
use super::table::{Acceptor, Rule, ValueKind};
use super::world::{Mutant, Role, World};

/// Two writers of one value each, with one classic ballot each.
fn two(quorums: Quorums) -> World {
    writers(quorums, 2)
}

fn writers(quorums: Quorums, count: u8) -> World {
    let roles: Vec<Role> = (0..count).map(|val| Role::Writer(vec![val])).collect();
    World::new(quorums, &roles, &vec![ValueKind::Put; roles.len()])
}

fn majority(sites: usize) -> Quorums {
    Quorums::new(sites, QuorumRule::Majority).unwrap()
}

#[test]
fn three_sites_agree() {
    is_safe("instance 3 sites", two(majority(3)), Extent::All);
}

#[test]
fn three_sites_that_share_decisions_agree() {
    let world = World { commits: true, ..two(majority(3)) };
    is_safe("instance 3 sites, decisions shared", world, Extent::All);
}

#[test]
fn three_sites_agree_with_most_responses_rule() {
    let mut world = two(majority(3));
    world.table.rule = Rule::MostResponses;
    is_safe("instance 3 sites, most responses", world, Extent::All);
}

#[test]
fn flexible_quorums_agree() {
    let world = two(Quorums::new(3, QuorumRule::Flexible).unwrap());
    is_safe("instance 3 sites, flexible", world, Extent::All);
}

#[test]
fn fast_quorum_of_two_is_too_small() {
    let world = two(Quorums::unchecked(3, 2, 2, 2));
    is_broken("instance mutant: fast 2 of 3", world, Extent::All);
}

#[test]
fn fast_round_respects_promises() {
    let mut world = two(majority(3));
    world.table.acceptor = Acceptor::IgnoringPromises;
    is_broken("instance mutant: promises ignored", world, Extent::All);
}

#[test]
fn site_that_lost_its_rows_must_not_vote() {
    let world = World { loses: true, mutant: Mutant::LostUnfenced, ..two(majority(3)) };
    is_broken("instance mutant: lost rows, unfenced", world, Extent::All);
}

#[test]
fn two_thirds_fast_quorum_of_seven_is_too_small() {
    let world = two(Quorums::unchecked(7, 4, 4, 5));
    let wrong = walk("instance mutant: fast 5 of 7", &world, 1, 20_000_000);
    assert!(wrong.is_some(), "the search did not detect the fault");
    let mut world = two(Quorums::unchecked(7, 4, 4, 5));
    world.table.rule = Rule::MostResponses;
    let wrong = walk("instance mutant: fast 5 of 7, most responses", &world, 1, 20_000_000);
    assert!(wrong.is_some(), "the search did not detect the fault");
}

#[test]
fn four_and_five_sites_agree() {
    is_safe("instance 4 sites", two(majority(4)), Extent::All);
    is_safe("instance 5 sites", two(majority(5)), Extent::All);
}

#[test]
fn larger_instances_agree_within_search_limit() {
    let world = World { attempts: 2, ..two(majority(3)) };
    is_safe("instance 3 sites, 2 ballots each", world, nightly_extent());
    is_safe("instance 3 sites, 3 writers", writers(majority(3), 3), nightly_extent());
    let steps = if is_nightly() { 80_000_000 } else { 300_000 };
    let wrong = walk("instance 7 sites", &two(majority(7)), 2, steps);
    assert_eq!(wrong, None);
    let balanced = Quorums::new(7, QuorumRule::Balanced).unwrap();
    assert_eq!(walk("instance 7 sites, balanced", &two(balanced), 3, steps), None);
}
