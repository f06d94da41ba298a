//! A site that lost its rows votes again once other sites have promised what it may have forgotten.
//!
//! ```text
//! lost --> silent: no vote, no promise, no row for readers; it only learns
//! healer: N - q2 + 1 others (or the promise quorum, if larger) promise the version after the last
//!         something may be chosen there --> the others accept it again; on to the next version
//!         nothing can be                --> the site learns all, promises the same, and votes
//! ```
//!
//! Messages sent before the loss arrive at any time, under the old map at sites that have not
//! learned of the new one.

use fulgurite_geo_core::{QuorumRule, Quorums};

use super::search::{Extent, is_broken, is_safe, nightly_extent};
use super::table::{Acceptor, ValueKind};
use super::world::{Mutant, Role, World};

/// Creates a world of two writers and a healer, over so many versions.
fn world(sites: usize, versions: u8) -> World {
    let quorums = Quorums::new(sites, QuorumRule::Majority).unwrap();
    // The healer comes first: its ballots are the lowest of a round, so that others can outbid
    // them.
    let roles = [Role::Healer, Role::Writer(vec![0]), Role::Writer(vec![1])];
    World {
        versions,
        loses: true,
        prompt: true,
        ..World::new(quorums, &roles, &[ValueKind::Put; 2])
    }
}

#[test]
fn restored_site_votes_again() {
    is_safe("replacing, 1 version", world(3, 1), Extent::All);
}

#[test]
fn restored_site_votes_again_over_versions() {
    is_safe("replacing, 2 versions", world(3, 2), nightly_extent());
    is_safe("replacing, 5 sites", world(5, 1), nightly_extent());
}

#[test]
fn restore_needs_promises_of_other_sites() {
    let world = World { mutant: Mutant::RestoreUnpromised, ..world(3, 2) };
    is_broken("replacing mutant: unpromised", world, Extent::All);
}

#[test]
fn restore_needs_more_than_one_promise() {
    let world = World { mutant: Mutant::RestoreByOne, ..world(3, 1) };
    is_broken("replacing mutant: by one other", world, Extent::All);
}

#[test]
fn restore_settles_open_versions_first() {
    let world = World { mutant: Mutant::RestoreOpen, ..world(3, 1) };
    is_broken("replacing mutant: left open", world, Extent::All);
}

#[test]
fn restored_site_need_not_promise_itself() {
    let mut world = world(3, 1);
    world.table.acceptor = Acceptor::RestoredBare;
    is_safe("replacing, site promises nothing itself", world, nightly_extent());
}
