//! The conformance suite for every store: the guarantees of [`KeyValue`], tested from outside.

use std::ops::ControlFlow;
use std::path::Path;

use fulgurite_units::{ByteCount, RandomStream, Seed};

use crate::keys::KeyWriter;
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::{
    Batch, Direction, ErrorKind, FjallConfig, FjallStore, KeyRange, KeyValue, MemoryStore,
    ReadView, Space,
};

const LEFT: Space = Space::new("left");
const RIGHT: Space = Space::new("right");
const UNKNOWN: Space = Space::new("unknown");
const SPACES: [Space; 2] = [LEFT, RIGHT];

/// Small enough that rows move from memory to tables and through compactions within a test.
const SMALL: FjallConfig = FjallConfig {
    block_cache: ByteCount::mib(1),
    write_buffer: ByteCount::kib(16),
    worker_count: 2,
};

fn fjall(path: &Path) -> FjallStore {
    FjallStore::open(path, &SPACES, &SMALL).unwrap()
}

#[test]
fn memory_store_conforms() {
    check(&|| Box::new(MemoryStore::new(&SPACES)));
}

#[test]
fn fjall_store_conforms() {
    let parent = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    check(&|| {
        count.set(count.get() + 1);
        Box::new(fjall(&parent.path().join(count.get().to_string())))
    });
}

#[test]
fn fjall_store_keeps_rows_over_a_reopen() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("store");
    let mut model = Model::default();
    let mut random = Seed::new(5).stream();
    for _ in 0..4 {
        let store = fjall(&path);
        check_equal(&store, &model);
        for _ in 0..40 {
            store.apply(model.random_batch(&mut random)).unwrap();
        }
    }
    check_equal(&fjall(&path), &model);
}

#[test]
fn fjall_store_adds_a_space() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("store");
    let store = FjallStore::open(&path, &[LEFT], &SMALL).unwrap();
    store.apply(batch(&[(LEFT, "k", Some("v"))])).unwrap();
    assert_eq!(store.get(RIGHT, b"k").unwrap_err().kind(), ErrorKind::Invalid);
    drop(store);
    let store = fjall(&path);
    assert_eq!(store.get(LEFT, b"k").unwrap().unwrap(), b"v");
    assert_eq!(store.get(RIGHT, b"k").unwrap(), None);
    store.apply(batch(&[(RIGHT, "k", Some("w"))])).unwrap();
}

/// The whole suite.
fn check(open: &dyn Fn() -> Box<dyn KeyValue>) {
    rows_are_put_replaced_and_deleted(&*open());
    ranges_are_half_open_ordered_and_limited(&*open());
    a_snapshot_never_changes(&*open());
    limits_hold_at_their_edges(&*open());
    unknown_spaces_are_refused_whole(&*open());
    batches_are_seen_whole(&*open());
    for seed in 0..4 {
        random_batches_match_a_model(&*open(), seed);
    }
}

fn batch(writes: &[(Space, &str, Option<&str>)]) -> Batch {
    let mut batch = Batch::new();
    for &(space, key, value) in writes {
        match value {
            Some(value) => batch.put(space, key, value).unwrap(),
            None => batch.delete(space, key).unwrap(),
        }
    }
    batch
}

fn text(view: &dyn ReadView, space: Space, key: &str) -> Option<String> {
    view.get(space, key.as_bytes()).unwrap().map(|value| String::from_utf8(value).unwrap())
}

fn rows_are_put_replaced_and_deleted(store: &dyn KeyValue) {
    assert_eq!(store.spaces(), SPACES);
    store.apply(batch(&[(LEFT, "a", Some("1")), (RIGHT, "a", Some("2"))])).unwrap();
    assert_eq!(text(store, LEFT, "a").as_deref(), Some("1"));
    assert_eq!(text(store, RIGHT, "a").as_deref(), Some("2"), "spaces are independent");
    let last_wins =
        [(LEFT, "a", None), (LEFT, "a", Some("3")), (RIGHT, "a", Some("4")), (RIGHT, "a", None)];
    store.apply(batch(&last_wins)).unwrap();
    assert_eq!(text(store, LEFT, "a").as_deref(), Some("3"));
    assert_eq!(text(store, RIGHT, "a"), None);
    store.apply(batch(&[(LEFT, "absent", None), (LEFT, "empty", Some(""))])).unwrap();
    assert_eq!(text(store, LEFT, "empty").as_deref(), Some(""), "an empty value is stored");
    assert_eq!(store.get(LEFT, b"").unwrap(), None);
    store.apply(Batch::new()).unwrap();
}

fn keys_in(
    view: &dyn ReadView,
    range: &KeyRange,
    direction: Direction,
    limit: usize,
) -> Vec<String> {
    let page = view.range(LEFT, range, direction, limit).unwrap();
    page.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

fn ranges_are_half_open_ordered_and_limited(store: &dyn KeyValue) {
    let rows = ["a", "b", "b\0", "b1", "c", "d"].map(|key| (LEFT, key, Some(key)));
    store.apply(batch(&rows)).unwrap();
    let check = |range: KeyRange, limit: usize, expected: &[&str]| {
        assert_eq!(keys_in(store, &range, Direction::Ascending, limit), expected, "{range:?}");
    };
    check(KeyRange::all(), 9, &["a", "b", "b\0", "b1", "c", "d"]);
    check(KeyRange::all(), 2, &["a", "b"]);
    check(KeyRange::all(), 0, &[]);
    check(KeyRange::prefix(b"b"), 9, &["b", "b\0", "b1"]);
    check(KeyRange::prefix(b"b").after(b"b"), 9, &["b\0", "b1"]);
    check(KeyRange::between("b", "c"), 9, &["b", "b\0", "b1"]);
    check(KeyRange::from("c"), 9, &["c", "d"]);
    check(KeyRange::between("c", "b"), 9, &[]);
    check(KeyRange::between("b", "b"), 9, &[]);
    let back = |range: KeyRange, limit| keys_in(store, &range, Direction::Descending, limit);
    assert_eq!(back(KeyRange::all(), 2), ["d", "c"]);
    assert_eq!(back(KeyRange::all().before(b"c"), 2), ["b1", "b\0"]);
    assert_eq!(back(KeyRange::between("c", "b"), 2), [""; 0]);
    let mut visits = 0;
    let stop = &mut |_: &[u8], _: &[u8]| {
        visits += 1;
        ControlFlow::Break(())
    };
    store.scan(LEFT, &KeyRange::all(), Direction::Ascending, stop).unwrap();
    assert_eq!(visits, 1, "a scan stops on a break");
}

fn a_snapshot_never_changes(store: &dyn KeyValue) {
    store.apply(batch(&[(LEFT, "a", Some("1")), (LEFT, "b", Some("1"))])).unwrap();
    let snapshot = store.snapshot();
    for round in 0..200 {
        let value = format!("{round:0100}");
        let rows = [(LEFT, "a", Some(&*value)), (LEFT, "b", None), (LEFT, "c", Some(&*value))];
        store.apply(batch(&rows)).unwrap();
    }
    assert_eq!(text(&*snapshot, LEFT, "a").as_deref(), Some("1"));
    assert_eq!(keys_in(&*snapshot, &KeyRange::all(), Direction::Ascending, 9), ["a", "b"]);
    assert_eq!(keys_in(store, &KeyRange::all(), Direction::Ascending, 9), ["a", "c"]);
}

fn limits_hold_at_their_edges(store: &dyn KeyValue) {
    let (key, value) = (vec![0xff; KEY_BYTES_MAX], vec![7; VALUE_BYTES_MAX]);
    let mut batch = Batch::new();
    batch.put(LEFT, key.clone(), value.clone()).unwrap();
    batch.put(LEFT, [0], [1]).unwrap();
    store.apply(batch).unwrap();
    assert!(store.get(LEFT, &key).unwrap().unwrap() == value);
    assert_eq!(store.get(LEFT, &[0]).unwrap().unwrap(), [1]);

    // No stored key exceeds the limit, but a longer one may be queried.
    let longer = vec![0xff; 100_000];
    assert_eq!(store.get(LEFT, &longer).unwrap(), None);
    let first_keys = |range: KeyRange| {
        let rows = store.range(LEFT, &range, Direction::Ascending, 9).unwrap();
        rows.into_iter().map(|(key, _)| key[0]).collect::<Vec<_>>()
    };
    assert_eq!(first_keys(KeyRange::from(longer.clone())), []);
    assert_eq!(first_keys(KeyRange::between([0], longer.clone())), [0, 0xff]);
    assert_eq!(first_keys(KeyRange::between(&longer[..50_000], &longer[..])), []);
    assert_eq!(first_keys(KeyRange::from(vec![0xfe; 100_000])), [0xff]);
    assert_eq!(first_keys(KeyRange::between([0], vec![0xfe; 100_000])), [0]);

    let mut batch = Batch::new();
    let longer = vec![0xff; KEY_BYTES_MAX + 1];
    assert_eq!(batch.put(LEFT, longer, []).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(batch.put(LEFT, [], [1]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(batch.delete(LEFT, []).unwrap_err().kind(), ErrorKind::Invalid);
    let longer = vec![0; VALUE_BYTES_MAX + 1];
    assert_eq!(batch.put(LEFT, [1], longer).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(batch.is_empty() && batch.bytes() == 0, "a refused write leaves nothing");
}

fn unknown_spaces_are_refused_whole(store: &dyn KeyValue) {
    let all = KeyRange::all();
    assert_eq!(store.get(UNKNOWN, b"a").unwrap_err().kind(), ErrorKind::Invalid);
    let scanned = store.range(UNKNOWN, &all, Direction::Ascending, 1);
    assert_eq!(scanned.unwrap_err().kind(), ErrorKind::Invalid);
    let applied = store.apply(batch(&[(LEFT, "a", Some("1")), (UNKNOWN, "a", Some("1"))]));
    assert_eq!(applied.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(text(store, LEFT, "a"), None);
    store.apply(batch(&[(LEFT, "a", Some("1"))])).unwrap();
}

/// Readers that race a writer never see half of a batch.
fn batches_are_seen_whole(store: &dyn KeyValue) {
    let count = 300_u32;
    let row = |n: u32| format!("{n:08}");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = None;
                while last.as_deref() != Some(&*row(count)) {
                    let snapshot = store.snapshot();
                    let left = text(&*snapshot, LEFT, "n");
                    assert_eq!(left, text(&*snapshot, RIGHT, "n"), "both halves");
                    assert!(left >= last, "snapshots do not go back in time");
                    last = left;
                }
            });
        }
        for n in 0..=count {
            let value = row(n);
            store.apply(batch(&[(LEFT, "n", Some(&value)), (RIGHT, "n", Some(&value))])).unwrap();
        }
    });
}

/// A list of rows with linear search: slow, and unlike any store.
#[derive(Default)]
struct Model {
    rows: Vec<(Space, Vec<u8>, Vec<u8>)>,
}

impl Model {
    fn write(&mut self, space: Space, key: &[u8], value: Option<&[u8]>) {
        self.rows.retain(|row| (row.0, &*row.1) != (space, key));
        if let Some(value) = value {
            self.rows.push((space, key.to_vec(), value.to_vec()));
        }
    }

    fn range(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let rows = self.rows.iter().filter(|row| row.0 == space && range.contains(&row.1));
        let mut rows: Vec<_> = rows.map(|(_, key, value)| (key.clone(), value.clone())).collect();
        rows.sort();
        if direction == Direction::Descending {
            rows.reverse();
        }
        rows
    }

    /// A batch of a few writes, also applied to the model.
    fn random_batch(&mut self, random: &mut RandomStream) -> Batch {
        let mut batch = Batch::new();
        for _ in 0..=random.below(20) {
            let (space, key) = (random_space(random), random_key(random));
            if random.below(4) == 0 {
                batch.delete(space, key.clone()).unwrap();
                self.write(space, &key, None);
            } else {
                let mut value = vec![0; usize::try_from(random.below(300)).unwrap()];
                random.fill(&mut value);
                batch.put(space, key.clone(), value.clone()).unwrap();
                self.write(space, &key, Some(&value));
            }
        }
        batch
    }
}

fn random_space(random: &mut RandomStream) -> Space {
    SPACES[usize::try_from(random.below(2)).unwrap()]
}

fn random_key(random: &mut RandomStream) -> Vec<u8> {
    KeyWriter::new().u16(u16::try_from(random.below(300)).unwrap()).finish()
}

fn check_equal(view: &dyn ReadView, model: &Model) {
    for space in SPACES {
        let expected = model.range(space, &KeyRange::all(), Direction::Ascending);
        let found = view.range(space, &KeyRange::all(), Direction::Ascending, usize::MAX).unwrap();
        assert!(found == expected, "{space:?} differs from the model");
    }
}

fn random_batches_match_a_model(store: &dyn KeyValue, seed: u64) {
    let mut random = Seed::new(seed).stream();
    let mut model = Model::default();
    for _ in 0..60 {
        store.apply(model.random_batch(&mut random)).unwrap();
        for direction in [Direction::Ascending, Direction::Descending] {
            let space = random_space(&mut random);
            let range = KeyRange::between(random_key(&mut random), random_key(&mut random));
            let limit = usize::try_from(random.below(50)).unwrap();
            let mut expected = model.range(space, &range, direction);
            expected.truncate(limit);
            assert!(
                store.range(space, &range, direction, limit).unwrap() == expected,
                "seed {seed}"
            );
        }
        let (space, key) = (random_space(&mut random), random_key(&mut random));
        let expected = model.range(space, &KeyRange::prefix(&key), Direction::Ascending);
        let expected = expected.into_iter().next().map(|(_, value)| value);
        assert_eq!(store.get(space, &key).unwrap(), expected, "seed {seed}");
    }
    check_equal(store, &model);
}
