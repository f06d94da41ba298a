//! Blocks found on a disk by their offsets, and the objects that claim them.
//!
//! Not here: which of them are valid.

use std::collections::BTreeMap;

use fulgurite_codes::Signature;
use fulgurite_tome_core::{Offset, PhysicalBlock, RegionIndex, Version};

use super::{ExpectedBlock, Place};
use crate::inventory::Found;
use crate::piece_store::ObjectLocation;

/// A block of a region.
type BlockAddress = (RegionIndex, Offset);

/// What the disk has, what objects claim, and what was chosen.
pub(super) struct Blocks {
    /// By version, the latest last.
    found: BTreeMap<BlockAddress, Vec<(Version, Signature, PhysicalBlock)>>,
    /// Signatures with which objects were recorded.
    claims: BTreeMap<BlockAddress, Vec<Signature>>,
    chosen: BTreeMap<BlockAddress, Signature>,
}

impl Blocks {
    pub(super) fn new(all: Vec<Found>, pieces: &BTreeMap<String, ObjectLocation>) -> Self {
        let mut found: BTreeMap<BlockAddress, Vec<_>> = BTreeMap::new();
        for Found { physical_block, label, signature } in all {
            let at = (label.region, label.offset);
            found.entry(at).or_default().push((label.version, signature, physical_block));
        }
        found.values_mut().for_each(|blocks| blocks.sort_unstable());
        let mut claims: BTreeMap<BlockAddress, Vec<Signature>> = BTreeMap::new();
        for ObjectLocation { object, signatures } in pieces.values() {
            for (at, signature) in object.blocks.iter().zip(signatures) {
                claims.entry(*at).or_default().push(Signature(*signature));
            }
        }
        Self { found, claims, chosen: BTreeMap::new() }
    }

    /// Returns the blocks found for an offset, the latest first.
    pub(super) fn candidates(
        &self,
        at: BlockAddress,
    ) -> impl Iterator<Item = (Version, Signature)> {
        let all = self.found.get(&at).into_iter().flatten().rev();
        all.map(|(version, signature, _)| (*version, *signature))
    }

    /// Returns the last version of a region that the disk has.
    pub(super) fn latest(&self, region: RegionIndex) -> Version {
        let from = (region, Offset::new(0));
        let until = (region, Offset::new(u32::MAX));
        let all = self.found.range(from..=until).filter_map(|(_, blocks)| blocks.last());
        all.map(|(version, ..)| *version).max().unwrap_or(Version::NONE)
    }

    /// Returns the version and physical block with this signature.
    pub(super) fn find(
        &self,
        at: BlockAddress,
        signature: Signature,
    ) -> Option<(Version, PhysicalBlock)> {
        let mut all = self.found.get(&at).into_iter().flatten().rev();
        let found = all.find(|(_, candidate, _)| *candidate == signature);
        found.map(|(version, _, physical_block)| (*version, *physical_block))
    }

    /// Returns the block with this signature, wherever it is.
    pub(super) fn expected(&self, at: BlockAddress, signature: Signature) -> ExpectedBlock {
        let place = match self.find(at, signature) {
            Some((_, physical_block)) => Place::PhysicalBlock(physical_block),
            None if signature == Signature::ZERO => Place::Zeros,
            None => Place::Missing,
        };
        ExpectedBlock { signature, place }
    }

    /// Returns the signature that an object claims at an offset: of several objects, of which all
    /// but one were removed, that of the last one written.
    pub(super) fn claim(&self, at: BlockAddress) -> Option<Signature> {
        let claims = self.claims.get(&at)?;
        let version = |signature: &&Signature| self.find(at, **signature).map(|(v, _)| v);
        claims.iter().max_by_key(version).copied()
    }

    pub(super) fn choose(&mut self, at: BlockAddress, signature: Signature) {
        self.chosen.insert(at, signature);
    }

    pub(super) fn is_chosen(&self, at: BlockAddress, signature: Signature) -> bool {
        self.chosen.get(&at) == Some(&signature)
    }
}
