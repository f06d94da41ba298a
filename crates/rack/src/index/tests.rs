//! Tests the index over an in-memory store: what keys name, what becomes unwanted, and what stays.

mod unconfirmed;

use fulgurite_catalog::MemoryStore;
use fulgurite_units::{ManualClock, UnixTime};

use super::*;

fn index() -> Index {
    Index::with_store(Arc::new(MemoryStore::new(&SPACES))).unwrap()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn object(key: &str) -> Object {
    Object { key: key.to_owned(), modified_ms: 7, attributes: Vec::new() }
}

fn blob(number: u8) -> BlobId {
    BlobId::from_bytes([number; 16])
}

const GROUP: GroupId = GroupId::new(3);

fn stacks(places: &[u32]) -> Vec<(u8, PlaceId)> {
    (0..).zip(places.iter().map(|&place| PlaceId::new(place))).collect()
}

fn pending(number: u8, sequence: u64, places: &[u32]) -> PendingBlob {
    let places = places.iter().copied().map(Some).collect();
    let length = ByteCount::new(5000);
    let row = BlobRow { sequence, length, sum: 1, information: 2, places };
    PendingBlob { blob: blob(number), group: GROUP, row }
}

/// Begins a blob and commits it.
fn put(index: &Index, key: &str, number: u8, places: &[u32]) -> u64 {
    let sequence = index.begin(GROUP, blob(number), stacks(places)).unwrap();
    index.commit(object(key), pending(number, sequence, places), Mode::Overwrite).unwrap();
    sequence
}

fn unwanted(index: &Index) -> Vec<(BlobId, Vec<(u8, PlaceId)>)> {
    let found = index.unwanted(GROUP, None).unwrap();
    found.into_iter().map(|unwanted| (unwanted.blob, unwanted.stacks)).collect()
}

fn names(index: &Index, prefix: &str, from: &Cursor) -> Vec<String> {
    index.objects(prefix, from).unwrap().into_iter().map(|(key, _)| key).collect()
}

#[test]
fn committed_blob_is_named_and_has_no_unwanted_stacks() {
    let index = index();
    let sequence = put(&index, "a", 1, &[5, 6, 7]);
    let row = index.object("a").unwrap().unwrap();
    assert_eq!((row.sequence, row.length.get()), (sequence, 5000));
    assert_eq!(row.content, Content::Blob { group: 3, blob: blob(1) });
    assert_eq!(index.blobs(GROUP, None).unwrap().len(), 1);
    assert_eq!(unwanted(&index), []);
    assert!(index.needs(GROUP, blob(1), 2, PlaceId::new(7)).unwrap());
    assert!(!index.needs(GROUP, blob(1), 2, PlaceId::new(6)).unwrap());
}

#[test]
fn uncommitted_blob_is_unwanted_after_a_restart() {
    let index = index();
    index.begin(GROUP, blob(1), stacks(&[5, 6, 7])).unwrap();
    put(&index, "b", 2, &[5, 6, 8]);
    assert_eq!(index.abandon_intents().unwrap(), 1);
    assert_eq!(unwanted(&index), [(blob(1), stacks(&[5, 6, 7]))]);
    let found = index.unwanted(GROUP, None).unwrap();
    let gone = |unwanted| Unwanted { stacks: Vec::new(), ..unwanted };
    index.collected(found.into_iter().map(gone).collect()).unwrap();
    assert_eq!(unwanted(&index), []);
}

#[test]
fn begun_stacks_missing_in_the_row_are_unwanted() {
    let index = index();
    let sequence = index.begin(GROUP, blob(1), stacks(&[5, 6, 7])).unwrap();
    let more = vec![(1, PlaceId::new(9))];
    index.extend_intent(GROUP, blob(1), sequence, more).unwrap();
    index.commit(object("a"), pending(1, sequence, &[5, 9, 7]), Mode::Overwrite).unwrap();
    assert_eq!(unwanted(&index), [(blob(1), vec![(1, PlaceId::new(6))])]);
}

#[test]
fn overwritten_and_deleted_blobs_are_unwanted() {
    let index = index();
    put(&index, "a", 1, &[5, 6, 7]);
    put(&index, "a", 2, &[5, 6, 8]);
    assert_eq!(unwanted(&index), [(blob(1), stacks(&[5, 6, 7]))]);
    assert!(run(index.delete("a")).unwrap());
    assert!(!run(index.delete("a")).unwrap());
    assert_eq!(unwanted(&index).len(), 2);
    assert_eq!(index.blobs(GROUP, None).unwrap(), []);
    put(&index, "a", 3, &[1, 2, 3]);
    run(index.put_inline(object("a"), b"small".to_vec(), Mode::Overwrite)).unwrap();
    assert_eq!(unwanted(&index).len(), 3);
    let row = index.object("a").unwrap().unwrap();
    assert_eq!((row.length.get(), row.content), (5, Content::Inline(b"small".to_vec())));
}

#[test]
fn late_commit_of_an_older_blob_is_unwanted() {
    let index = index();
    let first = index.begin(GROUP, blob(1), stacks(&[5, 6, 7])).unwrap();
    let second = put(&index, "a", 2, &[5, 6, 8]);
    index.commit(object("a"), pending(1, first, &[5, 6, 7]), Mode::Overwrite).unwrap();
    assert_eq!(index.object("a").unwrap().unwrap().sequence, second);
    assert_eq!(unwanted(&index), [(blob(1), stacks(&[5, 6, 7]))]);
}

#[test]
fn failed_condition_makes_the_blob_unwanted() {
    let index = index();
    let first = put(&index, "a", 1, &[5, 6, 7]);
    let try_with = |number, mode| {
        let sequence = index.begin(GROUP, blob(number), stacks(&[1, 2, 3])).unwrap();
        index.commit(object("a"), pending(number, sequence, &[1, 2, 3]), mode)
    };
    let refused = try_with(2, Mode::Create).unwrap_err();
    assert!(matches!(refused, RackError::Exists { .. }), "{refused}");
    try_with(3, Mode::Update(first)).unwrap();
    let refused = try_with(4, Mode::Update(first)).unwrap_err();
    assert!(matches!(refused, RackError::Changed { .. }), "{refused}");
    let gone: Vec<BlobId> = unwanted(&index).into_iter().map(|(blob, _)| blob).collect();
    assert_eq!(gone, [blob(1), blob(2), blob(4)]);
    let inline = |key, mode| run(index.put_inline(object(key), Vec::new(), mode));
    assert!(matches!(inline("a", Mode::Create), Err(RackError::Exists { .. })));
    assert!(matches!(inline("b", Mode::Update(1)), Err(RackError::Changed { .. })));
    inline("b", Mode::Create).unwrap();
}

#[test]
fn rebuilt_stacks_replace_lost_ones_of_existing_blobs() {
    let index = index();
    put(&index, "a", 1, &[5, 6, 7]);
    let rebuilt = vec![(1, PlaceId::new(9)), (2, PlaceId::new(7))];
    let sequence = index.begin(GROUP, blob(1), rebuilt.clone()).unwrap();
    assert!(index.record_rebuilt(GROUP, blob(1), sequence, rebuilt.clone(), Vec::new()).unwrap());
    let row = index.blob(GROUP, blob(1)).unwrap().unwrap();
    assert_eq!(row.places, [Some(5), Some(9), Some(7)]);
    assert_eq!(unwanted(&index), [(blob(1), vec![(1, PlaceId::new(6))])]);
    run(index.delete("a")).unwrap();
    let sequence = index.begin(GROUP, blob(1), rebuilt.clone()).unwrap();
    assert!(!index.record_rebuilt(GROUP, blob(1), sequence, rebuilt, Vec::new()).unwrap());
    assert_eq!(unwanted(&index).len(), 3);
    assert_eq!(index.abandon_intents().unwrap(), 0);
}

#[test]
fn failed_rebuild_leaves_an_unwanted_stack() {
    let index = index();
    put(&index, "a", 1, &[5, 6, 7]);
    let tried = vec![(0, PlaceId::new(8)), (1, PlaceId::new(9))];
    let sequence = index.begin(GROUP, blob(1), tried).unwrap();
    assert!(
        index
            .record_rebuilt(GROUP, blob(1), sequence, vec![(1, PlaceId::new(9))], Vec::new())
            .unwrap()
    );
    let left = vec![(0, PlaceId::new(8)), (1, PlaceId::new(6))];
    assert_eq!(unwanted(&index), [(blob(1), left)]);
}

#[test]
fn pages_begin_at_the_requested_key() {
    let index = index();
    for key in ["a/b", "a/c", "ab", "a/b/c", "b"] {
        run(index.put_inline(object(key), Vec::new(), Mode::Overwrite)).unwrap();
    }
    assert_eq!(names(&index, "", &Cursor::Start), ["a/b", "a/b/c", "a/c", "ab", "b"]);
    assert_eq!(names(&index, "a/", &Cursor::Start), ["a/b", "a/b/c", "a/c"]);
    assert_eq!(names(&index, "a/", &Cursor::After("a/b".to_owned())), ["a/b/c", "a/c"]);
    assert_eq!(names(&index, "a/", &Cursor::AtOrAfter(b"a/b0".to_vec())), ["a/c"]);
    assert_eq!(names(&index, "a/", &Cursor::After("zz".to_owned())), [] as [&str; 0]);
}

#[test]
fn index_belongs_to_one_rack_and_coding() {
    let index = index();
    let rack = RackId::from_bytes([1; 16]);
    index.claim(rack, Coding::PELICAN).unwrap();
    index.claim(rack, Coding::PELICAN).unwrap();
    let refused = index.claim(RackId::from_bytes([2; 16]), Coding::PELICAN).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the index belongs to rack 01010101-0101-0101-0101-010101010101 with blobs in 15+3 stacks, \
         not to rack 02020202-0202-0202-0202-020202020202 with 15+3"
    );
    assert!(index.claim(rack, Coding::new(3, 2).unwrap()).is_err());
}

#[test]
fn recovered_blobs_are_ordered_by_sequence() {
    let index = index();
    let found = |number, sequence| {
        index.add_recovered(object("a"), pending(number, sequence, &[1, 2, 3])).unwrap()
    };
    assert!(found(2, 8));
    assert!(!found(1, 5), "it is older than the blob of the same key");
    assert!(found(3, 9));
    assert_eq!(index.object("a").unwrap().unwrap().sequence, 9);
    assert!(put(&index, "b", 4, &[1, 2, 3]) > 9, "sequences continue behind the recovered ones");
}

#[test]
fn rows_are_small() {
    // 10^8 blobs at 200 bytes each, keys included, before the store packs them.
    let key = "bodies/01234567-89ab-cdef-0123-456789abcdef";
    let places = (0..18).map(|place| Some(1000 + place)).collect();
    let (length, sum) = (ByteCount::gib(1), u64::MAX);
    let row = BlobRow { sequence: 100_000_000, length, sum, information: 15, places };
    let content = Content::Blob { group: 47, blob: blob(1) };
    let attributes = Vec::new();
    let modified_ms = 1_700_000_000_000;
    let sequence = 100_000_000;
    let object = ObjectRow { sequence, modified_ms, length, attributes, content };
    let bytes = row::encode(&row).unwrap().len()
        + row::encode(&object).unwrap().len()
        + object_key(key).len()
        + blob_key(GROUP, blob(1)).len();
    assert!(bytes <= 200, "{bytes} bytes");
}

#[test]
fn sequences_follow_the_clock_and_only_grow() {
    let clock = ManualClock::at(UnixTime::from_millis(1_700_000_000_000));
    let index = index().with_clock(clock.clock());
    let first = put(&index, "a", 1, &[5]);
    assert_eq!(first, 1_700_000_000_000 * 1024);
    assert_eq!(put(&index, "b", 2, &[5]), first + 1);
    clock.advance(fulgurite_units::Duration::from_millis(3));
    assert_eq!(put(&index, "c", 3, &[5]), first + 3 * 1024);
    let index = index.with_clock(ManualClock::at(UnixTime::from_millis(7)).clock());
    assert_eq!(put(&index, "d", 4, &[5]), first + 3 * 1024 + 1);
}

#[test]
fn uncollected_stacks_stay_unwanted() {
    let index = index();
    for number in 1..4 {
        put(&index, "a", number, &[5, 6, 7]);
    }
    put(&index, "a", 4, &[1, 2, 3]);
    let found = index.unwanted(GROUP, None).unwrap();
    assert_eq!(found.len(), 3);
    let left = vec![(1, PlaceId::new(6))];
    index.collected(vec![Unwanted { stacks: left.clone(), ..found[0].clone() }]).unwrap();
    assert_eq!(unwanted(&index)[0], (blob(1), left));
    let behind = index.unwanted(GROUP, Some(&found[0])).unwrap();
    assert_eq!(behind, found[1..]);
}

#[test]
fn only_an_empty_index_can_be_reassigned() {
    let index = index();
    let (one, other) = (RackId::from_bytes([1; 16]), RackId::from_bytes([2; 16]));
    let coding = Coding::new(3, 2).unwrap();
    index.claim(one, coding).unwrap();
    index.claim_empty(one, other, coding).unwrap();
    assert_eq!(index.rack().unwrap().unwrap().rack, other);
    index.set_disk(PlaceId::new(1), DiskRow { disk: [1; 16], is_given_up: false }).unwrap();
    let refused = index.claim_empty(other, one, coding).unwrap_err().to_string();
    assert!(refused.contains("knows its disks or objects"), "{refused}");
    assert_eq!(index.rack().unwrap().unwrap().rack, other);
}

#[test]
fn totals_match_the_blobs() {
    let index = index();
    put(&index, "a", 1, &[5, 6, 7]);
    put(&index, "b", 2, &[5, 6, 7]);
    put(&index, "a", 3, &[5, 6, 7]);
    put(&index, "c", 4, &[5, 6, 7]);
    assert!(run(index.delete("b")).unwrap());
    let sequence = index.begin(GROUP, blob(5), stacks(&[5, 6, 7])).unwrap();
    let refused = index.commit(object("c"), pending(5, sequence, &[5, 6, 7]), Mode::Create);
    assert!(matches!(refused, Err(RackError::Exists { .. })), "{refused:?}");
    let found = pending(6, sequence + 9, &[5, 6, 7]);
    assert!(index.add_recovered(object("d"), found.clone()).unwrap());
    assert!(!index.add_recovered(object("d"), found).unwrap(), "the index has it already");
    let moved = index.begin(GROUP, blob(3), stacks(&[8])).unwrap();
    assert!(index.record_rebuilt(GROUP, blob(3), moved, stacks(&[8]), Vec::new()).unwrap());

    let expected = TotalsRow { blobs: 3, bytes: ByteCount::new(15_000) };
    assert_eq!(index.totals(GROUP).unwrap(), expected);
    assert_eq!(index.blobs(GROUP, None).unwrap().len(), 3);
    assert_eq!(index.totals(GroupId::new(4)).unwrap(), TotalsRow::default());
}
