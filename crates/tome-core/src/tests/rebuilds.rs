//! Regions rebuilt over messages, for the member slots of lost tomes.

use fulgurite_units::{Controller as _, Duration};
use proptest::prelude::*;

use super::nature::{Known, Nature};
use super::set::{assert_guarantees, lived};
use super::world::World;
use crate::consistency::Side;
use crate::group::{Group, Move};
use crate::limits::{IDLE, SILENT_MEMBER_TIMEOUT, SPIN_DOWN_MARGIN};
use crate::membership_state::MembershipState;
use crate::message::Message;
use crate::metadata::Row;
use crate::{Event, RegionId, RegionIndex, Tome, TomeId};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A set with a few free regions, and three tokens.
const LARGE: Nature = Nature { tomes: 61, ..Nature::CALM };

/// Returns a move of a member slot to a tome that has a free region.
fn planned(world: &World, group: &Group, member: usize) -> Move {
    let mut free = Vec::new();
    for (number, node) in (0..).zip(&world.nodes) {
        let indexes = (0..world.layout.parts().regions).map(RegionIndex::new);
        let own = indexes.filter(|index| node.metadata.region(*index).is_none());
        free.extend(own.map(|index| RegionId { tome: TomeId::new(number), index }));
    }
    let is_in = |to: &RegionId| group.slots().iter().any(|slot| slot.tome == to.tome);
    let to = *free.iter().find(|to| !is_in(to)).unwrap();
    let member_id = crate::Member::at(member);
    Move { group: group.id(), member: member_id, from: group.slots()[member], to }
}

fn at(id: RegionId) -> usize {
    id.tome.get() as usize
}

/// Returns a world in which every data member of its first group has objects, all of them
/// protected.
fn filled(nature: Nature) -> (World, Group) {
    filled_with(nature, 12)
}

/// The same with this many objects of each.
fn filled_with(nature: Nature, objects: usize) -> (World, Group) {
    let mut world = lived(nature, 7, 10);
    let group = world.groups.iter().next().unwrap().clone();
    for slot in &group.slots()[..3] {
        (0..objects).for_each(|_| world.put(at(*slot)));
    }
    (0..4).for_each(|_| world.pass(HOUR));
    assert!(world.objects.values().all(|(_, known)| *known == Known::Protected));
    (world, group)
}

fn begin(world: &mut World, group: &Group, member: usize) -> Move {
    let planned = planned(world, group, member);
    world.kill(at(planned.from));
    world.step(at(planned.to), Event::Rebuild { planned, group: group.clone() });
    planned
}

fn root(world: &World, id: RegionId) -> fulgurite_codes::Signature {
    world.nodes[at(id)].metadata.region(id.index).unwrap().tree().root()
}

/// Runs until a condition holds, in steps so short that a disk does one thing in each.
fn until<T>(world: &mut World, is: impl Fn(&World) -> Option<T>) -> T {
    for _ in 0..100_000 {
        if let Some(found) = is(world) {
            return found;
        }
        world.pass(Duration::from_millis(20));
        // No timer fires by itself in so short a step.
        for tome in 0..world.nodes.len() {
            let deadline = world.nodes[tome].tome.as_ref().and_then(Tome::deadline);
            if deadline.is_some_and(|at| at <= world.now) {
                world.step(tome, Event::Timer);
            }
        }
    }
    panic!("the condition never holds");
}

/// Whether all members have the group as it is after a move, and are members.
fn has_moved(world: &World, group: &Group, planned: &Move) -> bool {
    let after = group.after(planned).unwrap();
    after.slots().iter().all(|slot| {
        let region = world.nodes[at(*slot)].metadata.region(slot.index).unwrap();
        *region.group() == after && region.is_member()
    })
}

#[test]
fn rebuild_spins_two_disks_with_n_writes_and_n_1_reads() {
    for member in [1, 4] {
        let (mut world, group) = filled(LARGE);
        let moved = planned(&world, &group, member);
        let to = at(moved.to);
        let before = (world.nodes[to].writes, world.nodes[to].reads);
        world.counts.peak = 0;
        begin(&mut world, &group, member);
        (0..4).for_each(|_| world.pass(HOUR));
        assert_eq!(world.counts.rebuilt, 1, "{:?}", world.counts);
        assert_eq!(root(&world, moved.to), root(&world, moved.from), "member {member}");
        let node = &world.nodes[to];
        let places = world.layout.region_blocks() as usize;
        assert_eq!(node.writes - before.0, 3 * places, "n writes per block");
        assert_eq!(node.reads - before.1, 2 * places, "n - 1 reads per block");
        assert_eq!(world.counts.peak, 2, "the target and one source");
        assert!(has_moved(&world, &group, &moved));
        // The set continues with it: new writes get their parity there.
        world.put(at(group.slots()[0]));
        (0..2).for_each(|_| world.pass(HOUR));
        assert!(world.objects.values().all(|(_, known)| *known == Known::Protected));
        // The tome that had the member slot comes back and learns that it lost it.
        world.nodes[at(moved.from)].restart_at = Some(world.now);
        world.pass(HOUR);
        assert_eq!(world.counts.slots_lost, 1);
        let left = world.nodes[at(moved.from)].metadata.region(moved.from.index).unwrap();
        assert_eq!(*left.membership_state(), MembershipState::Left);
        let news = world.nodes[to].metadata.region(moved.to.index).unwrap();
        assert_eq!(news.unnotified().count(), 0, "all members are notified");
    }
}

#[test]
fn rebuild_with_one_token_alternates_in_batches() {
    let (mut world, group) = filled(Nature { tomes: 16, ..Nature::CALM });
    let segments = world.layout.parts().segments;
    let moved = begin(&mut world, &group, 1);
    let before = world.counts;
    (0..4).for_each(|_| world.pass(HOUR));
    assert!(has_moved(&world, &group, &moved));
    let (spins, asked) = (world.counts.spins - before.spins, world.counts.asked - before.asked);
    // Three sources send all segments; each spins once for them, and the target once for each
    // source.
    assert_eq!(asked, 3 * segments);
    assert!(spins <= 2 * 3 + 2, "{spins} spin-ups for {asked} segments");
    assert_eq!(root(&world, moved.to), root(&world, moved.from));
}

/// Returns how long a rebuild takes in a set with one token, from source to source.
fn rebuilt_within(tokens_known: bool) -> Duration {
    let (mut world, group) = filled(Nature { tomes: 16, tokens_known, ..Nature::CALM });
    let begun = world.now;
    let moved = begin(&mut world, &group, 1);
    world.counts.peak = 0;
    until(&mut world, |world| has_moved(world, &group, &moved).then_some(()));
    assert_eq!(root(&world, moved.to), root(&world, moved.from));
    assert_eq!(world.counts.peak, 1, "one token, one disk");
    world.now.since(begun)
}

#[test]
fn rebuild_with_one_token_skips_the_pause_after_a_source() {
    let (paused, immediate) = (rebuilt_within(false), rebuilt_within(true));
    let pauses = Duration::from_nanos(3 * (IDLE + SPIN_DOWN_MARGIN).as_nanos());
    // After each of three sources it skipped the pause, except for the time that the source itself
    // took.
    let shorter = paused.as_nanos().saturating_sub(immediate.as_nanos());
    assert!(shorter * 2 >= pauses.as_nanos(), "{paused:?} with pauses, {immediate:?} without");
}

#[test]
fn checkpoint_and_moved_slot_round_trip() {
    let (mut world, group) = filled(LARGE);
    let moved = begin(&mut world, &group, 1);
    let checkpoint = |world: &World| {
        let region = world.nodes[at(moved.to)].metadata.region(moved.to.index).unwrap();
        region.building().filter(|building| building.segment > 0).cloned()
    };
    let building = until(&mut world, checkpoint);
    let row = Row::Building { region: moved.to.index, building };
    let text = serde_json::to_string(&row).unwrap();
    assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    let message = Message::Moved(group.after(&moved).unwrap());
    let text = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
}

#[test]
fn returning_tome_keeps_its_slot_and_catches_up() {
    for member in [0, 3] {
        let (mut world, group) = filled(LARGE);
        let moved = begin(&mut world, &group, member);
        world.pass(MINUTE);
        world.put(at(group.slots()[1]));
        assert!(world.nodes[at(moved.to)].metadata.region(moved.to.index).is_some());
        let frozen = world.nodes[at(group.slots()[2])].metadata.region_of(group.id()).unwrap().1;
        assert_eq!(frozen.frozen(), Some(&moved), "the region is not written meanwhile");
        // It comes back before its member slot has moved.
        world.nodes[at(moved.from)].restart_at = Some(world.now);
        (0..4).for_each(|_| world.pass(HOUR));
        assert_eq!((world.counts.dropped, world.counts.rebuilt), (1, 0));
        assert_eq!(world.nodes[at(moved.to)].metadata.region(moved.to.index), None);
        for slot in group.slots() {
            let region = world.nodes[at(*slot)].metadata.region(slot.index).unwrap();
            assert!(region.is_member() && *region.group() == group);
        }
        world.put(at(group.slots()[1]));
        (0..2).for_each(|_| world.pass(HOUR));
        assert!(world.objects.values().all(|(_, known)| *known == Known::Protected));
    }
}

#[test]
fn rebuild_survives_source_loss_and_target_crash() {
    for folded in [0, 1] {
        let (mut world, group) = filled(LARGE);
        let moved = begin(&mut world, &group, 1);
        let plan = |world: &World| {
            let region = world.nodes[at(moved.to)].metadata.region(moved.to.index).unwrap();
            region.building().map(|b| (b.plan.clone(), b.segment))
        };
        // The first source is in the sum completely, or one segment of it.
        let is_there = |world: &World| match plan(world) {
            Some((Some(plan), segment)) => match folded {
                0 => segment > 0,
                _ => plan.next().is_some_and(|step| step.reads && segment == 0),
            },
            _ => false,
        };
        until(&mut world, |world| is_there(world).then_some(()));
        let next = plan(&world).unwrap().0.unwrap().next().unwrap().source;
        world.crash(at(moved.to));
        world.kill(at(group.slots()[next.as_usize()]));
        (0..6).for_each(|_| world.pass(HOUR));
        assert_eq!(world.counts.rebuilt, 1, "{:?}", world.counts);
        assert_eq!(root(&world, moved.to), root(&world, moved.from));
    }
}

#[test]
fn changes_a_lost_parity_lacks_do_not_block_a_rebuild() {
    let (mut world, group) = filled_with(LARGE, 1);
    let (parity, writer) = (group.slots()[4], group.slots()[0]);
    world.kill(at(parity));
    let pending = |world: &World| {
        let region = world.nodes[at(writer)].metadata.region(writer.index).unwrap();
        region.pending().map_or(0, |pending| pending.len())
    };
    for _ in 0..24 {
        if pending(&world) == 0 {
            world.put(at(writer));
            world.pass(HOUR);
        }
    }
    assert!(pending(&world) > 0, "the lost parity lacks some changes");
    let moved = begin(&mut world, &group, 1);
    (0..8).for_each(|_| world.pass(HOUR));
    assert_eq!(world.counts.rebuilt, 1, "{:?}", world.counts);
    assert_eq!(root(&world, moved.to), root(&world, moved.from));
    assert!(pending(&world) > 0, "they wait for the next member in that slot");
    assert_guarantees(&world);
}

#[test]
fn rebuild_does_not_wait_for_lost_members() {
    for other in [2, 4] {
        let (mut world, group) = filled_with(LARGE, 1);
        world.kill(at(group.slots()[other]));
        let begun = world.now;
        let moved = begin(&mut world, &group, 1);
        let tomes = [moved.from.tome, group.slots()[other].tome].into();
        world.step(at(moved.to), Event::Absent { tomes });
        until(&mut world, |world| {
            let region = world.nodes[at(moved.to)].metadata.region(moved.to.index).unwrap();
            region.is_member().then_some(())
        });
        let took = world.now.since(begun);
        assert!(took < SILENT_MEMBER_TIMEOUT, "{took:?} beside lost member {other}");
        assert_eq!(root(&world, moved.to), root(&world, moved.from));
        assert_guarantees(&world);
    }
}

#[test]
fn rebuilt_region_takes_writes_once_names_are_known() {
    let (mut world, group) = filled_with(LARGE, 2);
    let moved = begin(&mut world, &group, 1);
    (0..4).for_each(|_| world.pass(HOUR));
    let region = |world: &World| {
        let region = world.nodes[at(moved.to)].metadata.region(moved.to.index).unwrap();
        (region.is_rebuilt(), region.latest())
    };
    let before = region(&world);
    assert!(before.0, "free blocks are unknown until names are known");
    world.put(at(moved.to));
    world.pass(HOUR);
    assert_eq!(region(&world), before, "nothing was written to it");
    let known = world.objects.len();
    assert_eq!(world.adopt(&moved), 0);
    assert!(!region(&world).0);
    assert_eq!(world.objects.len(), known);
    world.read_all();
    // The one with the most room is chosen while no delta is in flight.
    for _ in 0..60 {
        if region(&world).1 == before.1 {
            world.put(at(moved.to));
            world.pass(HOUR);
        }
    }
    assert!(region(&world).1 > before.1, "new objects are written to the region");
    assert!(world.objects.values().all(|(_, known)| *known == Known::Protected));
    assert_guarantees(&world);
}

#[test]
fn parities_share_changes_of_a_lost_tome_before_rebuild() {
    let (mut world, group) = filled_with(LARGE, 2);
    let lost = at(group.slots()[0]);
    // The second parity is cut off while a change is written.
    let away = at(group.slots()[4]);
    world.nodes[away].cut_until = world.now + HOUR;
    (0..6).for_each(|_| world.put(lost));
    let folded = |world: &World, parity: usize| {
        let region =
            world.nodes[at(group.slots()[parity])].metadata.region_of(group.id()).unwrap().1;
        let Side::Parity(all) = region.report().side else { panic!("the region has parity") };
        all[0].above.len()
    };
    for _ in 0..3600 {
        if folded(&world, 3) > 0 {
            break;
        }
        world.pass(Duration::from_secs(1));
    }
    assert!(folded(&world, 3) > 0, "one parity has part of the change");
    assert_eq!(folded(&world, 4), 0, "the other parity has none of it");
    let moved = begin(&mut world, &group, 0);
    world.nodes[away].cut_until = world.now;
    (0..4).for_each(|_| world.pass(HOUR));
    assert!(has_moved(&world, &group, &moved), "the region is rebuilt");
    assert!(world.check(&group.after(&moved).unwrap()).wants().is_none());
    world.adopt(&moved);
    world.read_all();
    world.pass(HOUR);
    assert_guarantees(&world);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn slot_move_under_faults_loses_nothing(seed: u64) {
        let mut world = World::new(Nature { tomes: 13, ..Nature::ROUGH }, seed);
        for _ in 0..60 {
            world.stir();
            world.pass(MINUTE);
        }
        let member = world.below(5);
        let group = world.groups.iter().next().unwrap().clone();
        let moved = planned(&world, &group, member);
        world.kill(at(moved.from));
        world.step(at(moved.to), Event::Rebuild { planned: moved, group: group.clone() });
        for _ in 0..60 {
            world.stir();
            world.pass(Duration::from_secs(300));
            world.step(at(moved.to), Event::Rebuild { planned: moved, group: group.clone() });
        }
        world.calm();
        (0..12).for_each(|_| world.pass(HOUR));
        // A crash may lose the alarm, but not the member slot.
        prop_assert!(has_moved(&world, &group, &moved));
        prop_assert!(world.check(&group.after(&moved).unwrap()).wants().is_none());
        if member < 3 {
            world.adopt(&moved);
            let region = world.nodes[at(moved.to)].metadata.region(moved.to.index).unwrap();
            prop_assert!(!region.is_rebuilt(), "its names are known, and it is written again");
        }
        for slot in group.after(&moved).unwrap().slots() {
            let region = world.nodes[at(*slot)].metadata.region(slot.index).unwrap();
            prop_assert!(region.pending().is_none_or(|list| list.is_empty()), "all is protected");
        }
        world.read_all();
        (0..2).for_each(|_| world.pass(HOUR));
        assert_guarantees(&world);
    }
}
