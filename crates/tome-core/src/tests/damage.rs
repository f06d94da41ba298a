//! Blocks that go bad in the simulated world.

use super::world::World;
use crate::PhysicalBlock;

impl World {
    /// Damages as many blocks of one segment as its parity can rebuild, if none was bad. Only while
    /// the disk stands still: when an old block goes bad after it was read for the write that
    /// replaces it, a tome cannot repair that by itself (`Alarm::ChangeLost`).
    pub(super) fn spoil(&mut self, tome: usize) {
        if self.nodes[tome].spinning.is_some() {
            return;
        }
        let regions: Vec<_> = self.nodes[tome].metadata.regions().map(|(index, _)| index).collect();
        let index = regions[self.below(regions.len())];
        let segment = u32::try_from(self.below(3)).unwrap();
        let region = self.nodes[tome].metadata.region(index).unwrap();
        let written: Vec<(PhysicalBlock, fulgurite_codes::Signature)> = self
            .layout
            .segment_offsets(segment)
            .filter_map(|offset| {
                Some((region.physical_block(offset)?, region.tree().block(offset)))
            })
            .collect();
        let disk = &self.nodes[tome].disk;
        let is_good = |(physical_block, recorded): &(PhysicalBlock, fulgurite_codes::Signature)| {
            disk.get(physical_block)
                .is_some_and(|bytes| fulgurite_codes::signature(bytes) == *recorded)
        };
        if written.is_empty() || !written.iter().all(is_good) {
            return;
        }
        for _ in 0..=self.below(2) {
            let (physical_block, _) = written[self.below(written.len())];
            if self.below(2) == 0 {
                self.nodes[tome].disk.remove(&physical_block);
            } else if let Some(bytes) = self.nodes[tome].disk.get_mut(&physical_block) {
                bytes[7] ^= 0x20;
            }
            self.counts.bad += 1;
        }
    }

    /// Returns the segments with more bad blocks than parity, each with its tome.
    pub(super) fn beyond_parity(&self) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        for (tome, node) in self.nodes.iter().enumerate() {
            for (_, region) in node.metadata.regions() {
                for segment in 0..self.layout.parts().segments {
                    let offsets = self.layout.segment_offsets(segment);
                    let is_bad = |offset: &crate::Offset| {
                        let Some(physical_block) = region.physical_block(*offset) else {
                            return false;
                        };
                        let bytes =
                            node.disk.get(&physical_block).map(|b| fulgurite_codes::signature(b));
                        bytes != Some(region.tree().block(*offset))
                    };
                    if offsets.filter(is_bad).count() > 2 {
                        found.push((tome, segment));
                    }
                }
            }
        }
        found
    }

    /// Damages more of a segment than its parity can rebuild, where everything is protected.
    /// Returns whether there was such a segment.
    pub(super) fn damage_beyond_parity(&mut self, tome: usize) -> bool {
        let node = &mut self.nodes[tome];
        let mut segments = Vec::new();
        for (_, region) in node.metadata.regions() {
            for segment in 0..self.layout.parts().segments {
                let offsets = || self.layout.segment_offsets(segment);
                let waits = |offset| {
                    region.pending().is_some_and(|l| l.iter().any(|(_, p)| p.offset == offset))
                };
                let physical_blocks: Vec<PhysicalBlock> =
                    offsets().filter_map(|o| region.physical_block(o)).collect();
                if physical_blocks.len() > 3 && !offsets().any(waits) {
                    segments.push(physical_blocks);
                }
            }
        }
        if segments.is_empty() || node.spinning.is_some() {
            return false;
        }
        let at = self.below(segments.len());
        let count = 3 + self.below(segments[at].len() - 2);
        let first = self.below(segments[at].len());
        let physical_blocks = segments[at].iter().cycle().skip(first).take(count);
        physical_blocks.for_each(|physical_block| {
            self.nodes[tome].disk.remove(physical_block);
        });
        true
    }

    /// Whether everything can be read, and every delta be computed.
    pub(super) fn is_sound(&self) -> bool {
        let is_there = |node: &super::world::Node| {
            let lists = node.metadata.regions().filter_map(|(_, region)| region.pending());
            let mut old = lists.flat_map(|list| list.iter()).filter_map(|(_, pending)| pending.old);
            old.all(|physical_block| node.disk.contains_key(&physical_block))
        };
        self.nodes.iter().all(is_there) && self.beyond_parity().is_empty()
    }

    /// Damages the old block of a change before every parity has applied it.
    pub(super) fn spoil_old(&mut self) {
        let mut physical_blocks = Vec::new();
        for (tome, node) in self.nodes.iter().enumerate() {
            for (_, region) in node.metadata.regions() {
                let list = || region.pending().into_iter().flat_map(|list| list.iter());
                let alone = |of| list().filter(|(_, pending)| pending.offset == of).count() == 1;
                let old = list().filter(|(_, pending)| alone(pending.offset));
                physical_blocks.extend(old.filter_map(|(_, pending)| Some((tome, pending.old?))));
            }
        }
        if !physical_blocks.is_empty() {
            let (tome, physical_block) = physical_blocks[self.below(physical_blocks.len())];
            self.counts.old_bad +=
                u32::from(self.nodes[tome].disk.remove(&physical_block).is_some());
        }
    }

    /// Damages this many blocks of every segment of every tome, if that many were written.
    pub(super) fn spoil_all(&mut self, blocks: usize) {
        for node in &mut self.nodes {
            for (_, region) in node.metadata.regions() {
                for segment in 0..self.layout.parts().segments {
                    let offsets = self.layout.segment_offsets(segment);
                    let written: Vec<PhysicalBlock> =
                        offsets.filter_map(|offset| region.physical_block(offset)).collect();
                    // Data and parity: every third block, from a starting place that varies.
                    let first = segment as usize;
                    for number in 0..blocks.min(written.len()) {
                        let physical_block =
                            written[(first + number * 3 + number / 2) % written.len()];
                        node.disk.remove(&physical_block);
                    }
                }
            }
        }
    }
}
