//! Blocks found on a disk by their offsets, and the objects that claim them.
//!
//! Not here: which of them are valid.

use std::collections::BTreeMap;

use fulgurite_codes::Signature;
use fulgurite_tome::{Offset, RegionIndex, Spot, Version};

use super::{Place, Wanted};
use crate::piece_store::Placed;
use crate::survey::Found;

/// A block of a region.
type At = (RegionIndex, Offset);

/// What the disk has, what objects claim, and what was chosen.
pub(super) struct Blocks {
    /// By version, the latest last.
    found: BTreeMap<At, Vec<(Version, Signature, Spot)>>,
    /// Signatures with which objects were recorded.
    claims: BTreeMap<At, Vec<Signature>>,
    chosen: BTreeMap<At, Signature>,
}

impl Blocks {
    pub(super) fn new(all: Vec<Found>, pieces: &BTreeMap<String, Placed>) -> Self {
        let mut found: BTreeMap<At, Vec<_>> = BTreeMap::new();
        for Found { spot, label, signature } in all {
            let at = (label.region, label.offset);
            found.entry(at).or_default().push((label.version, signature, spot));
        }
        found.values_mut().for_each(|blocks| blocks.sort_unstable());
        let mut claims: BTreeMap<At, Vec<Signature>> = BTreeMap::new();
        for Placed { object, signatures } in pieces.values() {
            for (at, signature) in object.blocks.iter().zip(signatures) {
                claims.entry(*at).or_default().push(Signature(*signature));
            }
        }
        Self { found, claims, chosen: BTreeMap::new() }
    }

    /// Returns the blocks found for an offset, the latest first.
    pub(super) fn of(&self, at: At) -> impl Iterator<Item = (Version, Signature)> {
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
    pub(super) fn with(&self, at: At, signature: Signature) -> Option<(Version, Spot)> {
        let mut all = self.found.get(&at).into_iter().flatten().rev();
        let found = all.find(|(_, of, _)| *of == signature);
        found.map(|(version, _, spot)| (*version, *spot))
    }

    /// Returns the block with this signature, wherever it is.
    pub(super) fn wanted(&self, at: At, signature: Signature) -> Wanted {
        let place = match self.with(at, signature) {
            Some((_, spot)) => Place::Spot(spot),
            None if signature == Signature::ZERO => Place::Zeros,
            None => Place::Missing,
        };
        Wanted { signature, place }
    }

    /// Returns the signature that an object claims at an offset: of several objects, of which all
    /// but one were removed, that of the last one written.
    pub(super) fn claim(&self, at: At) -> Option<Signature> {
        let claims = self.claims.get(&at)?;
        let version = |signature: &&Signature| self.with(at, **signature).map(|(v, _)| v);
        claims.iter().max_by_key(version).copied()
    }

    pub(super) fn choose(&mut self, at: At, signature: Signature) {
        self.chosen.insert(at, signature);
    }

    pub(super) fn is_chosen(&self, at: At, signature: Signature) -> bool {
        self.chosen.get(&at) == Some(&signature)
    }
}
