//! Corrupted states that only the shelf itself could cause; `check()` must detect each.

use fulgurite_units::SlotIndex;

use super::PlatterTable;
use crate::control::state::{PlatterKey, Stage};

pub(crate) type Corruption = fn(&mut PlatterTable);

fn last(shelf: &PlatterTable) -> PlatterKey {
    *shelf.by_id.values().next_back().unwrap()
}

/// Returns a platter with reads.
fn wanted(shelf: &mut PlatterTable) -> &mut super::Platter {
    shelf.platters.iter_mut().find(|platter| !platter.reads.is_empty()).unwrap()
}

pub(crate) const CORRUPTIONS: [(&str, Corruption); 8] = [
    ("a slot without its owner", |shelf| {
        *shelf.by_home.iter_mut().find(|owner| owner.is_some()).unwrap() = None;
    }),
    ("two platters in one slot", |shelf| {
        let key = last(shelf);
        let other =
            shelf.known().find_map(|(other, platter)| platter.home().filter(|_| other != key));
        shelf.get_mut(key).stage = Stage::Stored { home: other.unwrap() };
    }),
    ("a spare slot that holds nothing", |shelf| {
        let key = last(shelf);
        shelf.spares.insert(SlotIndex::new(99), key);
    }),
    ("a displaced platter that is at home", |shelf| {
        let key = last(shelf);
        shelf.displaced.insert(key);
    }),
    ("a platter indexed by another id", |shelf| {
        let mut keys = shelf.by_id.values_mut();
        let (first, second) = (keys.next().unwrap(), keys.next().unwrap());
        std::mem::swap(first, second);
    }),
    ("a slab entry that is both used and unused", |shelf| {
        let key = last(shelf);
        shelf.unused.push(key);
    }),
    ("tracks that do not add up", |shelf| wanted(shelf).tracks_wanted += 1),
    ("a read that is listed twice", |shelf| {
        let platter = wanted(shelf);
        let first = platter.reads[0];
        platter.tracks_wanted += u64::from(first.tracks.track_count);
        platter.reads.push_front(first);
    }),
];
