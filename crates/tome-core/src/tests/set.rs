//! The guarantees of a set of tomes, tested in the simulated world.

use std::collections::BTreeSet;

use fulgurite_codes::signature;
use fulgurite_units::{Controller as _, Duration, Instant, Outbox};
use proptest::prelude::*;

use super::nature::{Known, Nature};
use super::world::{CHECK, World};
use crate::consistency::{Change, Finding};
use crate::group::Group;
use crate::limits::DELTA_WINDOW;
use crate::message::{Message, Status};
use crate::metadata::Row;
use crate::syndrome::Verdict;
use crate::{Answer, Command, Event, Member, Offset, RegionId, Tome, TomeError, Version};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Returns a world in which clients and faults have been active for this many minutes.
pub(super) fn lived(nature: Nature, seed: u64, minutes: u32) -> World {
    let mut world = World::new(nature, seed);
    for _ in 0..minutes {
        world.stir();
        world.pass(MINUTE);
    }
    world
}

/// Asserts that every acknowledged object reads back from its own tome, and that every protected
/// one is recovered without any two tomes. Returns how many were recovered.
pub(super) fn assert_guarantees(world: &World) -> u32 {
    for ((tome, name), (bytes, known)) in &world.objects {
        if matches!(known, Known::Local | Known::Protected) {
            let node = &world.nodes[*tome];
            let mut read = |physical_block| node.disk.get(&physical_block).cloned();
            let read = crate::offline_read::object(&node.metadata, name, &mut read);
            assert_eq!(read.as_ref(), Ok(bytes), "{name} of tome {tome}");
        }
    }
    let protected = || world.objects.iter().filter(|(_, (_, known))| *known == Known::Protected);
    let mut recovered = 0;
    for ((tome, name), (bytes, _)) in protected() {
        for other in (0..world.nodes.len()).filter(|other| other != tome) {
            let gone = BTreeSet::from([*tome, other]);
            let read = world.recover(*tome, name, &gone);
            assert_eq!(read.as_ref(), Ok(bytes), "{name} without {gone:?}");
            recovered += 1;
        }
    }
    recovered
}

#[test]
fn quiet_set_protects_its_objects_and_sleeps() {
    let mut world = lived(Nature::CALM, 1, 120);
    world.pass(HOUR);
    world.pass(HOUR);
    let counts = world.counts;
    assert!(counts.local > 30, "{counts:?}");
    assert!(counts.read > 0, "{counts:?}");
    let all = world.objects.values().map(|(_, known)| known);
    assert!(all.clone().count() > 20 && all.clone().all(|known| *known == Known::Protected));
    for node in &world.nodes {
        let tome = node.tome.as_ref().unwrap();
        assert!(!tome.is_spinning(), "an idle disk sleeps");
        assert_eq!(tome.unprotected().bytes.get(), 0);
    }
}

#[test]
fn consecutive_puts_spin_up_parities_of_one_group() {
    let mut world = World::new(Nature::CALM, 3);
    (0..2).for_each(|_| world.put(0));
    world.pass(HOUR);
    assert_eq!((world.counts.local, world.counts.protected), (2, 2), "{:?}", world.counts);
    let tome = world.nodes[0].tome.as_ref().unwrap();
    let blocks = tome.metadata().objects().flat_map(|(_, object)| &object.blocks);
    let regions: BTreeSet<_> = blocks.map(|(region, _)| *region).collect();
    // Its own disk and those of two parities, not of two for each of its regions.
    assert_eq!((regions.len(), world.counts.spins), (1, 3), "{regions:?} {:?}", world.counts);
    let mut all: Vec<_> = tome.metadata().regions().map(|(index, _)| index).collect();
    all.retain(|index| tome.metadata().region(*index).is_some_and(|of| of.pending().is_some()));
    assert!(all.len() > 1, "several groups were available: {all:?}");
}

#[test]
fn any_two_tomes_may_be_lost_but_not_three() {
    let mut world = lived(Nature::CALM, 2, 90);
    assert!(assert_guarantees(&world) > 100);
    world.pass(HOUR);
    let protected = world.objects.iter().find(|(_, (_, known))| *known == Known::Protected);
    let ((tome, name), _) = protected.unwrap();
    let (tome, name) = (*tome, name.clone());
    let object = world.nodes[tome].metadata.object(&name).unwrap();
    let region = world.nodes[tome].metadata.region(object.blocks[0].0).unwrap();
    let slots = region.group().slots().iter().map(|slot| slot.tome.get() as usize);
    let others = slots.filter(|slot| *slot != tome).take(2);
    let gone: BTreeSet<usize> = others.chain([tome]).collect();
    let lost = world.recover(tome, &name, &gone).unwrap_err();
    let group = region.group().id();
    assert_eq!(lost, TomeError::GroupLost { group, have: 2, need: 3 });
}

#[test]
fn two_tomes_and_segment_parity_may_be_lost_at_once() {
    let mut world = lived(Nature::CALM, 4, 90);
    (0..2).for_each(|_| world.pass(HOUR));
    let good = world.nodes.iter().map(|node| node.disk.clone()).collect::<Vec<_>>();
    world.spoil_all(2);
    assert!(assert_guarantees(&world) > 100);
    for (node, disk) in world.nodes.iter_mut().zip(good) {
        node.disk = disk;
    }
    world.spoil_all(3);
    // Full segments have six blocks; with three bad, their own parity is not enough.
    let ((tome, name), _) = world.objects.iter().max_by_key(|(_, (b, _))| b.len()).unwrap();
    let other = (tome + 1) % world.nodes.len();
    let lost = world.recover(*tome, name, &BTreeSet::from([*tome, other])).unwrap_err();
    assert_eq!(lost, TomeError::SegmentLost { bad: 3, parity: 2 });
}

#[test]
fn larger_set_spins_two_disks_at_a_time() {
    let mut world = lived(Nature { tomes: 45, ..Nature::ROUGH }, 5, 120);
    assert_guarantees(&world);
    world.calm();
    (0..6).for_each(|_| world.pass(HOUR));
    assert!(world.counts.local > 10, "{:?}", world.counts);
    assert!(world.nodes.iter().all(|node| {
        node.tome.as_ref().is_some_and(|tome| tome.unprotected().bytes.get() == 0)
    }));
}

#[test]
fn same_seed_gives_the_same_run() {
    let run = || {
        let world = lived(Nature::ROUGH, 6, 60);
        let metadata: Vec<_> =
            world.nodes.into_iter().map(|node| (node.metadata, node.disk)).collect();
        (world.counts, metadata)
    };
    let (first, again) = (run(), run());
    assert_eq!(first.0, again.0);
    assert!(first.0.local > 5 && first.1 == again.1);
}

fn is_in(group: &Group, tome: usize) -> bool {
    group.slots().iter().any(|slot| slot.tome.get() as usize == tome)
}

#[test]
fn stale_tome_is_located_without_a_spin_up() {
    let mut world = lived(Nature::CALM, 3, 60);
    (0..2).for_each(|_| world.pass(HOUR));
    let written = |region: RegionId| {
        let known = world.nodes[region.tome.get() as usize].metadata.region(region.index)?;
        (0..18).map(Offset::new).find(|offset| known.physical_block(*offset).is_some())
    };
    let first = |group: &Group| Some((group.clone(), written(group.slots()[1])?));
    let (group, offset) = world.groups.iter().find_map(first).unwrap();
    let (wrong, other) = (group.slots()[1], group.slots()[4]);
    let asks = other.tome.get() as usize;
    let check = Event::Check { request: CHECK, group: group.id() };
    world.step(asks, check.clone());
    world.pass(MINUTE);
    let agreed = Answer::Checked { findings: Vec::new(), exchanged: 5 };
    assert_eq!(world.checks, [agreed]);
    let tome = wrong.tome.get() as usize;
    let region = world.nodes[tome].metadata.region(wrong.index).unwrap();
    let row = Row::Block {
        region: wrong.index,
        offset,
        physical_block: region.physical_block(offset).unwrap(),
        version: region.version(offset),
        change: signature(b"what was never written"),
    };
    let spins = world.counts.spins;
    world.tamper(tome, &row);
    world.pass(Duration::from_secs(1));
    world.step(asks, check);
    world.pass(Duration::from_secs(1));
    let named = Finding { offset, verdict: Verdict::Wrong(Member::new(1)) };
    let Answer::Checked { findings, exchanged } = &world.checks[1] else { panic!("no answer") };
    assert_eq!(findings, &[named]);
    // 18 blocks: a root, then two nodes at each of five levels, of five members.
    assert_eq!((*exchanged, world.counts.spins), (5 * 11, spins));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn set_keeps_its_guarantees_under_faults(seed: u64) {
        let mut world = World::new(Nature::ROUGH, seed);
        for _ in 0..24 {
            for _ in 0..10 {
                world.stir();
                world.pass(MINUTE);
            }
            assert_guarantees(&world);
            let tome = world.below(10);
            let group = world.groups.iter().find(|group| is_in(group, tome)).unwrap().id();
            world.step(tome, Event::Check { request: CHECK, group });
        }
        world.calm();
        (0..8).for_each(|_| world.pass(HOUR));
        for node in &world.nodes {
            let tome = node.tome.as_ref().unwrap();
            prop_assert_eq!(tome.unprotected().bytes.get(), 0, "all is protected in the end");
        }
        for group in world.groups.iter() {
            prop_assert!(world.check(group).wants().is_none());
        }
        let agreed = |answer: &Answer| match answer {
            Answer::Checked { findings, exchanged } => findings.is_empty() && *exchanged == 5,
            Answer::Refused(TomeError::Silent { .. } | TomeError::Full { .. }) => true,
            Answer::Local
            | Answer::Protected
            | Answer::Bytes(_)
            | Answer::Deleted
            | Answer::Adopted
            | Answer::Held { .. }
            | Answer::Scrubbed
            | Answer::Refused(_) => false,
        };
        prop_assert!(world.checks.iter().all(agreed), "{:?}", world.checks);
        prop_assert!(world.checks.len() > 5);
        prop_assert_eq!(world.counts.changes_lost, 0, "no old block went bad");
        prop_assert!(world.counts.crashes > 0 && world.counts.protected > 0);
    }
}

/// Returns a parity's reply to a change of the first data member of its group.
fn parity_reply(
    parity: &mut Tome,
    (group, member): (&Group, Member),
    version: Version,
    floor: Version,
) -> Vec<Status> {
    let bytes = vec![u8::try_from(version.get()).unwrap(); 256];
    let change = Change { offset: Offset::new(0), version, signature: signature(&bytes) };
    let message = Message::Delta { group: group.id(), member, change, floor, bytes };
    let mut out = Outbox::new();
    let from = group.slots()[member.as_usize()].tome;
    parity.step(Instant::ZERO, Event::Received { from, message }, &mut out);
    let statuses = out.drain().filter_map(|command| {
        let Command::Send { message: Message::Status { status, .. }, .. } = command else {
            return None;
        };
        Some(status)
    });
    statuses.collect()
}

#[test]
fn stored_later_deltas_do_not_block_an_older_one() {
    let mut world = World::new(Nature::CALM, 5);
    let group = world.groups.iter().next().unwrap().clone();
    let data = group.split().data() as usize;
    let slot = group.slots()[data].tome.get() as usize;
    let parity = world.nodes[slot].tome.as_mut().unwrap();
    let of = (&group, Member::at(0));
    let window = u32::try_from(DELTA_WINDOW).unwrap();
    let first = Version::new(1);
    // The first was refused or lost on the way, and others were sent meanwhile.
    for version in 2..2 + window {
        assert_eq!(parity_reply(parity, of, Version::new(version), first), [Status::Stored]);
    }
    assert_eq!(parity_reply(parity, of, Version::new(2 + window), first), [Status::Full]);
    assert_eq!(parity_reply(parity, of, first, first), [Status::Stored]);
    let later = Version::new(200);
    assert_eq!(parity_reply(parity, of, later, first), [Status::Full]);
}
