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
use fulgurite_tome::awake::Role;
use fulgurite_tome::consistency::{Change, Folded};
use fulgurite_tome::pending::Parities;
use fulgurite_tome::stood::Stood;
use fulgurite_tome::{Layout, Offset, RegionIndex, Split, TomeError, Version};

use super::blocks::Blocks;
use super::{Draft, Place, Seat, Waiting, Wanted};
use crate::Result;

/// What parities know of a data member.
struct Known {
    /// By parity: changes applied of each data member.
    folded: Vec<Vec<Folded>>,
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
    seat: &Seat<'_>,
    mut stood: Stood,
    blocks: &mut Blocks,
) -> Result<Draft> {
    let known = known(seat);
    let known_latest = known.latest(seat.member.as_usize());
    stood.latest = blocks.latest(seat.index).max(known_latest);
    let mut draft = Draft {
        index: seat.index,
        stood,
        blocks: BTreeMap::new(),
        changes: Vec::new(),
        folded: Vec::new(),
        floors: Vec::new(),
    };
    for segment in 0..layout.parts().segments {
        let offsets: Vec<Offset> = layout.segment_offsets(segment).collect();
        let data = layout.segment().data() as usize;
        let all: Vec<Signature> =
            offsets[..data].iter().map(|offset| known.block(seat, *offset)).collect();
        let tops = tops(layout, (seat.index, segment), &all, blocks);
        for ((offset, before), top) in offsets.iter().zip(all).zip(&tops) {
            waiting(seat, &known, blocks, &mut draft, (*offset, before, *top))?;
        }
        let parity = parity_of(layout.segment(), &tops);
        for (offset, signature) in offsets.iter().zip(tops.into_iter().chain(parity)) {
            let at = (seat.index, *offset);
            blocks.choose(at, signature);
            let mut wanted = blocks.wanted(at, signature);
            if blocks.claim(at).is_some() {
                // Blocks of an object were written, even if they are zeros.
                wanted = written(wanted);
            }
            if wanted.place == Place::Zeros {
                continue;
            }
            let version = blocks.with(at, signature).map(|(version, _)| version);
            draft.blocks.insert(*offset, (version.unwrap_or(draft.stood.latest), wanted));
        }
    }
    Ok(draft)
}

/// Returns the signatures of the data blocks of a segment: those of objects that no parity knows,
/// where the disk has the blocks or their segment can rebuild them; else those that parities know.
fn tops(
    layout: &Layout,
    (region, segment): (RegionIndex, u32),
    known: &[Signature],
    blocks: &Blocks,
) -> Vec<Signature> {
    let offsets: Vec<Offset> = layout.segment_offsets(segment).collect();
    let at = |position: usize| (region, offsets[position]);
    let claim = |position: usize| blocks.claim(at(position)).unwrap_or(known[position]);
    let mut tops: Vec<Signature> = (0..known.len()).map(claim).collect();
    let is_missing = |position: usize, signature: Signature| {
        blocks.wanted(at(position), signature).place == Place::Missing
    };
    let parity = parity_of(layout.segment(), &tops);
    let word = tops.iter().copied().chain(parity).enumerate();
    let missing = word.filter(|(position, signature)| is_missing(*position, *signature)).count();
    if missing > layout.segment().parity() as usize {
        for (position, top) in tops.iter_mut().enumerate() {
            if is_missing(position, *top) {
                *top = known[position];
            }
        }
    }
    tops
}

/// Returns the signatures of a segment's parity.
pub(super) fn parity_of(split: Split, data: &[Signature]) -> Vec<Signature> {
    let sum = |parity: u32| {
        let terms = data.iter().enumerate();
        let terms = terms.map(|(i, s)| s.scale8(split.coefficient(parity as usize, i)));
        terms.fold(Signature::ZERO, |sum, term| sum ^ term)
    };
    (0..split.parity()).map(sum).collect()
}

/// Adds the changes of a block that parities lack.
fn waiting(
    seat: &Seat<'_>,
    known: &Known,
    blocks: &Blocks,
    draft: &mut Draft,
    (offset, before, top): (Offset, Signature, Signature),
) -> Result<()> {
    let at = (seat.index, offset);
    let split = seat.group.split();
    let lacking = |version: Version| {
        let own = seat.member.as_usize();
        let mut missing = Parities::all(split);
        for parity in Parities::all(split).numbers() {
            if known.folded[usize::from(parity)][own].has(version) {
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
    let wanted = |signature: Signature| -> Wanted { blocks.wanted(at, signature) };
    for (version, change, missing) in changes {
        let (old, new) = (wanted(state), written(wanted(state ^ change)));
        draft.changes.push(Waiting { version, offset, old, new, missing, is_sent: true });
        state ^= change;
    }
    if top != before {
        let full = TomeError::Full { what: "versions of a region" };
        let version = draft.stood.latest.next().ok_or(full)?;
        draft.stood.latest = version;
        let (old, new) = (wanted(before), written(wanted(top)));
        let missing = Parities::all(split);
        draft.changes.push(Waiting { version, offset, old, new, missing, is_sent: false });
    }
    Ok(())
}

/// Marks the result of a change as written, even if it is zeros.
fn written(wanted: Wanted) -> Wanted {
    let is_zeros = wanted.place == Place::Zeros;
    Wanted { place: if is_zeros { Place::Missing } else { wanted.place }, ..wanted }
}

fn known(seat: &Seat<'_>) -> Known {
    let split = seat.group.split();
    let data = split.data() as usize;
    let mut known = Known {
        folded: Vec::new(),
        changes: BTreeMap::new(),
        others: BTreeMap::new(),
        inverse: Vec::new(),
    };
    for (j, region) in seat.others.iter().skip(data).enumerate() {
        let Some(Role::Parity { applied, stored }) = region.map(|region| region.role()) else {
            continue;
        };
        let folded: Vec<Folded> = applied.iter().map(|applied| applied.folded()).collect();
        let own = stored.iter().filter(|((member, _), _)| *member == seat.member);
        let stored = own.map(|(_, stored)| stored.change);
        let above = folded.get(seat.member.as_usize()).into_iter().flat_map(|f| &f.above);
        for change in stored.chain(above.copied()) {
            known.changes.entry(change.offset).or_default().insert(change.version, change);
        }
        known.folded.push(folded);
        known.inverse.push(inverse(split.coefficient(j, seat.member.as_usize())));
    }
    for (i, region) in seat.others.iter().take(data).enumerate() {
        for (version, pending) in region.iter().filter_map(|r| r.pending()).flat_map(|l| l.iter()) {
            known.others.entry(pending.offset).or_default().push((i, version, pending.change));
        }
    }
    known
}

impl Known {
    /// Returns the last version that parities know.
    fn latest(&self, own: usize) -> Version {
        let below = |folded: &Vec<Folded>| {
            let floor = folded.get(own).map_or(0, |folded| folded.floor.get());
            Version::new(floor.saturating_sub(1))
        };
        let floors = self.folded.iter().map(below);
        let changes = self.changes.values().flat_map(|all| all.keys().copied());
        floors.chain(changes).max().unwrap_or(Version::NONE)
    }

    /// Returns the signature of a block with all changes that any parity knows; where they
    /// disagree, by majority vote.
    fn block(&self, seat: &Seat<'_>, offset: Offset) -> Signature {
        let mut votes: BTreeMap<Signature, usize> = BTreeMap::new();
        for parity in 0..self.folded.len() {
            *votes.entry(self.seen(seat, offset, parity)).or_default() += 1;
        }
        let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
        most.map_or(Signature::ZERO, |(signature, _)| signature)
    }

    /// Returns the same according to one parity.
    fn seen(&self, seat: &Seat<'_>, offset: Offset, parity: usize) -> Signature {
        let (split, own) = (seat.group.split(), seat.member.as_usize());
        let block = |member: usize| {
            let region = seat.others.get(member).copied().flatten();
            region.map_or(Signature::ZERO, |region| region.tree().block(offset))
        };
        let data = split.data() as usize;
        let folded = &self.folded[parity];
        let terms = (0..data).filter(|i| *i != own);
        let terms = terms.map(|i| block(i).scale8(split.coefficient(parity, i)));
        let late = self.others.get(&offset).into_iter().flatten();
        let late = late.filter(|(i, version, _)| !folded[*i].has(*version));
        let late = late.map(|(i, _, change)| change.scale8(split.coefficient(parity, *i)));
        let sum = terms.chain(late).fold(block(data + parity), |sum, term| sum ^ term);
        let own_changes = self.changes.get(&offset).into_iter().flatten();
        let lacking = own_changes.filter(|(version, _)| !folded[own].has(**version));
        let before = sum.scale8(self.inverse[parity]);
        lacking.fold(before, |sum, (_, change)| sum ^ change.signature)
    }
}

/// Returns the multiplicative inverse.
fn inverse(factor: u8) -> u8 {
    let one = Signature([1, 2, 3, 4, 5, 6, 7, 8]);
    let product = one.scale8(factor);
    let undoes = |of: &u8| product.scale8(*of) == one;
    (1..=u8::MAX).find(undoes).expect("a factor of a code is not zero")
}
