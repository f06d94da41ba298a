//! Versions, rows and fragments: every reader answers a version at least as new as any that was
//! answered or acknowledged before it began, and a write comes after all of those.
//!
//! With one value per version and one version per value this is the linearizability of an object:
//! the versions are the order, and an operation that ended before another began comes before it.

use fulgurite_geo_core::{QuorumRule, Quorums};

use super::search::{Extent, is_broken, is_safe, nightly_extent};
use super::table::ValueKind;
use super::world::{Fragments, Mutant, Role, World};

fn world(roles: &[Role], values: usize) -> World {
    let quorums = Quorums::new(3, QuorumRule::Majority).unwrap();
    World::new(quorums, roles, &vec![ValueKind::Put; values])
}

/// Two of three fragments decode a put, and two acknowledge it.
const FRAGMENTS: Fragments = Fragments { data: 2, acknowledged: 2, confirm: false };

/// Creates a world with a writer of so many values and readers with these numbers of reads.
fn readers(values: u8, reads: &[u8]) -> World {
    let readers = reads.iter().map(|reads| Role::Reader(*reads));
    let roles: Vec<Role> =
        std::iter::once(Role::Writer((0..values).collect())).chain(readers).collect();
    World {
        versions: values,
        fragments: Some(FRAGMENTS),
        prompt: true,
        ..world(&roles, usize::from(values))
    }
}

#[test]
fn reader_answers_in_version_order() {
    is_safe("reading 1 put, 1 reader twice", readers(1, &[2]), Extent::All);
}

#[test]
fn two_readers_answer_in_version_order() {
    let world = World { fragments: None, ..readers(1, &[1, 1]) };
    is_safe("reading 1 put without fragments, 2 readers", world, Extent::All);
    is_safe("reading 1 put, 2 readers", readers(1, &[1, 1]), nightly_extent());
}

#[test]
fn reading_one_row_is_not_enough() {
    let world = World { mutant: Mutant::LocalRead, ..readers(1, &[1]) };
    is_broken("reading mutant: one row", world, Extent::All);
}

#[test]
fn reader_must_consider_accepted_values() {
    let world = World { mutant: Mutant::IgnoreAccepted, ..readers(1, &[1]) };
    is_broken("reading mutant: accepted values ignored", world, Extent::All);
}

#[test]
fn one_missing_fragment_proves_nothing() {
    let world = World { mutant: Mutant::EagerFallback, ..readers(1, &[1]) };
    is_broken("reading mutant: eager fallback", world, Extent::All);
}

#[test]
fn unavailable_site_proves_nothing() {
    let world = World { mutant: Mutant::UnavailableIsAbsent, ..readers(1, &[1]) };
    is_broken("reading mutant: unavailable is absent", world, Extent::All);
}

/// Two writers of one value each, over three versions, without fragments.
fn two_writers() -> World {
    let roles = [Role::Writer(vec![0]), Role::Writer(vec![1])];
    World { versions: 3, prompt: true, ..world(&roles, 2) }
}

#[test]
fn value_is_chosen_for_one_version() {
    is_safe("reading 2 writers", two_writers(), Extent::All);
}

#[test]
fn value_is_proposed_for_one_version_at_a_time() {
    let world = World { mutant: Mutant::ProposeEarly, ..two_writers() };
    is_broken("reading mutant: proposed early", world, Extent::All);
}

#[test]
fn more_readers_answer_in_order_within_search_limit() {
    is_safe("reading 2 puts, 1 reader twice", readers(2, &[2]), nightly_extent());
    let roles = [Role::Writer(vec![0]), Role::Writer(vec![1]), Role::Reader(1)];
    let world = World { versions: 2, prompt: true, ..world(&roles, 2) };
    is_safe("reading 2 writers, 1 reader", world, nightly_extent());
}
