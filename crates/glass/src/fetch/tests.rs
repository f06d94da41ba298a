//! What is read of a platter that lost tracks, and how often.

use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_catalog::KeyRange;
use fulgurite_platter::{NoFaults, PlatterError, SectorExtent, SectorReading};

use super::*;
use crate::cipher_crc;
use crate::rows::{PLANS, PlanRow};
use crate::testing::Bench;

/// A destination in memory.
#[derive(Debug, Default)]
struct Room(Mutex<Vec<u8>>);

impl WriteAt for Room {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut room = self.0.lock().unwrap();
        let end = usize::try_from(offset).unwrap() + bytes.len();
        let len = room.len().max(end);
        room.resize(len, 0);
        room[end - bytes.len()..end].copy_from_slice(bytes);
        Ok(())
    }
}

/// A medium with one bad platter, which counts the reads of its sectors.
#[derive(Debug)]
struct Bad {
    platter: PlatterId,
    /// Whether the platter cannot be decoded instead.
    is_undecoded: bool,
    read: AtomicU64,
}

impl Bad {
    fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

impl Medium for Bad {
    fn read(
        &self,
        at: SectorExtent,
        bytes: &mut [u8],
        readings: &mut Vec<SectorReading>,
    ) -> Result<(), PlatterError> {
        if at.platter != self.platter {
            return NoFaults.read(at, bytes, readings);
        }
        let sectors = bytes.len() / at.sector_bytes;
        self.read.fetch_add(sectors as u64, Ordering::Relaxed);
        if self.is_undecoded {
            let reason = "nobody is there".to_owned();
            return Err(PlatterError::Medium { platter: at.platter, reason });
        }
        readings.extend(std::iter::repeat_n(SectorReading::Lost, sectors));
        Ok(())
    }
}

/// A set of two small bodies, on one track.
struct Small {
    bench: Bench,
    row: PlatterRow,
    set: SetRow,
    shards: Vec<Shard>,
}

impl Small {
    fn new() -> Self {
        let bench = Bench::new();
        for name in ["a", "b"] {
            bench.bodies.put(name, 1000);
        }
        let id = bench.plan();
        let set = |bench: &Bench| -> SetRow {
            rows::get(&*bench.context.catalog, SETS, &id.to_bytes()).unwrap().unwrap()
        };
        bench.sealer.write(id, &set(&bench)).unwrap();
        let set = set(&bench);
        let platter = set.information[0];
        let row = rows::get(&*bench.context.catalog, PLATTERS, &platter.to_bytes()).unwrap();
        let plan: Vec<(Vec<u8>, PlanRow)> =
            rows::rows_in(&*bench.context.catalog, PLANS, &KeyRange::prefix(b""), 9).unwrap();
        let shards = plan.into_iter().map(|(_, planned)| {
            let PlanRow { offset, body_offset, bytes, crc, .. } = planned;
            Shard { platter, offset, body_offset, bytes, crc }
        });
        let shards = shards.collect();
        Self { bench, row: row.unwrap(), set, shards }
    }

    fn platter(&self) -> PlatterId {
        self.set.information[0]
    }

    fn bad(&self, is_undecoded: bool) -> Bad {
        Bad { platter: self.platter(), is_undecoded, read: AtomicU64::new(0) }
    }

    fn open(&self, platter: PlatterId) -> Reader {
        PlatterReader::open(self.bench.context.open(platter).unwrap(), None, &NoFaults).unwrap()
    }

    fn requests(&self) -> Vec<ShardRequest<usize>> {
        let request = |(piece, &shard): (usize, &Shard)| {
            let room = Arc::<Room>::default();
            ShardRequest { piece, shard, room, due: UnixTime::from_millis(0) }
        };
        self.shards.iter().enumerate().map(request).collect()
    }

    /// Returns what the platter gave, as input of the next step.
    fn brought(
        &self,
        read: PlatterReads,
        requests: Vec<ShardRequest<usize>>,
    ) -> SetRecovery<usize> {
        assert_eq!(read.remaining, [0, 1]);
        let (platter, lost) = (self.platter(), read.lost);
        let (row, set) = (self.row.clone(), self.set.clone());
        SetRecovery { platter, brought: true, lost, requests, row, set, members: Vec::new() }
    }

    fn other_readers(&self, but: usize) -> BTreeMap<PlatterId, Reader> {
        let other_readers = self.set.redundancy.iter().skip(but);
        other_readers.map(|&platter| (platter, self.open(platter))).collect()
    }
}

/// Far libraries that must not be read.
fn no_far_platters() -> BTreeMap<PlatterId, Reader> {
    panic!("the home platters are enough")
}

#[test]
fn lost_track_is_rebuilt_from_its_set_without_retry() {
    let small = Small::new();
    let (medium, repairs) = (small.bad(false), &small.bench.context.repairs);
    let (own, requests) = (small.open(small.platter()), small.requests());
    let room = Arc::<Room>::default();
    let requests: Vec<_> = requests
        .into_iter()
        .map(|request| ShardRequest { room: Arc::clone(&room) as _, ..request })
        .collect();
    let read = PlatterReads::read(&own, &medium, repairs, &requests);
    let once = medium.read();
    assert!(once > 0 && read.completed.is_empty() && read.lost.len() == 1);
    let brought = small.brought(read, requests);
    let fetched = recover_from_sets(
        &brought,
        Some(&own),
        small.other_readers(0),
        no_far_platters,
        (&medium, repairs),
    );
    assert_eq!(medium.read(), once, "a lost track is decoded once");
    let mut crc = cipher_crc();
    crc.update(&[9; 1000]);
    let crc = crc.finalize();
    assert_eq!(fetched.completed, [(0, crc), (1, crc)]);
    assert!(fetched.failed.is_empty());
    assert_eq!(*room.0.lock().unwrap(), vec![9; 1000]);
    assert_eq!(repairs.counts(), (0, 0, 1), "both are on the track");
}

#[test]
fn failed_decoding_does_not_mark_tracks_lost() {
    let small = Small::new();
    let (medium, repairs) = (small.bad(true), &small.bench.context.repairs);
    let (own, requests) = (small.open(small.platter()), small.requests());
    let read = PlatterReads::read(&own, &medium, repairs, &requests);
    assert!(read.lost.is_empty());
    let brought = small.brought(read, requests);
    let fetched = recover_from_sets(
        &brought,
        Some(&own),
        small.other_readers(0),
        no_far_platters,
        (&NoFaults, repairs),
    );
    assert_eq!(fetched.completed.len(), 2);
    assert_eq!(repairs.counts(), (0, 0, 0), "the platter itself supplied them");
}

#[test]
fn shards_of_a_failed_track_share_its_error() {
    let small = Small::new();
    let (medium, repairs) = (small.bad(false), &small.bench.context.repairs);
    let (own, requests) = (small.open(small.platter()), small.requests());
    let read = PlatterReads::read(&own, &medium, repairs, &requests);
    let mut brought = small.brought(read, requests);
    let needed = small.set.redundancy.len();
    let none = BTreeMap::new;
    let few = small.other_readers(needed);
    let fetched = recover_from_sets(&brought, Some(&own), few, none, (&medium, repairs));
    let [(0, first), (1, second)] = &fetched.failed[..] else { panic!("{fetched:?}") };
    assert!(Arc::ptr_eq(first, second));
    assert!(
        matches!(&**first, GlassError::Glass(PlatterError::Unreadable(_))),
        "{first} names its track and what its code can do"
    );
    // And with nothing of the set at all.
    brought.brought = false;
    let fetched = recover_from_sets(&brought, None, BTreeMap::new(), none, (&medium, repairs));
    let (_, reason) = &fetched.failed[0];
    let is_named = |platter| platter == small.platter();
    assert!(matches!(**reason, GlassError::SetMissing { platter } if is_named(platter)));
}

#[test]
fn far_libraries_supply_what_home_platters_cannot() {
    let small = Small::new();
    let (medium, repairs) = (small.bad(false), &small.bench.context.repairs);
    let (own, requests) = (small.open(small.platter()), small.requests());
    let read = PlatterReads::read(&own, &medium, repairs, &requests);
    let brought = small.brought(read, requests);
    let needed = small.set.redundancy.len();
    let (home, far) = (small.other_readers(needed), || small.other_readers(0));
    let fetched = recover_from_sets(&brought, Some(&own), home, far, (&medium, repairs));
    assert_eq!((fetched.completed.len(), fetched.failed.len()), (2, 0));
}
