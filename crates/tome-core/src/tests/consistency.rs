//! Trees against their definition; groups that disagree, and which member is located as wrong.

use fulgurite_codes::{Signature, signature};
use fulgurite_units::{ByteCount, RandomStream, Seed};
use proptest::prelude::*;

use super::{block, split, xor};
use crate::consistency::{
    AppliedSummary, Change, Descent, Finding, Nodes, Report, Side, Unconfirmed,
};
use crate::segment::SegmentCode;
use crate::syndrome::{Verdict, locate};
use crate::tree::SignatureTree;
use crate::{CodeParams, Epoch, Layout, Member, Offset, Parts, TomeError, Version};

const BYTES: usize = 256;

/// A group whose members keep their blocks in memory, with trees of the signatures that they
/// recorded.
struct Set {
    group: CodeParams,
    layout: Layout,
    blocks: Vec<Vec<Vec<u8>>>,
    trees: Vec<SignatureTree>,
    reports: Vec<Report>,
    stream: RandomStream,
}

impl Set {
    /// Returns a group with random data and matching parity.
    fn new(group: CodeParams, segment: CodeParams, segments: u32, seed: u64) -> Self {
        let block = ByteCount::new(BYTES as u64);
        let layout =
            Layout::new(Parts { block, segment, segments, regions: 1, spares: 8 }).unwrap();
        let zeros = vec![vec![0; BYTES]; layout.region_blocks() as usize];
        let members = group.total() as usize;
        let tree = SignatureTree::zeros(layout.region_blocks(), BYTES as u64).unwrap();
        let none = AppliedSummary { floor: Version::new(1), above: Vec::new() };
        let report = |member: usize| Report {
            epoch: Epoch::new(1),
            root: Signature::ZERO,
            side: if member < group.data() as usize {
                Side::Data { latest: Version::NONE, unconfirmed: Vec::new() }
            } else {
                Side::Parity(vec![none.clone(); group.data() as usize])
            },
        };
        let mut set = Self {
            group,
            layout,
            blocks: vec![zeros; members],
            trees: vec![tree; members],
            reports: (0..members).map(report).collect(),
            stream: Seed::new(seed).stream(),
        };
        for member in 0..group.data() as usize {
            for number in 0..layout.region_data_blocks() {
                let change = set.draw();
                set.write(member, layout.data_offset(number), &change);
                set.apply_to_all(member, layout.data_offset(number), &change);
            }
        }
        set
    }

    fn draw(&mut self) -> Vec<u8> {
        block(BYTES, &mut self.stream)
    }

    /// Changes a block of a member, and the parity of its segment.
    fn write(&mut self, member: usize, offset: Offset, change: &[u8]) {
        let at = self.layout.in_segment(offset).unwrap();
        let split = self.layout.segment();
        let mut parity = vec![vec![0; BYTES]; split.parity() as usize];
        SegmentCode::new(split).unwrap().delta(at.position as usize, change, &mut parity).unwrap();
        self.add(member, offset, change);
        let offsets = self.layout.segment_offsets(at.segment).skip(split.data() as usize);
        for (offset, change) in offsets.zip(parity) {
            self.add(member, offset, &change);
        }
    }

    fn add(&mut self, member: usize, offset: Offset, change: &[u8]) {
        let block = &mut self.blocks[member][offset.as_usize()];
        *block = xor(block, change);
        self.trees[member].update(offset, signature(change)).unwrap();
    }

    fn apply(&mut self, j: usize, member: usize, offset: Offset, change: &[u8]) {
        let mut scaled = vec![vec![0; BYTES]; self.group.parity() as usize];
        SegmentCode::new(self.group).unwrap().delta(member, change, &mut scaled).unwrap();
        self.write(self.group.data() as usize + j, offset, &scaled[j]);
    }

    fn apply_to_all(&mut self, member: usize, offset: Offset, change: &[u8]) {
        (0..self.group.parity() as usize).for_each(|j| self.apply(j, member, offset, change));
    }

    fn reports(&self) -> Vec<Report> {
        let report_of = |(report, tree): (&Report, &SignatureTree)| Report {
            root: tree.root(),
            ..report.clone()
        };
        self.reports.iter().zip(&self.trees).map(report_of).collect()
    }

    fn answers(&self, level: u32, wanted: &[u32]) -> Vec<Nodes> {
        let node = |tree: &SignatureTree, index: u32| tree.node(level as usize, index as usize);
        let nodes = |(tree, report): (&SignatureTree, &Report)| Nodes {
            epoch: report.epoch,
            signatures: wanted.iter().map(|index| node(tree, *index).unwrap()).collect(),
        };
        self.trees.iter().zip(&self.reports).map(nodes).collect()
    }

    fn check(&self) -> Descent {
        let mut descent = Descent::new(self.group, self.layout, &self.reports()).unwrap();
        while let Some((level, wanted)) = descent.wants() {
            let answers = self.answers(level, wanted);
            descent.take(&answers).unwrap();
        }
        descent
    }

    /// Returns the findings of a check as offsets and verdicts.
    fn wrong(&self) -> Vec<(u32, Verdict)> {
        let findings = self.check().findings().to_vec();
        findings.iter().map(|Finding { offset, verdict }| (offset.get(), *verdict)).collect()
    }
}

fn located(member: usize) -> Verdict {
    Verdict::Wrong(Member::at(member))
}

#[test]
fn a_node_is_the_signature_of_all_bytes_below_it() {
    let mut stream = Seed::new(1).stream();
    for count in [1usize, 2, 3, 5, 8, 13, 64] {
        let blocks: Vec<Vec<u8>> = (0..count).map(|_| block(BYTES, &mut stream)).collect();
        let leaves = blocks.iter().map(|bytes| signature(bytes)).collect();
        let tree = SignatureTree::new(leaves, BYTES as u64).unwrap();
        assert_eq!(tree.root(), signature(&blocks.concat()), "{count} blocks");
        assert_eq!(tree.depth(), count.next_power_of_two().trailing_zeros() as usize);
        let last = tree.node(0, count - 1).unwrap();
        assert_eq!(last, signature(&blocks[count - 1]));
        assert_eq!(tree.node(0, count), None);
    }
}

#[test]
fn block_takes_24_metadata_bytes() {
    let blocks = 100_000u32;
    let tree = SignatureTree::zeros(blocks, BYTES as u64).unwrap();
    let others = blocks as usize * (size_of::<Version>() + size_of::<crate::PhysicalBlock>());
    // Levels of odd numbers round up: a few nodes for a whole region.
    let bytes = tree.heap_bytes() + others;
    assert!(bytes <= blocks as usize * 24 + 17 * 8, "{bytes}");
}

#[test]
fn descent_exchanges_208_signatures_instead_of_1024() {
    let mut set = Set::new(split("13+3"), split("62+2"), 1, 2);
    let agreed = set.check();
    assert_eq!((agreed.exchanged(), agreed.findings()), (16, &[][..]));
    // The last data block of the segment, and no parity follows: only that block is wrong.
    let change = set.draw();
    set.add(4, Offset::new(37), &change);
    let found = set.check();
    assert_eq!(found.exchanged(), 208);
    assert_eq!(16 * u64::from(set.layout.region_blocks()), 1024);
    assert_eq!(set.wrong(), [(37, located(4))]);
}

#[test]
fn swapped_blocks_are_detected() {
    let mut set = Set::new(split("13+3"), split("6+2"), 4, 3);
    let (a, b) = (Offset::new(9), Offset::new(26));
    let difference = xor(&set.blocks[7][9], &set.blocks[7][26]);
    set.add(7, a, &difference);
    set.add(7, b, &difference);
    let sum =
        |blocks: &[Vec<u8>]| blocks.iter().fold(vec![0; BYTES], |sum, block| xor(&sum, block));
    let before = Set::new(split("13+3"), split("6+2"), 4, 3);
    assert_eq!(sum(&set.blocks[7]), sum(&before.blocks[7]), "a plain sum does not detect the swap");
    assert_eq!(set.wrong(), [(9, located(7)), (26, located(7))]);
}

#[test]
fn dropped_or_duplicated_delta_locates_the_parity() {
    for twice in [false, true] {
        let mut set = Set::new(split("13+3"), split("6+2"), 4, 4);
        let (offset, change) = (Offset::new(16), set.draw());
        set.write(2, offset, &change);
        [0, 2].into_iter().for_each(|j| set.apply(j, 2, offset, &change));
        (0..2).filter(|_| twice).for_each(|_| set.apply(1, 2, offset, &change));
        // The parity's own segment parity was updated too, so those two blocks are wrong as well.
        assert_eq!(set.wrong(), [16, 22, 23].map(|offset| (offset, located(14))), "{twice}");
    }
}

#[test]
fn stale_block_locates_its_tome() {
    let mut set = Set::new(split("13+3"), split("6+2"), 4, 5);
    let (offset, change) = (Offset::new(3), set.draw());
    set.apply_to_all(11, offset, &change);
    assert_eq!(set.wrong(), [3, 6, 7].map(|offset| (offset, located(11))));
    // Its own segment is consistent, so only the group can detect it.
    let signatures: Vec<Signature> =
        set.layout.segment_offsets(0).map(|offset| set.trees[11].block(offset)).collect();
    assert_eq!(locate(set.layout.segment(), &signatures), Ok(Verdict::Consistent));
}

#[test]
fn single_parity_detects_and_segment_locates() {
    let mut set = Set::new(split("3+1"), split("6+2"), 1, 6);
    let change = set.draw();
    set.add(1, Offset::new(5), &change);
    assert_eq!(set.wrong(), [(5, Verdict::Unnamed)]);
    let signatures = |member: usize| -> Vec<Signature> {
        set.layout.segment_offsets(0).map(|offset| set.trees[member].block(offset)).collect()
    };
    let segments = (0..4).map(|member| locate(set.layout.segment(), &signatures(member)).unwrap());
    let consistent = Verdict::Consistent;
    let found: Vec<Verdict> = segments.collect();
    assert_eq!(
        found,
        [consistent, located(5), consistent, consistent],
        "block 5 on tome 1 is wrong"
    );
}

/// Makes a delta in flight, as the members that know of it report it.
fn listed(set: &mut Set, missing: &[u8], applied_at: Option<usize>) -> (Offset, Vec<u8>) {
    let (offset, bytes) = (Offset::new(8), set.draw());
    let change = Change { offset, version: Version::new(1), signature: signature(&bytes) };
    let unconfirmed = vec![Unconfirmed { change, missing: missing.to_vec() }];
    set.reports[2].side = Side::Data { latest: Version::new(1), unconfirmed };
    if let Some(j) = applied_at {
        let Side::Parity(folded) = &mut set.reports[set.group.data() as usize + j].side else {
            panic!("a parity")
        };
        folded[2].above.push(change);
    }
    (offset, bytes)
}

#[test]
fn in_flight_delta_is_accepted_and_hides_nothing() {
    let mut set = Set::new(split("13+3"), split("6+2"), 4, 7);
    let (offset, change) = listed(&mut set, &[0, 1, 2], Some(1));
    set.write(2, offset, &change);
    set.apply(1, 2, offset, &change);
    assert_eq!(set.wrong(), [], "two parities lack it, and the answer of one was lost");
    let other = set.draw();
    set.add(5, offset, &other);
    assert_eq!(set.wrong(), [(8, located(5))], "the same block of another tome");
}

#[test]
fn delta_applied_before_the_report_is_accepted() {
    let mut set = Set::new(split("13+3"), split("6+2"), 4, 8);
    let (offset, change) = listed(&mut set, &[], Some(0));
    set.reports[2].side = Side::Data { latest: Version::NONE, unconfirmed: Vec::new() };
    set.apply(0, 2, offset, &change);
    assert_eq!(set.wrong(), []);
}

#[test]
fn unlisted_change_is_found_as_lost() {
    let mut set = Set::new(split("13+3"), split("6+2"), 4, 9);
    // Parity 0 confirmed it but does not have it.
    let (offset, change) = listed(&mut set, &[1, 2], None);
    set.write(2, offset, &change);
    assert_eq!(set.wrong(), [8, 14, 15].map(|offset| (offset, located(13))));
}

#[test]
fn region_change_restarts_a_check() {
    let mut set = Set::new(split("3+2"), split("6+2"), 2, 10);
    let change = set.draw();
    set.add(1, Offset::new(5), &change);
    let mut descent = Descent::new(set.group, set.layout, &set.reports()).unwrap();
    let (level, wanted) = descent.wants().unwrap();
    set.reports[3].epoch = Epoch::new(2);
    let answers = set.answers(level, wanted);
    assert_eq!(descent.take(&answers), Err(TomeError::Moved));
    let few = Descent::new(set.group, set.layout, &set.reports()[1..]);
    assert!(matches!(few, Err(TomeError::Count { what: "reports", have: 4, need: 5 })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn updated_tree_equals_a_fresh_one(
        changes in prop::collection::vec((0usize..21, any::<u64>()), 1..9),
    ) {
        let mut blocks = vec![vec![0; BYTES]; 21];
        let mut tree = SignatureTree::zeros(21, BYTES as u64).unwrap();
        for (position, seed) in changes {
            let new = block(BYTES, &mut Seed::new(seed).stream());
            let change = signature(&xor(&blocks[position], &new));
            tree.update(Offset::at(position), change).unwrap();
            blocks[position] = new;
        }
        let leaves = blocks.iter().map(|bytes| signature(bytes)).collect();
        prop_assert_eq!(tree, SignatureTree::new(leaves, BYTES as u64).unwrap());
    }

    #[test]
    fn any_single_wrong_member_is_located(
        member in 0usize..16, offset in 0u32..32, seed: u64,
    ) {
        let mut set = Set::new(split("13+3"), split("6+2"), 4, seed);
        let change = set.draw();
        set.add(member, Offset::new(offset), &change);
        prop_assert_eq!(set.wrong(), [(offset, located(member))]);
    }
}
