//! The driver with its mechanics in slow motion and sped up.

use std::sync::atomic::{AtomicU32, Ordering};

use fulgurite_glass_core::control::log::{End, Ending, Replay, replay};
use fulgurite_glass_core::control::{LibraryShape, PanelIndex, Policy, RailPosition, ShelfIndex};
use fulgurite_units::{Controller as _, DriveIndex, Outbox, UnixTime};

use super::*;

fn options(time_scale: f64) -> LibraryOptions {
    LibraryOptions {
        shape: LibraryShape::small(),
        time_scale,
        seed: 1,
        policy: Policy::default(),
        log: None,
    }
}

fn library(time_scale: f64) -> LiveLibrary {
    started(&options(time_scale))
}

fn started(options: &LibraryOptions) -> LiveLibrary {
    LiveLibrary::start(options, ByteCount::mib(1), &Arc::default()).unwrap()
}

fn platter(number: u8) -> PlatterId {
    PlatterId::from_bytes([number; 16])
}

#[test]
fn platters_are_verified_stored_and_read_at_any_scale() {
    for time_scale in [0.0, 1e-4] {
        let library = library(time_scale);
        let done = Arc::new(AtomicU32::new(0));
        let work = || -> Read {
            let done = Arc::clone(&done);
            Box::new(move || {
                done.fetch_add(1, Ordering::SeqCst);
            })
        };
        let verify = || -> Verify {
            let mut work = Some(work());
            Box::new(move |_| {
                work.take().unwrap()();
                Pass::Complete
            })
        };
        let slots: Vec<SlotIndex> = (0..6).map(SlotIndex::new).collect();
        let verifying: Vec<Ticket> = (0..6)
            .zip(&slots)
            .map(|(n, &slot)| library.verify(platter(n), slot, 4, verify()).unwrap())
            .collect();
        // A verified platter leaves its drive for its slot, and only then is the drive free.
        let mut storing = Vec::new();
        for ((number, &slot), answer) in (0..6).zip(&slots).zip(verifying) {
            wait(answer).unwrap();
            storing.push(library.store(platter(number), slot).unwrap());
        }
        assert_eq!(done.load(Ordering::SeqCst), 6);
        storing.into_iter().for_each(|answer| wait(answer).unwrap());
        // A platter that failed verification is written and verified again under its id.
        wait(library.verify(platter(0), slots[0], 4, verify()).unwrap()).unwrap();
        wait(library.store(platter(0), slots[0]).unwrap()).unwrap();
        let span = TrackSpan::new(TrackIndex::new(1), 2);
        let reading: Vec<Ticket> = (0..6)
            .zip(&slots)
            .map(|(n, &slot)| {
                library.read(platter(n), slot, span, ReadDeadline::OBJECTIVE, work()).unwrap()
            })
            .collect();
        reading.into_iter().for_each(|answer| wait(answer).unwrap());
        assert_eq!(done.load(Ordering::SeqCst), 13);
        library.stop();
    }
}

#[test]
fn overdue_verification_is_reported() {
    let mut options = options(1000.0);
    options.policy.verify_within = Duration::from_secs(3600);
    let slow = started(&options);
    let begun = std::time::Instant::now();
    let pass: Verify = Box::new(|_| Pass::Complete);
    let answer = slow.verify(platter(1), SlotIndex::new(1), 4, pass).unwrap();
    let unverified = slow.unverified();
    let later = |seconds| begun + std::time::Duration::from_secs(seconds);
    let (count, oldest) = unverified.waiting(later(1800));
    assert!(count == 1 && oldest.unwrap() <= Duration::from_secs(1800), "{oldest:?}");
    assert_eq!(unverified.warning(later(1800)), None);
    let warning = unverified.warning(later(7260)).unwrap();
    assert!(warning.contains("2.0 h") && warning.contains("1.0 h"), "{warning}");
    slow.stop();
    assert!(matches!(wait(answer), Err(GlassError::Stopping)));
    assert_eq!(unverified.waiting(later(7260)), (0, None));
    assert_eq!(unverified.warning(later(7260)), None);
}

#[test]
fn impossible_request_is_rejected() {
    let library = library(0.0);
    let span = TrackSpan::new(TrackIndex::new(0), 1);
    let nowhere = SlotIndex::new(u32::MAX);
    let answer =
        library.read(platter(1), nowhere, span, ReadDeadline::OBJECTIVE, Box::new(|| ())).unwrap();
    assert!(matches!(wait(answer), Err(GlassError::Internal { .. })));
    library.stop();
    library.stop();
}

#[test]
fn stop_waits_for_reads_but_not_for_mechanics() {
    // Slow motion by a factor of a thousand: a mount alone would take hours.
    let slow = library(1000.0);
    let span = TrackSpan::new(TrackIndex::new(0), 1);
    let answer = slow
        .read(platter(1), SlotIndex::new(1), span, ReadDeadline::OBJECTIVE, Box::new(|| ()))
        .unwrap();
    slow.stop();
    assert!(matches!(wait(answer), Err(GlassError::Stopping)));
    assert!(matches!(slow.store(platter(1), SlotIndex::new(1)), Err(GlassError::Stopping)));

    let fast = library(0.0);
    let (begun, begins) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel();
    let is_done = Arc::new(AtomicU32::new(0));
    let shared = Arc::clone(&is_done);
    let work = Box::new(move || {
        begun.send(()).unwrap();
        released.recv().unwrap();
        shared.store(1, Ordering::SeqCst);
    });
    let answer =
        fast.read(platter(1), SlotIndex::new(1), span, ReadDeadline::OBJECTIVE, work).unwrap();
    begins.recv().unwrap();
    let stopping = std::thread::spawn(move || fast.stop());
    release.send(()).unwrap();
    stopping.join().unwrap();
    assert_eq!(is_done.load(Ordering::SeqCst), 1);
    drop(answer);
}

fn replayed_log(path: &std::path::Path) -> Replay {
    replay(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap()
}

#[test]
fn full_log_ends_and_the_library_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.log");
    let library = Library::new(&LibraryShape::small()).unwrap();
    let mut log = LogFile::bounded(Some(&path), &library, 2_000).unwrap();
    for request in 0..40 {
        let event = Event::Cancel { request: RequestId::new(request) };
        log.event(Instant::from_nanos(request), &event);
    }
    log.stopped();
    let Replay { events, ending, divergence, .. } = replayed_log(&path);
    assert_eq!((ending, divergence), (Some(Ending::End(End::Full)), None));
    assert!(std::fs::metadata(&path).unwrap().len() < 2_200 && (10..40).contains(&events));
}

#[test]
fn log_replaces_only_another_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.log");
    let library = Library::new(&LibraryShape::small()).unwrap();
    std::fs::write(&path, "notes of mine").unwrap();
    let refused = LogFile::begin(Some(&path), &library);
    assert!(matches!(refused, Err(GlassError::InvalidArgument { .. })), "{refused:?}");
    std::fs::remove_file(&path).unwrap();
    for _ in 0..3 {
        LogFile::begin(Some(&path), &library).unwrap().stopped();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(replayed_log(&folder.path().join("library.log.1")).events, 0);
}

#[test]
fn broken_machines_fail_requests_and_are_logged() {
    let folder = tempfile::tempdir().unwrap();
    for time_scale in [0.0, 1e-4] {
        let path = folder.path().join(format!("{time_scale}.log"));
        let options = LibraryOptions { log: Some(path.clone()), ..options(time_scale) };
        let library = started(&options);
        let span = TrackSpan::new(TrackIndex::new(0), 1);
        let read = |number, slot| {
            library
                .read(
                    platter(number),
                    SlotIndex::new(slot),
                    span,
                    ReadDeadline::OBJECTIVE,
                    Box::new(|| ()),
                )
                .unwrap()
        };
        let shelf = Machine::Rail {
            panel: PanelIndex::new(0),
            shelf: ShelfIndex::new(0),
            from: RailPosition::new(0),
            to: RailPosition::new(100_000_000),
        };
        let shuttles = (0..4).map(|n| Machine::Shuttle(fulgurite_units::ShuttleIndex::new(n)));
        library.broke(shelf).unwrap();
        library.broke(shelf).unwrap();
        let ended = wait(read(1, 5));
        assert!(matches!(ended, Err(GlassError::PlatterOutOfReach { .. })), "{ended:?}");
        wait(read(2, 105)).unwrap();
        let in_flight: Vec<Ticket> = (3..30).map(|n| read(n, 400 + u32::from(n))).collect();
        shuttles.clone().for_each(|shuttle| library.broke(shuttle).unwrap());
        let ended: Vec<_> = in_flight.into_iter().map(wait).collect();
        let is_expected =
            |end: &Result<()>| matches!(end, Ok(()) | Err(GlassError::PlatterOutOfReach { .. }));
        assert!(ended.iter().all(is_expected), "{ended:?}");
        shuttles.for_each(|shuttle| library.repaired(shuttle).unwrap());
        library.repaired(shelf).unwrap();
        wait(read(40, 6)).unwrap();
        library.stop();
        let replayed_log = replayed_log(&path);
        assert_eq!(replayed_log.divergence, None);
        assert_eq!(replayed_log.ending, Some(Ending::End(End::Stopped)));
    }
}

#[test]
fn holding_policy_gets_its_timer_and_no_shuttles_is_refused() {
    let mut options = options(0.0);
    options.policy.hold = fulgurite_units::Ratio::new(1e-6).unwrap();
    let library = started(&options);
    let span = TrackSpan::new(TrackIndex::new(0), 1);
    let answer = library
        .read(platter(1), SlotIndex::new(1), span, ReadDeadline::OBJECTIVE, Box::new(|| ()))
        .unwrap();
    wait(answer).unwrap();
    library.stop();
    options.policy = Policy::no_shuttles();
    let refused = LiveLibrary::start(&options, ByteCount::mib(1), &Arc::default());
    assert!(matches!(refused, Err(GlassError::InvalidArgument { .. })));
}

/// A library with a single drive, which customers and verification share.
fn one_drive(time_scale: f64) -> LibraryOptions {
    let shape = LibraryShape {
        read_racks: 1,
        drives_per_read_rack: 1,
        shuttles_per_panel: 1,
        ..LibraryShape::small()
    };
    LibraryOptions { shape, ..options(time_scale) }
}

/// Returns when the library has processed all earlier messages.
fn settled(library: &LiveLibrary) {
    let (nowhere, span) = (SlotIndex::new(u32::MAX), TrackSpan::new(TrackIndex::new(0), 1));
    let refused = wait(
        library
            .read(platter(250), nowhere, span, ReadDeadline::OBJECTIVE, Box::new(|| ()))
            .unwrap(),
    );
    assert!(matches!(refused, Err(GlassError::Internal { .. })), "{refused:?}");
}

#[test]
fn read_waits_for_at_most_one_verified_track() {
    let tracks = 100;
    let library = started(&one_drive(0.0));
    let log = Arc::<Mutex<Vec<String>>>::default();
    let (begun, begins) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let shared_log = Arc::clone(&log);
    let mut next = 0;
    let verify: Verify = Box::new(move |pace| {
        while next < tracks {
            begun.send(()).unwrap();
            released.recv().unwrap();
            shared_log.lock().unwrap().push(format!("track {next}"));
            next += 1;
            if !pace.can_continue(next) && next < tracks {
                return Pass::Paused { tracks_done: next };
            }
        }
        Pass::Complete
    });
    let verifying = library.verify(platter(1), SlotIndex::new(1), tracks, verify).unwrap();
    let read = |number: u8, slot| {
        let (shared_log, span) = (Arc::clone(&log), TrackSpan::new(TrackIndex::new(3), 1));
        let work = Box::new(move || shared_log.lock().unwrap().push(format!("read {number}")));
        library
            .read(platter(number), SlotIndex::new(slot), span, ReadDeadline::OBJECTIVE, work)
            .unwrap()
    };
    // A customer comes each time while a track is being read: tracks 0, 1, and 50.
    let mut done = 0;
    for (at, customer) in [(0, 10), (1, 11), (50, 12)] {
        for _ in done..at {
            begins.recv().unwrap();
            release.send(()).unwrap();
        }
        begins.recv().unwrap();
        let answer = read(customer, u32::from(customer) * 100);
        settled(&library);
        release.send(()).unwrap();
        wait(answer).unwrap();
        done = at + 1;
    }
    for _ in done..tracks {
        begins.recv().unwrap();
        release.send(()).unwrap();
    }
    wait(verifying).unwrap();
    wait(library.store(platter(1), SlotIndex::new(1)).unwrap()).unwrap();
    library.stop();
    let mut expected: Vec<String> = (0..tracks).map(|track| format!("track {track}")).collect();
    for (behind, customer) in [(50, 12), (1, 11), (0, 10)] {
        expected.insert(behind + 1, format!("read {customer}"));
    }
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn verification_without_reading_can_pause() {
    // 60 MB/s: a track of a mebibyte takes 17 us on a drive that is a thousand times as fast, and
    // the platter half an hour.
    let tracks = 100_000_000;
    let library = started(&one_drive(1e-3));
    let whole = Box::new(|_: &Pace| Pass::Complete);
    let verifying = library.verify(platter(1), SlotIndex::new(1), tracks, whole).unwrap();
    let span = TrackSpan::new(TrackIndex::new(3), 1);
    // A second platter in the drive halts the first; without a pause this would take that half
    // hour.
    let read = library
        .read(platter(2), SlotIndex::new(2), span, ReadDeadline::OBJECTIVE, Box::new(|| ()))
        .unwrap();
    wait(read).unwrap();
    library.stop();
    assert!(matches!(wait(verifying), Err(GlassError::Stopping)));
}

#[test]
fn reads_are_served_in_deadline_order() {
    let mut options = one_drive(0.0);
    options.policy = Policy::silica();
    let library = started(&options);
    let order = Arc::<Mutex<Vec<&str>>>::default();
    let (begun, begins) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let gate: Read = Box::new(move || {
        begun.send(()).unwrap();
        released.recv().unwrap();
    });
    let (slot, span) = (SlotIndex::new(1), TrackSpan::new(TrackIndex::new(0), 1));
    let first = library.read(platter(1), slot, span, ReadDeadline::OBJECTIVE, gate).unwrap();
    begins.recv().unwrap();
    // The only drive is busy. Minutes until each is due; some are overdue.
    let now = UnixTime::from_millis(1_800_000_000_000);
    let wanted: [(&str, i64); 7] = [
        ("in twelve hours", 12 * 60),
        ("in five hours", 5 * 60),
        ("in two hours", 2 * 60),
        ("in one hour", 60),
        ("in five minutes", 5),
        ("overdue", -8 * 60),
        ("longer overdue", -18 * 60),
    ];
    // The library has just begun: overdue reads are due since its start, in the order they came.
    let mut waiting = Vec::new();
    for (number, (name, minutes)) in (2..).zip(wanted) {
        let order = Arc::clone(&order);
        let work: Read = Box::new(move || order.lock().unwrap().push(name));
        let slot = SlotIndex::new(u32::from(number) * 100);
        let at = now.as_millis().checked_add_signed(minutes * 60_000).unwrap();
        let due = ReadDeadline::new(UnixTime::from_millis(at), now);
        waiting.push(library.read(platter(number), slot, span, due, work).unwrap());
    }
    settled(&library);
    release.send(()).unwrap();
    wait(first).unwrap();
    waiting.into_iter().for_each(|answer| wait(answer).unwrap());
    library.stop();
    let expected = [
        "overdue",
        "longer overdue",
        "in five minutes",
        "in one hour",
        "in two hours",
        "in five hours",
        "in twelve hours",
    ];
    assert_eq!(*order.lock().unwrap(), expected);
}

#[test]
fn panic_fails_only_its_own_request() {
    let panics = Arc::<Panics>::default();
    let library = LiveLibrary::start(&one_drive(0.0), ByteCount::mib(1), &panics).unwrap();
    let (slot, span) = (SlotIndex::new(5), TrackSpan::new(TrackIndex::new(0), 2));
    let bad: Read = Box::new(|| panic!("a bug"));
    let ended = wait(library.read(platter(1), slot, span, ReadDeadline::OBJECTIVE, bad).unwrap());
    let text = ended.unwrap_err().to_string();
    assert!(text.ends_with("a read drive panicked: a bug"), "{text}");
    // The same drive continues with the same platter.
    wait(library.read(platter(1), slot, span, ReadDeadline::OBJECTIVE, Box::new(|| ())).unwrap())
        .unwrap();

    let slot = SlotIndex::new(6);
    let bad: Verify = Box::new(|_| panic!("a bug"));
    let ended = wait(library.verify(platter(2), slot, 4, bad).unwrap());
    assert!(matches!(ended, Err(GlassError::Internal { .. })), "{ended:?}");
    wait(library.store(platter(2), slot).unwrap()).unwrap();
    wait(library.verify(platter(2), slot, 4, Box::new(|_| Pass::Complete)).unwrap()).unwrap();
    wait(library.store(platter(2), slot).unwrap()).unwrap();
    assert_eq!(panics.count(), 2);
    library.stop();
}

/// A drive that only passes the time of what it has read is not waited for, and what it still
/// reports reaches no controller.
#[test]
fn stop_ends_a_read_that_takes_its_time() {
    let panics = Arc::<Panics>::default();
    let library = LiveLibrary::start(&one_drive(1e-3), ByteCount::mib(1), &panics).unwrap();
    let (read, is_read) = std::sync::mpsc::channel();
    let work: Read = Box::new(move || read.send(()).unwrap());
    let span = TrackSpan::new(TrackIndex::new(0), 10_000_000);
    let reading =
        library.read(platter(1), SlotIndex::new(1), span, ReadDeadline::OBJECTIVE, work).unwrap();
    is_read.recv().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| library.stop());
        library.stop();
    });
    assert!(matches!(wait(reading), Err(GlassError::Stopping)));
    assert_eq!(panics.count(), 0);
}

#[test]
fn controller_restarts_after_a_panic() {
    let panics = Arc::<Panics>::default();
    let library = LiveLibrary::start(&options(0.0), ByteCount::mib(1), &panics).unwrap();
    let span = TrackSpan::new(TrackIndex::new(0), 1);
    let (begun, begins) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let work = Box::new(move || {
        begun.send(()).unwrap();
        released.recv().unwrap();
    });
    let in_flight =
        library.read(platter(1), SlotIndex::new(1), span, ReadDeadline::OBJECTIVE, work).unwrap();
    begins.recv().unwrap();
    let bad = library.request(platter(9), |_, _| panic!("a bug"), None).unwrap();
    assert!(matches!(wait(bad), Err(GlassError::Internal { .. })));
    assert!(matches!(wait(in_flight), Err(GlassError::Internal { .. })));
    release.send(()).unwrap();
    for number in 1..20 {
        let slot = SlotIndex::new(u32::from(number));
        wait(
            library
                .read(platter(number), slot, span, ReadDeadline::OBJECTIVE, Box::new(|| ()))
                .unwrap(),
        )
        .unwrap();
    }
    assert_eq!(panics.count(), 1);
    library.stop();
}

/// Returns what a subscriber receives next.
fn next(watch: &mut LibraryWatch) -> Option<Seen> {
    futures::executor::block_on(watch.next())
}

fn snapshot(watch: &mut LibraryWatch) -> LibrarySnapshot {
    match next(watch) {
        Some(Seen::Snapshot(snapshot)) => *snapshot,
        other => panic!("no snapshot: {other:?}"),
    }
}

/// A library that gets the events of a subscription makes the same decisions, and ends in the same
/// state.
#[test]
fn subscriber_sees_every_event_and_decision() {
    let library = library(0.0);
    let mut watch = library.watch().unwrap();
    let span = TrackSpan::new(TrackIndex::new(0), 1);
    let reading: Vec<Ticket> = (1..6)
        .map(|n| {
            let slot = SlotIndex::new(u32::from(n));
            library.read(platter(n), slot, span, ReadDeadline::OBJECTIVE, Box::new(|| ())).unwrap()
        })
        .collect();
    reading.into_iter().for_each(|answer| wait(answer).unwrap());
    library.broke(Machine::Drive(DriveIndex::new(1))).unwrap();
    let last = snapshot(&mut library.watch().unwrap());

    let first = snapshot(&mut watch);
    assert_eq!((first.step, &first.shape), (0, &LibraryShape::small()));
    let mut replayed = Library::with_policy(&first.shape, Policy::default()).unwrap();
    assert_eq!(replayed.snapshot(), first.library);
    for step in 1..=last.step {
        let Some(Seen::Step(seen)) = next(&mut watch) else { panic!("step {step} is missing") };
        assert_eq!(seen.step, step);
        let mut out = Outbox::new();
        replayed.step(seen.at, seen.event, &mut out);
        assert_eq!(out.drain().collect::<Vec<_>>(), seen.outputs, "step {step}");
    }
    assert_eq!(replayed.snapshot(), last.library);
    assert!(last.step > 5 && last.library.drives[1].broken);
    library.stop();
    while let Some(seen) = next(&mut watch) {
        assert!(matches!(seen, Seen::Step(_) | Seen::End(WatchEnd::Stopped)), "{seen:?}");
    }
    assert!(matches!(library.watch(), Err(GlassError::Stopping)));
}

#[test]
fn slow_subscriber_is_dropped_and_delays_nobody() {
    let shape = LibraryShape::small();
    let library = Library::with_policy(&shape, Policy::default()).unwrap();
    let publisher = LibraryPublisher::new(4, 0.0);
    let mut late = publisher.watch(&library, Instant::ZERO);
    let step = || publisher.step(Instant::ZERO, Event::Timer, &[]);
    (0..2).for_each(|_| step());
    let mut prompt = publisher.watch(&library, Instant::ZERO);
    (0..3).for_each(|_| step());
    publisher.restart(&library, Instant::ZERO);
    drop(publisher);
    let seen = |watch: &mut LibraryWatch| -> Vec<String> {
        let name = |seen| match seen {
            Seen::Snapshot(snapshot) => format!("snapshot {}", snapshot.step),
            Seen::Step(step) => format!("step {}", step.step),
            Seen::End(end) => format!("{end:?}"),
        };
        std::iter::from_fn(|| next(watch)).map(name).collect()
    };
    assert_eq!(seen(&mut late), ["snapshot 0", "Late"]);
    let whole = ["snapshot 2", "step 3", "step 4", "step 5", "snapshot 5", "Stopped"];
    assert_eq!(seen(&mut prompt), whole);
}
