//! The index of a rack with many blobs: bytes per blob, and the latency of a lookup.
//!
//! Rows are written as docs/formats/rack-index.md describes, many in a batch: one commit each would
//! measure how long a disk takes to sync. `verify` checks that the index can read them. Keys have
//! 41 bytes; as in an archive, they begin with a bucket and end at random.
//!
//! ```text
//! put number --scattered--> rank of its key among all keys
//!            '-scattered--> rank of its blob's id among those of its group
//! ```
//!
//! Keys and ids are random but known by their rank. This allows bulk loading in key order when
//! batches would take hours. Bulk-loaded rows lie in one sorted run of tables, as after a
//! compaction.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fulgurite_catalog::keys::KeyWriter;
use fulgurite_catalog::{Batch, CatalogError, FjallConfig, FjallStore, KeyValue as _, Space, row};
use fulgurite_disks::GroupId;
use fulgurite_rack::format::Coding;
use fulgurite_rack::index::{BlobRow, Content, Index, Mode, Object, ObjectRow};
use fulgurite_units::{BlobId, ByteCount, RackId, RandomStream, Seed};

use super::plain::forget;

const SPACES: [&str; 6] = ["rack", "objects", "blobs", "begun", "unwanted", "disks"];
const OBJECTS: Space = Space::new("objects");
const BLOBS: Space = Space::new("blobs");
const BATCH: u64 = 20_000;
/// Above this count, rows are bulk-loaded in order.
const BATCHES_MAX: u64 = 2_000_000;
const LOOKUPS: u64 = 20_000;
/// Groups of Pelican's rack, and disks per group.
const GROUPS: u64 = 48;
const DISKS: u64 = 24;
const STACKS: u64 = 18;

/// Fills an index, closes it, and looks up objects: first with a cold page cache, then warm.
pub(crate) fn print(folder: &Path, count: u64) {
    let folder = folder.join("index");
    let begin = Instant::now();
    fill(&folder, count);
    let filled_s = begin.elapsed().as_secs_f64();
    let files = files(&folder);
    let bytes: u64 = files.iter().map(|path| std::fs::metadata(path).unwrap().len()).sum();
    let [objects, blobs] = raw(count);
    forget(files);
    let begin = Instant::now();
    let index = Index::open(&folder).unwrap();
    let opened_s = begin.elapsed().as_secs_f64();
    verify(&index, count);
    let cold = polls(&index, count, 1);
    let warm = polls(&index, count, 2);
    let formatted = |[p50, p99, most]: [f64; 3]| format!("[{p50:.1},{p99:.1},{most:.1}]");
    println!(
        "{{\"count\":{count},\"bytes_each\":{:.2},\"object_row\":{objects},\"blob_row\":{blobs},\
         \"filled_s\":{filled_s:.1},\"opened_s\":{opened_s:.3},\"head_us\":{},\"head_again_us\":{},\
         \"looks\":{LOOKUPS}}}",
        share(bytes, count),
        formatted(cold),
        formatted(warm)
    );
    drop(index);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn fill(folder: &Path, count: u64) {
    let index = Index::open(folder).unwrap();
    index.claim(RackId::from_bytes([1; 16]), Coding::PELICAN).unwrap();
    drop(index);
    let store = FjallStore::open(folder, &SPACES.map(Space::new), &FjallConfig::default()).unwrap();
    let all = All::new(count);
    if count > BATCHES_MAX {
        load(&store, &all);
    } else {
        put(&store, &all);
    }
}

/// Puts all rows in put order.
fn put(store: &FjallStore, all: &All) {
    for from in (0..all.count).step_by(usize::try_from(BATCH).unwrap()) {
        let mut batch = Batch::new();
        for number in from..all.count.min(from + BATCH) {
            let made = all.by_number(number);
            batch.put(OBJECTS, made.key, row::encode(&made.object).unwrap()).unwrap();
            batch.put(BLOBS, made.blob_key, row::encode(&made.blob).unwrap()).unwrap();
        }
        store.apply(batch).unwrap();
    }
}

/// Bulk-loads all rows in key order, both spaces in parallel.
fn load(store: &FjallStore, all: &All) {
    let objects = (0..all.count).map(|rank| {
        let made = all.by_number(all.objects.number(rank));
        Ok::<_, CatalogError>((made.key, row::encode(&made.object).unwrap()))
    });
    let blobs = (0..all.count).map(|rank| {
        let made = all.by_number(all.blobs.number(rank));
        Ok::<_, CatalogError>((made.blob_key, row::encode(&made.blob).unwrap()))
    });
    std::thread::scope(|scope| {
        scope.spawn(|| store.load(OBJECTS, objects).unwrap());
        store.load(BLOBS, blobs).unwrap();
    });
}

/// A permutation that maps put numbers to ranks among all keys and scatters neighbors.
struct Scattered {
    count: u64,
    stride: u64,
    back: u64,
}

impl Scattered {
    fn new(count: u64, from: u64) -> Self {
        let stride = (from % count..).find(|stride| divisor(*stride, count) == 1).unwrap();
        Self { count, stride, back: inverse(stride, count) }
    }

    fn rank(&self, number: u64) -> u64 {
        product(number, self.stride, self.count)
    }

    fn number(&self, rank: u64) -> u64 {
        product(rank, self.back, self.count)
    }
}

fn product(left: u64, right: u64, modulus: u64) -> u64 {
    u64::try_from(u128::from(left) * u128::from(right) % u128::from(modulus)).unwrap()
}

/// Returns the greatest common divisor.
fn divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { divisor(right, left % right) }
}

/// Returns the inverse of `stride` modulo `count`.
fn inverse(stride: u64, count: u64) -> u64 {
    let [mut old, mut new] = [(i128::from(stride), 1), (i128::from(count), 0)];
    while new.0 != 0 {
        let whole = old.0 / new.0;
        (old, new) = (new, (old.0 - whole * new.0, old.1 - whole * new.1));
    }
    u64::try_from(old.1.rem_euclid(i128::from(count))).unwrap()
}

/// All objects that are put.
struct All {
    count: u64,
    objects: Scattered,
    blobs: Scattered,
}

impl All {
    fn new(count: u64) -> Self {
        let [objects, blobs] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];
        let [objects, blobs] = [objects, blobs].map(|from| Scattered::new(count, from));
        Self { count, objects, blobs }
    }

    /// Returns a random `bits`-bit value that lies as far into the range of such values as `rank`
    /// lies within `count`.
    fn ranked(rank: u64, count: u64, bits: u32, stream: &mut RandomStream) -> u64 {
        let width = u64::try_from((1_u128 << bits) / u128::from(count)).unwrap();
        rank * width + stream.below(width)
    }

    fn by_number(&self, number: u64) -> ObjectRows {
        let mut stream = Seed::new(number).child(b"object").stream();
        let name = Self::ranked(self.objects.rank(number), self.count, 60, &mut stream);
        let key = format!("archive/{name:016x}/{number:016x}");
        // Each group has a contiguous run of blob ranks.
        let each = self.count.div_ceil(GROUPS);
        let rank = self.blobs.rank(number);
        let group = u32::try_from(rank / each).unwrap();
        let first = Self::ranked(rank % each, each, 63, &mut stream);
        let mut random = [0; 24];
        stream.fill(&mut random);
        random[..8].copy_from_slice(&KeyWriter::new().u64(first).finish());
        let id = BlobId::from_random(std::array::from_fn(|at| random[at]));
        let first = stream.below(DISKS);
        let place = |stack: u64| (first + stack) % DISKS + u64::from(group) * DISKS;
        let places = (0..STACKS).map(|stack| Some(u32::try_from(place(stack)).unwrap()));
        let (sequence, length) = (number + 1, ByteCount::new(200_000_000 + stream.below(1 << 32)));
        let object = ObjectRow {
            sequence,
            modified_ms: 1_700_000_000_000 + number,
            length,
            attributes: Vec::new(),
            content: Content::Blob { group, blob: id },
        };
        let sum = stream.below(u64::MAX);
        let blob = BlobRow { sequence, length, sum, information: 15, places: places.collect() };
        let blob_key = KeyWriter::new().u32(group).fixed(&id.to_bytes()).finish();
        ObjectRows { key: key.into_bytes(), object, blob_key, blob, id, group: GroupId::new(group) }
    }
}

/// An object and its blob.
struct ObjectRows {
    key: Vec<u8>,
    object: ObjectRow,
    blob_key: Vec<u8>,
    blob: BlobRow,
    id: BlobId,
    group: GroupId,
}

impl ObjectRows {
    fn name(&self) -> &str {
        std::str::from_utf8(&self.key).unwrap()
    }
}

/// Returns the average bytes of an object's key and row, and of its blob's key and row.
fn raw(count: u64) -> [f64; 2] {
    let all = All::new(count);
    let sample: Vec<ObjectRows> =
        (0..count.min(1000)).map(|at| all.by_number(at * (count / 1000).max(1))).collect();
    let mean = |bytes: &dyn Fn(&ObjectRows) -> usize| {
        let all: usize = sample.iter().map(bytes).sum();
        share(all as u64, sample.len() as u64)
    };
    [
        mean(&|made| made.key.len() + row::encode(&made.object).unwrap().len()),
        mean(&|made| made.blob_key.len() + row::encode(&made.blob).unwrap().len()),
    ]
}

/// Checks that the index reads what was written and continues from it.
fn verify(index: &Index, count: u64) {
    let made = All::new(count).by_number(count / 3);
    assert_eq!(index.object(made.name()).unwrap().as_ref(), Some(&made.object));
    assert_eq!(index.blob(made.group, made.id).unwrap().as_ref(), Some(&made.blob));
    let object = Object { key: "another".to_owned(), modified_ms: 1, attributes: Vec::new() };
    let put = index.put_inline(object, vec![1], Mode::Create);
    assert_eq!(futures::executor::block_on(put).unwrap(), 1, "the first sequence");
}

/// Times lookups of random objects. Returns the median, the 99th percentile and the maximum in
/// microseconds.
fn polls(index: &Index, count: u64, seed: u64) -> [f64; 3] {
    let all = All::new(count);
    let mut stream = Seed::new(seed).child(b"looks").stream();
    let look = || {
        let made = all.by_number(stream.below(count));
        let begin = Instant::now();
        let found = index.object(made.name()).unwrap();
        let took = begin.elapsed().as_secs_f64() * 1e6;
        assert!(found.is_some(), "the object exists");
        took
    };
    let mut times: Vec<f64> =
        std::iter::repeat_with(look).take(usize::try_from(LOOKUPS).unwrap()).collect();
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[times.len() * 99 / 100], times[times.len() - 1]]
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    found.collect::<Vec<_>>().concat()
}

#[expect(clippy::cast_precision_loss, reason = "a figure of four digits")]
fn share(bytes: u64, count: u64) -> f64 {
    bytes as f64 / count as f64
}
