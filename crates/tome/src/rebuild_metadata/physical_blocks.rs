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
            if let Place::PhysicalBlock(physical_block) = expected.place {
                self.taken[physical_block.get() as usize] = true;
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
        let Draft { index, membership, blocks, changes, applied, floors } = draft;
        let mut rows = Vec::new();
        for (offset, (version, expected)) in blocks {
            if let Some(physical_block) = self.assign(index, offset, expected)? {
                let signature = expected.signature.0;
                rows.push((offset, BlockRow { physical_block, version, signature }));
            }
        }
        let mut pending = Vec::new();
        for PendingChange { version, offset, old, new, missing, is_sent } in changes {
            let change = old.signature ^ new.signature;
            let old = self.assign(index, offset, old)?;
            let Some(new) = self.assign(index, offset, new)? else { continue };
            let waiting = Pending { offset, old, new, change, missing, is_sent, since: now };
            pending.push((version, waiting));
        }
        Ok(RebuiltRegion { index, membership, blocks: rows, pending, applied, floors })
    }

    fn assign(
        &mut self,
        region: RegionIndex,
        offset: Offset,
        expected: ExpectedBlock,
    ) -> Result<Option<PhysicalBlock>> {
        match expected.place {
            Place::Zeros => return Ok(None),
            Place::PhysicalBlock(physical_block) => return Ok(Some(physical_block)),
            Place::Missing => {}
        }
        let key = (region, offset, expected.signature);
        if let Some(physical_block) = self.assigned.get(&key) {
            return Ok(Some(*physical_block));
        }
        let left = self.taken.iter().skip(self.next).position(|is_taken| !is_taken);
        let full = || TomeError::Full { what: "blocks that are to be rebuilt" };
        let index = self.next + left.ok_or_else(full)?;
        let physical_block = PhysicalBlock::new(u32::try_from(index).map_err(|_| full())?);
        self.taken[index] = true;
        self.next = index + 1;
        self.assigned.insert(key, physical_block);
        Ok(Some(physical_block))
    }
}
