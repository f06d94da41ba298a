//! No byte is lost, nothing overlaps, everything fits; and platters of a set are kept apart.

use expect_test::{Expect, expect};
use fulgurite_platter::{Geometry, list_bytes, list_entry_bytes};
use fulgurite_units::{ByteCount, ObjectId, SlotIndex};
use proptest::prelude::*;

use crate::plan::{
    LayoutError, Push, SetPlan, SetPlanner, StagedBody, ZoneState, choose_zones, split_bytes,
};

mod far;
mod fleet;
mod racks;
mod shards;

/// Larger than any platter here, so that only the quarter of a platter limits a shard.
const ANY_SHARD: ByteCount = ByteCount::gib(4);

/// Returns a geometry with platters of 96 KiB and sets of 3 + 2.
fn tiny() -> Geometry {
    Geometry {
        profile: "tiny".to_owned(),
        sector_payload_bytes: 2048,
        track_information_sectors: 8,
        track_redundancy_sectors: 3,
        group_information_tracks: 3,
        group_redundancy_tracks: 1,
        group_span_sectors: 3,
        groups: 2,
        set_information_platters: 3,
        set_redundancy_platters: 2,
        set_span_sectors: 5,
    }
}

fn object(n: usize) -> ObjectId {
    ObjectId::from_bytes((n as u128).swap_bytes().to_le_bytes())
}

fn body(n: usize, bytes: u64, entry: u32) -> StagedBody<'static> {
    StagedBody {
        object: object(n),
        affinity_key: b"a/k",
        file: object(n),
        file_bytes: bytes,
        bytes,
        from: 0,
        entry_bytes: list_entry_bytes(entry),
    }
}

/// Plans as many sets as the bodies need, like the archive.
fn plan_all(geometry: &Geometry, shard_size: ByteCount, bodies: &[StagedBody<'_>]) -> Vec<SetPlan> {
    let mut plans = Vec::new();
    let mut planner = SetPlanner::new(geometry, shard_size);
    for body in bodies {
        let mut body = *body;
        loop {
            match planner.push(&body).unwrap() {
                Push::Placed => break,
                Push::Partial { next } => body.from = next,
                Push::Full => assert!(!planner.is_empty(), "an empty set takes any body"),
            }
            assert!(planner.is_full());
            let done = std::mem::replace(&mut planner, SetPlanner::new(geometry, shard_size));
            plans.push(done.finish());
        }
    }
    plans.push(planner.finish());
    plans
}

/// Generates geometries with platters of 3 to 24 tracks of 16 KiB and sets of 1 to 5.
fn geometries() -> impl Strategy<Value = Geometry> {
    (1u16..=5, 1u32..=8).prop_map(|(set_information_platters, groups)| Geometry {
        set_information_platters,
        groups,
        ..tiny()
    })
}

fn shard_sizes() -> impl Strategy<Value = ByteCount> {
    prop_oneof![Just(1), Just(30_000), Just(3 * 16_384), Just(1 << 40)].prop_map(ByteCount::new)
}

fn sizes() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let size = prop_oneof![
        4 => 0u64..3000,
        3 => 0u64..30_000,
        2 => 20_000u64..120_000,
        1 => 60_000u64..1_000_000,
    ];
    prop::collection::vec((size, prop_oneof![9 => 0u32..500, 1 => 0u32..20_000]), 0..60)
}

proptest! {
    #[test]
    fn every_byte_is_placed_once(
        sizes in sizes(), geometry in geometries(), shard_size in shard_sizes(),
    ) {
        let bodies: Vec<_> =
            sizes.iter().enumerate().map(|(n, &(bytes, entry))| body(n, bytes, entry)).collect();
        let fits = |b: &StagedBody<'_>| {
            let room = geometry.platter_user_bytes() - geometry.platter_user_bytes() / 4;
            list_bytes(0) + b.entry_bytes <= room
        };
        let bodies: Vec<_> = bodies.into_iter().filter(fits).collect();
        let plans = plan_all(&geometry, shard_size, &bodies);
        let capacity = geometry.platter_user_bytes();
        let unsplit = split_bytes(&geometry, shard_size);
        prop_assert!(unsplit <= capacity / 4);
        let mut next = vec![0; bodies.len()];
        let mut shards = vec![0; bodies.len()];
        let mut sets = vec![std::collections::BTreeSet::new(); bodies.len()];
        let mut order = Vec::new();
        for (set, plan) in plans.iter().enumerate() {
            prop_assert!(plan.platters.len() <= geometry.set_information_platters.into());
            let mut longest = 0;
            for platter in &plan.platters {
                prop_assert!(!platter.shards.is_empty(), "no platter before the last is empty");
                let mut end = 0;
                let mut entries = 0;
                let mut here = std::collections::BTreeSet::new();
                for shard in &platter.shards {
                    let n = bodies.iter().position(|b| b.object == shard.object).unwrap();
                    prop_assert!(here.insert(n), "one shard of a body on a platter");
                    prop_assert_eq!(shard.offset, end);
                    prop_assert_eq!(shard.body_offset, next[n]);
                    prop_assert_eq!(shard.body_bytes, bodies[n].bytes);
                    end += shard.length;
                    next[n] += shard.length;
                    shards[n] += 1;
                    sets[n].insert(set);
                    entries += bodies[n].entry_bytes;
                    if bodies[n].bytes <= unsplit {
                        order.push(n);
                    }
                }
                prop_assert_eq!(platter.data_bytes, end);
                prop_assert_eq!(platter.entry_bytes, entries);
                prop_assert!(platter.user_bytes() <= capacity);
                longest = longest.max(platter.user_bytes());
            }
            let tracks = longest.div_ceil(16_384);
            prop_assert_eq!(plan.redundancy_bytes, tracks * 16_384);
        }
        prop_assert!(order.is_sorted(), "bodies that are not split keep their order");
        for (n, body) in bodies.iter().enumerate() {
            prop_assert_eq!(next[n], body.bytes);
            prop_assert!(shards[n] >= 1, "an empty body is listed too");
            if body.bytes <= unsplit {
                prop_assert_eq!(shards[n], 1);
            }
            if body.bytes <= geometry.set_user_bytes() / 4 {
                prop_assert_eq!(sets[n].len(), 1);
            }
        }
    }

    #[test]
    fn platters_of_a_set_never_share_a_zone(
        zones in prop::collection::vec(
            (1u32..20, any::<prop::sample::Index>(), any::<bool>()),
            0..40,
        ),
        platters in 1usize..20,
    ) {
        let zones: Vec<ZoneState> = zones
            .iter()
            .enumerate()
            .map(|(n, (total, free, taken))| {
                let free = u32::try_from(free.index(*total as usize + 1)).unwrap();
                let zone = u32::try_from(n).unwrap();
                let next = (free > 0).then(|| SlotIndex::new(zone * 100));
                ZoneState { zone, total: *total, free, next, holds_member: *taken }
            })
            .collect();
        let usable: Vec<_> = zones.iter().filter(|z| !z.holds_member && z.free > 0).collect();
        match choose_zones(&zones, platters) {
            Ok(slots) => {
                prop_assert_eq!(slots.len(), platters);
                let chosen: std::collections::BTreeSet<u32> =
                    slots.iter().map(|slot| slot.get() / 100).collect();
                prop_assert_eq!(chosen.len(), platters);
                let share = |z: &ZoneState| f64::from(z.total - z.free) / f64::from(z.total);
                let (inside, outside): (Vec<&ZoneState>, Vec<&ZoneState>) =
                    usable.iter().partition(|z| chosen.contains(&z.zone));
                prop_assert_eq!(inside.len(), platters, "only free zones without the set");
                for a in &inside {
                    prop_assert!(outside.iter().all(|b| share(a) <= share(b) + 1e-12));
                }
            }
            Err(error) => {
                prop_assert!(usable.len() < platters);
                prop_assert_eq!(error, LayoutError::TooFewZones { platters, zones: usable.len() });
            }
        }
    }
}

#[test]
fn a_short_set_has_few_platters() {
    let check = |bodies: &[StagedBody<'_>], tracks: u64, expect: Expect| {
        let plans = plan_all(&tiny(), ANY_SHARD, bodies);
        let lines: Vec<String> = plans[0]
            .platters
            .iter()
            .map(|p| {
                let shards: Vec<String> = p
                    .shards
                    .iter()
                    .map(|s| format!("{}+{} of {}", s.offset, s.length, s.body_bytes))
                    .collect();
                format!("{} list {}", shards.join(", "), p.list_bytes())
            })
            .collect();
        expect.assert_debug_eq(&lines);
        assert_eq!((plans.len(), plans[0].redundancy_bytes), (1, tracks * 16_384));
    };
    // Bodies of at most a track are not split.
    let small = [body(0, 16_384, 100), body(1, 0, 100), body(2, 16_000, 100)];
    check(
        &small,
        3,
        expect![[r#"
        [
            "0+16384 of 16384, 16384+0 of 0, 16384+16000 of 16000 list 588",
        ]
    "#]],
    );
    check(
        &[&small[..], &[body(3, 24_000, 9)]].concat(),
        3,
        expect![[r#"
        [
            "0+16384 of 16384, 16384+0 of 0, 16384+16000 of 16000 list 588",
            "0+16384 of 24000 list 169",
            "0+7616 of 24000 list 169",
        ]
    "#]],
    );
    assert_eq!(SetPlanner::new(&tiny(), ANY_SHARD).finish().redundancy_bytes, 0);
}

#[test]
fn related_bodies_are_placed_together() {
    let body = |n, affinity_key: &'static str| StagedBody {
        affinity_key: affinity_key.as_bytes(),
        ..body(n, 1, 1)
    };
    let continued = StagedBody { from: 1, ..body(9, "z/z") };
    let mut bodies = [body(1, "b/1"), body(2, "a/2"), body(3, "b/0"), body(4, "a/1"), continued];
    StagedBody::sort(&mut bodies);
    assert_eq!(bodies.map(|b| b.object), [9, 4, 2, 3, 1].map(object));
}

#[test]
fn impossible_bodies_are_refused() {
    let mut planner = SetPlanner::new(&tiny(), ANY_SHARD);
    let long = body(1, 10, 80_000);
    let error = planner.push(&long).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the list entry of body 00000000-0000-0000-0000-000000000001 takes 80064 bytes, too many \
         for a platter"
    );
    let done = StagedBody { from: 10, ..body(2, 10, 0) };
    assert!(matches!(planner.push(&done), Err(LayoutError::BeyondBody { from: 10, .. })));
    assert!(planner.is_empty() && !planner.is_full());
}

#[test]
fn a_silica_set_takes_39_terabytes() {
    let geometry = Geometry::profile("silica").unwrap();
    let mut planner = SetPlanner::new(&geometry, ByteCount::new(4_000_000_000));
    let size = 40_000_000_000_000;
    let Push::Partial { next } = planner.push(&body(0, size, 200)).unwrap() else {
        panic!("the body is larger than the set")
    };
    let plan = planner.finish();
    assert_eq!(plan.platters.len(), 16);
    assert_eq!(next, 16 * (2_457_600_000_000 - 96 - 264));
    assert_eq!(plan.redundancy_bytes, 2_457_600_000_000);
}
