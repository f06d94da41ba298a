//! Rebuilds a parity region: the sum of all data, less changes that it had not applied.
//!
//! A data member lists changes that a parity has not confirmed, but it may have applied them all
//! the same: the block on its disk shows which. Not here: physical blocks.

use std::collections::BTreeMap;

use fulgurite_codes::Signature;
use fulgurite_tome_core::consistency::Change;
use fulgurite_tome_core::membership::Membership;
use fulgurite_tome_core::{Layout, Member, Offset, Version};

use super::blocks::Blocks;
use super::data::segment_parity;
use super::{Draft, MemberSlot, Place};
use crate::Result;
use crate::limits::UNCONFIRMED_MAX;

/// A change of a data member that this parity has not confirmed, and its effect here.
struct UnconfirmedChange {
    member: Member,
    change: Change,
    scaled: Signature,
}

/// Returns the region as it must be.
///
/// # Errors
/// None yet.
pub(super) fn draft(
    layout: &Layout,
    slot: &MemberSlot<'_>,
    mut membership: Membership,
    blocks: &Blocks,
) -> Result<Draft> {
    membership.latest = blocks.latest(slot.index);
    let split = slot.group.split();
    let data = split.data() as usize;
    let parity = slot.member.as_usize() - data;
    let mut draft = Draft {
        index: slot.index,
        membership,
        blocks: BTreeMap::new(),
        changes: Vec::new(),
        applied: Vec::new(),
        floors: Vec::new(),
    };
    let mut unconfirmed: BTreeMap<Offset, Vec<UnconfirmedChange>> = BTreeMap::new();
    for (i, region) in slot.others.iter().take(data).enumerate() {
        let Some(region) = region else { continue };
        let Some(list) = region.pending() else { continue };
        let member = Member::at(i);
        draft.floors.push((member, list.floor(region.latest())));
        for (version, pending) in list.iter() {
            let (offset, signature) = (pending.offset, pending.change);
            let change = Change { offset, version, signature };
            if pending.missing.numbers().any(|number| usize::from(number) == parity) {
                let scaled = signature.scale8(split.coefficient(parity, i));
                unconfirmed.entry(offset).or_default().push(UnconfirmedChange {
                    member,
                    change,
                    scaled,
                });
            } else {
                draft.applied.push((member, change));
            }
        }
    }
    for segment in 0..layout.parts().segments {
        let offsets: Vec<Offset> = layout.segment_offsets(segment).collect();
        let mut word = Vec::new();
        for offset in &offsets[..layout.segment().data() as usize] {
            let all = unconfirmed.remove(offset).unwrap_or_default();
            let whole = parity_sum(slot, parity, *offset);
            let (signature, applied) =
                resolve_unconfirmed(whole, all, &candidates(slot, blocks, *offset));
            draft.applied.extend(applied);
            word.push(signature);
        }
        let own = segment_parity(layout.segment(), &word);
        for (offset, signature) in offsets.iter().zip(word.into_iter().chain(own)) {
            let at = (slot.index, *offset);
            let expected = blocks.expected(at, signature);
            if expected.place == Place::Zeros {
                continue;
            }
            let version = blocks.find(at, signature).map(|(version, _)| version);
            draft.blocks.insert(*offset, (version.unwrap_or(draft.membership.latest), expected));
        }
    }
    Ok(draft)
}

/// Returns the signatures that the disk has for an offset, the latest first, and that of zeros.
fn candidates(slot: &MemberSlot<'_>, blocks: &Blocks, offset: Offset) -> Vec<Signature> {
    let found =
        blocks.candidates((slot.index, offset)).map(|(_, signature): (Version, _)| signature);
    found.chain([Signature::ZERO]).collect()
}

/// Returns the sum of all data, with every change of the data members.
fn parity_sum(slot: &MemberSlot<'_>, parity: usize, offset: Offset) -> Signature {
    let split = slot.group.split();
    let data = slot.others.iter().take(split.data() as usize).enumerate();
    let terms = data.filter_map(|(i, region)| {
        Some(region.as_ref()?.tree().block(offset).scale8(split.coefficient(parity, i)))
    });
    terms.fold(Signature::ZERO, |sum, term| sum ^ term)
}

/// Finds the block on the disk that matches, and which unconfirmed changes it includes. If none
/// matches, the block must be rebuilt without any of them: each is then sent and applied.
fn resolve_unconfirmed(
    whole: Signature,
    unconfirmed: Vec<UnconfirmedChange>,
    found: &[Signature],
) -> (Signature, Vec<(Member, Change)>) {
    let without = |set: u32| {
        let lacking = unconfirmed.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
        lacking.fold(whole, |sum, (_, unconfirmed)| sum ^ unconfirmed.scaled)
    };
    let all = unconfirmed.iter().fold(whole, |sum, unconfirmed| sum ^ unconfirmed.scaled);
    let sets = if unconfirmed.len() <= UNCONFIRMED_MAX { 1u32 << unconfirmed.len() } else { 1 };
    for signature in found {
        if let Some(set) = (0..sets).find(|set| without(*set) == *signature) {
            let included =
                unconfirmed.into_iter().enumerate().filter(|(index, _)| set >> index & 1 == 0);
            return (
                *signature,
                included.map(|(_, unconfirmed)| (unconfirmed.member, unconfirmed.change)).collect(),
            );
        }
    }
    (all, Vec::new())
}
