//! What a scenario says of a set that real tomes decide, beside what it says of every set.

use fulgurite_tome::{Layout, Parts, Split};
use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use super::super::layout::Code;
use crate::Error;

/// Bytes of a block as the core has it.
pub(crate) const CORE_BLOCK: usize = 256;
/// Tomes, at most: each has all of its awake store in memory.
const TOMES_MAX: u32 = 1_000;
/// Blocks of all tomes, at most.
const BLOCKS_MAX: u64 = 4_000_000;

/// Who decides in a set of tomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decides {
    /// The model of this crate, in steps of tomes: a thousand of them over years.
    #[default]
    Aggregate,
    /// The tomes themselves, in steps of blocks: some hundred of them over days, or quiet ones over
    /// a year.
    Driven,
}

/// How an object is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// Of its own tome, which is woken.
    #[default]
    Own,
    /// Of the others of its group while its own sleeps and enough of them turn.
    Group,
}

/// How the set chooses a tome for a new object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choosing {
    /// The one with the most room of those that turn, or of all.
    #[default]
    Room,
    /// Any that has room, drawn.
    Random,
    /// The one that took the last of the same kin, by the rule of the core.
    Kin,
}

/// How a group is asked for what is beyond a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// As many members as are needed, one after the other, in their own turns.
    #[default]
    InTurns,
    /// All members at once (Pergamum (FAST 2008), section 4.3.2), beside what the tome asks itself.
    AtOnce,
}

/// Objects that are written together by somebody, and read together later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Who writes.
    pub writers: u32,
    /// How often each does.
    pub episodes: u32,
    /// Objects of an episode.
    pub objects: u32,
    /// From one of them to the next.
    pub gap: Duration,
    /// Episodes begin at random until then.
    pub writing: Duration,
    /// The first is read then.
    pub reading: Duration,
    /// From one that is read to the next.
    pub every: Duration,
}

/// A set that its tomes decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrivenSet {
    /// Bytes that a block stands for.
    pub block: ByteCount,
    /// Regions of a tome, and how many of them are in no group.
    pub regions: u32,
    /// See `regions`.
    pub free_regions: u32,
    /// Segments of a region.
    pub segments: u32,
    /// Data blocks of an object.
    pub object: u32,
    /// The share of each data region's segments that objects fill at the beginning.
    pub stored: f64,
    /// What a disk takes to another place.
    pub seek: Duration,
    /// From turning to still.
    pub spin_down: Duration,
    /// What a message takes beside its bytes.
    pub latency: Duration,
    /// Objects that are read in an hour, of all.
    pub reads_per_hour: f64,
    /// How.
    pub reading: Reading,
    /// How tomes are chosen.
    pub choosing: Choosing,
    /// How a group is asked.
    pub repair: Repair,
    /// Times an hour that blocks of one segment of the set go bad.
    pub bad_per_hour: f64,
    /// How many then.
    pub bad_blocks: u32,
    /// Whether the full scrub goes on; else a pass of it is nearly done all the time.
    pub full_scrub: bool,
    /// What is written together and read together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Jobs>,
    /// Tomes and their groups are looked at whole after each so many events.
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
            reading: Reading::default(),
            choosing: Choosing::default(),
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
    /// How the disks are divided.
    pub(crate) fn layout(&self, segment: Code) -> Result<Layout, Error> {
        let parts = Parts {
            block: ByteCount::new(CORE_BLOCK as u64),
            segment: split("segment", segment)?,
            segments: self.segments,
            regions: self.regions,
            // What is under way has its old blocks beside its new ones.
            spares: 64 * (segment.parity + 2) + self.segments * segment.members(),
        };
        let refuse = |error: fulgurite_tome::TomeError| Error::Parameter {
            field: "driven",
            value: error.to_string(),
            expected: "regions and segments that a disk can be divided into",
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

/// A code as the core has it.
pub(crate) fn split(field: &'static str, code: Code) -> Result<Split, Error> {
    Split::new(code.data, code.parity).map_err(|error| Error::Parameter {
        field,
        value: error.to_string(),
        expected: "a code of the core",
    })
}
