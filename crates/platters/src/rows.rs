//! Rows of the glass tier in the catalog: what is written under which key, and how.
//!
//! ```text
//! space       key                                   row
//! sets        set id                                SetRow
//! faults      set id                                times that it failed by its own fault
//! platters    platter id                            PlatterRow
//! verified    platter id                            VerificationRow: the last one
//! margins     platter id, track                     TrackRow: of tracks with more to say
//! plans       set id, position, entry               PlanRow
//! slots       slot                                  platter id
//! far         platter id                            FarRow: the far library it belongs to
//! ```
//!
//! Docs/formats/rows.md has the bytes. Rows of bodies name places on platters, and are not here.

mod older_plans;

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::row::{self, Read, Row, read_as};
use fulgurite_catalog::{Direction, KeyRange, ReadView, Space, Transaction};
use fulgurite_glass::{Geometry, SectorMargins};
use fulgurite_units::{ObjectId, PlatterId, SetId, UnixTime, error_chain};
use serde::{Deserialize, Serialize};

use crate::{Result, Shard};

/// Platter-sets.
pub(crate) const SETS: Space = Space::new("sets");
/// How often a set failed by its own fault.
pub(crate) const FAULTS: Space = Space::new("faults");
/// Platters.
pub(crate) const PLATTERS: Space = Space::new("platters");
/// Verifications of platters.
pub(crate) const VERIFIED: Space = Space::new("verified");
/// What they found of tracks.
pub(crate) const MARGINS: Space = Space::new("margins");
/// Plans of sets that are not released.
pub(crate) const PLANS: Space = Space::new("plans");
/// Slots that are taken.
pub(crate) const SLOTS: Space = Space::new("slots");
/// Platters that belong to far libraries.
pub(crate) const FAR: Space = Space::new("far");

/// Every space of the glass tier.
pub const SPACES: [Space; 8] = [SETS, FAULTS, PLATTERS, VERIFIED, MARGINS, PLANS, SLOTS, FAR];

/// How far a platter-set has come. Each state is entered by one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum SetState {
    /// The plan is complete; platters may be half written.
    Planned,
    /// Every platter is written and sealed.
    Written,
    /// Every platter was read back whole.
    Verified,
    /// Every platter is in its slot.
    Stored,
    /// Rows point at glass; the staged copies are free.
    Released,
}

impl SetState {
    /// Its name, for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Written => "written",
            Self::Verified => "verified",
            Self::Stored => "stored",
            Self::Released => "released",
        }
    }
}

/// A platter-set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetRow {
    /// How far it has come.
    pub(crate) state: SetState,
    /// Numbers of the platters and the set, as of its planning.
    pub(crate) geometry: Geometry,
    /// When it was planned.
    pub(crate) created: UnixTime,
    /// Raised at each attempt to write it.
    pub(crate) generation: u32,
    /// Information platters.
    pub(crate) information: Vec<PlatterId>,
    /// Redundancy platters.
    pub(crate) redundancy: Vec<PlatterId>,
    /// Bytes of all shards.
    pub(crate) bytes: u64,
    /// User bytes of each redundancy platter.
    pub(crate) redundancy_bytes: u64,
    /// Bodies whose staged bytes were found damaged when they were written; never released.
    pub(crate) damaged: Vec<ObjectId>,
}

impl SetRow {
    /// All platters with their positions in the set: information platters first.
    pub(crate) fn platters(&self) -> impl Iterator<Item = (u16, PlatterId)> + '_ {
        let redundancy_from = self.geometry.set_information_platters;
        (0..)
            .zip(self.information.iter().copied())
            .chain((redundancy_from..).zip(self.redundancy.iter().copied()))
    }
}

/// A platter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlatterRow {
    /// The set that it is of.
    pub(crate) set: SetId,
    /// Position in the set: information platters first.
    pub(crate) position: u16,
    /// Where it is kept.
    pub(crate) slot: Option<u32>,
    /// Data bytes, without the file list, which follows them.
    pub(crate) data_bytes: u64,
    /// Bytes of the file list.
    pub(crate) list_bytes: u64,
    /// Entries in it.
    pub(crate) list_entries: u32,
    /// Ciphertext bytes on it that rows still name.
    pub(crate) live_bytes: u64,
    /// Information tracks that this platter alone could not give back when it was verified.
    pub(crate) unreadable_tracks: Vec<u32>,
}

/// What the last verification of a platter found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VerificationRow {
    /// When it was.
    pub(crate) at: UnixTime,
    /// Sectors read.
    pub(crate) sectors: u64,
    /// Sectors that could not be.
    pub(crate) failed: u64,
    /// How far the others are from failing, where the medium decodes.
    pub(crate) margins: Option<SectorMargins>,
}

/// What it found in a track: a byte for each sector, as [`fulgurite_glass::SectorReading`] has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrackRow(pub(crate) Vec<u8>);

/// One shard of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanRow {
    /// Where its body waits.
    pub(crate) place: u64,
    /// The body.
    pub(crate) body_id: ObjectId,
    /// Bytes of the body's ciphertext.
    pub(crate) body_bytes: u64,
    /// User byte of the platter.
    pub(crate) offset: u64,
    /// Byte of the body's ciphertext.
    pub(crate) body_offset: u64,
    /// How many there are.
    pub(crate) bytes: u64,
    /// Length of its sealed entry in the platter's file list.
    pub(crate) sealed_bytes: u32,
    /// CRC-64/NVME of the shard as it was written; noted for bodies of more than one shard.
    pub(crate) crc: Option<u64>,
}

/// Where a platter belongs that goes to another site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarRow {
    /// Name of the library.
    pub(crate) library: String,
    /// Whether it is there, was read back and is this archive's no longer to keep. Before that it
    /// is at home.
    pub(crate) is_there: bool,
    /// Bytes of the platter.
    pub(crate) bytes: u64,
}

impl Row for PlanRow {
    const VERSION: u8 = 4;

    fn older(version: u8, bytes: &[u8]) -> Read<Self> {
        match version {
            1 => read_as::<older_plans::PlanRow1, _>(bytes),
            _ => read_as::<older_plans::PlanRow3, _>(bytes),
        }
    }
}

impl Row for SetRow {
    const VERSION: u8 = 3;
}

impl Row for PlatterRow {
    const VERSION: u8 = 3;
}

impl Row for VerificationRow {
    const VERSION: u8 = 3;
}

impl Row for FarRow {
    const VERSION: u8 = 1;
}

impl Row for TrackRow {
    const VERSION: u8 = 3;
}

/// The key of a shard of a plan: its platter's position in the set, and its number there.
pub(crate) fn plan_key(set: SetId, position: u16, entry: u32) -> Vec<u8> {
    KeyWriter::new().fixed(&set.to_bytes()).u16(position).u32(entry).finish()
}

/// Plan rows of one platter of a set.
pub(crate) fn plan_of(set: SetId, position: u16) -> KeyRange {
    KeyRange::prefix(&KeyWriter::new().fixed(&set.to_bytes()).u16(position).finish())
}

/// The id that is the whole of a key.
pub(crate) fn id(key: &[u8]) -> Result<[u8; 16]> {
    let mut reader = KeyReader::new(key);
    let id = reader.fixed()?;
    reader.finish()?;
    Ok(id)
}

/// The key of a slot.
pub(crate) fn slot_key(slot: u32) -> Vec<u8> {
    KeyWriter::new().u32(slot).finish()
}

/// The row under `key`.
pub(crate) fn get<T: Row>(view: &dyn ReadView, space: Space, key: &[u8]) -> Result<Option<T>> {
    Ok(row::get(view, space, key)?)
}

/// Writes `row` under `key`.
pub(crate) fn put<T: Row>(
    tx: &mut Transaction<'_>,
    space: Space,
    key: Vec<u8>,
    row: &T,
) -> Result<()> {
    Ok(row::put(tx, space, key, row)?)
}

/// At most `limit` rows of `range` with their keys, the first ones.
pub(crate) fn rows_in<T: Row>(
    view: &dyn ReadView,
    space: Space,
    range: &KeyRange,
    limit: usize,
) -> Result<Vec<(Vec<u8>, T)>> {
    Ok(row::rows_in(view, space, range, limit)?)
}

/// Rows, and the keys of those that cannot be read, each with what is wrong with it.
pub(crate) struct Readable<T> {
    pub(crate) rows: Vec<(Vec<u8>, T)>,
    pub(crate) unreadable: Vec<(Vec<u8>, String)>,
}

/// All rows of a space that can be read. One that cannot is the catalog's damage, which the view is
/// told, and no reason to do nothing with the others.
pub(crate) fn readable<T: Row>(view: &dyn ReadView, space: Space) -> Result<Readable<T>> {
    let mut found = Readable { rows: Vec::new(), unreadable: Vec::new() };
    let all = KeyRange::prefix(b"");
    for (key, value) in view.range(space, &all, Direction::Ascending, usize::MAX)? {
        match row::decode_of(view, space, &value) {
            Ok(row) => found.rows.push((key, row)),
            Err(error) => found.unreadable.push((key, error_chain(&error))),
        }
    }
    Ok(found)
}

/// The row under `key`, or what is wrong with it, of which the view is told.
pub(crate) fn look<T: Row>(
    view: &dyn ReadView,
    space: Space,
    key: &[u8],
) -> Result<Result<Option<T>, String>> {
    let Some(value) = view.get(space, key)? else { return Ok(Ok(None)) };
    Ok(row::decode_of(view, space, &value).map(Some).map_err(|error| error_chain(&error)))
}

/// The row in these bytes.
pub(crate) fn decode<T: Row>(space: Space, bytes: &[u8]) -> Result<T> {
    Ok(row::decode(space, bytes)?)
}

/// Counts shards that no body needs any more off their platters.
pub(crate) fn dead(tx: &mut Transaction<'_>, shards: &[Shard]) -> Result<()> {
    for shard in shards {
        let key = shard.platter.to_bytes().to_vec();
        if let Some(mut platter) = row::get::<PlatterRow>(tx, PLATTERS, &key)? {
            platter.live_bytes = platter.live_bytes.saturating_sub(shard.bytes);
            row::put(tx, PLATTERS, key, &platter)?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) use self::tests::sample_rows;
#[cfg(test)]
mod tests;
