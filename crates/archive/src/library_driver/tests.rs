//! The driver with its mechanics in slow and in fast motion.

use std::sync::atomic::{AtomicU32, Ordering};

use fulgurite_library::log::{End, Ending, Replay, replay};
use fulgurite_library::{LibraryShape, Policy, RailPosition, ShelfIndex};

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
    LiveLibrary::start(&options(time_scale), ByteCount::mib(1)).unwrap()
}

fn platter(number: u8) -> PlatterId {
    PlatterId::from_bytes([number; 16])
}

#[test]
fn platters_are_verified_stored_and_read_whatever_the_scale() {
    for time_scale in [0.0, 1e-4] {
        let library = library(time_scale);
        let done = Arc::new(AtomicU32::new(0));
        let work = || -> Work {
            let done = Arc::clone(&done);
            Box::new(move || {
                done.fetch_add(1, Ordering::SeqCst);
            })
        };
        let slots: Vec<SlotIndex> = (0..6).map(SlotIndex::new).collect();
        let verifying: Vec<Answer> =
            (0..6).map(|n| library.verify(platter(n), 4, work()).unwrap()).collect();
        // A verified platter leaves its drive for its slot, and only then is the drive free.
        let mut storing = Vec::new();
        for ((number, &slot), answer) in (0..6).zip(&slots).zip(verifying) {
            wait(answer).unwrap();
            storing.push(library.store(platter(number), slot).unwrap());
        }
        assert_eq!(done.load(Ordering::SeqCst), 6);
        storing.into_iter().for_each(|answer| wait(answer).unwrap());
        let span = TrackSpan::new(TrackIndex::new(1), 2);
        let reading: Vec<Answer> = (0..6)
            .zip(&slots)
            .map(|(n, &slot)| library.read(platter(n), slot, span, work()).unwrap())
            .collect();
        reading.into_iter().for_each(|answer| wait(answer).unwrap());
        assert_eq!(done.load(Ordering::SeqCst), 12);
        // A platter that was found wanting is written and verified again under its id.
        wait(library.verify(platter(0), 4, work()).unwrap()).unwrap();
        wait(library.store(platter(0), slots[0]).unwrap()).unwrap();
        library.stop();
    }
}

#[test]
fn a_request_that_cannot_be_is_answered() {
    let library = library(0.0);
    let span = TrackSpan::new(TrackIndex::new(0), 1);
    let nowhere = SlotIndex::new(u32::MAX);
    let answer = library.read(platter(1), nowhere, span, Box::new(|| ())).unwrap();
    assert!(matches!(wait(answer), Err(ArchiveError::Internal { .. })));
    library.stop();
    library.stop();
}

#[test]
fn a_stop_waits_for_reading_and_not_for_mechanics() {
    // A thousandfold slow motion: a mount alone would take hours.
    let slow = library(1000.0);
    let span = TrackSpan::new(TrackIndex::new(0), 1);
    let answer = slow.read(platter(1), SlotIndex::new(1), span, Box::new(|| ())).unwrap();
    slow.stop();
    assert!(matches!(wait(answer), Err(ArchiveError::Stopping)));
    assert!(matches!(slow.store(platter(1), SlotIndex::new(1)), Err(ArchiveError::Stopping)));

    let fast = library(0.0);
    let (begun, begins) = std::sync::mpsc::channel();
    let (go, goes) = std::sync::mpsc::channel();
    let is_done = Arc::new(AtomicU32::new(0));
    let shared = Arc::clone(&is_done);
    let work = Box::new(move || {
        begun.send(()).unwrap();
        goes.recv().unwrap();
        shared.store(1, Ordering::SeqCst);
    });
    let answer = fast.read(platter(1), SlotIndex::new(1), span, work).unwrap();
    begins.recv().unwrap();
    let stopping = std::thread::spawn(move || fast.stop());
    go.send(()).unwrap();
    stopping.join().unwrap();
    assert_eq!(is_done.load(Ordering::SeqCst), 1);
    drop(answer);
}

fn played(path: &std::path::Path) -> Replay {
    replay(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap()
}

#[test]
fn a_log_ends_when_it_is_full_and_the_library_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.log");
    let library = Library::new(&LibraryShape::small()).unwrap();
    let mut log = LogFile::bounded(Some(&path), &library, 2_000).unwrap();
    for request in 0..40 {
        let event = Event::Cancel { request: RequestId::new(request) };
        log.event(Instant::from_nanos(request), &event);
    }
    log.stopped();
    let Replay { events, ending, divergence, .. } = played(&path);
    assert_eq!((ending, divergence), (Some(Ending::End(End::Full)), None));
    assert!(std::fs::metadata(&path).unwrap().len() < 2_200 && (10..40).contains(&events));
}

#[test]
fn a_log_takes_the_place_of_another_and_of_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.log");
    let library = Library::new(&LibraryShape::small()).unwrap();
    std::fs::write(&path, "notes of mine").unwrap();
    let refused = LogFile::begin(Some(&path), &library);
    assert!(matches!(refused, Err(ArchiveError::InvalidArgument { .. })), "{refused:?}");
    std::fs::remove_file(&path).unwrap();
    for _ in 0..3 {
        LogFile::begin(Some(&path), &library).unwrap().stopped();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(played(&folder.path().join("library.log.1")).events, 0);
}

#[test]
fn broken_machines_end_requests_as_out_of_reach_and_all_is_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    for time_scale in [0.0, 1e-4] {
        let path = folder.path().join(format!("{time_scale}.log"));
        let options = LibraryOptions { log: Some(path.clone()), ..options(time_scale) };
        let library = LiveLibrary::start(&options, ByteCount::mib(1)).unwrap();
        let span = TrackSpan::new(TrackIndex::new(0), 1);
        let read = |number, slot| {
            library.read(platter(number), SlotIndex::new(slot), span, Box::new(|| ())).unwrap()
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
        assert!(matches!(ended, Err(ArchiveError::PlatterOutOfReach { .. })), "{ended:?}");
        wait(read(2, 105)).unwrap();
        let under_way: Vec<Answer> = (3..30).map(|n| read(n, 400 + u32::from(n))).collect();
        shuttles.clone().for_each(|shuttle| library.broke(shuttle).unwrap());
        let ended: Vec<_> = under_way.into_iter().map(wait).collect();
        let is_expected =
            |end: &Result<()>| matches!(end, Ok(()) | Err(ArchiveError::PlatterOutOfReach { .. }));
        assert!(ended.iter().all(is_expected), "{ended:?}");
        shuttles.for_each(|shuttle| library.repaired(shuttle).unwrap());
        library.repaired(shelf).unwrap();
        wait(read(40, 6)).unwrap();
        library.stop();
        let played = played(&path);
        assert_eq!(played.divergence, None);
        assert_eq!(played.ending, Some(Ending::End(End::Stopped)));
    }
}

#[test]
fn a_policy_that_waits_gets_its_timer_and_none_without_shuttles_is_taken() {
    let mut options = options(0.0);
    options.policy.hold = fulgurite_units::Ratio::new(1e-6).unwrap();
    let library = LiveLibrary::start(&options, ByteCount::mib(1)).unwrap();
    let span = TrackSpan::new(TrackIndex::new(0), 1);
    let answer = library.read(platter(1), SlotIndex::new(1), span, Box::new(|| ())).unwrap();
    wait(answer).unwrap();
    library.stop();
    options.policy = Policy::no_shuttles();
    let refused = LiveLibrary::start(&options, ByteCount::mib(1));
    assert!(matches!(refused, Err(ArchiveError::InvalidArgument { .. })));
}
