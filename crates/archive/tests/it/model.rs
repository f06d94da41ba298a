//! Random histories of a small archive, each step compared with the reference.
//!
//! The seed is fixed, so every run is the same; `FULGURITE_MODEL_SEED` and `FULGURITE_MODEL_CASES`
//! select other seeds and more cases. A failure prints the shortest list of steps that still fails.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use fulgurite_archive::{
    ByteRange, ChecksumAlgorithm, ListQuery, Retrieval, StorageClass, WriteCondition,
};

use crate::world::{ANSWER_COUNTS, Homes, World};

pub(crate) const BUCKETS: [&str; 2] = ["first", "second"];
/// Few keys, so that steps interact; with folders, folders that are objects, zero bytes and the
/// last planes of Unicode.
pub(crate) const KEYS: [&str; 12] = [
    "a",
    "a/",
    "a/b",
    "a/b/c",
    "a/\u{0}",
    "a0",
    "a\u{0}b",
    "b//c",
    "zz/\u{e9} +%20",
    "\u{ff}/x",
    "\u{ffff}",
    "\u{10ffff}/y",
];
const PREFIXES: [&str; 7] = ["", "a", "a/", "a/b", "\u{ff}", "a\u{0}", "nothing"];

/// The bucket and key of an object, existing or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectRef {
    bucket: usize,
    key: usize,
}

impl ObjectRef {
    pub(crate) fn bucket(self) -> &'static str {
        BUCKETS[self.bucket]
    }

    pub(crate) fn key(self) -> &'static str {
        KEYS[self.key]
    }
}

/// A body, given by its size and the seed of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) bytes: usize,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    None,
    Absent,
    Any,
    Current,
    Other,
}

/// The flaw of an upload that must leave nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flaw {
    WrongMd5,
    Short,
    Long,
    Dropped,
}

/// How CompleteMultipartUpload lists the parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listing {
    All,
    First,
    Last,
    Backwards,
    WrongEtag,
    Missing,
    Nothing,
    WrongChecksum,
}

/// One step of a history.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    CreateBucket(usize),
    DeleteBucket(usize),
    Put(ObjectRef, StorageClass, Body, Condition, ChecksumAlgorithm),
    BadPut(ObjectRef, StorageClass, Body, Flaw),
    Get(ObjectRef, Option<ByteRange>),
    Head(ObjectRef),
    List(usize, ListQuery),
    Delete(ObjectRef),
    Copy(ObjectRef, ObjectRef, StorageClass, Condition),
    Restore(ObjectRef, u32, Retrieval),
    Upload(UploadStep),
    Seal,
    Restart,
    Advance { hours: u64 },
}

/// A step of a multipart upload; uploads are identified by number, of all that ever existed.
#[derive(Clone, Debug)]
pub(crate) enum UploadStep {
    Create(ObjectRef, StorageClass, Option<ChecksumAlgorithm>, bool),
    PutPart(usize, u32, Body),
    CopyPart(ObjectRef, Option<ByteRange>, usize, u32),
    ListParts(usize, u32, usize),
    List(usize, &'static str, usize),
    Complete(usize, Listing, Condition),
    Abort(usize),
}

fn object_ref() -> impl Strategy<Value = ObjectRef> {
    // Most steps concern the same few objects; otherwise they would rarely interact.
    let key = prop_oneof![5 => prop::sample::select(vec![0, 2, 7]), 2 => 0..KEYS.len()];
    (prop_oneof![9 => Just(0), 1 => Just(1)], key)
        .prop_map(|(bucket, key)| ObjectRef { bucket, key })
}

fn body() -> impl Strategy<Value = Body> {
    let bytes = prop_oneof![
        2 => 0usize..300,
        2 => prop::sample::select(vec![0, 1, 65_535, 65_536, 65_537, 131_072]),
        1 => 0usize..200_000,
    ];
    (bytes, 0u64..1000).prop_map(|(bytes, seed)| Body { bytes, seed })
}

fn part() -> impl Strategy<Value = Body> {
    // Occasionally a part large enough to be followed by another.
    prop_oneof![
        20 => body(),
        1 => (0u64..10).prop_map(|seed| Body { bytes: 5 << 20, seed }),
    ]
}

fn class() -> impl Strategy<Value = StorageClass> {
    prop_oneof![
        2 => Just(StorageClass::Standard),
        2 => Just(StorageClass::DeepArchive),
        1 => Just(StorageClass::Glacier),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        8 => Just(Condition::None),
        2 => Just(Condition::Absent),
        1 => Just(Condition::Any),
        1 => Just(Condition::Current),
        1 => Just(Condition::Other),
    ]
}

fn algorithm() -> impl Strategy<Value = ChecksumAlgorithm> {
    prop::sample::select(ChecksumAlgorithm::ALL.to_vec())
}

fn range() -> impl Strategy<Value = Option<ByteRange>> {
    let place = || prop_oneof![0u64..300, 65_500u64..65_600, 0u64..250_000];
    prop_oneof![
        Just(None),
        (place(), prop::option::of(place()))
            .prop_map(|(first, last)| Some(ByteRange::From { first, last })),
        place().prop_map(|bytes| Some(ByteRange::Suffix { bytes })),
    ]
}

fn query() -> impl Strategy<Value = ListQuery> {
    let delimiter = prop::sample::select(vec![None, Some("/"), Some("b")]);
    let delimiter = delimiter.prop_map(|text| text.map(str::to_owned));
    let after = prop_oneof![
        2 => Just(None),
        1 => prop::sample::select(KEYS.to_vec()).prop_map(|key| Some(key.to_owned())),
        1 => prop::sample::select(PREFIXES.to_vec()).prop_map(|key| Some(key.to_owned())),
    ];
    let limit = prop_oneof![6 => 1usize..4, 2 => Just(1000), 1 => Just(0)];
    (
        prop_oneof![2 => Just(""), 1 => prop::sample::select(PREFIXES.to_vec())],
        delimiter,
        after,
        limit,
    )
        .prop_map(|(prefix, delimiter, after, limit)| ListQuery {
            prefix: prefix.to_owned(),
            delimiter,
            after,
            limit,
        })
}

fn listing() -> impl Strategy<Value = Listing> {
    prop_oneof![
        4 => Just(Listing::All),
        2 => Just(Listing::First),
        2 => Just(Listing::Last),
        1 => Just(Listing::Backwards),
        1 => Just(Listing::WrongEtag),
        1 => Just(Listing::Missing),
        1 => Just(Listing::Nothing),
        1 => Just(Listing::WrongChecksum),
    ]
}

fn upload_step() -> impl Strategy<Value = UploadStep> {
    prop_oneof![
        4 => (object_ref(), class(), prop::option::of(algorithm()), any::<bool>())
            .prop_map(|(s, c, a, f)| UploadStep::Create(s, c, a, f)),
        8 => (any::<usize>(), 1u32..5, part()).prop_map(|(u, n, b)| UploadStep::PutPart(u, n, b)),
        2 => (object_ref(), range(), any::<usize>(), 1u32..5)
            .prop_map(|(s, r, u, n)| UploadStep::CopyPart(s, r, u, n)),
        2 => (any::<usize>(), 0u32..3, 1usize..4)
            .prop_map(|(u, a, l)| UploadStep::ListParts(u, a, l)),
        2 => (0..BUCKETS.len(), prop::sample::select(PREFIXES.to_vec()), 1usize..3)
            .prop_map(|(b, p, l)| UploadStep::List(b, p, l)),
        6 => (any::<usize>(), listing(), condition())
            .prop_map(|(u, l, w)| UploadStep::Complete(u, l, w)),
        1 => any::<usize>().prop_map(UploadStep::Abort),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let flaw = prop::sample::select(vec![Flaw::WrongMd5, Flaw::Short, Flaw::Long, Flaw::Dropped]);
    let retrieval =
        prop::sample::select(vec![Retrieval::Bulk, Retrieval::Standard, Retrieval::Expedited]);
    let objects = prop_oneof![
        12 => (object_ref(), class(), body(), condition(), algorithm())
            .prop_map(|(s, c, b, w, a)| Step::Put(s, c, b, w, a)),
        2 => (object_ref(), class(), body(), flaw)
            .prop_map(|(s, c, b, f)| Step::BadPut(s, c, b, f)),
        10 => (object_ref(), range()).prop_map(|(s, r)| Step::Get(s, r)),
        3 => object_ref().prop_map(Step::Head),
        7 => (prop_oneof![9 => Just(0), 1 => Just(1)], query()).prop_map(|(b, q)| Step::List(b, q)),
        2 => object_ref().prop_map(Step::Delete),
        3 => (object_ref(), object_ref(), class(), condition())
            .prop_map(|(from, to, c, w)| Step::Copy(from, to, c, w)),
        10 => (object_ref(), prop_oneof![1 => Just(0), 9 => 1u32..4], retrieval)
            .prop_map(|(s, d, t)| Step::Restore(s, d, t)),
    ];
    let world = prop_oneof![
        4 => (0..BUCKETS.len()).prop_map(Step::CreateBucket),
        1 => (0..BUCKETS.len()).prop_map(Step::DeleteBucket),
        4 => Just(Step::Seal),
        2 => Just(Step::Restart),
        2 => (1u64..60).prop_map(|hours| Step::Advance { hours }),
    ];
    prop_oneof![14 => objects, 6 => upload_step().prop_map(Step::Upload), 3 => world]
}

/// Makes a condition that holds, or does not, for the current object.
pub(crate) fn write_condition(condition: Condition, current: Option<&str>) -> WriteCondition {
    let etag =
        |etag: &str| WriteCondition { etag: Some(etag.to_owned()), ..WriteCondition::default() };
    match condition {
        Condition::None => WriteCondition::default(),
        Condition::Absent => WriteCondition { absent: true, ..WriteCondition::default() },
        Condition::Any => etag("*"),
        Condition::Current => etag(current.unwrap_or("none")),
        Condition::Other => etag("0123456789abcdef0123456789abcdef"),
    }
}

/// Answers that must occur in enough histories; a model that never reached one of them would prove
/// little.
const COMMON: [&str; 24] = [
    "BadDigest",
    "BodyTooLong",
    "BucketAlreadyOwnedByYou",
    "BucketNotEmpty",
    "EntityTooSmall",
    "ExpeditedNotAvailable",
    "IncompleteBody",
    "InvalidArgument",
    "InvalidPart",
    "InvalidPartOrder",
    "InvalidRange",
    "NoSuchBucket",
    "NoSuchKey",
    "NoSuchUpload",
    "NotArchived",
    "NotRestored",
    "PreconditionFailed",
    "accepted",
    "completed of one",
    "completed twice",
    "next page",
    "next page after a prefix",
    "read from glass",
    "read from staging",
];

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn histories_match_the_reference() {
    let cases = from_environment("FULGURITE_MODEL_CASES", 40);
    lives(Homes::Usual, cases);
    let met = ANSWER_COUNTS.lock().unwrap();
    let missed: Vec<&&str> = COMMON.iter().filter(|answer| !met.contains_key(**answer)).collect();
    assert!(cases < 40 || missed.is_empty(), "never reached {missed:?}, but {met:?}");
}

#[test]
fn histories_match_with_a_directory_tier() {
    lives(Homes::Directory, from_environment("FULGURITE_MODEL_CASES", 40).div_ceil(4));
}

#[test]
fn histories_match_with_a_custom_store_tier() {
    lives(Homes::Drawer, from_environment("FULGURITE_MODEL_CASES", 40).div_ceil(4));
}

#[test]
fn histories_match_with_a_rack_tier() {
    lives(Homes::Rack, from_environment("FULGURITE_MODEL_CASES", 40).div_ceil(4));
}

fn lives(homes: Homes, cases: u64) {
    let seed = from_environment("FULGURITE_MODEL_SEED", 1);
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        failure_persistence: None,
        max_shrink_iters: 100,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lives = prop::collection::vec(step(), 40..110);
    let outcome = TestRunner::new_with_rng(config, rng).run(&lives, |steps| {
        let life = async {
            let mut world = World::new(homes).await;
            for step in &steps {
                world.take(step).await;
            }
            world.end().await;
        };
        runtime.block_on(life);
        Ok::<_, TestCaseError>(())
    });
    if let Err(failure) = outcome {
        let TestError::Fail(reason, steps) = failure else { panic!("{failure}") };
        let steps: Vec<String> = steps.iter().map(|step| format!("{step:?}")).collect();
        panic!("FULGURITE_MODEL_SEED={seed}, {homes:?}: {reason}\n{}", steps.join("\n"));
    }
}
