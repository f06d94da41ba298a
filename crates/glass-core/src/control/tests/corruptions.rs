//! Tests that `check()` fails on every kind of corrupted state.
//!
//! The states here can be made by methods of the controller's parts, but contradict each other;
//! what only a part can corrupt is planted beside it (`platter_table/corruptions.rs`,
//! `fleet/corruptions.rs`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use fulgurite_units::{
    Controller, DriveIndex, Duration, Instant, ShuttleIndex, SlotIndex, TrackIndex,
};

use super::twin::Twin;
use crate::control::drive::Drive;
use crate::control::state::{Age, Place, PlatterKey, Stage};
use crate::control::{Action, DriveSlot, Event, Library, LibraryShape, fleet, platter_table};

/// Returns a library in the middle of its work: a platter mounted and read, one on a shuttle, some
/// waiting, one new.
fn busy() -> Library {
    let shape = LibraryShape { spare_slots_per_shelf: 1, ..LibraryShape::small() };
    let mut twin = Twin::new(&shape, 1);
    for number in 0..40 {
        twin.read(0, u64::from(number), number, 100 * number, 0);
    }
    twin.verify(0, 100, 50, 4_321, 20);
    loop {
        assert!(twin.step());
        if is_busy(&twin.library) {
            return twin.library;
        }
    }
}

fn is_busy(library: &Library) -> bool {
    let carries = library.fleet.indexed().any(|(_, shuttle)| shuttle.cargo().is_some());
    let comes = library.shelf.known().any(|(_, platter)| platter.claim().is_some());
    let reads = |drive: &Drive| drive.bay(DriveSlot::First).is_mounted() && drive.work().is_some();
    carries && comes && library.drives.indexed().any(|(_, drive)| reads(drive))
}

fn carried(library: &Library) -> (ShuttleIndex, PlatterKey) {
    let mut shuttles = library.fleet.indexed();
    shuttles.find_map(|(index, shuttle)| shuttle.cargo().map(|key| (index, key))).unwrap()
}

/// Returns the shuttle after another.
fn next(library: &Library, index: ShuttleIndex) -> ShuttleIndex {
    let count = u16::try_from(library.fleet.len()).unwrap();
    ShuttleIndex::new((index.get() + 1) % count)
}

fn waiting(library: &Library) -> u16 {
    (0..library.partitions.count())
        .find(|group| !library.partitions.group(*group).queue().is_empty())
        .unwrap()
}

/// Takes the first platter off the list of a group.
fn take_first(library: &mut Library, group: u16) -> (Age, PlatterKey) {
    let (age, key) = *library.partitions.group(group).queue().first().unwrap();
    library.partitions.group_mut(group).leave(age, key, 0);
    (age, key)
}

fn claimed(library: &Library) -> PlatterKey {
    library.shelf.known().find(|(_, platter)| platter.claim().is_some()).unwrap().0
}

/// Returns a drive that is in this state.
fn drive(library: &Library, predicate: fn(&Drive) -> bool) -> DriveIndex {
    library.drives.indexed().find(|(_, drive)| predicate(drive)).unwrap().0
}

type Corruption = fn(&mut Library);

fn charging() -> Library {
    let mut twin = Twin::new(&LibraryShape::small(), 2);
    twin.at(0, Event::Battery { shuttle: ShuttleIndex::new(1), percent: 10 });
    loop {
        assert!(twin.step());
        let charger = twin.library.fleet.get(ShuttleIndex::new(1));
        if matches!(charger.current(), Some((_, Action::Charge { .. }))) {
            return twin.library;
        }
    }
}

const CORRUPTIONS: [(&str, Corruption); 24] = [
    ("a platter in two places", |library| {
        let (index, key) = carried(library);
        library.fleet.load(next(library, index), key);
    }),
    ("a platter that vanished", |library| {
        let (index, _) = carried(library);
        library.fleet.unload(index);
    }),
    ("a platter recorded in another place", |library| {
        let (_, key) = carried(library);
        library.shelf.set_place(key, Place::Storage(SlotIndex::new(0)));
    }),
    ("a platter back in the write drive", |library| {
        let (_, key) = carried(library);
        library.shelf.set_place(key, Place::EjectBay(super::twin::panel(0)));
    }),
    ("an eject bay that miscounts", |library| library.arrivals.eject(super::twin::panel(0))),
    ("a home in a spare slot", |library| {
        let (_, key) = carried(library);
        library.shelf.set_stage(key, Stage::Stored { home: SlotIndex::new(99) });
    }),
    ("a spare slot that expects nothing", |library| {
        let (_, key) = carried(library);
        library.shelf.reserve_spare(SlotIndex::new(99), key);
    }),
    ("a request that is in no state", |library| {
        let key = library.shelf.known().find(|(_, p)| !p.reads().is_empty()).unwrap().0;
        while let Some(read) = library.shelf.get(key).first_read() {
            let age = read.age;
            library.shelf.remove_read(key, age);
        }
    }),
    ("a request that is forgotten", |library| {
        let (first, _) = library.requests.sorted()[0];
        library.requests.remove(first);
    }),
    ("a queue that lost a platter", |library| {
        let group = waiting(library);
        take_first(library, group);
    }),
    ("a platter in the queue of another group", |library| {
        let group = waiting(library);
        let (age, key) = take_first(library, group);
        let other = (group + 1) % library.partitions.count();
        library.partitions.group_mut(other).join(age, key, 0);
    }),
    ("a backlog that does not add up", |library| library.partitions.group_mut(0).add_backlog(1)),
    ("a new platter that is not listed", |library| {
        let age = Age { due: Instant::ZERO, sequence: 0 };
        library.arrivals.join(super::twin::panel(0), (age, carried(library).1));
    }),
    ("two machines with one command", |library| {
        let busy = drive(library, |drive| drive.work().is_some());
        let idle = drive(library, |drive| drive.work().is_none());
        let work = library.drives.get(busy).work().unwrap();
        library.drives.get_mut(idle).begin(work.command, work.action, work.began);
    }),
    ("a claim without a shuttle", |library| {
        let key = claimed(library);
        let shuttle = library.shelf.get(key).claim().unwrap();
        library.shelf.unclaim(key);
        library.shelf.claim(key, next(library, shuttle));
    }),
    ("a reservation without a trip", |library| {
        let free = drive(library, |drive| drive.can_accept(DriveSlot::Second));
        library.drives.get_mut(free).reserve(DriveSlot::Second, ShuttleIndex::new(0));
    }),
    ("a slot that expects a second platter", |library| {
        let full = drive(library, |drive| drive.bay(DriveSlot::First).platter().is_some());
        library.drives.get_mut(full).reserve(DriveSlot::First, ShuttleIndex::new(0));
    }),
    ("an empty slot that has something mounted", |library| {
        let free = drive(library, |drive| drive.can_accept(DriveSlot::Second));
        library.drives.get_mut(free).mounted(DriveSlot::Second);
    }),
    ("a drive that reads what it does not face", |library| {
        let turned = drive(library, |drive| drive.facing().is_none());
        library.drives.get_mut(turned).set_head(Some(TrackIndex::new(0)));
    }),
    ("a drive that insists without a new platter", |library| {
        let free = drive(library, |drive| drive.bay(DriveSlot::Second).platter().is_none());
        library.drives.get_mut(free).set_verify_only(true);
    }),
    ("a zone that miscounts", |library| library.zones.obscure(SlotIndex::new(0))),
    ("a drive that is idle with work left", |library| {
        let busy = drive(library, |drive| drive.work().is_some());
        library.drives.get_mut(busy).end();
    }),
    ("a shuttle that is idle with work left", |library| {
        let key = claimed(library);
        let shuttle = library.shelf.get(key).claim().unwrap();
        library.fleet.unblock(shuttle);
        library.fleet.end(shuttle);
        library.shelf.unclaim(key);
    }),
    ("a read passed over too long", |library| {
        let bound = library.policy.age_bound + Duration::from_secs(1);
        library.counters.passed_over_max_ns = bound.as_nanos();
    }),
];

#[test]
fn check_fails_on_corrupted_states() {
    for (name, corrupt) in CORRUPTIONS {
        assert_detected(busy(), name, corrupt);
    }
    for (name, corrupt) in platter_table::corruptions::CORRUPTIONS {
        assert_detected(busy(), name, |library| corrupt(&mut library.shelf));
    }
    for (name, corrupt) in fleet::corruptions::CORRUPTIONS {
        assert_detected(busy(), name, |library| corrupt(&mut library.fleet));
    }
    for (name, corrupt) in fleet::corruptions::CHARGER_CORRUPTIONS {
        assert_detected(charging(), name, |library| corrupt(&mut library.fleet));
    }
}

fn assert_detected(mut library: Library, name: &str, corrupt: impl FnOnce(&mut Library)) {
    library.check();
    corrupt(&mut library);
    let verdict = catch_unwind(AssertUnwindSafe(|| library.check()));
    assert!(verdict.is_err(), "check() does not see {name}");
}
