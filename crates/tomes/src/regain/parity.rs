//! Rebuilds a parity region: the sum of all data, less changes that it had not applied.
//!
//! A data member lists changes that a parity has not confirmed, but it may have applied them all
//! the same: the block on its disk shows which. Not here: physical blocks.

use std::collections::BTreeMap;

use fulgurite_codes::Signature;
use fulgurite_tome::consistency::Change;
use fulgurite_tome::stood::Stood;
use fulgurite_tome::{Layout, Member, Offset, Version};

use super::blocks::Blocks;
use super::data::parity_of;
use super::{Draft, Place, Seat};
use crate::Result;
use crate::limits::UNSURE_MAX;

/// A change of a data member that this parity has not confirmed, and its effect here.
struct Unsure {
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
    seat: &Seat<'_>,
    mut stood: Stood,
    blocks: &Blocks,
) -> Result<Draft> {
    stood.latest = blocks.latest(seat.index);
    let split = seat.group.split();
    let data = split.data() as usize;
    let parity = seat.member.as_usize() - data;
    let mut draft = Draft {
        index: seat.index,
        stood,
        blocks: BTreeMap::new(),
        changes: Vec::new(),
        folded: Vec::new(),
        floors: Vec::new(),
    };
    let mut unsure: BTreeMap<Offset, Vec<Unsure>> = BTreeMap::new();
    for (i, region) in seat.others.iter().take(data).enumerate() {
        let Some(region) = region else { continue };
        let Some(list) = region.pending() else { continue };
        let member = Member::at(i);
        draft.floors.push((member, list.floor(region.latest())));
        for (version, pending) in list.iter() {
            let (offset, signature) = (pending.offset, pending.change);
            let change = Change { offset, version, signature };
            if pending.missing.numbers().any(|of| usize::from(of) == parity) {
                let scaled = signature.scale8(split.coefficient(parity, i));
                unsure.entry(offset).or_default().push(Unsure { member, change, scaled });
            } else {
                draft.folded.push((member, change));
            }
        }
    }
    for segment in 0..layout.parts().segments {
        let offsets: Vec<Offset> = layout.segment_offsets(segment).collect();
        let mut word = Vec::new();
        for offset in &offsets[..layout.segment().data() as usize] {
            let all = unsure.remove(offset).unwrap_or_default();
            let whole = sum_of(seat, parity, *offset);
            let (signature, folded) = judge(whole, all, &blocks_of(seat, blocks, *offset));
            draft.folded.extend(folded);
            word.push(signature);
        }
        let own = parity_of(layout.segment(), &word);
        for (offset, signature) in offsets.iter().zip(word.into_iter().chain(own)) {
            let at = (seat.index, *offset);
            let wanted = blocks.wanted(at, signature);
            if wanted.place == Place::Zeros {
                continue;
            }
            let version = blocks.with(at, signature).map(|(version, _)| version);
            draft.blocks.insert(*offset, (version.unwrap_or(draft.stood.latest), wanted));
        }
    }
    Ok(draft)
}

/// Returns the signatures that the disk has for an offset, the latest first, and that of zeros.
fn blocks_of(seat: &Seat<'_>, blocks: &Blocks, offset: Offset) -> Vec<Signature> {
    let found = blocks.of((seat.index, offset)).map(|(_, signature): (Version, _)| signature);
    found.chain([Signature::ZERO]).collect()
}

/// Returns the sum of all data, with every change of the data members.
fn sum_of(seat: &Seat<'_>, parity: usize, offset: Offset) -> Signature {
    let split = seat.group.split();
    let data = seat.others.iter().take(split.data() as usize).enumerate();
    let terms = data.filter_map(|(i, region)| {
        Some(region.as_ref()?.tree().block(offset).scale8(split.coefficient(parity, i)))
    });
    terms.fold(Signature::ZERO, |sum, term| sum ^ term)
}

/// Finds the block on the disk that matches, and which unconfirmed changes it includes. If none
/// matches, the block must be rebuilt without any of them: each is then sent and applied.
fn judge(
    whole: Signature,
    unsure: Vec<Unsure>,
    found: &[Signature],
) -> (Signature, Vec<(Member, Change)>) {
    let without = |set: u32| {
        let lacking = unsure.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        lacking.fold(whole, |sum, (_, unsure)| sum ^ unsure.scaled)
    };
    let all = unsure.iter().fold(whole, |sum, unsure| sum ^ unsure.scaled);
    let sets = if unsure.len() <= UNSURE_MAX { 1u32 << unsure.len() } else { 1 };
    for signature in found {
        if let Some(set) = (0..sets).find(|set| without(*set) == *signature) {
            let has = unsure.into_iter().enumerate().filter(|(at, _)| set >> at & 1 == 0);
            return (*signature, has.map(|(_, unsure)| (unsure.member, unsure.change)).collect());
        }
    }
    (all, Vec::new())
}
