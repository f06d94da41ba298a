//! When a drive only verifies, and when not. The estimate of verification time stays within bounds,
//! whatever passes took and however many tracks a platter has: the library chooses neither.

use fulgurite_units::{Controller, Duration, Instant, Outbox, ShuttleIndex, TrackIndex};

use super::twin::{panel, platter_id};
use crate::{Action, Command, Event, Library, LibraryShape, Machine, Output, RequestId, TrackSpan};

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A library whose machines answer at once, except for passes, which take as long as a test says.
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

    /// Brings in a new platter and starts a pass over it.
    fn verify(&mut self, number: u32, track_count: u32) -> Command {
        self.tell(new_platter(number, track_count));
        self.next_pass()
    }

    /// Lets machines answer until a drive is ordered to verify.
    fn next_pass(&mut self) -> Command {
        self.next(|action| matches!(action, Action::VerifyPass { .. }))
    }

    /// Lets machines answer until one is ordered such an action.
    fn next(&mut self, is_it: impl Fn(&Action) -> bool) -> Command {
        loop {
            let command = self.given.remove(0);
            if is_it(&command.action) {
                return command;
            }
            self.tell(Event::Completed { command: command.id });
        }
    }
}

fn new_platter(number: u32, track_count: u32) -> Event {
    Event::Verify {
        request: RequestId::new(u64::from(number)),
        platter: platter_id(number),
        panel: panel(0),
        tracks: TrackSpan::new(TrackIndex::new(0), track_count),
    }
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

impl Desk {
    /// Number of drives that only verify.
    fn insisting(&self) -> usize {
        self.library.drives.indexed().filter(|(_, drive)| drive.insists()).count()
    }

    /// Stops the pass and starts it again, some time later and no track further.
    fn lose(&mut self, pass: &Command, time: Duration) -> Command {
        self.now = self.now + time;
        self.tell(Event::Halted { command: pass.id, tracks_done: 0 });
        self.next_pass()
    }
}

/// About nine hours of a day: 100,000 tracks of a third of a second.
const TRACKS: u32 = 100_000;

#[test]
fn a_drive_insists_from_the_latest_start_to_the_end() {
    let mut desk = Desk::new();
    let pass = desk.verify(1, TRACKS);
    let pass = desk.lose(&pass, minutes(14 * 60));
    assert_eq!(desk.insisting(), 0, "ten hours are left for nine");
    let pass = desk.lose(&pass, minutes(40));
    assert_eq!(desk.insisting(), 1, "nine and a third are left, and a quarter is reserve");
    desk.now = desk.now + minutes(9 * 60);
    desk.tell(Event::Completed { command: pass.id });
    assert_eq!(desk.insisting(), 0, "it is verified");
}

/// The platter is in its drive, which does something else until then.
#[test]
fn time_alone_makes_a_drive_insist() {
    let mut desk = Desk::new();
    desk.tell(new_platter(1, TRACKS));
    desk.next(|action| matches!(action, Action::Mount { .. }));
    let look = desk.library.deadline().unwrap();
    let [from, until] = [14, 15].map(|hour| Instant::ZERO + minutes(hour * 60));
    assert!(from < look && look < until && desk.insisting() == 0, "{look:?}");
    desk.now = look;
    desk.tell(Event::Timer);
    assert_eq!(desk.insisting(), 1);
}

/// With a single drive customers would be shut out completely.
#[test]
fn the_only_drive_of_a_panel_does_not_insist() {
    let alone = LibraryShape { read_racks: 1, drives_per_read_rack: 1, ..LibraryShape::small() };
    let shape = LibraryShape { shuttles_per_panel: 1, ..alone };
    let mut desk = Desk { library: Library::new(&shape).unwrap(), ..Desk::new() };
    let pass = desk.verify(1, TRACKS);
    desk.lose(&pass, minutes(14 * 60 + 40));
    assert_eq!(desk.insisting(), 0);
}

/// It is not known then whether a shuttle can get from the eject bay to the drive whose slot is
/// kept.
#[test]
fn with_something_broken_every_free_drive_keeps_a_slot() {
    let kept = |is_damaged: bool| {
        let mut desk = Desk::new();
        if is_damaged {
            desk.tell(Event::Broke { machine: Machine::Shuttle(ShuttleIndex::new(0)) });
        }
        desk.tell(new_platter(1, TRACKS));
        desk.library.drives.indexed().filter(|(_, drive)| drive.is_kept()).count()
    };
    assert_eq!((kept(false), kept(true)), (1, 4));
}

#[test]
fn nobody_waits_for_a_platter_that_is_late_anyway() {
    let mut desk = Desk::new();
    let pass = desk.verify(1, TRACKS);
    desk.lose(&pass, minutes(18 * 60));
    assert_eq!(desk.insisting(), 0);
}

#[test]
fn nobody_waits_where_verification_does_not_keep_up() {
    let mut desk = Desk::new();
    let first = desk.verify(1, TRACKS);
    let drives = desk.library.drives_of(panel(0)).len();
    for number in (2..).take(drives - 1) {
        desk.verify(number, TRACKS);
    }
    let first = desk.lose(&first, minutes(14 * 60 + 41));
    assert_eq!(desk.insisting(), 1, "the others go on with their passes");
    desk.tell(new_platter(100, TRACKS));
    desk.lose(&first, Duration::ZERO);
    assert_eq!(desk.insisting(), 0, "one waits for which there is no drive");
}

#[test]
fn one_pass_that_took_for_ever_makes_no_other_platter_late() {
    let mut desk = Desk::new();
    let pass = desk.verify(1, 1_000);
    desk.now = desk.now + YEAR + YEAR;
    desk.tell(Event::Completed { command: pass.id });
    // A thousand tracks take five minutes; at an estimate of two hours they can wait for a day.
    desk.verify(2, 1_000);
    let look = desk.library.deadline().unwrap();
    assert!(look > desk.now + minutes(12 * 60) && look < desk.now + minutes(24 * 60), "{look:?}");
}

#[test]
fn a_platter_that_takes_for_ever_overflows_nothing() {
    let mut desk = Desk::new();
    let mut pass = desk.verify(1, u32::MAX);
    for tracks_done in [16, 1_000_000, 0] {
        desk.now = desk.now + YEAR;
        desk.tell(Event::Halted { command: pass.id, tracks_done });
        assert_eq!(desk.insisting(), 0, "after {tracks_done} tracks");
        pass = desk.next_pass();
    }
}
