//! When a drive only verifies, and when not. The estimate of verification time stays within bounds,
//! whatever passes took and however many tracks a platter has: the library chooses neither.

use fulgurite_units::{Controller, Duration, Instant, Outbox, ShuttleIndex, TrackIndex};

use super::twin::{panel, platter_id};
use crate::control::{
    Action, Command, Event, Library, LibraryShape, Machine, Output, RequestId, TrackSpan,
};

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A library whose machines answer at once, except for passes, which take as long as a test says.
struct Harness {
    library: Library,
    now: Instant,
    commands: Vec<Command>,
}

impl Harness {
    fn new() -> Self {
        let library = Library::new(&LibraryShape::small()).unwrap();
        Self { library, now: Instant::ZERO, commands: Vec::new() }
    }

    fn send(&mut self, event: Event) {
        let mut out = Outbox::new();
        self.library.step(self.now, event, &mut out);
        self.library.check();
        self.commands.extend(out.drain().filter_map(|output| match output {
            Output::Do(command) => Some(command),
            Output::Halt { .. }
            | Output::Traveled(_)
            | Output::Finished { .. }
            | Output::Rejected { .. } => None,
        }));
    }

    /// Brings in a new platter and starts a pass over it.
    fn verify(&mut self, number: u32, track_count: u32) -> Command {
        self.send(new_platter(number, track_count));
        self.next_pass()
    }

    /// Lets machines answer until a drive is ordered to verify.
    fn next_pass(&mut self) -> Command {
        self.next(|action| matches!(action, Action::VerifyPass { .. }))
    }

    /// Lets machines answer until one is ordered such an action.
    fn next(&mut self, is_wanted: impl Fn(&Action) -> bool) -> Command {
        loop {
            let command = self.commands.remove(0);
            if is_wanted(&command.action) {
                return command;
            }
            self.send(Event::Completed { command: command.id });
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

impl Harness {
    /// Number of drives that only verify.
    fn verify_only_count(&self) -> usize {
        self.library.drives.indexed().filter(|(_, drive)| drive.is_verify_only()).count()
    }

    /// Stops the pass and starts it again, some time later and no track further.
    fn restart_pass(&mut self, pass: &Command, time: Duration) -> Command {
        self.now = self.now + time;
        self.send(Event::Halted { command: pass.id, tracks_done: 0 });
        self.next_pass()
    }
}

/// About nine hours of a day: 100,000 tracks of a third of a second.
const TRACKS: u32 = 100_000;

#[test]
fn drive_insists_from_its_latest_start_to_the_end() {
    let mut harness = Harness::new();
    let pass = harness.verify(1, TRACKS);
    let pass = harness.restart_pass(&pass, minutes(14 * 60));
    assert_eq!(harness.verify_only_count(), 0, "ten hours are left for nine");
    let pass = harness.restart_pass(&pass, minutes(40));
    assert_eq!(
        harness.verify_only_count(),
        1,
        "nine and a third are left, and a quarter is reserve"
    );
    harness.now = harness.now + minutes(9 * 60);
    harness.send(Event::Completed { command: pass.id });
    assert_eq!(harness.verify_only_count(), 0, "it is verified");
}

/// The platter is in its drive, which does something else until then.
#[test]
fn time_alone_makes_a_drive_insist() {
    let mut harness = Harness::new();
    harness.send(new_platter(1, TRACKS));
    harness.next(|action| matches!(action, Action::Mount { .. }));
    let deadline = harness.library.deadline().unwrap();
    let [from, until] = [14, 15].map(|hour| Instant::ZERO + minutes(hour * 60));
    assert!(
        from < deadline && deadline < until && harness.verify_only_count() == 0,
        "{deadline:?}"
    );
    harness.now = deadline;
    harness.send(Event::Timer);
    assert_eq!(harness.verify_only_count(), 1);
}

/// With a single drive customers would be shut out completely.
#[test]
fn the_only_drive_of_a_panel_does_not_insist() {
    let one_drive =
        LibraryShape { read_racks: 1, drives_per_read_rack: 1, ..LibraryShape::small() };
    let shape = LibraryShape { shuttles_per_panel: 1, ..one_drive };
    let mut harness = Harness { library: Library::new(&shape).unwrap(), ..Harness::new() };
    let pass = harness.verify(1, TRACKS);
    harness.restart_pass(&pass, minutes(14 * 60 + 40));
    assert_eq!(harness.verify_only_count(), 0);
}

/// It is not known then whether a shuttle can get from the eject bay to the drive whose slot is
/// kept.
#[test]
fn every_free_drive_keeps_a_slot_while_a_machine_is_broken() {
    let kept_slots = |is_damaged: bool| {
        let mut harness = Harness::new();
        if is_damaged {
            harness.send(Event::Broke { machine: Machine::Shuttle(ShuttleIndex::new(0)) });
        }
        harness.send(new_platter(1, TRACKS));
        harness.library.drives.indexed().filter(|(_, drive)| drive.is_slot_kept()).count()
    };
    assert_eq!((kept_slots(false), kept_slots(true)), (1, 4));
}

#[test]
fn no_drive_insists_on_a_platter_that_is_already_late() {
    let mut harness = Harness::new();
    let pass = harness.verify(1, TRACKS);
    harness.restart_pass(&pass, minutes(18 * 60));
    assert_eq!(harness.verify_only_count(), 0);
}

#[test]
fn no_drive_insists_if_verification_falls_behind() {
    let mut harness = Harness::new();
    let first = harness.verify(1, TRACKS);
    let drives = harness.library.drives_of(panel(0)).len();
    for number in (2..).take(drives - 1) {
        harness.verify(number, TRACKS);
    }
    let first = harness.restart_pass(&first, minutes(14 * 60 + 41));
    assert_eq!(harness.verify_only_count(), 1, "the others go on with their passes");
    harness.send(new_platter(100, TRACKS));
    harness.restart_pass(&first, Duration::ZERO);
    assert_eq!(harness.verify_only_count(), 0, "one waits for which there is no drive");
}

#[test]
fn one_endless_pass_makes_no_other_platter_late() {
    let mut harness = Harness::new();
    let pass = harness.verify(1, 1_000);
    harness.now = harness.now + YEAR + YEAR;
    harness.send(Event::Completed { command: pass.id });
    // A thousand tracks take five minutes; at an estimate of two hours they can wait for a day.
    harness.verify(2, 1_000);
    let deadline = harness.library.deadline().unwrap();
    assert!(
        deadline > harness.now + minutes(12 * 60) && deadline < harness.now + minutes(24 * 60),
        "{deadline:?}"
    );
}

#[test]
fn endless_verification_does_not_overflow() {
    let mut harness = Harness::new();
    let mut pass = harness.verify(1, u32::MAX);
    for tracks_done in [16, 1_000_000, 0] {
        harness.now = harness.now + YEAR;
        harness.send(Event::Halted { command: pass.id, tracks_done });
        assert_eq!(harness.verify_only_count(), 0, "after {tracks_done} tracks");
        pass = harness.next_pass();
    }
}
