//! The alarm works: `check()` fails on every kind of corrupted state.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fulgurite_units::{Controller, Duration, ShuttleIndex, SlotIndex};

use super::twin::Twin;
use crate::state::{Age, Place, PlatterKey, Stage};
use crate::{Action, DriveSlot, Event, Library, LibraryShape, RailPosition};

/// A library in the middle of its work: a platter mounted and read, one on a shuttle, some
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
        let of = &twin.library;
        let carries = of.shuttles.iter().any(|shuttle| shuttle.cargo.is_some());
        let comes = of.known().any(|(_, platter)| platter.claim.is_some());
        let reads = of.drives.iter().any(|drive| drive.bays[0].mounted && drive.work.is_some());
        if carries && comes && reads {
            return twin.library;
        }
    }
}

fn carried(library: &Library) -> (usize, PlatterKey) {
    let mut shuttles = library.shuttles.iter().enumerate();
    shuttles.find_map(|(index, shuttle)| shuttle.cargo.map(|key| (index, key))).unwrap()
}

fn waiting(library: &Library) -> usize {
    library.partitions.groups.iter().position(|group| !group.queue.is_empty()).unwrap()
}

/// Takes the first platter off the list of a group.
fn take_first(library: &mut Library, group: usize) -> (Age, PlatterKey) {
    let queue = &mut library.partitions.groups[group].queue;
    let first = *queue.first().unwrap();
    assert!(queue.remove(&first));
    first
}

fn claimed(library: &Library) -> PlatterKey {
    library.known().find(|(_, platter)| platter.claim.is_some()).unwrap().0
}

type Corruption = fn(&mut Library);

fn charging() -> Library {
    let mut twin = Twin::new(&LibraryShape::small(), 2);
    twin.at(0, Event::Battery { shuttle: ShuttleIndex::new(1), percent: 10 });
    loop {
        assert!(twin.step());
        if matches!(twin.library.shuttles[1].current(), Some((_, Action::Charge { .. }))) {
            return twin.library;
        }
    }
}

const CHARGING_CORRUPTIONS: [(&str, Corruption); 4] = [
    ("a low shuttle that rests", |library| library.shuttles[1].trip = None),
    ("a shuttle that does not know it is low", |library| library.shuttles[1].low = false),
    ("a shuttle that charges away from a dock", |library| {
        let at = &mut library.shuttles[1].at;
        let before = library.traffic.footprint(*at);
        library.traffic.leave(1, before.lane);
        at.rail = RailPosition::new(at.rail.get() + 1);
        library.traffic.take(1, library.traffic.footprint(*at));
    }),
    ("a battery in a library without", |library| library.has_batteries = false),
];

const CORRUPTIONS: [(&str, Corruption); 24] = [
    ("a platter in two places", |library| {
        let (index, key) = carried(library);
        let other = (index + 1) % library.shuttles.len();
        library.shuttles[other].cargo = Some(key);
    }),
    ("a platter that vanished", |library| {
        let (index, _) = carried(library);
        library.shuttles[index].cargo = None;
    }),
    ("a platter taken for another place", |library| {
        let (_, key) = carried(library);
        library.platter_mut(key).place = Place::Storage(SlotIndex::new(0));
    }),
    ("a platter back in the write drive", |library| {
        let (_, key) = carried(library);
        library.platter_mut(key).place = Place::EjectBay(super::twin::panel(0));
    }),
    ("an eject bay that miscounts", |library| library.ejected[0] += 1),
    ("a slot without its owner", |library| {
        *library.by_home.iter_mut().find(|owner| owner.is_some()).unwrap() = None;
    }),
    ("two platters in one slot", |library| {
        let (_, key) = carried(library);
        let other = library.known().find(|(other, _)| *other != key).unwrap().1.home().unwrap();
        library.platter_mut(key).stage = Stage::Stored { home: other };
    }),
    ("a home in a spare slot", |library| {
        let (_, key) = carried(library);
        library.platter_mut(key).stage = Stage::Stored { home: SlotIndex::new(99) };
    }),
    ("a spare slot that holds nothing", |library| {
        let (_, key) = carried(library);
        library.spares.insert(SlotIndex::new(99), key);
    }),
    ("a platter out of place that is not", |library| {
        let (_, key) = carried(library);
        library.displaced.insert(key);
    }),
    ("a request that is in no state", |library| {
        let key = library.known().find(|(_, p)| !p.reads.is_empty()).unwrap().0;
        library.platter_mut(key).reads.clear();
        library.platter_mut(key).tracks_wanted = 0;
    }),
    ("a request that is forgotten", |library| {
        let (first, _) = library.requests.sorted()[0];
        library.requests.remove(first);
    }),
    ("a queue that lost a platter", |library| {
        let group = waiting(library);
        take_first(library, group);
    }),
    ("a platter in a foreign queue", |library| {
        let group = waiting(library);
        let entry = take_first(library, group);
        let foreign = (group + 1) % library.partitions.groups.len();
        library.partitions.groups[foreign].queue.insert(entry);
    }),
    ("a backlog that does not add up", |library| {
        library.partitions.groups[0].backlog_tracks += 1;
    }),
    ("two machines with one command", |library| {
        let work = library.drives.iter().find_map(|drive| drive.work).unwrap();
        let index = library.drives.iter().position(|drive| drive.work.is_none()).unwrap();
        library.drives[index].work = Some(work);
    }),
    ("a claim nobody makes", |library| {
        let key = claimed(library);
        let at = library.platter(key).claim.unwrap();
        let other = (at.as_usize() + 1) % library.shuttles.len();
        let other = ShuttleIndex::new(u16::try_from(other).unwrap());
        library.platter_mut(key).claim = Some(other);
    }),
    ("a reservation for nobody", |library| {
        let drive = library
            .drives
            .iter_mut()
            .find(|drive| drive.bays[1].platter.is_none() && drive.bays[1].reserved.is_none());
        drive.unwrap().bay_mut(DriveSlot::Second).reserved = Some(ShuttleIndex::new(0));
    }),
    ("a shuttle elsewhere than it holds", |library| {
        library.shuttles[0].at.rail = RailPosition::new(1);
    }),
    ("a shuttle that waits unknown", |library| library.blocked.push(ShuttleIndex::new(0))),
    ("a zone that miscounts", |library| library.obscured[0] += 1),
    ("a drive that rests", |library| {
        library.drives.iter_mut().find(|drive| drive.work.is_some()).unwrap().work = None;
    }),
    ("a shuttle that rests", |library| {
        let (key, of) = (claimed(library), claimed(library));
        let index = library.platter(of).claim.unwrap();
        library.shuttles[index.as_usize()].trip = None;
        library.platter_mut(key).claim = None;
    }),
    ("a read passed over too long", |library| {
        let bound = library.policy.age_bound + Duration::from_secs(1);
        library.counters.passed_over_max_ns = bound.as_nanos();
    }),
];

#[test]
fn check_fails_on_corrupted_states() {
    let all = CORRUPTIONS.map(|corruption| (busy as fn() -> Library, corruption));
    let charging = CHARGING_CORRUPTIONS.map(|corruption| (charging as fn() -> Library, corruption));
    for (library, (name, corrupt)) in all.into_iter().chain(charging) {
        let mut library = library();
        library.check();
        corrupt(&mut library);
        let verdict = catch_unwind(AssertUnwindSafe(|| library.check()));
        assert!(verdict.is_err(), "check() does not see {name}");
    }
}
