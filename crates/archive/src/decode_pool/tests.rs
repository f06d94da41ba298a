//! Tests of the decode service: workers die, verification waits, and bytes come back all the same.

use std::sync::atomic::AtomicUsize;

use fulgurite_codes::ldpc::Rate;
use fulgurite_decode::{Damage, Decoder, SymbolProbabilities, VoxelMedium, standard_linear};
use fulgurite_glass::channel::{Channel, SectorImages, SectorShape};
use fulgurite_units::{LayerIndex, PlatterId, Seed, TrackIndex};

use super::*;

const BYTES: usize = 640;

/// A linear decoder that dies, or says how often it was asked.
struct Mortal {
    inner: Box<dyn Decoder + Send>,
    calls: Arc<AtomicUsize>,
    /// Dies at these calls.
    dies: fn(usize) -> bool,
}

impl Decoder for Mortal {
    fn name(&self) -> &str {
        "mortal"
    }

    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        assert!(!(self.dies)(call), "this worker was to die");
        self.inner.decode(images, shape)
    }
}

fn pool(workers: usize, dies: fn(usize) -> bool) -> DecodePool {
    let calls = Arc::new(AtomicUsize::new(0));
    let make = move || {
        let inner = Box::new(standard_linear("easy")?);
        let mortal = Mortal { inner, calls: Arc::clone(&calls), dies };
        let medium = VoxelMedium {
            channel: Channel::preset("easy")?,
            rate: Rate::R5of6,
            seed: Seed::new(1),
            reads_max: 1,
            damage: Damage::default(),
        };
        VoxelReader::new(medium, vec![Box::new(mortal) as Box<dyn Decoder + Send>])
    };
    DecodePool::new(Box::new(make), workers, 3).unwrap()
}

fn at() -> SectorsAt {
    SectorsAt {
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
fn tracks_come_back_through_all_workers() {
    let pool = pool(3, |_| false);
    let written = written(14);
    let (mut images, mut readings) = (written.clone(), Vec::new());
    pool.read(at(), &mut images, &mut readings, Urgency::Urgent).unwrap();
    assert_eq!((images, readings.len(), lost(&readings)), (written, 14, 0));
    let status = pool.status();
    assert_eq!(status.sectors, [("mortal".to_owned(), 14)]);
    assert_eq!((status.lost, status.deaths, status.queued), (0, 0, (0, 0)));
    assert!(status.workers.0 >= 1 && status.workers.0 <= 3, "{status:?}");
    assert!(status.voxels > 14 * 1000 && status.busy_seconds > 0.0, "{status:?}");
}

/// A part whose worker dies is decoded by another; one that kills every worker is lost, and the
/// others are not.
#[test]
fn dead_workers_lose_no_bytes_and_poisoned_parts_only_themselves() {
    let pool_once = pool(2, |call| call == 1);
    let written = written(8);
    let (mut images, mut readings) = (written.clone(), Vec::new());
    pool_once.read(at(), &mut images, &mut readings, Urgency::Urgent).unwrap();
    assert_eq!((lost(&readings), pool_once.status().deaths), (0, 1));
    assert_eq!(images, written);

    let pool_always = pool(1, |_| true);
    let mut readings = Vec::new();
    pool_always.read(at(), &mut images, &mut readings, Urgency::Urgent).unwrap();
    assert_eq!(lost(&readings), 8);
    assert_eq!(pool_always.status().deaths, 4, "two parts, two tries each");
}

/// Sectors that do not go with the channel are an error, not lost data.
#[test]
fn what_cannot_be_decoded_at_all_is_an_error() {
    let pool = pool(1, |_| false);
    let bytes = 40 << 20;
    let at = SectorsAt { sector_bytes: bytes, ..at() };
    let error = pool.read(at, &mut vec![0; bytes], &mut Vec::new(), Urgency::Deferred).unwrap_err();
    let GlassError::Medium { platter, reason } = &error else { panic!("{error:?}") };
    assert_eq!(*platter, at.platter);
    assert!(reason.contains("a sector of 41943040 bytes"), "{reason}");
}

/// Urgent parts are taken before deferred ones, however long those wait.
#[test]
fn urgent_parts_go_first() {
    let shared = &pool(1, |_| false).shared;
    let (reply, _answers) = mpsc::channel();
    let part = |first: usize, urgency| Part {
        at: at(),
        images: Arc::default(),
        wanted: first..first + 1,
        drive: 0,
        read: 0,
        has_failed: false,
        queued: Instant::now(),
        urgency,
        reply: reply.clone(),
    };
    let mut queue = shared.lock();
    queue.deferred.push_back(part(1, Urgency::Deferred));
    queue.deferred.push_back(part(2, Urgency::Deferred));
    queue.urgent.push_back(part(3, Urgency::Urgent));
    drop(queue);
    let order: Vec<usize> = (0..3).map(|_| shared.next().unwrap().wanted.start).collect();
    assert_eq!(order, [3, 1, 2]);
}
