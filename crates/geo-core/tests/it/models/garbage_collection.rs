//! Garbage collection: if a delete makes a version obsolete, or policy does after a newer put, its
//! fragments are removed first. Then every row records for good that the version is gone.

use fulgurite_geo_core::{Decided, QuorumRule, Quorums, Version};

use super::search::{Extent, is_broken, is_nightly, is_safe, nightly_extent};
use super::table::{Ask, ValueKind};
use super::world::{Fragments, Mutant, Role, World};

const FRAGMENTS: Fragments = Fragments { data: 2, acknowledged: 2, confirm: true };

/// Creates a world in which the first versions are decided, acknowledged and on all rows.
fn world(roles: &[Role], values: &[ValueKind], decided: u8, durable: bool) -> World {
    let quorums = Quorums::new(3, QuorumRule::Majority).unwrap();
    let mut world = World {
        fragments: Some(FRAGMENTS),
        prompt: true,
        acknowledged: decided,
        ..World::new(quorums, roles, values)
    };
    for version in 1..=decided {
        let value = world.table.value(version - 1);
        world.known.learn(Version(u64::from(version)), &Decided { value, durable });
    }
    world
}

/// A put is deleted during a read and a garbage collection.
fn deleted() -> World {
    let roles = [Role::Writer(vec![1]), Role::Reader(1), Role::Collector(None)];
    World { versions: 2, ..world(&roles, &[ValueKind::Put, ValueKind::Delete], 1, true) }
}

/// A put was deleted; it is put again during a garbage collection and the actions of these others.
/// An old proposal of the same value for version 1 is in flight.
fn put_again(others: &[Role]) -> World {
    let roles = [&[Role::Writer(vec![2]), Role::Collector(None)], others].concat();
    World {
        versions: 3,
        late: vec![Ask::PreAccept(1, 2)],
        ..world(&roles, &[ValueKind::Put, ValueKind::Delete, ValueKind::Put], 2, true)
    }
}

/// A put is overwritten, and removed since only the newest is kept.
fn overwritten(durable: bool) -> World {
    let roles = [Role::Writer(vec![1]), Role::Reader(1), Role::Collector(Some(1))];
    World { versions: 2, ..world(&roles, &[ValueKind::Put, ValueKind::Put], 1, durable) }
}

#[test]
fn deleted_put_stays_deleted() {
    is_safe("collecting after a delete", deleted(), Extent::All);
}

#[test]
fn new_put_survives_collection_of_old_ones() {
    is_safe("collecting, put again", put_again(&[]), Extent::All);
    is_safe("collecting, put again, 1 reader", put_again(&[Role::Reader(1)]), nightly_extent());
}

#[test]
fn overwritten_put_is_collected_during_reads() {
    is_safe("collecting, overwritten", overwritten(true), nightly_extent());
}

/// Shows why collection waits. Otherwise a reader may pass over the new put, whose fragments are
/// late, and then find the fragments of the old one removed.
#[test]
fn collection_waits_for_running_reads() {
    if is_nightly() {
        let world = overwritten(false);
        is_broken("collecting mutant: no pause, not known as durable", world, Extent::All);
    }
}

#[test]
fn reader_rereads_rows_before_falling_back() {
    let world = World { mutant: Mutant::FallbackUnconfirmed, ..overwritten(false) };
    is_broken("collecting mutant: fallback unconfirmed", world, Extent::All);
}

#[test]
fn fragments_are_removed_before_version_is_gone() {
    let world = World { mutant: Mutant::GoneFirst, ..deleted() };
    is_broken("collecting mutant: gone first", world, Extent::All);
}

#[test]
fn rows_of_gone_versions_are_kept() {
    let world = World { mutant: Mutant::RowRemoved, late: Vec::new(), ..put_again(&[]) };
    is_broken("collecting mutant: rows removed", world, Extent::All);
}
