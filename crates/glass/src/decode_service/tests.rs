//! Tests of the decode service: workers die, verification waits, and bytes still come back.

mod queue;

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use fulgurite_codes::ldpc::Rate;
use fulgurite_decode::{
    Damage, Decoder, SymbolProbabilities, VoxelMedium, VoxelReader, standard_linear,
};
use fulgurite_platter::channel::{Channel, SectorImages, SectorShape};
use fulgurite_units::{LayerIndex, PlatterId, Seed, TrackIndex};

use super::job::{Decoded, DecodedSector};
use super::queue::{CLOSED, Next, Outcome};
use super::*;

const BYTES: usize = 640;

/// A linear decoder that dies, or counts its calls.
struct DyingDecoder {
    inner: Box<dyn Decoder + Send>,
    calls: Arc<AtomicUsize>,
    /// Dies at these calls.
    dies: fn(usize) -> bool,
}

impl Decoder for DyingDecoder {
    fn name(&self) -> &str {
        "mortal"
    }

    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        assert!(!(self.dies)(call), "this worker is meant to die");
        self.inner.decode(images, shape)
    }
}

const ENERGY: Energy =
    Energy { tariff: Tariff { prices: [1.0; HOURS], within: Duration::ZERO }, watts: 10.0 };

fn pool(workers: usize, dies: fn(usize) -> bool) -> DecodeService {
    pool_with(workers, dies, ENERGY)
}

fn pool_with(workers: usize, dies: fn(usize) -> bool, energy: Energy) -> DecodeService {
    let calls = Arc::new(AtomicUsize::new(0));
    let make = move || {
        let inner = Box::new(standard_linear("easy")?);
        let mortal = DyingDecoder { inner, calls: Arc::clone(&calls), dies };
        let medium = VoxelMedium {
            channel: Channel::preset("easy")?,
            rate: Rate::R5of6,
            seed: Seed::new(1),
            reads_max: 1,
            damage: Damage::default(),
        };
        VoxelReader::new(medium, vec![Box::new(mortal) as Box<dyn Decoder + Send>])
    };
    DecodeService::threads(Box::new(make), workers, 3, energy).unwrap()
}

fn extent() -> SectorExtent {
    SectorExtent {
        platter: PlatterId::from_bytes([7; 16]),
        track: TrackIndex::new(1),
        first: LayerIndex::new(0),
        sector_bytes: BYTES,
    }
}

fn written(sectors: usize) -> Vec<u8> {
    let mut bytes = vec![0; sectors * BYTES];
    Seed::new(2).stream().fill(&mut bytes);
    bytes
}

fn lost(readings: &[SectorReading]) -> usize {
    readings.iter().filter(|reading| **reading == SectorReading::Lost).count()
}

#[test]
fn all_workers_decode_tracks() {
    let pool = pool(3, |_| false);
    let written = written(14);
    let (mut bytes, mut readings) = (written.clone(), Vec::new());
    pool.read(extent(), &mut bytes, &mut readings, Urgency::Urgent).unwrap();
    assert_eq!((bytes, readings.len(), lost(&readings)), (written, 14, 0));
    let status = pool.status();
    assert_eq!(status.sectors, [("mortal".to_owned(), 14)]);
    assert_eq!((status.lost, status.deaths, status.queued), (0, 0, (0, 0)));
    assert!(status.workers >= 1 && status.workers_max == Some(3), "{status:?}");
    assert!(status.voxels > 14 * 1000 && status.busy_seconds > 0.0, "{status:?}");
    assert!((status.joules - 10.0 * status.busy_seconds).abs() < 1e-9, "{status:?}");
    assert!((status.price.unwrap() - 1.0).abs() < 1e-9, "every hour costs the same: {status:?}");
}

/// A part whose worker dies is decoded by another; one that kills every worker is lost, and the
/// others are not.
#[test]
fn dead_workers_lose_only_the_poisoned_part() {
    let pool_once = pool(2, |call| call == 1);
    let written = written(8);
    let (mut bytes, mut readings) = (written.clone(), Vec::new());
    pool_once.read(extent(), &mut bytes, &mut readings, Urgency::Urgent).unwrap();
    assert_eq!((lost(&readings), pool_once.status().deaths), (0, 1));
    assert_eq!(bytes, written);

    let pool_always = pool(1, |_| true);
    let mut readings = Vec::new();
    pool_always.read(extent(), &mut bytes, &mut readings, Urgency::Urgent).unwrap();
    assert_eq!(lost(&readings), 8);
    assert_eq!(pool_always.status().deaths, 4, "two parts, two tries each");
}

/// Sectors that do not fit the channel are an error, not lost data.
#[test]
fn undecodable_part_is_an_error() {
    let pool = pool(1, |_| false);
    let bytes = 40 << 20;
    let extent = SectorExtent { sector_bytes: bytes, ..extent() };
    let error =
        pool.read(extent, &mut vec![0; bytes], &mut Vec::new(), Urgency::Deferred).unwrap_err();
    let PlatterError::Medium { platter, reason } = &error else { panic!("{error:?}") };
    assert_eq!(*platter, extent.platter);
    assert!(reason.contains("a sector of 41943040 bytes"), "{reason}");
}

fn part(first: usize, urgency: Urgency, release: Option<Instant>) -> (Part, Answers) {
    let (reply, answers) = mpsc::channel();
    let part = Part {
        extent: extent(),
        bytes: Arc::new(written(first + 1)),
        wanted: first..first + 1,
        drive: 0,
        read: 0,
        has_failed: false,
        queued: Instant::now(),
        release,
        urgency,
        reply,
    };
    (part, answers)
}

type Answers = mpsc::Receiver<(std::ops::Range<usize>, Outcome)>;

fn shared() -> Shared {
    Shared::new(vec!["linear".to_owned()], ENERGY)
}

fn taken(shared: &Shared) -> Vec<usize> {
    taken_at(shared, Instant::now())
}

fn taken_at(shared: &Shared, now: Instant) -> Vec<usize> {
    let next = || match shared.next_at(now, true) {
        Next::Part(part) => Some(part.wanted.start),
        Next::Wait(_) => None,
    };
    std::iter::from_fn(next).collect()
}

/// Urgent parts are taken before deferred ones, however long those wait.
#[test]
fn urgent_parts_go_first() {
    let shared = shared();
    shared.push(vec![part(1, Urgency::Deferred, None).0, part(2, Urgency::Deferred, None).0]);
    shared.push(vec![part(3, Urgency::Urgent, None).0]);
    assert_eq!(shared.status(0, None).queued, (1, 2));
    assert_eq!(taken(&shared), [3, 1, 2]);
}

/// A part that waits for its hour is overtaken by others, and taken when the hour has come.
#[test]
fn deferred_parts_wait_for_their_cheap_hour() {
    let shared = shared();
    let now = Instant::now();
    let (soon, late) = (now + Duration::from_secs(1800), now + Duration::from_secs(3600));
    let deferred = |first, release| part(first, Urgency::Deferred, release).0;
    shared.push(vec![deferred(1, Some(late)), deferred(2, Some(soon)), deferred(3, None)]);
    let status = shared.status(0, None);
    assert_eq!((status.queued, status.held), ((0, 3), 2));
    assert_eq!(taken(&shared), [3]);
    assert!(shared.status(0, None).oldest_seconds < 1e-9, "held parts are not late");
    let Next::Wait(wait) = shared.next_at(now, true) else { panic!("nothing is due") };
    assert_eq!(wait, Some(soon - now));
    assert_eq!(taken_at(&shared, soon), [2]);
    assert_eq!((shared.due(), shared.is_empty()), (0, false));
}

/// A thread that has only held parts sleeps until they are due, and decodes them.
#[test]
fn threads_wake_for_deferred_parts() {
    let pool = pool(1, |_| false);
    let release = Instant::now() + Duration::from_millis(200);
    let (held, answers) = part(0, Urgency::Deferred, Some(release));
    pool.shared.push(vec![held]);
    pool.wake();
    let (wanted, outcome) = answers.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(Instant::now() >= release);
    assert_eq!((wanted, outcome.unwrap().bytes), (0..1, written(1)));
}

/// One thread waits for an hour; when it comes all threads work.
#[test]
fn start_of_a_cheap_hour_wakes_all_threads() {
    let pool = pool(2, |_| false);
    let release = Instant::now() + Duration::from_millis(100);
    let held = (0..6).map(|first| part(first, Urgency::Deferred, Some(release)));
    let (parts, answers): (Vec<Part>, Vec<Answers>) = held.unzip();
    pool.shared.push(parts);
    pool.wake();
    for answers in answers {
        answers.recv_timeout(Duration::from_secs(60)).unwrap().1.unwrap();
    }
    assert_eq!(pool.status().workers, 2);
}

/// In expensive hours verification waits and restores do not; stopping waits for neither.
#[test]
fn verification_waits_for_cheap_hours_until_shutdown() {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let hour = usize::try_from(seconds.as_secs() / 3600 % 24).unwrap();
    let mut prices = [1.0; HOURS];
    prices[hour] = 100.0;
    prices[(hour + 1) % HOURS] = 100.0;
    let tariff = Tariff { prices, within: Duration::from_secs(8 * 3600) };
    let pool = Arc::new(pool_with(2, |_| false, Energy { tariff, watts: 10.0 }));
    assert!(pool.can_defer_decoding());
    let verifying = {
        let pool = Arc::clone(&pool);
        std::thread::spawn(move || {
            pool.read(extent(), &mut written(2), &mut Vec::new(), Urgency::Deferred)
        })
    };
    while pool.status().held == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut bytes, mut readings) = (written(2), Vec::new());
    pool.read(extent(), &mut bytes, &mut readings, Urgency::Urgent).unwrap();
    assert_eq!((bytes, lost(&readings)), (written(2), 0));
    assert!(pool.status().held > 0 && !verifying.is_finished());
    pool.stop();
    let PlatterError::Medium { reason, .. } = verifying.join().unwrap().unwrap_err() else {
        panic!("another error")
    };
    assert_eq!(reason, CLOSED);
    // Later parts are not held either.
    pool.read(extent(), &mut written(1), &mut Vec::new(), Urgency::Deferred).unwrap_err();
    pool.read(extent(), &mut written(1), &mut Vec::new(), Urgency::Urgent).unwrap();
}

#[test]
fn part_not_decoded_in_time_is_an_error() {
    let shared = shared();
    let (mut old, answers) = part(0, Urgency::Urgent, None);
    old.queued = old.queued.checked_sub(Duration::from_millis(5)).unwrap();
    let (held, still) = part(1, Urgency::Deferred, Some(Instant::now() + Duration::from_secs(9)));
    shared.push(vec![old, held]);
    shared.refuse_late(Duration::from_millis(1), "no worker came");
    let (_, outcome) = answers.recv().unwrap();
    assert!(matches!(outcome, Err(Failure::Refused(reason)) if reason == "no worker came"));
    assert!(still.try_recv().is_err(), "parts that wait for their hour are not late");
    assert_eq!(shared.status(0, None).queued, (0, 1));
}

/// Expensive and cheap hours: the mean price of what was decoded, relative to that of a day.
#[test]
fn energy_is_counted_with_its_price() {
    let mut prices = [10.0; HOURS];
    prices[..12].fill(30.0);
    let tariff = Tariff { prices, within: Duration::ZERO };
    let shared = Shared::new(vec!["linear".to_owned()], Energy { tariff, watts: 5.0 });
    shared.counters.busy(Duration::from_secs(30), 10.0);
    shared.counters.busy(Duration::from_secs(10), 30.0);
    let status = shared.status(0, None);
    assert!((status.joules - 200.0).abs() < 1e-6, "{status:?}");
    assert!((status.price.unwrap() - 15.0 / 20.0).abs() < 1e-9, "{status:?}");
}

#[test]
fn mismatched_answers_are_detected() {
    let (part, _answers) = part(0, Urgency::Urgent, None);
    let sector = DecodedSector { read: Some(None), decoder: 0, reads: 1, decodes: 1 };
    let answer = |sectors: usize, bytes: usize| Decoded {
        sectors: vec![sector; sectors],
        bytes: vec![0; bytes],
        voxels: 1,
    };
    assert!(part.fits(&answer(1, BYTES)));
    assert!(!part.fits(&answer(1, BYTES - 1)));
    assert!(!part.fits(&answer(2, BYTES)));
}
