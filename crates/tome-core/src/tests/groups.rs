//! Groups that form by themselves, duplicate deltas, rebuilt regions.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::{Signature, signature};
use fulgurite_units::{ErrorKind, Instant, Seed};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{block, split, xor};
use crate::applied_changes::{AppliedChanges, Arrival};
use crate::block_multiplier::BlockMultiplier;
use crate::consistency::Change;
use crate::group::{Group, Groups, Move};
use crate::limits::PENDING_MAX;
use crate::pending::{Parities, Pending, PendingList};
use crate::rebuild::{Rebuild, SourceLoss};
use crate::segment::SegmentCode;
use crate::{
    CodeParams, GroupId, Member, Offset, PhysicalBlock, RegionId, RegionIndex, TomeError, TomeId,
    Version,
};

fn region(tome: u32, index: u32) -> RegionId {
    RegionId { tome: TomeId::new(tome), index: RegionIndex::new(index) }
}

fn set(group: &str, regions: &[u32]) -> Groups {
    let mut groups = Groups::new(split(group)).unwrap();
    for (tome, regions) in (0..).zip(regions) {
        groups.add_tome(TomeId::new(tome), *regions).unwrap();
    }
    groups
}

/// Returns the most groups of `members` that these regions allow: each tome is in a group at most
/// once.
fn most(members: usize, regions: &[u32]) -> usize {
    let total = regions.iter().sum::<u32>();
    let fits = |groups: u32| {
        let slots: u32 = regions.iter().map(|own| (*own).min(groups)).sum();
        slots as usize >= groups as usize * members
    };
    (0..=total).rev().find(|groups| fits(*groups)).unwrap() as usize
}

#[test]
fn a_group_has_each_tome_once() {
    let slots = |tomes: [u32; 5]| tomes.map(|tome| region(tome, 0)).to_vec();
    let group = Group::new(GroupId::new(4), split("3+2"), slots([7, 1, 2, 3, 9])).unwrap();
    assert_eq!(group.member(region(2, 0)), Some(Member::new(2)));
    assert_eq!(group.member(region(2, 1)), None);
    assert_eq!(group.parity_tome(1), TomeId::new(9));
    let twice = Group::new(GroupId::new(4), split("3+2"), slots([7, 1, 2, 3, 1]));
    let same = TomeError::SameTome { group: GroupId::new(4), tome: TomeId::new(1) };
    assert_eq!(twice, Err(same));
    let few = Group::new(GroupId::new(4), split("3+3"), slots([7, 1, 2, 3, 4]));
    assert!(matches!(few, Err(TomeError::Count { have: 5, need: 6, .. })));
}

#[test]
fn conflicting_claim_changes_nothing() {
    let mut groups = set("3+2", &[2, 2, 2, 2, 2, 1]);
    let group = |id: u32, regions: [RegionId; 5]| {
        Group::new(GroupId::new(id), split("3+2"), regions.to_vec()).unwrap()
    };
    let first = [0, 1, 2, 3, 4].map(|tome| region(tome, 1));
    groups.claim(group(1, first)).unwrap();
    let before = groups.clone();
    let again = groups.claim(group(1, [0, 1, 2, 3, 4].map(|tome| region(tome, 0))));
    assert_eq!(again, Err(TomeError::DuplicateGroup { group: GroupId::new(1) }));
    let mixed = [region(5, 0), region(1, 0), region(2, 0), region(3, 0), region(4, 1)];
    let claimed = groups.claim(group(2, mixed)).unwrap_err();
    assert_eq!(claimed, TomeError::ClaimedTwice { region: region(4, 1) });
    assert_eq!(claimed.kind(), ErrorKind::Conflict);
    let unknown = [region(5, 0), region(1, 0), region(2, 0), region(3, 0), region(6, 0)];
    let unknown = groups.claim(group(2, unknown));
    assert_eq!(unknown, Err(TomeError::NoTome { tome: TomeId::new(6) }));
    let twice = groups.add_tome(TomeId::new(3), 9);
    assert_eq!(twice, Err(TomeError::DuplicateTome { tome: TomeId::new(3) }));
    assert_eq!(groups, before, "refused calls change nothing");
}

#[test]
fn added_tome_joins_groups_and_retired_one_leaves_all() {
    let mut groups = set("3+2", &[4, 4, 4, 4, 4]);
    assert_eq!(groups.populate().len(), 4);
    assert_eq!((groups.free_regions(), groups.populate().len()), (0, 0));
    let gone = TomeId::new(2);
    let none = groups.retire(gone, &[]).unwrap();
    assert_eq!((none.moves.len(), none.unplaced.len()), (0, 4), "no tome has a free region");
    groups.add_tome(TomeId::new(5), 3).unwrap();
    let some = groups.retire(gone, &[]).unwrap();
    assert_eq!(
        (some.moves.len(), some.unplaced.len()),
        (3, 1),
        "as many as there are free regions"
    );
    groups.add_tome(TomeId::new(6), 6).unwrap();
    let rest = groups.retire(gone, &some.moves).unwrap();
    assert_eq!((rest.moves.len(), rest.later), (1, 0), "planned moves are not planned again");
    let other = groups.retire(TomeId::new(1), &some.moves).unwrap();
    assert_eq!(
        (other.moves.len(), other.later),
        (1, 3),
        "one member slot of a group moves at a time"
    );
    let moves = [some.moves, rest.moves].concat();
    assert!(matches!(groups.remove(gone), Err(TomeError::InUse { .. })));
    for planned in &moves {
        assert_eq!(planned.from.tome, gone);
        groups.moved(*planned).unwrap();
        let again = groups.moved(*planned);
        assert_eq!(again, Err(TomeError::ClaimedTwice { region: planned.from }));
    }
    groups.remove(gone).unwrap();
    assert!(groups.iter().all(|group| group.slots().iter().all(|slot| slot.tome != gone)));
    let own = Move { to: region(0, 0), from: moves[0].to, ..moves[0] };
    assert!(matches!(groups.moved(own), Err(TomeError::SameTome { .. })));
    assert_eq!(groups.free_regions(), 4);
}

#[test]
fn every_tome_holds_parity_in_turn() {
    let mut groups = set("13+3", &[16; 16]);
    groups.populate();
    let mut is_spinning = BTreeMap::new();
    for group in groups.iter() {
        (0..3).for_each(|j| *is_spinning.entry(group.parity_tome(j)).or_insert(0) += 1);
    }
    assert_eq!(is_spinning.into_values().collect::<Vec<_>>(), [3; 16]);
}

fn change(offset: u32, version: u32) -> Change {
    let signature =
        signature(&[offset % 128, version % 128].map(|n| u8::try_from(n).unwrap() | 0x80));
    Change { offset: Offset::new(offset), version: Version::new(version), signature }
}

fn pending(offset: u32, old: Option<u32>, new: u32) -> Pending {
    Pending {
        offset: Offset::new(offset),
        old: old.map(PhysicalBlock::new),
        new: PhysicalBlock::new(new),
        change: change(offset, new).signature,
        missing: Parities::all(split("3+2")),
        is_sent: false,
        since: Instant::from_nanos(u64::from(new)),
    }
}

#[test]
fn unsent_changes_of_a_block_are_merged() {
    let mut list = PendingList::default();
    let version = Version::new;
    list.push(version(1), pending(7, None, 10)).unwrap();
    list.push(version(2), pending(7, Some(10), 11)).unwrap();
    assert_eq!((list.len(), list.get(version(1))), (1, None));
    let both = *list.get(version(2)).unwrap();
    assert_eq!(
        (both.old, both.new, both.since),
        (None, PhysicalBlock::new(11), Instant::from_nanos(10))
    );
    assert_eq!(both.change, pending(7, None, 10).change ^ pending(7, None, 11).change);
    assert!(
        !list.needs(PhysicalBlock::new(10)),
        "an unsent change is merged, so its block is free"
    );
    list.mark_sent(version(2));
    list.push(version(3), pending(7, Some(11), 12)).unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!(list.confirm(version(2), 0), None);
    assert_eq!(list.floor(version(3)), version(2), "another parity still lacks the change");
    let done = list.confirm(version(2), 1).unwrap();
    assert_eq!(done.new, PhysicalBlock::new(11));
    assert!(list.needs(PhysicalBlock::new(11)), "the next change begins there");
    assert_eq!(list.confirm(version(2), 1), None, "a duplicate answer");
    let last = [0, 1].map(|parity| list.confirm(version(3), parity).is_some());
    assert_eq!(last, [false, true]);
    assert_eq!((list.is_empty(), list.floor(version(3))), (true, version(4)));
}

#[test]
fn oldest_change_is_tracked_across_merges_and_confirms() {
    let mut list = PendingList::default();
    assert_eq!(list.oldest(), None);
    for (version, offset, at) in [(1, 5, 20), (2, 7, 10), (3, 5, 30), (4, 9, 40)] {
        list.push(Version::new(version), pending(offset, None, at)).unwrap();
    }
    let oldest = |list: &PendingList| list.iter().map(|(_, one)| one.since).min();
    assert_eq!(list.oldest(), Some(Instant::from_nanos(10)));
    for version in [2, 3, 4] {
        for parity in [0, 1] {
            list.confirm(Version::new(version), parity);
            assert_eq!(list.oldest(), oldest(&list), "parity {parity} has version {version}");
        }
    }
    assert_eq!((list.oldest(), list.is_empty()), (None, true));
}

#[test]
fn pending_changes_are_bounded() {
    let mut list = PendingList::default();
    let count = u32::try_from(PENDING_MAX).unwrap();
    for number in 0..count {
        list.push(Version::new(number + 1), pending(number, None, number)).unwrap();
    }
    let full = list.push(Version::new(count + 1), pending(count, None, count)).unwrap_err();
    assert_eq!((full.kind(), list.len()), (ErrorKind::Unavailable, PENDING_MAX));
    list.push(Version::new(count + 1), pending(3, Some(3), count)).unwrap();
    assert_eq!(list.len(), PENDING_MAX, "a merged change takes no additional entry");
}

#[test]
fn duplicate_delta_is_applied_once() {
    let mut applied = AppliedChanges::default();
    let (first, later) = (change(4, 1), change(4, 3));
    assert_eq!(applied.classify(&first), Ok(Arrival::New));
    applied.record(first);
    assert_eq!(applied.classify(&first), Ok(Arrival::Known));
    assert_eq!(applied.classify(&later), Ok(Arrival::New), "out of order");
    applied.record(later);
    let other = Change { offset: Offset::new(5), ..first };
    assert!(matches!(applied.classify(&other), Err(TomeError::ConflictingChange { .. })));
    applied.raise_floor(Version::new(3));
    assert_eq!((applied.above(), applied.classify(&first)), (1, Ok(Arrival::Known)));
    applied.raise_floor(Version::new(2));
    applied.record(first);
    assert_eq!(applied.summary().floor, Version::new(3), "a floor never goes down");
    assert_eq!(applied.summary().above, [later]);
}

/// Returns the blocks of all members at one offset.
fn word(split: CodeParams, seed: u64) -> Vec<Vec<u8>> {
    let mut stream = Seed::new(seed).stream();
    let mut blocks: Vec<Vec<u8>> = (0..split.data()).map(|_| block(512, &mut stream)).collect();
    let parity = SegmentCode::new(split).unwrap().fill(&blocks).unwrap();
    blocks.extend(parity);
    blocks
}

fn members(split: CodeParams, without: &[u8]) -> BTreeSet<Member> {
    let all = (0..split.total()).map(|member| Member::at(member as usize));
    all.filter(|member| !without.contains(&member.get())).collect()
}

fn read(rebuild: &mut Rebuild, blocks: &[Vec<u8>], sum: &mut [u8]) -> Option<(Member, bool)> {
    let step = rebuild.next()?;
    if !step.reads {
        sum.fill(0);
    }
    let scaled = BlockMultiplier::new(step.factor).unwrap();
    scaled.add(&blocks[step.source.as_usize()], sum).unwrap();
    rebuild.record_added(step.source);
    Some((step.source, step.reads))
}

fn roots(blocks: &[Vec<u8>]) -> Vec<Signature> {
    blocks.iter().map(|bytes| signature(bytes)).collect()
}

#[test]
fn rebuild_writes_n_times_and_reads_n_minus_1_times() {
    let (split, target) = (split("13+3"), Member::new(4));
    let blocks = word(split, 1);
    let mut rebuild = Rebuild::new(GroupId::new(1), split, target, &members(split, &[4])).unwrap();
    let (mut sum, mut writes, mut reads) = (vec![0xff; 512], 0, 0);
    while let Some((source, reading)) = read(&mut rebuild, &blocks, &mut sum) {
        assert_ne!(source, target);
        (writes, reads) = (writes + 1, reads + u32::from(reading));
        let so_far = rebuild.verify(&roots(&blocks));
        assert_eq!(
            so_far.is_ok(),
            writes == 13,
            "verification fails until all sources are in the sum"
        );
    }
    assert_eq!((writes, reads), (13, 12));
    assert_eq!(sum, blocks[4]);
    // Verified against its sources alone, when not all other members are there.
    let source_roots = rebuild.sources().map(|source| (source, roots(&blocks)[source.as_usize()]));
    let source_roots: BTreeMap<Member, Signature> = source_roots.collect();
    assert_eq!(rebuild.verify_sum(signature(&sum), &source_roots), Ok(()));
    sum[7] ^= 1;
    assert!(rebuild.verify_sum(signature(&sum), &source_roots).is_err(), "another sum");
    let first = source_roots.into_iter().skip(1).collect();
    assert!(rebuild.verify_sum(signature(&blocks[4]), &first).is_err(), "a source is missing");
    let mut wrong = roots(&blocks);
    wrong[4] ^= Signature([1; 8]);
    let misbuilt = rebuild.verify(&wrong).unwrap_err();
    assert_eq!(misbuilt, TomeError::RebuildMismatch { group: GroupId::new(1) });
}

#[test]
fn source_loss_midway_repeats_earlier_sources() {
    let (split, target) = (split("6+3"), Member::new(2));
    let blocks = word(split, 2);
    let begin = || {
        let available = members(split, &[2]);
        let mut rebuild = Rebuild::new(GroupId::new(1), split, target, &available).unwrap();
        let mut sum = vec![0; 512];
        (0..4).for_each(|_| assert!(read(&mut rebuild, &blocks, &mut sum).is_some()));
        (rebuild, sum)
    };
    // Members 0, 1, 3, 4 are in the sum; 5 and the first parity are still to come.
    let lost = |gone: &[u8]| {
        let (mut rebuild, mut sum) = begin();
        let mending = rebuild.lost(&members(split, gone));
        let mut spins = 0;
        while read(&mut rebuild, &blocks, &mut sum).is_some() {
            spins += 1;
        }
        assert_eq!(sum, blocks[2], "{gone:?}");
        (mending.unwrap(), spins)
    };
    assert_eq!(lost(&[2, 3]), (SourceLoss::None, 2), "the lost source is in the sum");
    assert_eq!(lost(&[2, 8]), (SourceLoss::None, 2), "the lost member was not a source");
    assert_eq!(lost(&[2, 5]), (SourceLoss::SpinAgain(4), 6));
    assert_eq!(lost(&[2, 5, 3]), (SourceLoss::Restart, 6));
    let (mut rebuild, _) = begin();
    let few = rebuild.lost(&members(split, &[2, 5, 7, 8]));
    let few_left = TomeError::GroupLost { group: GroupId::new(1), have: 5, need: 6 };
    assert_eq!(few, Err(few_left));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn populate_forms_the_most_groups_possible(regions in vec(0u32..12, 5..24)) {
        let mut groups = set("3+2", &regions);
        let made = groups.populate();
        prop_assert_eq!(made.len(), most(5, &regions));
        let mut seen = BTreeSet::new();
        for slot in groups.iter().flat_map(Group::slots) {
            prop_assert!(seen.insert(*slot), "{} has two groups", slot);
            prop_assert!(slot.index.get() < regions[slot.tome.get() as usize]);
        }
    }

    #[test]
    fn block_multiplier_matches_field_arithmetic(factor: u8, bytes in vec(any::<u8>(), 1..200)) {
        let mut sum = vec![0x35; bytes.len()];
        BlockMultiplier::new(factor).unwrap().add(&bytes, &mut sum).unwrap();
        let product = bytes.iter().map(|b| fulgurite_codes::field::gf8::mul(factor, *b) ^ 0x35);
        prop_assert_eq!(sum, product.collect::<Vec<_>>());
    }

    #[test]
    fn any_target_is_rebuilt_despite_source_losses(
        target in 0u8..9, lost in vec((0u8..9, 0usize..7), 0..2), seed: u64,
    ) {
        let split = split("6+3");
        let blocks = word(split, seed);
        let mut gone = vec![target];
        let target = Member::new(target);
        let available = members(split, &gone);
        let mut rebuild = Rebuild::new(GroupId::new(0), split, target, &available).unwrap();
        let mut sum = vec![0; 512];
        for (member, steps) in lost {
            (0..steps).for_each(|_| { read(&mut rebuild, &blocks, &mut sum); });
            gone.push(member);
            rebuild.lost(&members(split, &gone)).unwrap();
        }
        while let Some((source, _)) = read(&mut rebuild, &blocks, &mut sum) {
            prop_assert!(!gone.contains(&source.get()));
        }
        prop_assert!(rebuild.verify(&roots(&blocks)).is_ok());
        prop_assert_eq!(&sum, &blocks[target.as_usize()]);
    }

    #[test]
    fn delta_order_and_duplicates_do_not_change_parity(
        order in vec(0usize..12, 0..40), seed: u64,
    ) {
        let split = split("3+2");
        let mut stream = Seed::new(seed).stream();
        let code = SegmentCode::new(split).unwrap();
        let (mut data, mut parity) = (vec![vec![0; 256]; 3], vec![vec![0; 256]; 2]);
        let mut applied = vec![AppliedChanges::default(); 3];
        let deltas: Vec<(usize, Change, Vec<u8>)> = (0..12u32).map(|number| {
            let bytes = block(256, &mut stream);
            let offset = Offset::new(0);
            let change = Change {
                offset, version: Version::new(number + 1), signature: signature(&bytes),
            };
            (number as usize % 3, change, bytes)
        }).collect();
        for (member, _, bytes) in &deltas {
            data[*member] = xor(&data[*member], bytes);
        }
        for number in order.into_iter().chain(0..12) {
            let (member, change, bytes) = &deltas[number];
            if applied[*member].classify(change).unwrap() == Arrival::New {
                code.delta(*member, bytes, &mut parity).unwrap();
                applied[*member].record(*change);
            }
        }
        prop_assert_eq!(parity, code.fill(&data).unwrap());
    }
}
