//! Settings of a set run by real tomes, in addition to those of every set.

use fulgurite_tome_core::{CodeParams, Layout, Parts};
use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use super::super::layout::Code;
use crate::Error;

/// Bytes per block in the core.
pub(crate) const CORE_BLOCK: usize = 256;
/// Maximum number of tomes: each has its whole metadata store in memory.
const TOMES_MAX: u32 = 1_000;
/// Maximum number of blocks of all tomes.
const BLOCKS_MAX: u64 = 4_000_000;

/// What makes the decisions in a set of tomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetModel {
    /// The tomes themselves, at the granularity of blocks: some hundred of them over days, or idle
    /// ones over a year.
    #[default]
    Driven,
    /// A model of this crate, at the granularity of tomes: a thousand of them over years.
    Analytic,
}

/// How an object is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadStrategy {
    /// From its own tome, which is spun up.
    #[default]
    Own,
    /// From the others of its group while its own tome is spun down and enough of them are up (a
    /// degraded read).
    Group,
}

/// How the set chooses a tome for a new object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TomeSelection {
    /// The one with the most free space among those that are spinning, or among all.
    #[default]
    Room,
    /// A random one with enough space.
    Random,
    /// The one that took the last object of the same affinity group, by the rule of the core.
    Affinity,
}

/// How a group repairs blocks that a segment cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// As many members as are needed, one after the other, in their own turns.
    #[default]
    InTurns,
    /// All members at once (Pergamum (FAST 2008), section 4.3.2), in addition to the tome's own
    /// requests.
    AtOnce,
}

/// Objects that are written together by a writer, and read together later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Number of writers.
    pub writers: u32,
    /// Episodes per writer.
    pub episodes: u32,
    /// Objects per episode.
    pub objects: u32,
    /// Time between two objects of an episode.
    pub gap: Duration,
    /// Time until which episodes begin, at random.
    pub writing: Duration,
    /// When the first episode is read.
    pub reading: Duration,
    /// Time between two reads of episodes.
    pub every: Duration,
}

/// A set run by its tomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrivenSet {
    /// Bytes that a block represents.
    pub block: ByteCount,
    /// Regions per tome.
    pub regions: u32,
    /// Regions per tome that are in no group.
    pub free_regions: u32,
    /// Segments per region.
    pub segments: u32,
    /// Data blocks per object.
    pub object: u32,
    /// Share of each data region's segments that objects fill at the beginning.
    pub stored: f64,
    /// Seek time of a disk.
    pub seek: Duration,
    /// Spin-down time of a disk.
    pub spin_down: Duration,
    /// Network latency of a message, without its bytes.
    pub latency: Duration,
    /// Object reads per hour, over the whole set.
    pub reads_per_hour: f64,
    /// How objects are read.
    pub reading: ReadStrategy,
    /// How tomes are chosen.
    pub choosing: TomeSelection,
    /// How a group repairs blocks.
    pub repair: Repair,
    /// How often an hour blocks of one segment of the set go bad.
    pub bad_per_hour: f64,
    /// Number of blocks that go bad each time.
    pub bad_blocks: u32,
    /// Whether the full scrub runs; if not, a pass starts nearly complete, so that the remainder is
    /// due only at the end of its year.
    pub full_scrub: bool,
    /// Objects written together and read together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Jobs>,
    /// Number of events between full checks of tomes and groups.
    pub checked_each: u64,
}

impl Default for DrivenSet {
    fn default() -> Self {
        Self {
            block: ByteCount::new(1_000_000),
            regions: 1,
            free_regions: 0,
            segments: 4,
            object: 16,
            stored: 0.0,
            seek: Duration::from_millis(12),
            spin_down: Duration::from_secs(1),
            latency: Duration::from_millis(1),
            reads_per_hour: 0.0,
            reading: ReadStrategy::default(),
            choosing: TomeSelection::default(),
            repair: Repair::default(),
            bad_per_hour: 0.0,
            bad_blocks: 1,
            full_scrub: true,
            jobs: None,
            checked_each: 1_000,
        }
    }
}

impl DrivenSet {
    /// Returns the layout of the disks.
    pub(crate) fn layout(&self, segment: Code) -> Result<Layout, Error> {
        let parts = Parts {
            block: ByteCount::new(CORE_BLOCK as u64),
            segment: split("segment", segment)?,
            segments: self.segments,
            regions: self.regions,
            // Blocks being changed exist in their old and new versions.
            spares: 64 * (segment.parity + 2) + self.segments * segment.members(),
        };
        let refuse = |error: fulgurite_tome_core::TomeError| Error::Parameter {
            field: "driven",
            value: error.to_string(),
            expected: "regions and segments that fit on a disk",
        };
        Layout::new(parts).map_err(refuse)
    }

    /// Checks every part.
    pub(crate) fn validate(&self, tomes: u32, segment: Code, group: Code) -> Result<(), Error> {
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        let layout = self.layout(segment)?;
        split("group", group)?;
        if tomes > TOMES_MAX || layout.blocks() * u64::from(tomes) > BLOCKS_MAX {
            let value = format!("{tomes} tomes of {} blocks", layout.blocks());
            return refuse("driven", value, "at most 1000 tomes and 4000000 blocks in all");
        }
        if self.free_regions >= self.regions {
            let value = self.free_regions.to_string();
            return refuse("driven.free_regions", value, "fewer than regions");
        }
        if self.object == 0 || u64::from(self.object) > layout.object_blocks_max() {
            let expected = "from 1 to the blocks of the largest object, 64 or a region's";
            return refuse("driven.object", self.object.to_string(), expected);
        }
        if !(0.0..=1.0).contains(&self.stored) {
            return refuse("driven.stored", self.stored.to_string(), "from 0 to 1");
        }
        for (field, rate) in [
            ("driven.reads_per_hour", self.reads_per_hour),
            ("driven.bad_per_hour", self.bad_per_hour),
        ] {
            if !(0.0..=1e6).contains(&rate) {
                return refuse(field, rate.to_string(), "from 0 to 1000000");
            }
        }
        if self.bad_blocks == 0 || self.bad_blocks > segment.members() {
            let expected = "from 1 to the blocks of a segment";
            return refuse("driven.bad_blocks", self.bad_blocks.to_string(), expected);
        }
        if self.block == ByteCount::ZERO || self.checked_each == 0 {
            return refuse("driven.block, driven.checked_each", "0".to_owned(), "above 0");
        }
        Ok(())
    }
}

/// Converts a code to that of the core.
pub(crate) fn split(field: &'static str, code: Code) -> Result<CodeParams, Error> {
    CodeParams::new(code.data, code.parity).map_err(|error| Error::Parameter {
        field,
        value: error.to_string(),
        expected: "a code that tomes support",
    })
}
