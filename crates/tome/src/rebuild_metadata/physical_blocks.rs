//! Assigns free physical blocks to blocks that a disk lacks.
//!
//! Their content does not match the signatures, and so is detected as bad. Not here: which ones are
//! needed.

use std::collections::BTreeMap;

use fulgurite_codes::Signature;
use fulgurite_tome_core::pending::Pending;
use fulgurite_tome_core::{Layout, Offset, PhysicalBlock, RegionIndex, TomeError};
use fulgurite_units::Instant;

use super::{Draft, ExpectedBlock, PendingChange, Place, RebuiltRegion};
use crate::Result;
use crate::rows::BlockRow;

/// The physical blocks of a disk.
pub(super) struct PhysicalBlocks {
    taken: Vec<bool>,
    /// The first one that may be free.
    next: usize,
    /// Those assigned to missing blocks.
    assigned: BTreeMap<(RegionIndex, Offset, Signature), PhysicalBlock>,
}

impl PhysicalBlocks {
    pub(super) fn new(layout: &Layout) -> Self {
        let taken = vec![false; usize::try_from(layout.physical_blocks()).unwrap_or(usize::MAX)];
        Self { taken, next: 0, assigned: BTreeMap::new() }
    }

    /// Reserves the physical blocks that a region needs.
    pub(super) fn take(&mut self, draft: &Draft) {
        let blocks = draft.blocks.values().map(|(_, expected)| expected);
        let changes = draft.changes.iter().flat_map(|change| [&change.old, &change.new]);
        for expected in blocks.chain(changes) {
            if let Place::PhysicalBlock(spot) = expected.place {
                self.taken[spot.get() as usize] = true;
            }
        }
    }

    /// Number of missing blocks.
    pub(super) fn bad(&self) -> u64 {
        self.assigned.len() as u64
    }

    /// Returns the region with a physical block for each block; all regions must be reserved first.
    ///
    /// # Errors
    /// When there are not enough.
    pub(super) fn finish(&mut self, draft: Draft, now: Instant) -> Result<RebuiltRegion> {
        let Draft { index, membership, blocks, changes, folded, floors } = draft;
        let mut rows = Vec::new();
        for (offset, (version, expected)) in blocks {
            if let Some(spot) = self.spot(index, offset, expected)? {
                let signature = expected.signature.0;
                rows.push((offset, BlockRow { spot, version, signature }));
            }
        }
        let mut pending = Vec::new();
        for PendingChange { version, offset, old, new, missing, is_sent } in changes {
            let change = old.signature ^ new.signature;
            let old = self.spot(index, offset, old)?;
            let Some(new) = self.spot(index, offset, new)? else { continue };
            let waiting = Pending { offset, old, new, change, missing, is_sent, since: now };
            pending.push((version, waiting));
        }
        Ok(RebuiltRegion { index, membership, blocks: rows, pending, folded, floors })
    }

    fn spot(
        &mut self,
        region: RegionIndex,
        offset: Offset,
        expected: ExpectedBlock,
    ) -> Result<Option<PhysicalBlock>> {
        match expected.place {
            Place::Zeros => return Ok(None),
            Place::PhysicalBlock(spot) => return Ok(Some(spot)),
            Place::Missing => {}
        }
        let key = (region, offset, expected.signature);
        if let Some(spot) = self.assigned.get(&key) {
            return Ok(Some(*spot));
        }
        let left = self.taken.iter().skip(self.next).position(|is_taken| !is_taken);
        let full = || TomeError::Full { what: "blocks that are to be rebuilt" };
        let at = self.next + left.ok_or_else(full)?;
        let spot = PhysicalBlock::new(u32::try_from(at).map_err(|_| full())?);
        self.taken[at] = true;
        self.next = at + 1;
        self.assigned.insert(key, spot);
        Ok(Some(spot))
    }
}
