//! How a disk is divided, and the overhead of that.
//!
//! ```text
//! disk     region | region | ... | spare physical blocks
//! region   segment | segment | ...                     of a group: as large on each tome
//! segment  data block ... data block | parity ...      62+2, 61+3, 63+1
//! block    128 KiB to 1 MiB and more: has a signature, a version and a physical block
//! ```
//!
//! (Pergamum (FAST 2008), section 4.1.) A block is identified by its region and its [`Offset`]
//! there. The tome records its physical block at each write, since no block is overwritten in
//! place. So a disk has some more physical blocks than blocks: a write goes to a spare one, and the
//! previous one becomes spare when every parity has the change.
//!
//! Not here: which blocks are in use, and bytes.

use fulgurite_units::ByteCount;
use serde::{Deserialize, Serialize};

use crate::limits::{
    BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, DISK_BLOCKS_MAX, METADATA_BYTES_PER_BLOCK, PUT_BLOCKS_MAX,
    REGION_BLOCKS_MAX,
};
use crate::{CodeParams, Offset, Result, TomeError};

/// How the disk of a tome is divided. All tomes of a set have the same block size, segment code and
/// segments per region; disks may have more regions or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Layout {
    parts: Parts,
}

/// The parameters of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// Bytes of a block.
    pub block: ByteCount,
    /// The code of a segment's blocks.
    pub segment: CodeParams,
    /// Segments of a region.
    pub segments: u32,
    /// Regions of the disk.
    pub regions: u32,
    /// Physical blocks of the disk beyond one for each block.
    pub spares: u32,
}

/// The position of a block in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InSegment {
    /// The segment in its region.
    pub segment: u32,
    /// The position in the segment: data first, then parity.
    pub position: u32,
}

impl Layout {
    /// Returns a layout with these parameters.
    ///
    /// # Errors
    /// [`TomeError::Range`] and [`TomeError::BlockBytes`] when no disk can be divided so.
    pub fn new(parts: Parts) -> Result<Self> {
        let bytes = parts.block.get();
        let (min, max) = (BLOCK_BYTES_MIN.get(), BLOCK_BYTES_MAX.get());
        within("bytes of a block", bytes, min, max)?;
        if !bytes.is_multiple_of(BLOCK_BYTES_MIN.get()) {
            return Err(TomeError::BlockBytes { bytes });
        }
        let segment = u64::from(parts.segment.total());
        within("segments of a region", parts.segments.into(), 1, REGION_BLOCKS_MAX / segment)?;
        let region = segment * u64::from(parts.segments);
        within("regions", parts.regions.into(), 1, DISK_BLOCKS_MAX / region)?;
        // A write needs a physical block for its block and for each parity of its segment.
        let spares_min = u64::from(parts.segment.parity()) + 1;
        let spares_max = u64::from(u32::MAX) - region * u64::from(parts.regions);
        within("spare physical blocks", parts.spares.into(), spares_min, spares_max)?;
        Ok(Self { parts })
    }

    /// Its parameters.
    #[must_use]
    pub const fn parts(&self) -> Parts {
        self.parts
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn block_bytes(&self) -> u64 {
        self.parts.block.get()
    }

    /// The code of a segment's blocks.
    #[must_use]
    pub const fn segment(&self) -> CodeParams {
        self.parts.segment
    }

    /// Blocks of a region, including segment parity.
    #[must_use]
    pub const fn region_blocks(&self) -> u32 {
        self.parts.segments * self.parts.segment.total()
    }

    /// Blocks of a region that hold data.
    #[must_use]
    pub const fn region_data_blocks(&self) -> u32 {
        self.parts.segments * self.parts.segment.data()
    }

    /// Data blocks of the largest object: it is in one region, so that it moves with it.
    #[must_use]
    pub const fn object_blocks_max(&self) -> u64 {
        let (put, region) = (PUT_BLOCKS_MAX as u64, self.region_data_blocks() as u64);
        if put < region { put } else { region }
    }

    /// Blocks of all regions.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.region_blocks() as u64 * self.parts.regions as u64
    }

    /// Physical blocks of the disk.
    #[must_use]
    pub const fn physical_blocks(&self) -> u64 {
        self.blocks() + self.parts.spares as u64
    }

    /// Bytes of the disk that the layout uses.
    #[must_use]
    pub const fn disk_bytes(&self) -> ByteCount {
        ByteCount::new(self.physical_blocks() * self.block_bytes())
    }

    /// Returns the segment of an offset, and the position there.
    ///
    /// # Errors
    /// [`TomeError::OffsetOutOfRange`].
    pub fn in_segment(&self, offset: Offset) -> Result<InSegment> {
        let blocks = self.region_blocks();
        if offset.get() >= blocks {
            return Err(TomeError::OffsetOutOfRange { offset, blocks });
        }
        let total = self.parts.segment.total();
        Ok(InSegment { segment: offset.get() / total, position: offset.get() % total })
    }

    /// Returns the offset of a block of a segment.
    #[must_use]
    pub const fn offset(&self, at: InSegment) -> Offset {
        Offset::new(at.segment * self.parts.segment.total() + at.position)
    }

    /// Returns the offsets of a segment, data first.
    pub fn segment_offsets(&self, segment: u32) -> impl Iterator<Item = Offset> + use<> {
        let total = self.parts.segment.total();
        (segment * total..(segment + 1) * total).map(Offset::new)
    }

    /// Returns the offset of data block `number` of a region, not counting parity.
    #[must_use]
    pub const fn data_offset(&self, number: u32) -> Offset {
        let data = self.parts.segment.data();
        self.offset(InSegment { segment: number / data, position: number % data })
    }

    /// Whether an offset of a region holds segment parity.
    #[must_use]
    pub const fn is_parity(&self, offset: Offset) -> bool {
        offset.get() % self.parts.segment.total() >= self.parts.segment.data()
    }

    /// Bytes of the metadata store for all blocks, without object names and pending changes.
    #[must_use]
    pub const fn metadata_bytes(&self) -> ByteCount {
        ByteCount::new(self.blocks() * METADATA_BYTES_PER_BLOCK)
    }
}

/// Returns the space overhead: raw bytes per user byte, less one, with these codes for segments and
/// groups (Pergamum (FAST 2008), section 5.1: 0.27 for 62+2 and 13+3).
#[must_use]
pub fn overhead(segment: CodeParams, group: CodeParams) -> f64 {
    let factor = |split: CodeParams| f64::from(split.total()) / f64::from(split.data());
    factor(segment) * factor(group) - 1.0
}

/// Returns the user bytes that fit on this many raw bytes, rounded down.
#[must_use]
pub fn user_bytes(raw: ByteCount, segment: CodeParams, group: CodeParams) -> ByteCount {
    let product =
        |count: fn(CodeParams) -> u32| u128::from(count(segment)) * u128::from(count(group));
    let bytes = u128::from(raw.get()) * product(CodeParams::data) / product(CodeParams::total);
    ByteCount::new(u64::try_from(bytes).expect("fewer user bytes than raw bytes"))
}

/// Returns the NVRAM bytes of the paper for a disk: a 64-bit signature and a 32-bit timestamp per
/// block (Pergamum (FAST 2008), section 4.1).
#[must_use]
pub const fn paper_metadata_bytes(disk: ByteCount, block: ByteCount) -> ByteCount {
    ByteCount::new(disk.get() / block.get() * 12)
}

fn within(field: &'static str, value: u64, min: u64, max: u64) -> Result<()> {
    let is_within = (min..=max).contains(&value);
    if is_within { Ok(()) } else { Err(TomeError::Range { field, value, min, max }) }
}

impl TryFrom<Parts> for Layout {
    type Error = TomeError;

    fn try_from(parts: Parts) -> Result<Self> {
        Self::new(parts)
    }
}

impl From<Layout> for Parts {
    fn from(layout: Layout) -> Self {
        layout.parts
    }
}
