//! Runs the check of the library-log fuzz target on seeded changes of valid logs.

#![expect(clippy::unwrap_used, reason = "what cannot be made here is a failed test")]

#[path = "../../../fuzz/changes.rs"]
mod changes;
#[path = "../../../fuzz/library_checks.rs"]
mod library_checks;

use fulgurite_glass_core::control::log::{End, LogReader, LogWriter};
use fulgurite_glass_core::control::{
    Event, Library, LibraryShape, Output, Policy, RequestId, TrackSpan,
};
use fulgurite_units::{
    Controller as _, Duration, Instant, Outbox, PlatterId, SlotIndex, TrackIndex,
};

/// Returns the log of a library that is asked for three platters and whose commands are answered.
fn log() -> Vec<u8> {
    let mut library = Library::with_policy(&LibraryShape::small(), Policy::default()).unwrap();
    let mut log = LogWriter::new(Vec::new(), &library).unwrap();
    let mut events: Vec<Event> = (1..4u8)
        .map(|number| Event::Read {
            request: RequestId::new(u64::from(number)),
            platter: PlatterId::from_bytes([number; 16]),
            slot: SlotIndex::new(u32::from(number)),
            tracks: TrackSpan::new(TrackIndex::new(0), 2),
            deadline: Instant::from_nanos(0) + Duration::from_secs(900),
        })
        .collect();
    events.reverse();
    for second in 0..40u64 {
        let Some(event) = events.pop() else { break };
        let now = Instant::from_nanos(second * 1_000_000_000);
        log.event(now, &event).unwrap();
        let mut out = Outbox::new();
        library.step(now, event, &mut out);
        for output in out.drain() {
            log.output(&output).unwrap();
            if let Output::Do(command) = output {
                events.push(Event::Completed { command: command.id });
            }
        }
    }
    log.end(End::Stopped).unwrap()
}

#[test]
fn library_logs() {
    let log = log();
    let mut reader = LogReader::new(&log[..]).unwrap();
    let mut entries = 0;
    while reader.next_entry().unwrap().is_some() {
        entries += 1;
    }
    assert!(entries > 10, "the sample says something");
    changes::each(&[&log], library_checks::library_log);
}
