//! Assigns free physical blocks to blocks that a disk lacks.
//!
//! Their content does not match the signatures, and so is detected as bad. Not here: which ones are
//! needed.

use std::collections::BTreeMap;

use fulgurite_codes::Signature;
use fulgurite_tome::pending::Pending;
use fulgurite_tome::{Layout, Offset, RegionIndex, Spot, TomeError};
use fulgurite_units::Instant;

use super::{Draft, Place, RegainedRegion, Waiting, Wanted};
use crate::Result;
use crate::rows::BlockRow;

/// The physical blocks of a disk.
pub(super) struct Spots {
    taken: Vec<bool>,
    /// The first one that may be free.
    next: usize,
    /// Those assigned to missing blocks.
    given: BTreeMap<(RegionIndex, Offset, Signature), Spot>,
}

impl Spots {
    pub(super) fn new(layout: &Layout) -> Self {
        let taken = vec![false; usize::try_from(layout.spots()).unwrap_or(usize::MAX)];
        Self { taken, next: 0, given: BTreeMap::new() }
    }

    /// Reserves the physical blocks that a region needs.
    pub(super) fn take(&mut self, draft: &Draft) {
        let blocks = draft.blocks.values().map(|(_, wanted)| wanted);
        let changes = draft.changes.iter().flat_map(|change| [&change.old, &change.new]);
        for wanted in blocks.chain(changes) {
            if let Place::Spot(spot) = wanted.place {
                self.taken[spot.get() as usize] = true;
            }
        }
    }

    /// Number of missing blocks.
    pub(super) fn bad(&self) -> u64 {
        self.given.len() as u64
    }

    /// Returns the region with a physical block for each block; all regions must be reserved first.
    ///
    /// # Errors
    /// When there are not enough.
    pub(super) fn finish(&mut self, draft: Draft, now: Instant) -> Result<RegainedRegion> {
        let Draft { index, stood, blocks, changes, folded, floors } = draft;
        let mut rows = Vec::new();
        for (offset, (version, wanted)) in blocks {
            if let Some(spot) = self.spot(index, offset, wanted)? {
                let signature = wanted.signature.0;
                rows.push((offset, BlockRow { spot, version, signature }));
            }
        }
        let mut pending = Vec::new();
        for Waiting { version, offset, old, new, missing, is_sent } in changes {
            let change = old.signature ^ new.signature;
            let old = self.spot(index, offset, old)?;
            let Some(new) = self.spot(index, offset, new)? else { continue };
            let waiting = Pending { offset, old, new, change, missing, is_sent, since: now };
            pending.push((version, waiting));
        }
        Ok(RegainedRegion { index, stood, blocks: rows, pending, folded, floors })
    }

    fn spot(
        &mut self,
        region: RegionIndex,
        offset: Offset,
        wanted: Wanted,
    ) -> Result<Option<Spot>> {
        match wanted.place {
            Place::Zeros => return Ok(None),
            Place::Spot(spot) => return Ok(Some(spot)),
            Place::Missing => {}
        }
        let key = (region, offset, wanted.signature);
        if let Some(spot) = self.given.get(&key) {
            return Ok(Some(*spot));
        }
        let left = self.taken.iter().skip(self.next).position(|is_taken| !is_taken);
        let full = || TomeError::Full { what: "blocks that are to be made anew" };
        let at = self.next + left.ok_or_else(full)?;
        let spot = Spot::new(u32::try_from(at).map_err(|_| full())?);
        self.taken[at] = true;
        self.next = at + 1;
        self.given.insert(key, spot);
        Ok(Some(spot))
    }
}
