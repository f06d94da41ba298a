//! Tests the controller alone, step by step. `model` compares it with a simple one, `world` runs it
//! with drives that take time.

mod model;
mod world;

use fulgurite_units::{ByteCount, Controller as _, Duration, Instant, Outbox, UnixTime};

use crate::limits::{BACKOFF_MAX, COPY_BACKOFF, FETCHES_PER_DRIVE, PIECE_BACKOFF, PIECE_TRIES_MAX};
use crate::log::{End, LogReader, LogWriter, Logged, replay};
use crate::{
    Capacity, Command, Event, Piece, PieceId, Place, RestoreId, Restores, Retrieval, TierIndex,
};

const MIB: u64 = 1 << 20;

fn piece(place: u128, bytes: u64) -> Piece {
    let place = Some(Place::new(place));
    Piece { tier: TierIndex::default(), place, offset: None, bytes: ByteCount::new(bytes) }
}

fn at(seconds: u64) -> UnixTime {
    UnixTime::from_millis(1_700_000_000_000 + seconds * 1000)
}

fn id(number: u64, index: u32) -> PieceId {
    PieceId { restore: RestoreId::new(number), index }
}

/// A controller with its driver's clock, in seconds.
struct TestDriver {
    restores: Restores,
    now: u64,
}

impl TestDriver {
    fn new(drives: usize) -> Self {
        Self { restores: Restores::new(drives), now: 0 }
    }

    fn step(&mut self, event: Event) -> Vec<Command> {
        let mut out = Outbox::new();
        self.restores.step(Instant::from_nanos(self.now * 1_000_000_000), event, &mut out);
        self.restores.check();
        out.drain().collect()
    }

    fn request(&mut self, number: u64, retrieval: Retrieval, pieces: &[Piece]) -> Vec<Command> {
        let (restore, at, pieces) = (RestoreId::new(number), at(self.now), pieces.to_vec());
        self.step(Event::Asked { restore, retrieval, at, pieces })
    }

    fn room(&mut self, mib: u64) {
        assert_eq!(self.step(Event::Room { bytes: ByteCount::mib(mib) }), []);
    }

    /// Returns the seconds until the next timer event.
    fn backoff_seconds(&self) -> Option<u64> {
        let until = self.restores.deadline()?;
        Some(until.as_nanos() / 1_000_000_000 - self.now)
    }

    /// Lets time pass until the next timer event.
    fn wait_backoff(&mut self) -> Vec<Command> {
        self.now += self.backoff_seconds().unwrap();
        self.step(Event::Timer)
    }
}

/// Returns the pieces of all fetches, fetch by fetch.
fn fetched(commands: &[Command]) -> Vec<Vec<PieceId>> {
    let pieces = |command: &Command| match command {
        Command::Fetch { pieces, .. } => Some(pieces.clone()),
        Command::Commit { .. } | Command::Forget { .. } => None,
    };
    commands.iter().filter_map(pieces).collect()
}

#[test]
fn object_is_committed_after_its_last_piece() {
    let mut driver = TestDriver::new(1);
    let begun = driver.request(7, Retrieval::Bulk, &[piece(1, 5), piece(2, 5)]);
    assert_eq!(fetched(&begun), [[id(7, 0)], [id(7, 1)]]);
    let due = at(12 * 3600);
    let first = Command::Fetch { place: Some(Place::new(1)), pieces: vec![id(7, 0)], due };
    assert_eq!(begun[0], first);
    assert_eq!(driver.step(Event::Came { piece: id(7, 1) }), []);
    let restore = RestoreId::new(7);
    assert_eq!(driver.step(Event::Came { piece: id(7, 0) }), [Command::Commit { restore }]);
    assert_eq!(driver.restores.reserved(), ByteCount::new(10));
    assert_eq!(driver.step(Event::Committed { restore }), []);
    assert_eq!(
        (driver.restores.reserved(), driver.restores.count(Retrieval::Bulk)),
        Default::default()
    );
}

#[test]
fn expedited_restore_is_fetched_next() {
    let mut driver = TestDriver::new(4);
    driver.room(8 << 10);
    for number in 0..10_000 {
        let (restore, at) = (RestoreId::new(number), at(0));
        let (retrieval, pieces) = (Retrieval::Bulk, vec![piece(u128::from(number), MIB)]);
        let event = Event::Asked { restore, retrieval, at, pieces };
        driver.restores.step(Instant::ZERO, event, &mut Outbox::new());
    }
    driver.restores.check();
    let bulk = driver.restores.in_flight.len();
    assert_eq!(bulk, 256, "the limit of pieces in flight per retrieval class");
    driver.now = 60;
    let begun = driver.request(10_000, Retrieval::Expedited, &[piece(5000, MIB), piece(8, MIB)]);
    // A piece at the same place goes along, even though its class has enough in flight.
    assert_eq!(fetched(&begun), [vec![id(10_000, 0), id(5000, 0)], vec![id(10_000, 1)]]);
    assert!(begun.iter().all(|c| matches!(c, Command::Fetch { due, .. } if *due == at(360))));
}

#[test]
fn earliest_due_restore_is_fetched_first() {
    let mut driver = TestDriver::new(1);
    driver.room(14);
    let blocker = driver.request(0, Retrieval::Expedited, &[piece(0, 14 * MIB)]);
    assert_eq!(fetched(&blocker).len(), 1);
    // Nothing fits now. Due 12, 13, 5, 14 and 8 h after the first.
    for (hours, retrieval) in [
        (0, Retrieval::Bulk),
        (1, Retrieval::Bulk),
        (0, Retrieval::Standard),
        (9, Retrieval::Standard),
        (8, Retrieval::Expedited),
    ] {
        driver.now = hours * 3600;
        let number = 1 + driver.restores.restores.len() as u64;
        let mib = if retrieval == Retrieval::Expedited { 13 } else { 7 };
        let none = driver.request(number, retrieval, &[piece(number.into(), mib * MIB)]);
        assert_eq!(none, [], "{number} does not fit");
    }
    let mut order = Vec::new();
    let mut commands = driver.step(Event::Came { piece: id(0, 0) });
    commands.extend(driver.step(Event::Committed { restore: RestoreId::new(0) }));
    while let Some(piece) = fetched(&commands).first().map(|pieces| pieces[0]) {
        assert_eq!(fetched(&commands).len(), 1, "only one fits at a time");
        order.push(piece.restore.get());
        driver.step(Event::Came { piece });
        commands = driver.step(Event::Committed { restore: piece.restore });
    }
    assert_eq!(order, [4, 6, 2, 3, 5]);
}

#[test]
fn large_object_is_fetched_by_all_drives_at_once() {
    let mut driver = TestDriver::new(4);
    let pieces: Vec<Piece> = (0..16).map(|n| piece(n, 1 << 30)).collect();
    let begun = driver.request(1, Retrieval::Bulk, &pieces);
    assert_eq!(
        fetched(&begun).len(),
        4 * FETCHES_PER_DRIVE,
        "each drive reads one and fetches the next"
    );
    let next = driver.step(Event::Came { piece: id(1, 3) });
    assert_eq!(fetched(&next), [[id(1, 8)]]);
}

#[test]
fn no_tier_waits_for_another() {
    let mut driver = TestDriver::new(1);
    driver.restores = Restores::with_tiers(vec![Capacity::for_drives(1), Capacity::for_queue(3)]);
    let large: Vec<Piece> = (0..9).map(|n| piece(n, 1 << 30)).collect();
    assert_eq!(fetched(&driver.request(1, Retrieval::Bulk, &large)).len(), FETCHES_PER_DRIVE);
    // The other tier is sent as many as its queue takes, of any size, each on its own.
    let other = Piece { tier: TierIndex(1), place: None, ..piece(0, 1 << 40) };
    let begun = driver.request(2, Retrieval::Bulk, &[other; 5]);
    assert_eq!(fetched(&begun), [[id(2, 0)], [id(2, 1)], [id(2, 2)]]);
    assert_eq!(fetched(&driver.step(Event::Came { piece: id(2, 1) })), [[id(2, 3)]]);
    assert_eq!(fetched(&driver.step(Event::Came { piece: id(1, 0) })), [[id(1, 2)]]);
    // Urgent restores have a share of their own in each tier.
    assert_eq!(fetched(&driver.request(3, Retrieval::Expedited, &[other])), [[id(3, 0)]]);
}

#[test]
fn failures_back_off_but_are_never_abandoned() {
    let mut driver = TestDriver::new(1);
    driver.request(1, Retrieval::Expedited, &[piece(1, MIB), piece(2, MIB)]);
    driver.request(2, Retrieval::Expedited, &[piece(1, MIB)]);
    let mut backoff_seconds = Vec::new();
    driver.step(Event::Came { piece: id(1, 1) });
    driver.step(Event::Failed { piece: id(2, 0) });
    for _ in 1..PIECE_TRIES_MAX {
        assert_eq!(driver.step(Event::Failed { piece: id(1, 0) }), []);
        assert!(driver.restores.reserved() >= ByteCount::mib(2), "the arrived pieces stay");
        backoff_seconds.push(driver.backoff_seconds().unwrap());
        // The other piece that failed at this place is not fetched with it.
        let tried = fetched(&driver.wait_backoff());
        assert!(tried.contains(&vec![id(1, 0)]), "{tried:?}");
        if tried.len() > 1 {
            driver.step(Event::Came { piece: id(2, 0) });
            driver.step(Event::Committed { restore: RestoreId::new(2) });
        }
    }
    for _ in 0..12 {
        let forget = Command::Forget { restore: RestoreId::new(1) };
        assert_eq!(driver.step(Event::Failed { piece: id(1, 0) }), [forget]);
        assert_eq!(driver.restores.reserved(), ByteCount::ZERO);
        backoff_seconds.push(driver.backoff_seconds().unwrap());
        assert_eq!(
            fetched(&driver.wait_backoff()).concat(),
            [id(1, 0), id(1, 1)],
            "all of it again"
        );
        driver.step(Event::Came { piece: id(1, 1) });
        for _ in 1..PIECE_TRIES_MAX {
            driver.step(Event::Failed { piece: id(1, 0) });
            driver.wait_backoff();
        }
    }
    assert_eq!(backoff_seconds[..6], [10, 20, 40, 80, 160, 320]);
    assert_eq!(backoff_seconds[14], BACKOFF_MAX.as_nanos() / 1_000_000_000);
    assert!(
        backoff_seconds.is_sorted() && PIECE_BACKOFF == Duration::from_secs(backoff_seconds[0])
    );
}

#[test]
fn failed_restore_only_waits_for_pieces_in_flight() {
    let mut driver = TestDriver::new(1);
    driver.request(1, Retrieval::Bulk, &[piece(1, MIB), piece(2, MIB), piece(3, MIB)]);
    for _ in 1..PIECE_TRIES_MAX {
        driver.step(Event::Failed { piece: id(1, 0) });
        driver.wait_backoff();
    }
    // The second is in backoff when the first fails for the last time; the third stays in flight
    // for long.
    driver.step(Event::Failed { piece: id(1, 1) });
    driver.step(Event::Failed { piece: id(1, 0) });
    assert_eq!(driver.backoff_seconds(), None);
    driver.now += 3600;
    assert_eq!(driver.step(Event::Timer), []);
    let forget = Command::Forget { restore: RestoreId::new(1) };
    assert_eq!(driver.step(Event::Came { piece: id(1, 2) }), [forget]);
    assert_eq!(fetched(&driver.wait_backoff()).concat(), [id(1, 0), id(1, 1), id(1, 2)]);
}

#[test]
fn failed_piece_does_not_delay_the_other_pieces() {
    let mut driver = TestDriver::new(1);
    let pieces: Vec<Piece> = (0..4).map(|n| piece(n, 1 << 30)).collect();
    driver.request(1, Retrieval::Standard, &pieces);
    assert_eq!(fetched(&driver.step(Event::Failed { piece: id(1, 0) })), [[id(1, 2)]]);
    assert_eq!(fetched(&driver.step(Event::Came { piece: id(1, 1) })), [[id(1, 3)]]);
}

#[test]
fn lost_copy_is_fetched_again() {
    let mut driver = TestDriver::new(1);
    let restore = RestoreId::new(1);
    driver.request(1, Retrieval::Standard, &[piece(1, MIB)]);
    for expected in [1, 2, 4] {
        driver.step(Event::Came { piece: id(1, 0) });
        assert_eq!(driver.step(Event::Lost { restore }), []);
        assert_eq!(driver.restores.reserved(), ByteCount::ZERO);
        assert_eq!(
            driver.backoff_seconds(),
            Some(expected * COPY_BACKOFF.as_nanos() / 1_000_000_000)
        );
        assert_eq!(fetched(&driver.wait_backoff()), [[id(1, 0)]]);
    }
}

#[test]
fn forgotten_restore_only_gets_its_answers() {
    let mut driver = TestDriver::new(1);
    let pieces = [piece(1, MIB), piece(1, MIB), piece(2, 1 << 30), piece(3, MIB), piece(4, MIB)];
    driver.request(1, Retrieval::Standard, &pieces);
    driver.step(Event::Failed { piece: id(1, 1) });
    let restore = RestoreId::new(1);
    assert_eq!(driver.step(Event::Forgotten { restore }), []);
    assert_eq!(driver.restores.reserved(), ByteCount::ZERO);
    assert_eq!((driver.backoff_seconds(), driver.restores.count(Retrieval::Standard)), (None, 0));
    assert_eq!(
        driver.step(Event::Forgotten { restore }),
        [],
        "a second cancellation has no effect"
    );
    driver.step(Event::Came { piece: id(1, 0) });
    driver.step(Event::Failed { piece: id(1, 2) });
    assert!(driver.restores.in_flight.is_empty() && driver.restores.fetches.is_empty());
}

#[test]
fn repeated_request_only_moves_the_due_time_forward() {
    let mut driver = TestDriver::new(1);
    driver.room(4);
    driver.request(1, Retrieval::Expedited, &[piece(1, 4 * MIB)]);
    driver.request(2, Retrieval::Standard, &[piece(2, MIB)]);
    driver.request(3, Retrieval::Bulk, &[piece(3, MIB)]);
    driver.request(3, Retrieval::Expedited, &[]);
    // It was due in five hours before this, and is not postponed.
    driver.now = 11 * 3600;
    driver.request(2, Retrieval::Standard, &[]);
    driver.step(Event::Came { piece: id(1, 0) });
    let begun = driver.step(Event::Committed { restore: RestoreId::new(1) });
    let due = |hundred_s: u64| at(hundred_s * 100);
    let dues: Vec<_> = begun
        .iter()
        .map(|command| match command {
            Command::Fetch { pieces, due, .. } => (pieces[0].restore.get(), *due),
            Command::Commit { .. } | Command::Forget { .. } => panic!("{command:?}"),
        })
        .collect();
    assert_eq!(dues, [(3, due(3)), (2, due(180))]);
    assert_eq!(driver.restores.count(Retrieval::Bulk), 0);
}

#[test]
fn bulk_leaves_space_and_oversized_copies_are_tried() {
    let mut driver = TestDriver::new(8);
    driver.room(100);
    for number in 0..10 {
        driver.request(number, Retrieval::Bulk, &[piece(number.into(), 20 * MIB)]);
    }
    assert_eq!(driver.restores.reserved(), ByteCount::mib(40));
    let urgent = driver.request(20, Retrieval::Expedited, &[piece(20, 60 * MIB)]);
    assert_eq!(fetched(&urgent), [[id(20, 0)]]);
    let large = driver.request(21, Retrieval::Expedited, &[piece(21, 101 * MIB)]);
    assert_eq!(fetched(&large), [[id(21, 0)]], "the driver decides whether there is space");
}

#[test]
fn replay_detects_a_different_decision() {
    let mut world = world::World::new(3, 11);
    let mut log = LogWriter::new(Vec::new(), &world.restores).unwrap();
    world.request_many(200);
    world.run(|now, event, commands| {
        log.event(now, event).unwrap();
        commands.iter().for_each(|command| log.command(command).unwrap());
    });
    let text = String::from_utf8(log.end(End::Stopped).unwrap()).unwrap();
    let played = replay(text.as_bytes()).unwrap();
    assert_eq!((played.end, &played.divergence), (Some(End::Stopped), &None));
    assert!(played.events > 400 && played.commands > 400, "{played:?}");

    let lines: Vec<&str> = text.lines().collect();
    let fetch = lines.iter().rposition(|line| line.contains("\"fetch\"")).unwrap();
    let mut without = lines.clone();
    without.remove(fetch);
    let played = replay(without.join("\n").as_bytes()).unwrap();
    let found = played.divergence.unwrap();
    assert_eq!((found.line, found.expected), (fetch as u64 + 1, None));
    assert!(matches!(found.found, Some(Command::Fetch { .. })));

    let cut = &text[..text.len() - 3];
    assert_eq!(replay(cut.as_bytes()).unwrap().end, None);
    let is_answer = |line: &&str| line.contains("tiers") || line.contains("came");
    let answers: Vec<&str> = lines.iter().copied().filter(is_answer).collect();
    let impossible = replay((answers.join("\n") + "\n").as_bytes()).unwrap_err().to_string();
    assert!(impossible.ends_with("is not in flight"), "{impossible}");
    assert!(replay(&b"{}\n"[..]).is_err());
}

#[test]
fn log_lines_are_read_as_written_and_other_versions_refused() {
    let log_text = |version: u32, tiers: &str| {
        format!(
            "{{\"format\":\"fulgurite-restore-log\",\"version\":{version},{tiers}}}\n\
             {{\"t\":5,\"event\":{{\"asked\":{{\"restore\":3,\"retrieval\":\"Bulk\",\"at\":7,\
             \"pieces\":[{{\"place\":9,\"offset\":\"40B\",\"bytes\":\"30B\"}}]}}}}}}\n"
        )
    };
    let tiers = "\"tiers\":[{\"drives\":1,\"bytes\":\"256MiB\",\"pieces\":16384}]";
    let expected = log_text(1, tiers);
    let mut log = LogReader::new(expected.as_bytes()).unwrap();
    let entry = log.next_entry().unwrap().unwrap();
    let Logged::Event(Event::Asked { pieces, .. }) = entry.what else { panic!("{entry:?}") };
    assert_eq!(pieces[0].offset, Some(ByteCount::new(40)));
    for (version, tiers) in [(0, tiers), (2, tiers), (1, "\"drives\":1"), (1, "\"tiers\":[]")] {
        assert!(LogReader::new(log_text(version, tiers).as_bytes()).is_err(), "{version} {tiers}");
    }
    let mut log = LogWriter::new(Vec::new(), &Restores::new(1)).unwrap();
    let whole = Piece { offset: Some(ByteCount::new(40)), ..piece(9, 30) };
    let event = Event::Asked {
        restore: RestoreId::new(3),
        retrieval: Retrieval::Bulk,
        at: UnixTime::from_millis(7),
        pieces: vec![whole],
    };
    log.event(Instant::from_nanos(5), &event).unwrap();
    log.flush().unwrap();
    let text = String::from_utf8(log.end(End::Stopped).unwrap()).unwrap();
    assert!(text.starts_with(&expected), "{text}");
}
