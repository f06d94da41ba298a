//! Everything over a limit, and everything invalid, is rejected by name and leaves nothing behind.

use expect_test::expect;
use fulgurite_units::{Controller, Instant, Outbox, SlotIndex, TrackIndex};

use super::twin::{panel, platter_id};
use crate::control::limits::{EJECT_BAY_PLATTERS_MAX, REQUESTS_MAX};
use crate::control::{
    Error, ErrorKind, Event, Library, LibraryShape, Output, RequestId, TrackSpan,
};

struct Harness {
    library: Library,
    out: Outbox<Output>,
    commands: Vec<crate::control::CommandId>,
}

impl Harness {
    fn new(shape: &LibraryShape) -> Self {
        Self { library: Library::new(shape).unwrap(), out: Outbox::new(), commands: Vec::new() }
    }

    /// Returns the rejection of an event, if any.
    fn send(&mut self, event: Event) -> Option<Error> {
        self.library.step(Instant::ZERO, event, &mut self.out);
        self.out.drain().fold(None, |found, output| match output {
            Output::Rejected { reason, .. } => Some(reason),
            Output::Do(command) => {
                self.commands.push(command.id);
                found
            }
            Output::Halt { .. } | Output::Finished { .. } | Output::Traveled(_) => found,
        })
    }
}

fn read(request: u64, platter: u32, slot: u32, first: u32, track_count: u32) -> Event {
    Event::Read {
        request: RequestId::new(request),
        platter: platter_id(platter),
        slot: SlotIndex::new(slot),
        tracks: TrackSpan::new(TrackIndex::new(first), track_count),
        deadline: Instant::from_nanos(1),
    }
}

fn verify(request: u64, platter: u32, side: u16) -> Event {
    Event::Verify {
        request: RequestId::new(request),
        platter: platter_id(platter),
        panel: panel(side),
        tracks: TrackSpan::new(TrackIndex::new(0), 1),
    }
}

fn store(request: u64, platter: u32, slot: u32) -> Event {
    Event::Store {
        request: RequestId::new(request),
        platter: platter_id(platter),
        slot: SlotIndex::new(slot),
    }
}

/// Replaces platter ids with short numbers.
fn shorten(text: &str) -> String {
    (1..4).fold(text.to_owned(), |text, number| {
        text.replace(&platter_id(number).to_string(), &format!("P{number}"))
    })
}

#[test]
fn invalid_requests_are_rejected() {
    let mut harness = Harness::new(&LibraryShape::small());
    assert_eq!(harness.send(read(1, 1, 100, 0, 1)), None);
    assert_eq!(harness.send(verify(2, 2, 0)), None);
    let wrong = [
        read(1, 1, 100, 0, 1),
        read(3, 1, 101, 0, 1),
        read(3, 3, 100, 0, 1),
        read(3, 3, 7_000, 0, 1),
        read(3, 3, 300, 0, 0),
        read(3, 3, 300, u32::MAX, 1),
        read(3, 2, 300, 0, 1),
        verify(3, 2, 0),
        verify(3, 1, 0),
        verify(3, 3, 1),
        store(3, 2, 300),
        store(3, 3, 300),
        store(3, 2, 7_000),
    ];
    let mut reasons = String::new();
    for event in wrong {
        let reason = harness.send(event).expect("it is rejected");
        reasons += &format!("{:?}: {}\n", reason.kind(), shorten(&reason.to_string()));
        harness.library.check();
        assert_eq!(harness.library.request_count(), 2);
    }
    expect![[r#"
        Conflict: request 1 is not finished yet
        Conflict: platter P1 lives in slot 100, not in slot 101
        Conflict: slot 100 belongs to platter P1, not to P3
        NotFound: there is no slot 7000; the library has 7000
        Invalid: request 3 asks for 0 tracks from track 0
        Invalid: request 3 asks for 1 tracks from track 4294967295
        Conflict: platter P2 is not stored yet
        Conflict: platter P2 is in the library already
        Conflict: platter P1 is in the library already
        NotFound: there is no panel 1
        Conflict: platter P2 is not waiting for a slot
        Conflict: platter P3 is not waiting for a slot
        NotFound: there is no slot 7000; the library has 7000
    "#]]
    .assert_eq(&reasons);
}

#[test]
fn requests_have_a_limit() {
    let mut harness = Harness::new(&LibraryShape::small());
    for request in 0..REQUESTS_MAX as u64 {
        assert_eq!(harness.send(read(request, 1, 100, 0, 1)), None);
    }
    let over = harness.send(read(REQUESTS_MAX as u64, 1, 100, 0, 1)).unwrap();
    assert_eq!(over.kind(), ErrorKind::Unavailable);
    assert!(matches!(over, Error::QueueFull { limit: REQUESTS_MAX, .. }), "{over}");
    // One fewer, so one more fits.
    assert_eq!(harness.send(Event::Cancel { request: RequestId::new(5) }), None);
    assert_eq!(harness.send(read(5, 1, 100, 0, 1)), None);
    harness.library.check();
}

#[test]
fn the_eject_bay_has_a_limit() {
    let mut harness = Harness::new(&LibraryShape::small());
    for number in 0..EJECT_BAY_PLATTERS_MAX {
        let mut event = verify(number as u64, 0, 0);
        if let Event::Verify { platter, .. } = &mut event {
            *platter = platter_id(u32::try_from(number).unwrap());
        }
        assert_eq!(harness.send(event), None, "platter {number}");
    }
    let over = harness.send(verify(9_999, 9_999, 0)).unwrap();
    assert!(matches!(over, Error::EjectBayFull { limit: EJECT_BAY_PLATTERS_MAX, .. }), "{over}");
    harness.library.check();
}

#[test]
fn platters_stay_on_their_panel() {
    let mut harness = Harness::new(&LibraryShape::mdu());
    assert_eq!(harness.send(verify(1, 1, 1)), None);
    while harness.library.request_count() > 0 {
        let command = harness.commands.remove(0);
        harness.send(Event::Completed { command });
    }
    let wrong = harness.send(store(2, 1, 0)).unwrap();
    assert!(matches!(wrong, Error::OtherPanel { .. }), "{wrong}");
    let half = harness.library.shape().slot_count() / 2;
    assert_eq!(harness.send(store(2, 1, half)), None);
}
