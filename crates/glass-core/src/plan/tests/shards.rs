//! How bodies are split: into how many shards, on which platters, how evenly; and that a set is
//! full only when it must be.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use fulgurite_platter::{Geometry, list_bytes};
use fulgurite_units::ByteCount;
use proptest::prelude::*;

use super::{ANY_SHARD, body, geometries, object, shard_sizes, sizes, tiny};
use crate::plan::{PlatterPlan, Push, SetPlanner, StagedBody, split_bytes};

const TRACK: u64 = 16_384;

/// A platter before a body is placed, and the bytes of the body that it takes.
#[derive(Clone, Copy, Debug)]
struct Share {
    position: usize,
    takes_entry: bool,
    room: u64,
    is_empty: bool,
    length: Option<u64>,
}

impl Share {
    fn can_take(&self, wanted: u64) -> bool {
        self.takes_entry && (self.room >= wanted || self.is_empty && self.room > 0)
    }
}

/// Places `body`. Returns its shares by platter, from the plans before and after.
fn push(
    geometry: &Geometry,
    planner: &mut SetPlanner,
    body: &StagedBody<'_>,
) -> (Push, Vec<Share>) {
    let before = planner.clone().finish().platters;
    let push = planner.push(body).unwrap();
    let after = planner.clone().finish().platters;
    let empty = PlatterPlan::default();
    let shares = (0..usize::from(geometry.set_information_platters))
        .map(|position| {
            let old = before.get(position).unwrap_or(&empty);
            let new = after.get(position).unwrap_or(&empty);
            let taken = old.data_bytes + list_bytes(old.entry_bytes + body.entry_bytes);
            let is_new = new.shards.len() > old.shards.len();
            Share {
                position,
                takes_entry: taken <= geometry.platter_user_bytes(),
                room: geometry.platter_user_bytes().saturating_sub(taken),
                is_empty: old.data_bytes == 0,
                length: is_new.then(|| new.data_bytes - old.data_bytes),
            }
        })
        .collect();
    (push, shares)
}

/// Checks rule 3 for a body larger than `unsplit`, of which `left` bytes are not placed yet.
fn check_split(shares: &[Share], left: u64, unsplit: u64, push: Push) -> Result<(), TestCaseError> {
    let mut able: Vec<Share> =
        shares.iter().copied().filter(|share| share.can_take(left.min(TRACK))).collect();
    able.sort_by_key(|share| (Reverse(share.room), share.position));
    let room: u64 = able.iter().map(|share| share.room).sum();
    let lengths: Vec<u64> = able.iter().filter_map(|share| share.length).collect();
    let placed: u64 = lengths.iter().sum();
    let count = lengths.len();
    prop_assert_eq!(count, shares.iter().filter(|share| share.length.is_some()).count());
    match push {
        Push::Full => prop_assert!(count == 0 && room < left, "the set is full when it must be"),
        Push::Partial { .. } => prop_assert!(placed == room && room < left),
        Push::Placed => {
            prop_assert_eq!(placed, left);
            let wanted = left.div_ceil(unsplit.max(TRACK)).min(able.len() as u64);
            let wanted = usize::try_from(wanted).unwrap();
            let (chosen, rejected) = able.split_at(count);
            prop_assert!(chosen.iter().all(|share| share.length.is_some()), "the most room first");
            prop_assert!(rejected.iter().all(|share| share.length.is_none()));
            let fewer: u64 = able[..count - 1].iter().map(|share| share.room).sum();
            prop_assert!(count == wanted || count > wanted && fewer < left, "no more than needed");
            let (most, least) = (lengths.iter().max().unwrap(), lengths.iter().min().unwrap());
            for share in chosen {
                let length = share.length.unwrap();
                prop_assert!(length + TRACK >= *most || length == share.room, "{:?}", able);
            }
            // Where room is no limit, shares are even, and all but one are whole tracks.
            if chosen.iter().all(|share| share.room >= left.div_ceil(count as u64) + TRACK) {
                prop_assert!(most - least <= TRACK, "{:?}", able);
                let odd = lengths.iter().filter(|length| !length.is_multiple_of(TRACK)).count();
                prop_assert!(odd <= 1, "{:?}", able);
                let enough_platters = left.div_ceil(unsplit) <= count as u64;
                prop_assert!(*most <= unsplit || unsplit < TRACK || !enough_platters);
            }
            let short = chosen.iter().filter(|share| share.length.unwrap() < TRACK.min(share.room));
            prop_assert!(short.count() <= 1, "only what is left of a body is short: {:?}", able);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_body_is_split_by_the_rules(
        sizes in sizes(), from in 0u64..200_000,
        geometry in geometries(), shard_size in shard_sizes(),
    ) {
        let unsplit = split_bytes(&geometry, shard_size);
        let entry_max = geometry.platter_user_bytes() / 2;
        let mut planner = SetPlanner::new(&geometry, shard_size);
        let mut last_unsplit = 0;
        let mut slack = 0;
        for (n, &(bytes, entry)) in sizes.iter().enumerate() {
            let mut body = body(n, bytes, entry);
            if body.entry_bytes > entry_max {
                continue;
            }
            // The first body may continue from an earlier set.
            body.from = if n == 0 && from < bytes { from } else { 0 };
            slack = slack.max(unsplit + body.entry_bytes);
            while !planner.is_full() {
                let (push, shares) = push(&geometry, &mut planner, &body);
                let left = bytes - body.from;
                if let Push::Partial { next } = push {
                    prop_assert!(bytes > geometry.set_user_bytes() / 4 && next > body.from);
                    body.from = next;
                }
                prop_assert_eq!(push != Push::Placed, planner.is_full());
                if bytes > unsplit {
                    check_split(&shares, left, unsplit, push)?;
                    if push == Push::Placed { break } else { continue }
                }
                let fits = |share: &&Share| {
                    share.position >= last_unsplit && share.takes_entry && share.room >= left
                };
                let expected = shares.iter().find(fits).map(|share| share.position);
                let taken: Vec<usize> =
                    shares.iter().filter(|s| s.length.is_some()).map(|s| s.position).collect();
                prop_assert_eq!(&taken, &expected.into_iter().collect::<Vec<_>>());
                let Some(position) = expected else {
                    prop_assert_eq!(push, Push::Full);
                    let most = shares.iter().map(|share| share.room).max().unwrap();
                    prop_assert!(most < slack, "a quarter of a platter and an entry are lost");
                    continue;
                };
                last_unsplit = position;
                break;
            }
            if planner.is_full() {
                planner = SetPlanner::new(&geometry, shard_size);
                last_unsplit = 0;
            }
        }
    }
}

proptest! {
    #[test]
    fn file_of_many_bodies_spans_many_platters(
        files in prop::collection::vec((1u64..40, 1u64..=TRACK), 1..6),
        platters in 1u16..=5, shard_tracks in 1u64..=4,
    ) {
        // Every platter has room for everything, so that only the rule decides.
        let geometry = Geometry { set_information_platters: platters, groups: 100, ..tiny() };
        let unsplit = shard_tracks * TRACK;
        let mut planner = SetPlanner::new(&geometry, ByteCount::new(unsplit));
        let mut numbers = 0..;
        for &(count, bytes) in &files {
            let file_bytes = count * bytes;
            let mut on: BTreeMap<usize, u64> = BTreeMap::new();
            let mut moves = 0;
            let mut last = None;
            let file = object(numbers.next().unwrap());
            for _ in 0..count {
                let body = body(numbers.next().unwrap(), bytes, 50);
                let body = StagedBody { file, file_bytes, ..body };
                let (push, shares) = push(&geometry, &mut planner, &body);
                prop_assert_eq!(push, Push::Placed);
                let taken: Vec<_> = shares.iter().filter(|s| s.length.is_some()).collect();
                prop_assert_eq!(taken.len(), 1, "it is not split");
                moves += usize::from(last.replace(taken[0].position) != Some(taken[0].position));
                *on.entry(taken[0].position).or_default() += bytes;
            }
            if file_bytes <= unsplit {
                prop_assert_eq!(on.len(), 1, "a small file stays on one platter");
                prop_assert_eq!(on.keys().next(), Some(&0), "with all other small files");
                continue;
            }
            let most = unsplit.max(file_bytes.div_ceil(platters.into()));
            let runs = count.div_ceil(most / bytes);
            prop_assert_eq!(on.len() as u64, runs.min(platters.into()));
            prop_assert!(moves as u64 <= runs, "{} moves for {} runs", moves, runs);
            let most_on_one = on.values().max().unwrap();
            prop_assert!(*most_on_one <= most * runs.div_ceil(platters.into()));
        }
    }

    #[test]
    fn files_fill_a_set_as_bodies_do(
        files in prop::collection::vec((1usize..30, 0u64..3 * TRACK), 1..20),
        geometry in geometries(), shard_size in shard_sizes(),
    ) {
        let unsplit = split_bytes(&geometry, shard_size);
        let mut planner = SetPlanner::new(&geometry, shard_size);
        let mut numbers = 0..;
        for &(count, bytes) in &files {
            let file = object(numbers.next().unwrap());
            for _ in 0..count {
                let file_bytes = count as u64 * bytes;
                let body = body(numbers.next().unwrap(), bytes, 50);
                let body = StagedBody { file, file_bytes, ..body };
                let (push, shares) = push(&geometry, &mut planner, &body);
                if planner.is_full() {
                    planner = SetPlanner::new(&geometry, shard_size);
                }
                if bytes > unsplit || file_bytes <= unsplit {
                    continue;
                }
                let can_take = |share: &Share| share.takes_entry && share.room >= bytes;
                match push {
                    Push::Placed => {
                        let taken: Vec<_> = shares.iter().filter(|s| s.length.is_some()).collect();
                        prop_assert_eq!(taken.len(), 1);
                        prop_assert!(can_take(taken[0]));
                    }
                    Push::Partial { .. } => prop_assert!(false, "it is not split"),
                    Push::Full => prop_assert!(!shares.iter().any(can_take), "room is left"),
                }
            }
        }
    }
}

/// Returns a geometry with platters of 24 tracks and sets of 4.
fn roomy() -> Geometry {
    Geometry { groups: 8, set_information_platters: 4, ..tiny() }
}

#[track_caller]
fn check(shard_size: u64, bodies: &[StagedBody<'_>], expect: Expect) {
    let mut planner = SetPlanner::new(&roomy(), ByteCount::new(shard_size));
    let mut report = String::new();
    for body in bodies {
        let push = planner.push(body).unwrap();
        if push != Push::Placed {
            report.push_str(&format!("{push:?}\n"));
        }
    }
    let plan = planner.finish();
    for (position, platter) in plan.platters.iter().enumerate() {
        let shards: Vec<String> = platter
            .shards
            .iter()
            .map(|s| {
                let tracks = |bytes: u64| bytes as f64 / TRACK as f64;
                let name = char::from(b'a' + s.object.to_bytes()[15]);
                format!("{name}[{}+{}]", tracks(s.body_offset), tracks(s.length))
            })
            .collect();
        report.push_str(&format!("{position}: {}\n", shards.join(" ")));
    }
    expect.assert_eq(&report);
}

fn tracks(n: usize, tracks: u64) -> StagedBody<'static> {
    body(n, tracks * TRACK, 100)
}

#[test]
fn a_large_body_is_read_by_several_drives() {
    // The picture in the module documentation: shards of 3 tracks.
    check(
        3 * TRACK,
        &[tracks(0, 1), tracks(1, 2), tracks(2, 8), tracks(3, 5), tracks(4, 1)],
        expect![[r#"
            0: a[0+1] b[0+2] e[0+1]
            1: c[0+3] d[0+3]
            2: c[3+3]
            3: c[6+2] d[3+2]
        "#]],
    );
    // More shards than platters: equal longer ones; the last takes the remainder.
    let odd = StagedBody { bytes: 17 * TRACK + TRACK / 2, ..tracks(0, 0) };
    check(
        1,
        &[odd],
        expect![[r#"
        0: a[0+5]
        1: a[5+4]
        2: a[9+4]
        3: a[13+4.5]
    "#]],
    );
    // The remainder of a body that began in an earlier set.
    check(
        3 * TRACK,
        &[StagedBody { from: 4 * TRACK, ..tracks(0, 10) }],
        expect![[r#"
        0: a[4+3]
        1: a[7+3]
    "#]],
    );
}

#[test]
fn parts_of_a_large_file_are_read_by_several_drives() {
    let parts = |first: usize, count: usize, total: usize| {
        let file_bytes = total as u64 * TRACK;
        (first..first + count)
            .map(|n| StagedBody { file: object(99), file_bytes, ..tracks(n, 1) })
            .collect::<Vec<_>>()
    };
    // Shards of 3 tracks: a small file, one of 7 parts, and another small one beside the first.
    let bodies = [vec![tracks(0, 1)], parts(1, 7, 7), vec![tracks(8, 1)]].concat();
    check(
        3 * TRACK,
        &bodies,
        expect![[r#"
        0: a[0+1] i[0+1]
        1: b[0+1] c[0+1] d[0+1]
        2: e[0+1] f[0+1] g[0+1]
        3: h[0+1]
    "#]],
    );
    // More than a shard for each platter; the last of 18 parts are in a later set.
    check(
        3 * TRACK,
        &parts(0, 16, 18),
        expect![[r#"
        0: a[0+1] b[0+1] c[0+1] d[0+1]
        1: e[0+1] f[0+1] g[0+1] h[0+1]
        2: i[0+1] j[0+1] k[0+1] l[0+1]
        3: m[0+1] n[0+1] o[0+1] p[0+1]
    "#]],
    );
}

#[test]
fn platter_with_less_room_takes_what_fits() {
    // Bodies of 6 tracks are not split: three of them and one of 2 leave their platter 4 tracks,
    // less its list.
    let mut bodies: Vec<_> = (0..3).map(|n| tracks(n, 6)).collect();
    bodies.extend([tracks(3, 2), tracks(4, 60)]);
    check(
        u64::MAX,
        &bodies,
        expect![[r#"
        0: a[0+6] b[0+6] c[0+6] d[0+2] e[0+3.944091796875]
        1: e[3.944091796875+19]
        2: e[22.944091796875+19]
        3: e[41.944091796875+18.055908203125]
    "#]],
    );
}

#[test]
fn shard_size_is_whole_tracks_up_to_a_quarter_platter() {
    let check = |shard_size: u64, expected: u64| {
        assert_eq!(split_bytes(&roomy(), ByteCount::new(shard_size)), expected);
    };
    check(1, TRACK);
    check(TRACK, TRACK);
    check(3 * TRACK - 1, 2 * TRACK);
    check(3 * TRACK, 3 * TRACK);
    check(u64::MAX, 6 * TRACK);
    let silica = Geometry::profile("silica").unwrap();
    assert_eq!(split_bytes(&silica, ByteCount::new(4_000_000_000)), 195 * 20_480_000);
    // A platter of three tracks also loses no more than a quarter.
    let small = Geometry { groups: 1, ..tiny() };
    assert_eq!(split_bytes(&small, ANY_SHARD), 3 * TRACK / 4);
}
