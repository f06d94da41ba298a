//! Metadata stores of full tomes, made without their disks: each block has a signature, a version
//! and a physical block.

use fulgurite_codes::Signature;
use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::metadata::{Row, TomeMetadata};
use fulgurite_tome_core::{
    CodeParams, GroupId, Layout, Offset, Parts, PhysicalBlock, RegionId, RegionIndex, TomeId,
    Version,
};
use fulgurite_units::{ByteCount, RandomStream};

/// Blocks of a region with 62+2 segments.
pub(crate) const REGION_BLOCKS: u32 = 1_000_000;
const SEGMENT_BLOCKS: u32 = 64;
/// Bytes of a block.
const BLOCK: ByteCount = ByteCount::kib(128);
/// Physical blocks beyond one for each block.
const SPARES: u32 = 4096;

/// The group code of the paper.
pub(crate) fn split() -> CodeParams {
    "13+3".parse().unwrap()
}

/// Regions of a million blocks, or a single smaller one.
pub(crate) fn layout(blocks: u32) -> Layout {
    let region = blocks.min(REGION_BLOCKS);
    assert!(
        region.is_multiple_of(SEGMENT_BLOCKS) && blocks.is_multiple_of(region),
        "regions and segments are whole"
    );
    let segments = region / SEGMENT_BLOCKS;
    let (segment, regions) = ("62+2".parse().unwrap(), blocks / region);
    Layout::new(Parts { block: BLOCK, segment, segments, regions, spares: SPARES }).unwrap()
}

/// Returns the tome of member `own` with empty regions.
pub(crate) fn empty(own: u32, layout: Layout) -> TomeMetadata {
    let mut metadata = TomeMetadata::new(TomeId::new(own), layout);
    for region in (0..layout.parts().regions).map(RegionIndex::new) {
        let slots =
            (0..split().total()).map(|tome| RegionId { tome: TomeId::new(tome), index: region });
        let group = Group::new(GroupId::new(region.get()), split(), slots.collect()).unwrap();
        metadata.apply(&Row::MemberSlot { region, group }).unwrap();
    }
    metadata
}

/// Gives block `offset` of a region its signature, as if it was written once.
pub(crate) fn write(metadata: &mut TomeMetadata, region: u32, offset: u32, change: Signature) {
    let first = region * metadata.layout().region_blocks();
    let row = Row::Block {
        region: RegionIndex::new(region),
        offset: Offset::new(offset),
        physical_block: PhysicalBlock::new(first + offset),
        version: Version::new(offset + 1),
        change,
    };
    metadata.apply(&row).unwrap();
}

/// Returns the signature of arbitrary bytes.
pub(crate) fn any(stream: &mut RandomStream) -> Signature {
    Signature(stream.next_u64().to_le_bytes())
}
