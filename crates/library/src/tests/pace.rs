//! What verification is believed to take stays within bounds, whatever passes took and however many
//! tracks a platter has: neither is the library's to choose.

use fulgurite_units::{Controller, Duration, Instant, Outbox, TrackIndex};

use super::twin::{panel, platter_id};
use crate::state::PlatterKey;
use crate::{Action, Command, Event, Library, LibraryShape, Output, RequestId, TrackSpan};

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A library whose machines answer at once, but for passes, which take as long as a test says.
struct Desk {
    library: Library,
    now: Instant,
    given: Vec<Command>,
}

impl Desk {
    fn new() -> Self {
        let library = Library::new(&LibraryShape::small()).unwrap();
        Self { library, now: Instant::ZERO, given: Vec::new() }
    }

    fn tell(&mut self, event: Event) {
        let mut out = Outbox::new();
        self.library.step(self.now, event, &mut out);
        self.library.check();
        self.given.extend(out.drain().filter_map(|output| match output {
            Output::Do(command) => Some(command),
            Output::Halt { .. }
            | Output::Traveled(_)
            | Output::Finished { .. }
            | Output::Rejected { .. } => None,
        }));
    }

    /// A new platter comes out, and a pass over it begins.
    fn verify(&mut self, number: u32, track_count: u32) -> (PlatterKey, Command) {
        self.tell(Event::Verify {
            request: RequestId::new(u64::from(number)),
            platter: platter_id(number),
            panel: panel(0),
            tracks: TrackSpan::new(TrackIndex::new(0), track_count),
        });
        let pass = self.next_pass();
        let &(_, key) = self.library.unverified[0].last().unwrap();
        (key, pass)
    }

    /// Machines answer until a drive is told to verify.
    fn next_pass(&mut self) -> Command {
        loop {
            let command = self.given.remove(0);
            if matches!(command.action, Action::VerifyPass { .. }) {
                return command;
            }
            self.tell(Event::Completed { command: command.id });
        }
    }
}

#[test]
fn one_pass_that_took_for_ever_makes_no_other_platter_late() {
    let mut desk = Desk::new();
    let (_, pass) = desk.verify(1, 1_000);
    desk.now = desk.now + YEAR + YEAR;
    desk.tell(Event::Completed { command: pass.id });
    // A thousand tracks are five minutes; believed to be two hours now, they can wait for a day.
    let (key, _) = desk.verify(2, 1_000);
    assert!(desk.library.may_put_off(key));
}

#[test]
fn a_platter_that_takes_for_ever_is_not_put_off_and_overflows_nothing() {
    let mut desk = Desk::new();
    let (key, mut pass) = desk.verify(1, u32::MAX);
    for tracks_done in [16, 1_000_000, 0] {
        desk.now = desk.now + YEAR;
        desk.tell(Event::Halted { command: pass.id, tracks_done });
        assert!(!desk.library.may_put_off(key), "after {tracks_done} tracks");
        pass = desk.next_pass();
    }
    // Its drive goes on with it, and time is looked at again.
    let look = desk.library.deadline().unwrap();
    assert!(look > desk.now && look < desk.now + YEAR, "{look:?}");
}
