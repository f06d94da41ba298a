//! The driver with its mechanics in slow and in fast motion.

use std::sync::atomic::{AtomicU32, Ordering};

use fulgurite_library::LibraryShape;

use super::*;

fn library(time_scale: f64) -> LiveLibrary {
    let options = LibraryOptions { shape: LibraryShape::small(), time_scale, seed: 1 };
    LiveLibrary::start(&options, ByteCount::mib(1)).unwrap()
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
