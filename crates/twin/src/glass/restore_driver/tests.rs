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

struct Harness {
    restore_driver: RestoreDriver,
    shelf: Shelf,
    now: Instant,
}

impl Harness {
    fn new(shelf: Shelf) -> Self {
        Self { restore_driver: RestoreDriver::new(2, 100), shelf, now: Instant::ZERO }
    }

    fn request_restore(&mut self, restore: u64, parts: &[Part]) {
        let at = UnixTime::from_millis(0);
        let id = RestoreId::new(restore);
        self.restore_driver.request_restore(id, Retrieval::Standard, at, parts.to_vec());
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
fn neighboring_pieces_are_read_at_once() {
    let mut harness = Harness::new(Shelf::default());
    // A gap of one track between two pieces is read too, as in the archive; a gap of two is not.
    harness.request_restore(
        1,
        &[part(7, 10, 2), part(7, 0, 3), part(7, 4, 1), part(7, 14, 1), part(8, 0, 1)],
    );
    assert_eq!(
        harness.wanted(),
        ["read 100 of 7: 0+5", "read 101 of 7: 10+2", "read 102 of 7: 14+1", "read 103 of 8: 0+1"]
    );
    assert!(!harness.ended(99, true), "the read belongs to no restore");
    for request in 100..103 {
        assert!(harness.ended(request, true));
        assert!(harness.wanted().is_empty(), "a piece is missing");
    }
    assert!(harness.ended(103, true));
    assert_eq!(harness.wanted(), ["restored 1"]);
    assert!(harness.restore_driver.is_idle());
    assert_eq!(harness.restore_driver.pieces_open(), 0);
}

#[test]
fn unreadable_platter_is_read_from_its_whole_set() {
    let mut harness = Harness::new(Shelf { missing: vec![5], broken: vec![6] });
    // A missing platter is not read.
    harness.request_restore(1, &[part(5, 4, 1), part(5, 5, 1)]);
    let expected = ["read 100 of 51: 4+2", "read 101 of 52: 4+2", "read 102 of 53: 4+2"];
    assert_eq!(harness.wanted(), expected);
    // A broken one is only found by reading it.
    harness.request_restore(2, &[part(6, 4, 1)]);
    assert_eq!(harness.wanted(), ["read 103 of 6: 4+1"]);
    harness.ended(103, true);
    let expected = ["read 104 of 61: 4+1", "read 105 of 62: 4+1", "read 106 of 63: 4+1"];
    assert_eq!(harness.wanted(), expected);
    // Two of three are enough, but all are waited for.
    harness.ended(104, true);
    harness.ended(105, true);
    assert!(harness.wanted().is_empty());
    harness.ended(106, false);
    assert_eq!(harness.wanted(), ["restored 2"]);
}

#[test]
fn failing_restore_backs_off_and_is_reported() {
    let mut harness = Harness::new(Shelf { missing: vec![5], broken: Vec::new() });
    harness.request_restore(1, &[part(5, 0, 1)]);
    let mut request = 100;
    for round in 1..=4 {
        assert_eq!(harness.wanted().len(), 3, "round {round}");
        for _ in 0..3 {
            harness.ended(request, false);
            request += 1;
        }
        let wanted = harness.wanted();
        assert_eq!(wanted.is_empty(), round < 4, "{wanted:?}");
        harness.now = harness.restore_driver.deadline().unwrap();
        harness.restore_driver.pass_event(Event::Timer);
    }
    harness.restore_driver.cancel(RestoreId::new(1));
    assert!(harness.wanted().is_empty());
    assert!(harness.restore_driver.is_idle());
    assert_eq!(harness.restore_driver.pieces_open(), 0);
}
