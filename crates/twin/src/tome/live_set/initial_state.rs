//! The initial state of a set: its groups, and objects stored earlier and protected, with all disks
//! spun down.
//!
//! Rows are made as a tome makes them and applied to its metadata store; the disks have what the
//! rows say. This takes no simulated time: it happened before the run.

use std::collections::BTreeMap;

use fulgurite_codes::{sector_checksum, signature};
use fulgurite_tome_core::group::{Group, Groups};
use fulgurite_tome_core::metadata::{Object, Row, Scrubbed, TomeMetadata};
use fulgurite_tome_core::segment::SegmentCode;
use fulgurite_tome_core::{
    Layout, Member, Offset, PhysicalBlock, RegionIndex, TomeError, TomeId, Version,
};
use fulgurite_units::{Duration, Seed};

use super::settings::{CORE_BLOCK, DrivenSet};
use crate::Error;
use crate::tome::Scenario;

/// An object of the set.
#[derive(Clone, Debug)]
pub(crate) struct StoredObject {
    /// The tome that holds it.
    pub(crate) tome: usize,
    pub(crate) blocks: u32,
    /// Whether every parity of its group covers it.
    pub(crate) is_protected: bool,
    /// Whether it can be read: it was acknowledged and its tome is not lost.
    pub(crate) is_readable: bool,
}

/// A set before its run.
#[derive(Debug)]
pub(crate) struct InitialSet {
    pub(crate) layout: Layout,
    pub(crate) groups: Groups,
    pub(crate) metadata: Vec<TomeMetadata>,
    pub(crate) disks: Vec<Vec<Option<Vec<u8>>>>,
    pub(crate) objects: Vec<StoredObject>,
}

/// Returns the bytes of an object, different for each number.
pub(crate) fn bytes_of(seed: &Seed, number: usize, blocks: u32) -> Vec<u8> {
    let mut bytes = vec![0; blocks as usize * CORE_BLOCK];
    seed.child(&number.to_le_bytes()).stream().fill(&mut bytes);
    bytes
}

/// Returns the name of an object.
pub(crate) fn name_of(number: usize) -> String {
    number.to_string()
}

/// Builds the set of a scenario.
pub(crate) fn fill(scenario: &Scenario, seed: &Seed) -> Result<InitialSet, Error> {
    let driven = &scenario.driven;
    let layout = driven.layout(scenario.segment)?;
    let refuse = |error: TomeError| Error::Parameter {
        field: "driven",
        value: error.to_string(),
        expected: "a valid set",
    };
    let mut filled = build(scenario, driven, layout, seed).map_err(refuse)?;
    if !driven.full_scrub {
        // So that it is due at the end of a year's pass.
        let next = filled.layout.blocks() - 1;
        let almost = Row::Scrubbed(Scrubbed { next, spent: Duration::ZERO, passes: 0 });
        filled.metadata.iter_mut().for_each(|metadata| apply(metadata, &almost));
    }
    Ok(filled)
}

fn build(
    scenario: &Scenario,
    driven: &DrivenSet,
    layout: Layout,
    seed: &Seed,
) -> Result<InitialSet, TomeError> {
    let group_split =
        fulgurite_tome_core::CodeParams::new(scenario.group.data, scenario.group.parity)?;
    let tomes = (0..scenario.tomes).map(TomeId::new);
    let mut populated = Groups::new(group_split)?;
    let mut groups = Groups::new(group_split)?;
    for tome in tomes.clone() {
        populated.add_tome(tome, driven.regions - driven.free_regions)?;
        groups.add_tome(tome, driven.regions)?;
    }
    populated.populate();
    for group in populated.iter() {
        groups.claim(group.clone())?;
    }
    let physical_blocks = usize::try_from(layout.physical_blocks()).unwrap_or(usize::MAX);
    let mut filled = InitialSet {
        layout,
        groups,
        metadata: tomes.map(|tome| TomeMetadata::new(tome, layout)).collect(),
        disks: vec![vec![None; physical_blocks]; scenario.tomes as usize],
        objects: Vec::new(),
    };
    let mut filler = RegionFiller {
        code: SegmentCode::new(layout.segment())?,
        group_code: SegmentCode::new(group_split)?,
        next_physical_block: vec![0; scenario.tomes as usize],
        per_region: segments(driven),
        object: driven.object,
        seed: *seed,
    };
    let all: Vec<Group> = filled.groups.iter().cloned().collect();
    for group in all {
        for slot in group.slots() {
            let row = Row::MemberSlot { region: slot.index, group: group.clone() };
            apply(&mut filled.metadata[slot.tome.get() as usize], &row);
        }
        filler.group(&group, &mut filled)?;
    }
    Ok(filled)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of segments")]
fn segments(driven: &DrivenSet) -> u32 {
    (f64::from(driven.segments) * driven.stored) as u32
}

fn apply(metadata: &mut TomeMetadata, row: &Row) {
    if let Err(error) = metadata.apply(row) {
        unreachable!("the rows of an initial set are valid: {error}");
    }
}

/// Fills regions.
struct RegionFiller {
    code: SegmentCode,
    group_code: SegmentCode,
    next_physical_block: Vec<u32>,
    /// Segments to fill per region.
    per_region: u32,
    object: u32,
    seed: Seed,
}

impl RegionFiller {
    fn group(&mut self, group: &Group, filled: &mut InitialSet) -> Result<(), TomeError> {
        let data = group.split().data() as usize;
        let mut members: Vec<BTreeMap<Offset, Vec<u8>>> = Vec::new();
        for slot in &group.slots()[..data] {
            members.push(self.data_region(slot.tome, slot.index, filled)?);
        }
        let offsets: Vec<Offset> = members[0].keys().copied().collect();
        let mut parities = vec![BTreeMap::new(); group.split().parity() as usize];
        for offset in offsets {
            let blocks: Vec<&Vec<u8>> = members.iter().map(|member| &member[&offset]).collect();
            for (parity, block) in parities.iter_mut().zip(self.group_code.fill(&blocks)?) {
                parity.insert(offset, block);
            }
        }
        let all = members.into_iter().chain(parities);
        for (slot, blocks) in group.slots().iter().zip(all) {
            self.write(slot.tome, slot.index, blocks, filled);
        }
        for slot in &group.slots()[data..] {
            let metadata = &mut filled.metadata[slot.tome.get() as usize];
            for member in 0..data {
                let floor = Version::new(1 + self.per_region * filled.layout.segment().total());
                let member = Member::at(member);
                apply(metadata, &Row::Floor { region: slot.index, member, floor });
            }
        }
        Ok(())
    }

    /// Fills a region with consecutive objects and the parity of its segments.
    fn data_region(
        &self,
        tome: TomeId,
        region: RegionIndex,
        filled: &mut InitialSet,
    ) -> Result<BTreeMap<Offset, Vec<u8>>, TomeError> {
        let (layout, at) = (filled.layout, tome.get() as usize);
        let room = self.per_region * layout.segment().data();
        let mut blocks = BTreeMap::new();
        let mut next = 0;
        while next + self.object <= room {
            let number = filled.objects.len();
            let bytes = bytes_of(&self.seed, number, self.object);
            let offsets: Vec<Offset> =
                (next..next + self.object).map(|of| layout.data_offset(of)).collect();
            let chunks = bytes.chunks(CORE_BLOCK).map(<[u8]>::to_vec);
            blocks.extend(offsets.iter().copied().zip(chunks));
            let object = Object {
                blocks: offsets.into_iter().map(|offset| (region, offset)).collect(),
                bytes: bytes.len() as u64,
                digest: sector_checksum(&bytes),
            };
            apply(&mut filled.metadata[at], &Row::Object { name: name_of(number), object });
            let (blocks, is_protected, is_readable) = (self.object, true, true);
            filled.objects.push(StoredObject { tome: at, blocks, is_protected, is_readable });
            next += self.object;
        }
        for segment in 0..self.per_region {
            let offsets: Vec<Offset> = layout.segment_offsets(segment).collect();
            let (data, parity) = offsets.split_at(layout.segment().data() as usize);
            let zeros = || vec![0; CORE_BLOCK];
            let own: Vec<Vec<u8>> =
                data.iter().map(|of| blocks.entry(*of).or_insert_with(zeros).clone()).collect();
            blocks.extend(parity.iter().copied().zip(self.code.fill(&own)?));
        }
        Ok(blocks)
    }

    fn write(
        &mut self,
        tome: TomeId,
        region: RegionIndex,
        blocks: BTreeMap<Offset, Vec<u8>>,
        filled: &mut InitialSet,
    ) {
        let at = tome.get() as usize;
        for (number, (offset, bytes)) in (1..).zip(blocks) {
            let physical_block = PhysicalBlock::new(self.next_physical_block[at]);
            self.next_physical_block[at] += 1;
            let (version, change) = (Version::new(number), signature(&bytes));
            filled.disks[at][physical_block.get() as usize] = Some(bytes);
            let row = Row::Block { region, offset, physical_block, version, change };
            apply(&mut filled.metadata[at], &row);
        }
    }
}
