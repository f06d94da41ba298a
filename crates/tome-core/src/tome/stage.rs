//! Writes changes: each block to a free physical block, with the parity of its segment.
//!
//! What is staged counts only once its rows are committed. Not here: what changes.

use std::collections::BTreeMap;

use fulgurite_codes::{Signature, signature};
use fulgurite_units::Outbox;

use super::jobs::BlockAddress;
use super::{Command, Tome};
use crate::metadata::Row;
use crate::offline_read::xor;
use crate::{InSegment, Offset, PhysicalBlock, RegionIndex, Result, TomeError, Version};

/// A data block that was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) old: Option<PhysicalBlock>,
    pub(super) new: PhysicalBlock,
    pub(super) version: Version,
    pub(super) change: Signature,
}

/// Blocks that are written and not yet committed.
#[derive(Debug, Default)]
pub(super) struct Staged {
    pub(super) rows: Vec<Row>,
    pub(super) data: Vec<(BlockAddress, Written)>,
    /// Physical blocks that become free, unless a change is still computed from them.
    pub(super) left: BTreeMap<RegionIndex, Vec<PhysicalBlock>>,
}

/// Changes to data blocks, by region and offset.
pub(super) type Changes = BTreeMap<RegionIndex, BTreeMap<Offset, Vec<u8>>>;

impl Tome {
    /// Writes changed blocks and the parity of their segments; `loaded` has their previous content.
    /// Nothing is written when there is no room for all.
    pub(super) fn stage(
        &mut self,
        changes: &Changes,
        loaded: &BTreeMap<BlockAddress, Vec<u8>>,
        out: &mut Outbox<Command>,
    ) -> Result<Staged> {
        let layout = *self.metadata.layout();
        let data = layout.segment().data();
        let mut all: Vec<(BlockAddress, &Vec<u8>)> = Vec::new();
        let mut parity: BTreeMap<(RegionIndex, u32), Vec<Vec<u8>>> = BTreeMap::new();
        for (region, changes) in changes {
            for (offset, change) in changes {
                let at = layout.in_segment(*offset)?;
                let zeros = || vec![vec![0; change.len()]; layout.segment().parity() as usize];
                let blocks = parity.entry((*region, at.segment)).or_insert_with(zeros);
                self.code.delta(at.position as usize, change, blocks)?;
                all.push(((*region, *offset), change));
            }
        }
        let data_blocks = all.len();
        for ((region, segment), changes) in &parity {
            let positions = (data..).zip(changes);
            all.extend(positions.map(|(position, change)| {
                let at = InSegment { segment: *segment, position };
                ((*region, layout.offset(at)), change)
            }));
        }
        self.check_room(all.len())?;
        let mut versions = self.versions(all.iter().map(|(at, _)| at.0))?;
        let mut staged = Staged::default();
        for (number, (at, change)) in all.into_iter().enumerate() {
            let bytes = loaded.get(&at).map_or_else(|| change.clone(), |old| xor(old, change));
            let old = self.metadata.region(at.0).and_then(|region| region.physical_block(at.1));
            let new = self.write(bytes, out)?;
            let version = versions.next().unwrap_or_default();
            let change = signature(change);
            let (region, offset) = at;
            staged.rows.push(Row::Block { region, offset, physical_block: new, version, change });
            staged.left.entry(region).or_default().extend(old);
            if number < data_blocks {
                staged.data.push((at, Written { old, new, version, change }));
            }
        }
        Ok(staged)
    }

    /// Returns a version for each write to these regions, in order.
    fn versions(
        &self,
        regions: impl Iterator<Item = RegionIndex>,
    ) -> Result<std::vec::IntoIter<Version>> {
        let mut latest: BTreeMap<RegionIndex, Version> = BTreeMap::new();
        let mut versions = Vec::new();
        for region in regions {
            let known = || self.metadata.region(region).map_or(Version::NONE, |r| r.latest());
            let version = latest.entry(region).or_insert_with(known);
            *version = version.next().ok_or(TomeError::Full { what: "versions of a region" })?;
            versions.push(*version);
        }
        Ok(versions.into_iter())
    }

    /// Checks that this many blocks can be written.
    pub(super) fn check_room(&self, blocks: usize) -> Result<()> {
        let fits = self.physical_blocks.free() >= blocks;
        if fits { Ok(()) } else { Err(TomeError::Backlog { what: "rewritten blocks" }) }
    }

    /// Writes to a free physical block.
    pub(super) fn write(
        &mut self,
        bytes: Vec<u8>,
        out: &mut Outbox<Command>,
    ) -> Result<PhysicalBlock> {
        let place =
            self.physical_blocks.take_first(|_| true).and_then(|place| u32::try_from(place).ok());
        let full = TomeError::Backlog { what: "rewritten blocks" };
        let physical_block = PhysicalBlock::new(place.ok_or(full)?);
        out.push(Command::Write { physical_block, bytes });
        Ok(physical_block)
    }

    /// Frees physical blocks that no block uses any more, unless a change is computed from them.
    pub(super) fn free_blocks(&mut self, region: RegionIndex, physical_blocks: &[PhysicalBlock]) {
        for block in physical_blocks {
            let pending = self.metadata.region(region).and_then(|region| region.pending());
            if !pending.is_some_and(|pending| pending.needs(*block)) {
                self.physical_blocks.give_back(block.get() as usize);
            }
        }
    }
}
