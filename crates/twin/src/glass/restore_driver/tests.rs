//! The archive's driver without files: which reads a visit makes, and how an unreadable platter is
//! handled.

use fulgurite_restore::TierIndex;
use fulgurite_units::{ByteCount, TrackIndex};

use super::*;

/// Missing and broken platters, each with its own set.
#[derive(Default)]
struct Shelf {
    missing: Vec<u128>,
    broken: Vec<u128>,
}

impl Places for Shelf {
    fn is_available(&self, place: Place) -> bool {
        !self.missing.contains(&place.get())
    }

    fn is_usable(&self, place: Place) -> bool {
        !self.broken.contains(&place.get())
    }

    fn recovery_sources(&mut self, place: Place) -> (Vec<Place>, usize) {
        ((1..=3).map(|other| Place::new(place.get() * 10 + other)).collect(), 2)
    }
}

fn part(place: u128, first: u32, track_count: u32) -> Part {
    let bytes = ByteCount::new(1000 * u64::from(track_count));
    let piece =
        Piece { tier: TierIndex::default(), place: Some(Place::new(place)), offset: None, bytes };
    Part { piece, tracks: TrackSpan::new(TrackIndex::new(first), track_count) }
}

struct Desk {
    restore_driver: RestoreDriver,
    shelf: Shelf,
    now: Instant,
}

impl Desk {
    fn new(shelf: Shelf) -> Self {
        Self { restore_driver: RestoreDriver::new(2, 100), shelf, now: Instant::ZERO }
    }

    fn ask(&mut self, restore: u64, parts: &[Part]) {
        let at = UnixTime::from_millis(0);
        let id = RestoreId::new(restore);
        self.restore_driver.ask(id, Retrieval::Standard, at, parts.to_vec());
    }

    /// Returns all current outputs: reads as request, platter and tracks, restores by number.
    fn wanted(&mut self) -> Vec<String> {
        let (restore_driver, shelf) = (&mut self.restore_driver, &mut self.shelf);
        let all = std::iter::from_fn(|| restore_driver.next(self.now, shelf, |_| ()));
        all.map(|wanted| match wanted {
            RestoreOutput::Read { request, place, tracks, .. } => {
                let (first, count) = (tracks.first.get(), tracks.track_count);
                format!("read {} of {}: {first}+{count}", request.get(), place.get())
            }
            RestoreOutput::Restored(restore) => format!("restored {restore}"),
            RestoreOutput::GaveUp(restore) => format!("gave up {restore}"),
        })
        .collect()
    }

    fn ended(&mut self, request: u64, is_read: bool) -> bool {
        self.restore_driver.ended(RequestId::new(request), is_read, &mut self.shelf)
    }
}

#[test]
fn neighbors_are_read_in_one_go_and_what_lies_apart_is_not() {
    let mut desk = Desk::new(Shelf::default());
    // A gap of one track between two pieces is read too, as in the archive; a gap of two is not.
    desk.ask(1, &[part(7, 10, 2), part(7, 0, 3), part(7, 4, 1), part(7, 14, 1), part(8, 0, 1)]);
    assert_eq!(
        desk.wanted(),
        ["read 100 of 7: 0+5", "read 101 of 7: 10+2", "read 102 of 7: 14+1", "read 103 of 8: 0+1"]
    );
    assert!(!desk.ended(99, true), "it is nobody's");
    for request in 100..103 {
        assert!(desk.ended(request, true));
        assert!(desk.wanted().is_empty(), "a piece is missing");
    }
    assert!(desk.ended(103, true));
    assert_eq!(desk.wanted(), ["restored 1"]);
    assert!(desk.restore_driver.is_idle());
    assert_eq!(desk.restore_driver.pieces_open(), 0);
}

#[test]
fn what_a_platter_does_not_give_is_asked_of_all_others_of_its_set_at_once() {
    let mut desk = Desk::new(Shelf { missing: vec![5], broken: vec![6] });
    // A missing platter is not read.
    desk.ask(1, &[part(5, 4, 1), part(5, 5, 1)]);
    let asked = ["read 100 of 51: 4+2", "read 101 of 52: 4+2", "read 102 of 53: 4+2"];
    assert_eq!(desk.wanted(), asked);
    // A broken one is only found by reading it.
    desk.ask(2, &[part(6, 4, 1)]);
    assert_eq!(desk.wanted(), ["read 103 of 6: 4+1"]);
    desk.ended(103, true);
    let asked = ["read 104 of 61: 4+1", "read 105 of 62: 4+1", "read 106 of 63: 4+1"];
    assert_eq!(desk.wanted(), asked);
    // Two of three are enough, but all are waited for.
    desk.ended(104, true);
    desk.ended(105, true);
    assert!(desk.wanted().is_empty());
    desk.ended(106, false);
    assert_eq!(desk.wanted(), ["restored 2"]);
}

#[test]
fn a_restore_that_cannot_be_had_rests_and_is_told_of() {
    let mut desk = Desk::new(Shelf { missing: vec![5], broken: Vec::new() });
    desk.ask(1, &[part(5, 0, 1)]);
    let mut request = 100;
    for round in 1..=4 {
        assert_eq!(desk.wanted().len(), 3, "round {round}");
        for _ in 0..3 {
            desk.ended(request, false);
            request += 1;
        }
        let wanted = desk.wanted();
        assert_eq!(wanted.is_empty(), round < 4, "{wanted:?}");
        desk.now = desk.restore_driver.deadline().unwrap();
        desk.restore_driver.pass_event(Event::Timer);
    }
    desk.restore_driver.forget(RestoreId::new(1));
    assert!(desk.wanted().is_empty());
    assert!(desk.restore_driver.is_idle());
    assert_eq!(desk.restore_driver.pieces_open(), 0);
}
