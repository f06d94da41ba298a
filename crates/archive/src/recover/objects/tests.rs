//! Names that several objects claim, bodies in two places, and incomplete objects.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};

use super::*;
use crate::bodies::key_table::UsedSlot;
use crate::model::labels::Labels;
use crate::model::names::{ObjectName, VersionId};
use crate::model::object::{ObjectMeta, StorageClass};
use crate::recover::evidence::LoggedRange;

/// Simulated evidence: some platters are unsafe and some bodies damaged.
#[derive(Default)]
struct World {
    unsafe_platters: BTreeSet<PlatterId>,
    damaged: BTreeSet<ObjectId>,
    /// Whether a crash may have preceded the last sync.
    is_crashed: bool,
}

impl StorageCheck for World {
    fn is_safe_on(&self, platter: PlatterId) -> bool {
        !self.unsafe_platters.contains(&platter)
    }
    fn has(&self, _: PlatterId) -> bool {
        true
    }
    fn holds(&self, _: LogKind, _: &[Extent]) -> bool {
        true
    }
    fn is_intact(&mut self, body: &BodyRow) -> bool {
        !self.damaged.contains(&body.body_id)
    }
    fn may_be_torn(&self, _: &CompleteBody) -> bool {
        self.is_crashed
    }
}

fn id(number: u8) -> ObjectId {
    ObjectId::from_bytes([number; 16])
}

fn platter(number: u8) -> PlatterId {
    PlatterId::from_bytes([number; 16])
}

/// Creates the only body of an object: `id` for both, named `key`, modified at second `modified`.
fn body(number: u8, key: &str, modified: u64) -> (ObjectId, BodyEvidence) {
    let entry = Entry {
        name: ObjectName::parse("vault", key, VersionId::NULL).unwrap(),
        bucket_created: UnixTime::from_millis(0),
        object_id: id(number),
        index: 0,
        body_count: 1,
        body_bytes: 84,
        body_digest: 0,
        bytes: 84,
        etag: String::new(),
        modified: UnixTime::from_millis(modified * 1000),
        class: StorageClass::DeepArchive,
        meta: ObjectMeta::default(),
        checksum: None,
        part_count: None,
        upload_id: None,
        labels: Labels::default(),
        part_checksum: None,
    };
    let slot = UsedSlot { index: u32::from(number), body: id(number), run: 1 };
    let known = Some(KnownEntry { entry: Box::new(entry), slot, written: None });
    (id(number), BodyEvidence { known, ..BodyEvidence::default() })
}

fn in_log(
    mut body: (ObjectId, BodyEvidence),
    written: Option<(u64, u64)>,
) -> (ObjectId, BodyEvidence) {
    let extent = Extent { segment: 1, offset: 64, bytes: 100 };
    body.1.ranges.push(LoggedRange { kind: LogKind::Staging, extent, body_offset: 0 });
    if let Some(known) = &mut body.1.known {
        known.written =
            written.map(|(run, at)| WriteStamp { run, at: UnixTime::from_millis(at), segment: 1 });
    }
    body
}

fn on_glass(mut body: (ObjectId, BodyEvidence), number: u8) -> (ObjectId, BodyEvidence) {
    let platter = platter(number);
    let shard = Shard { platter, offset: 0, body_offset: 0, bytes: 100, crc: None };
    body.1.shards.insert(0, vec![shard]);
    body.1.listed_bytes = 100;
    body
}

#[track_caller]
fn check(bodies: Vec<(ObjectId, BodyEvidence)>, world: &mut World, expected: &Expect) {
    check_taking(false, bodies, world, expected);
}

#[track_caller]
fn check_taking(
    takes_earliest: bool,
    bodies: Vec<(ObjectId, BodyEvidence)>,
    world: &mut World,
    expected: &Expect,
) {
    let mut objects = Objects::new(BTreeMap::new(), takes_earliest);
    objects.assemble(bodies.into_iter().collect(), world);
    let mut text = String::new();
    for ((_, key), object) in &objects.complete {
        let row = &object.bodies[0].row;
        let place = if row.in_log().is_some() { "log" } else { "glass" };
        text.push_str(&format!("{key}: {} in {place}\n", row.body_id.to_bytes()[0]));
    }
    assert_eq!(objects.shreds, BTreeMap::new(), "nothing is destroyed");
    for object in &objects.unconfirmed {
        let (key, row) = (&object.entry.name.key, &object.bodies[0].row);
        text.push_str(&format!("unconfirmed {key}: {}\n", row.body_id.to_bytes()[0]));
    }
    for (what, names) in
        [("lost", &objects.incomplete), ("unconfirmed", &objects.unconfirmed_incomplete)]
    {
        for name in names {
            let reason: Vec<&str> = name.split(": ").skip(1).collect();
            text.push_str(&format!("{what} {}\n", reason.join(": ")));
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn glass_is_preferred_when_its_set_is_reliable() {
    let both = |number, key: &str| on_glass(in_log(body(number, key, 1), Some((1, 1))), number);
    let bodies = vec![both(1, "a"), both(2, "b"), on_glass(body(3, "c", 1), 3)];
    let unsafe_platters = BTreeSet::from([platter(2), platter(3)]);
    let mut world = World { unsafe_platters, ..World::default() };
    check(
        bodies,
        &mut world,
        &expect![[r#"
            a: 1 in glass
            b: 2 in log
            c: 3 in glass
        "#]],
    );
}

#[test]
fn latest_object_gets_the_name_and_others_keep_keys() {
    let early_and_late = || {
        vec![
            in_log(body(1, "by record", 5), Some((1, 5_100))),
            in_log(body(2, "by record", 5), Some((1, 5_200))),
            // A clock that went backwards does not affect the order of runs.
            in_log(body(3, "by run", 9), Some((1, 9_000))),
            in_log(body(4, "by run", 5), Some((2, 5_000))),
            on_glass(body(5, "by time", 5), 1),
            in_log(body(6, "by time", 6), Some((1, 6_000))),
            // Nothing orders these two.
            on_glass(body(7, "same", 5), 1),
            on_glass(body(8, "same", 5), 2),
        ]
    };
    check(
        early_and_late(),
        &mut World::default(),
        &expect![[r#"
            by record: 2 in log
            by run: 4 in log
            by time: 6 in log
            same: 7 in glass
            unconfirmed by record: 1
            unconfirmed by run: 3
            unconfirmed by time: 5
            unconfirmed same: 8
        "#]],
    );
    check_taking(
        true,
        early_and_late(),
        &mut World::default(),
        &expect![[r#"
            by record: 1 in log
            by run: 3 in log
            by time: 5 in glass
            same: 7 in glass
            unconfirmed by record: 2
            unconfirmed by run: 4
            unconfirmed by time: 6
            unconfirmed same: 8
        "#]],
    );
}

#[test]
fn unconfirmed_object_takes_no_name() {
    let unconfirmed = |mut body: (ObjectId, BodyEvidence)| {
        body.1.unconfirmed = body.1.known.take();
        body
    };
    let bodies = vec![
        in_log(body(1, "shown", 5), Some((1, 5_000))),
        unconfirmed(in_log(body(2, "shown", 9), Some((1, 9_000)))),
        unconfirmed(in_log(body(3, "not shown", 9), Some((1, 9_000)))),
        unconfirmed(body(4, "half", 9)),
    ];
    check(
        bodies,
        &mut World::default(),
        &expect![[r#"
            shown: 1 in log
            unconfirmed shown: 2
            unconfirmed not shown: 3
            unconfirmed "half" in bucket "vault": 0 of 1 bodies are complete
        "#]],
    );
}

#[test]
fn torn_overwrite_does_not_replace_the_old_object() {
    let bodies = vec![
        on_glass(body(1, "a", 5), 1),
        in_log(body(2, "a", 9), Some((2, 9_000))),
        in_log(body(3, "alone", 9), Some((2, 9_000))),
    ];
    let damaged = BTreeSet::from([id(2), id(3)]);
    let mut world = World { damaged, is_crashed: true, ..World::default() };
    check(
        bodies,
        &mut world,
        &expect![[r#"
            a: 1 in glass
            lost "a" in bucket "vault": its bytes differ from those that were sent
            lost "alone" in bucket "vault": its bytes differ from those that were sent
        "#]],
    );
}

#[test]
fn object_is_recovered_with_all_bodies_or_not_at_all() {
    let mut part = in_log(body(1, "half", 5), Some((1, 5_000)));
    part.1.known.as_mut().unwrap().entry.body_count = 2;
    let gap = body(2, "nowhere", 5);
    check(
        vec![part, gap],
        &mut World::default(),
        &expect![[r#"
            lost "half" in bucket "vault": 1 of 2 bodies are complete
            lost "nowhere" in bucket "vault": 0 of 1 bodies are complete
        "#]],
    );
    let dead = BTreeMap::from([(id(1), 1)]);
    let deleted = in_log(body(1, "deleted", 5), Some((1, 5_000)));
    let mut objects = Objects::new(dead, false);
    objects.assemble(Bodies::from([deleted]), &mut World::default());
    assert!(objects.is_empty() && objects.shreds.len() == 1, "it stays deleted");
}
