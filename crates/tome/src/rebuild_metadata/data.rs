//! Rebuilds a data region from what parities know, and from what its disk has beyond that.
//!
//! ```text
//! parity j     its block, less what other members contribute, is this one's block as it applied it
//!              + changes of this member that other parities know  =  the block that all know of
//! object       recorded with another signature: put, and not known to any parity yet
//! ```
//!
//! Not here: physical blocks.

use std::collections::BTreeMap;

use fulgurite_codes::Signature;
use fulgurite_tome_core::consistency::{AppliedSummary, Change};
use fulgurite_tome_core::membership::Membership;
use fulgurite_tome_core::metadata::Role;
use fulgurite_tome_core::pending::Parities;
use fulgurite_tome_core::{CodeParams, Layout, Offset, RegionIndex, TomeError, Version};

use super::blocks::Blocks;
use super::{Draft, ExpectedBlock, MemberSlot, PendingChange, Place};
use crate::Result;

/// What parities know of a data member.
struct ParityKnowledge {
    /// By parity: changes applied of each data member.
    applied: Vec<Vec<AppliedSummary>>,
    /// Changes of this member that any parity knows.
    changes: BTreeMap<Offset, BTreeMap<Version, Change>>,
    /// Changes of other data members that parities may lack.
    others: BTreeMap<Offset, Vec<(usize, Version, Signature)>>,
    /// By parity: the inverse of this member's coefficient.
    inverse: Vec<u8>,
}

/// Returns the region as it must be.
///
/// # Errors
/// When versions are used up.
pub(super) fn draft(
    layout: &Layout,
    slot: &MemberSlot<'_>,
    mut membership: Membership,
    blocks: &mut Blocks,
) -> Result<Draft> {
    let known = parity_knowledge(slot);
    let known_latest = known.latest(slot.member.as_usize());
    membership.latest = blocks.latest(slot.index).max(known_latest);
    let mut draft = Draft {
        index: slot.index,
        membership,
        blocks: BTreeMap::new(),
        changes: Vec::new(),
        applied: Vec::new(),
        floors: Vec::new(),
    };
    for segment in 0..layout.parts().segments {
        let offsets: Vec<Offset> = layout.segment_offsets(segment).collect();
        let data = layout.segment().data() as usize;
        let all: Vec<Signature> =
            offsets[..data].iter().map(|offset| known.block(slot, *offset)).collect();
        let latest_signatures = latest_signatures(layout, (slot.index, segment), &all, blocks);
        for ((offset, before), latest) in offsets.iter().zip(all).zip(&latest_signatures) {
            add_pending(slot, &known, blocks, &mut draft, (*offset, before, *latest))?;
        }
        let parity = segment_parity(layout.segment(), &latest_signatures);
        for (offset, signature) in offsets.iter().zip(latest_signatures.into_iter().chain(parity)) {
            let at = (slot.index, *offset);
            blocks.choose(at, signature);
            let mut expected = blocks.expected(at, signature);
            if blocks.claim(at).is_some() {
                // Blocks of an object were written, even if they are zeros.
                expected = as_written(expected);
            }
            if expected.place == Place::Zeros {
                continue;
            }
            let version = blocks.find(at, signature).map(|(version, _)| version);
            draft.blocks.insert(*offset, (version.unwrap_or(draft.membership.latest), expected));
        }
    }
    Ok(draft)
}

/// Returns the signatures of the data blocks of a segment: those of objects that no parity knows,
/// where the disk has the blocks or their segment can rebuild them; else those that parities know.
fn latest_signatures(
    layout: &Layout,
    (region, segment): (RegionIndex, u32),
    known: &[Signature],
    blocks: &Blocks,
) -> Vec<Signature> {
    let offsets: Vec<Offset> = layout.segment_offsets(segment).collect();
    let at = |position: usize| (region, offsets[position]);
    let claim = |position: usize| blocks.claim(at(position)).unwrap_or(known[position]);
    let mut latest_signatures: Vec<Signature> = (0..known.len()).map(claim).collect();
    let is_missing = |position: usize, signature: Signature| {
        blocks.expected(at(position), signature).place == Place::Missing
    };
    let parity = segment_parity(layout.segment(), &latest_signatures);
    let word = latest_signatures.iter().copied().chain(parity).enumerate();
    let missing = word.filter(|(position, signature)| is_missing(*position, *signature)).count();
    if missing > layout.segment().parity() as usize {
        for (position, latest) in latest_signatures.iter_mut().enumerate() {
            if is_missing(position, *latest) {
                *latest = known[position];
            }
        }
    }
    latest_signatures
}

/// Returns the signatures of a segment's parity.
pub(super) fn segment_parity(split: CodeParams, data: &[Signature]) -> Vec<Signature> {
    let sum = |parity: u32| {
        let terms = data.iter().enumerate();
        let terms = terms.map(|(i, s)| s.scale8(split.coefficient(parity as usize, i)));
        terms.fold(Signature::ZERO, |sum, term| sum ^ term)
    };
    (0..split.parity()).map(sum).collect()
}

/// Adds the changes of a block that parities lack.
fn add_pending(
    slot: &MemberSlot<'_>,
    known: &ParityKnowledge,
    blocks: &Blocks,
    draft: &mut Draft,
    (offset, before, latest): (Offset, Signature, Signature),
) -> Result<()> {
    let at = (slot.index, offset);
    let split = slot.group.split();
    let lacking = |version: Version| {
        let own = slot.member.as_usize();
        let mut missing = Parities::all(split);
        for parity in Parities::all(split).numbers() {
            if known.applied[usize::from(parity)][own].has(version) {
                missing = missing.without(parity);
            }
        }
        missing
    };
    let changes = known.changes.get(&offset).into_iter().flatten();
    let changes: Vec<(Version, Signature, Parities)> = changes
        .map(|(version, change)| (*version, change.signature, lacking(*version)))
        .filter(|(.., missing)| !missing.is_empty())
        .collect();
    let mut state = changes.iter().fold(before, |sum, (_, change, _)| sum ^ *change);
    let expected = |signature: Signature| -> ExpectedBlock { blocks.expected(at, signature) };
    for (version, change, missing) in changes {
        let (old, new) = (expected(state), as_written(expected(state ^ change)));
        draft.changes.push(PendingChange { version, offset, old, new, missing, is_sent: true });
        state ^= change;
    }
    if latest != before {
        let full = TomeError::Full { what: "versions of a region" };
        let version = draft.membership.latest.next().ok_or(full)?;
        draft.membership.latest = version;
        let (old, new) = (expected(before), as_written(expected(latest)));
        let missing = Parities::all(split);
        draft.changes.push(PendingChange { version, offset, old, new, missing, is_sent: false });
    }
    Ok(())
}

/// Marks the result of a change as written, even if it is zeros.
fn as_written(expected: ExpectedBlock) -> ExpectedBlock {
    let is_zeros = expected.place == Place::Zeros;
    ExpectedBlock { place: if is_zeros { Place::Missing } else { expected.place }, ..expected }
}

fn parity_knowledge(slot: &MemberSlot<'_>) -> ParityKnowledge {
    let split = slot.group.split();
    let data = split.data() as usize;
    let mut known = ParityKnowledge {
        applied: Vec::new(),
        changes: BTreeMap::new(),
        others: BTreeMap::new(),
        inverse: Vec::new(),
    };
    for (j, region) in slot.others.iter().skip(data).enumerate() {
        let Some(Role::Parity { applied, stored }) = region.map(|region| region.role()) else {
            continue;
        };
        let summaries: Vec<AppliedSummary> =
            applied.iter().map(|applied| applied.summary()).collect();
        let own = stored.iter().filter(|((member, _), _)| *member == slot.member);
        let stored = own.map(|(_, stored)| stored.change);
        let above = summaries.get(slot.member.as_usize()).into_iter().flat_map(|f| &f.above);
        for change in stored.chain(above.copied()) {
            known.changes.entry(change.offset).or_default().insert(change.version, change);
        }
        known.applied.push(summaries);
        known.inverse.push(inverse(split.coefficient(j, slot.member.as_usize())));
    }
    for (i, region) in slot.others.iter().take(data).enumerate() {
        for (version, pending) in region.iter().filter_map(|r| r.pending()).flat_map(|l| l.iter()) {
            known.others.entry(pending.offset).or_default().push((i, version, pending.change));
        }
    }
    known
}

impl ParityKnowledge {
    /// Returns the last version that parities know.
    fn latest(&self, own: usize) -> Version {
        let below = |summaries: &Vec<AppliedSummary>| {
            let floor = summaries.get(own).map_or(0, |summary| summary.floor.get());
            Version::new(floor.saturating_sub(1))
        };
        let floors = self.applied.iter().map(below);
        let changes = self.changes.values().flat_map(|all| all.keys().copied());
        floors.chain(changes).max().unwrap_or(Version::NONE)
    }

    /// Returns the signature of a block with all changes that any parity knows; where they
    /// disagree, by majority vote.
    fn block(&self, slot: &MemberSlot<'_>, offset: Offset) -> Signature {
        let mut votes: BTreeMap<Signature, usize> = BTreeMap::new();
        for parity in 0..self.applied.len() {
            *votes.entry(self.seen_by_parity(slot, offset, parity)).or_default() += 1;
        }
        let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
        most.map_or(Signature::ZERO, |(signature, _)| signature)
    }

    /// Returns the same according to one parity.
    fn seen_by_parity(&self, slot: &MemberSlot<'_>, offset: Offset, parity: usize) -> Signature {
        let (split, own) = (slot.group.split(), slot.member.as_usize());
        let block = |member: usize| {
            let region = slot.others.get(member).copied().flatten();
            region.map_or(Signature::ZERO, |region| region.tree().block(offset))
        };
        let data = split.data() as usize;
        let summaries = &self.applied[parity];
        let terms = (0..data).filter(|i| *i != own);
        let terms = terms.map(|i| block(i).scale8(split.coefficient(parity, i)));
        let late = self.others.get(&offset).into_iter().flatten();
        let late = late.filter(|(i, version, _)| !summaries[*i].has(*version));
        let late = late.map(|(i, _, change)| change.scale8(split.coefficient(parity, *i)));
        let sum = terms.chain(late).fold(block(data + parity), |sum, term| sum ^ term);
        let own_changes = self.changes.get(&offset).into_iter().flatten();
        let lacking = own_changes.filter(|(version, _)| !summaries[own].has(**version));
        let before = sum.scale8(self.inverse[parity]);
        lacking.fold(before, |sum, (_, change)| sum ^ change.signature)
    }
}

/// Returns the multiplicative inverse.
fn inverse(factor: u8) -> u8 {
    let one = Signature([1, 2, 3, 4, 5, 6, 7, 8]);
    let product = one.scale8(factor);
    let is_inverse = |candidate: &u8| product.scale8(*candidate) == one;
    (1..=u8::MAX).find(is_inverse).expect("a factor of a code is not zero")
}
