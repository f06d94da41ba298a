//! The alarm works: `check()` fails on every kind of corrupted state.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fulgurite_units::{Controller, Instant, Outbox, PlatterId, ShuttleIndex, SlotIndex};

use super::twin::platter_id;
use crate::controller::Actor;
use crate::state::Place;
use crate::{CommandId, Event, Library, LibraryShape, Output, RequestId, TrackSpan};

/// A library in the middle of its work: one platter mounted and read, one on a shuttle, some
/// waiting.
fn busy() -> Library {
    let mut library = Library::new(&LibraryShape::small()).unwrap();
    let mut out = Outbox::new();
    for number in 0..12u8 {
        let event = Event::Read {
            request: RequestId::new(u64::from(number)),
            platter: platter_id(number),
            slot: SlotIndex::new(u32::from(number) * 100),
            tracks: TrackSpan::new(fulgurite_units::TrackIndex::new(3), 1),
        };
        library.step(Instant::ZERO, event, &mut out);
    }
    // Completes commands in turn until one shuttle carries and one drive works.
    loop {
        let commands: Vec<CommandId> = out
            .drain()
            .filter_map(|output| match output {
                Output::Do(command) => Some(command.id),
                Output::Halt { .. } | Output::Finished { .. } | Output::Rejected { .. } => None,
            })
            .collect();
        for (turn, command) in commands.into_iter().enumerate() {
            let ready = library.drives.iter().any(|drive| drive.work.is_some())
                && library.shuttles.iter().any(|shuttle| shuttle.cargo.is_some());
            if ready {
                library.check();
                return library;
            }
            library.step(Instant::from_nanos(turn as u64), Event::Completed { command }, &mut out);
        }
    }
}

fn carried(library: &Library) -> (usize, PlatterId) {
    let mut shuttles = library.shuttles.iter().enumerate();
    shuttles.find_map(|(index, shuttle)| shuttle.cargo.map(|id| (index, id))).unwrap()
}

type Corruption = fn(&mut Library);

const CORRUPTIONS: [(&str, Corruption); 12] = [
    ("a platter in two places", |library| {
        let (index, id) = carried(library);
        let other = (index + 1) % library.shuttles.len();
        library.shuttles[other].cargo = Some(id);
    }),
    ("a platter that vanished", |library| {
        let (index, _) = carried(library);
        library.shuttles[index].cargo = None;
    }),
    ("a platter taken for another place", |library| {
        let (_, id) = carried(library);
        library.platter_mut(id).place = Place::Storage(SlotIndex::new(0));
    }),
    ("a platter back in the write drive", |library| {
        let (_, id) = carried(library);
        library.platter_mut(id).place = Place::EjectBay(super::twin::panel(0));
    }),
    ("a request that is in no state", |library| {
        library.platters.values_mut().find(|p| !p.reads.is_empty()).unwrap().reads.clear();
    }),
    ("a request that is forgotten", |library| {
        library.requests.pop_first();
    }),
    ("a queue that lost a platter", |library| {
        library.fetchable.iter_mut().find(|queue| !queue.is_empty()).unwrap().pop_first();
    }),
    ("a platter in a foreign queue", |library| {
        let full = library.fetchable.iter().position(|queue| !queue.is_empty()).unwrap();
        let entry = library.fetchable[full].pop_first().unwrap();
        let foreign = (full + 1) % library.fetchable.len();
        library.fetchable[foreign].insert(entry);
    }),
    ("a command that nobody carries out", |library| {
        library.outstanding.insert(CommandId::new(9_999), Actor::Shuttle(ShuttleIndex::new(0)));
    }),
    ("a command that is not awaited", |library| {
        library.outstanding.pop_first();
    }),
    ("a shuttle out of its partition", |library| {
        let (index, _) = carried(library);
        let other = (index + 1) % library.shuttles.len();
        let drive = library.floor.partitions()[other].drives[0];
        let to = crate::Destination::Drive(drive, crate::DriveSlot::Customer);
        let index = ShuttleIndex::new(u16::try_from(index).unwrap());
        library.drives[drive.as_usize()].customer.reserved = Some(index);
        library.drives[drive.as_usize()].customer.platter = None;
        library.shuttles[index.as_usize()].trip.as_mut().unwrap().to = to;
    }),
    ("a drive that rests", |library| {
        let drive = library.drives.iter_mut().find(|drive| drive.work.is_some()).unwrap();
        let work = drive.work.take().unwrap();
        library.outstanding.remove(&work.command);
    }),
];

#[test]
fn check_fails_on_corrupted_states() {
    busy().check();
    for (name, corrupt) in CORRUPTIONS {
        let mut library = busy();
        corrupt(&mut library);
        let verdict = catch_unwind(AssertUnwindSafe(|| library.check()));
        assert!(verdict.is_err(), "check() does not see {name}");
    }
}
