//! Rows of the glass tier in the catalog: keys and encodings.
//!
//! ```text
//! space       key                                   row
//! sets        set id                                SetRow
//! faults      set id                                times that it failed by its own fault
//! platters    platter id                            PlatterRow
//! verified    platter id                            VerificationRow: the last one
//! margins     platter id, track                     TrackRow: of tracks not simply read
//! plans       set id, position, entry               PlanRow
//! slots       slot                                  platter id
//! far         platter id                            FarRow: the far library it belongs to
//! ```
//!
//! Docs/formats/rows.md has the bytes. Rows of bodies refer to places on platters, and are not
//! here.

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::row::{self, Row};
use fulgurite_catalog::{Direction, KeyRange, ReadView, Space, Transaction};
use fulgurite_platter::{Geometry, SectorMargins};
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
/// Their results per track.
pub(crate) const MARGINS: Space = Space::new("margins");
/// Plans of sets that are not released.
pub(crate) const PLANS: Space = Space::new("plans");
/// Slots that are taken.
pub(crate) const SLOTS: Space = Space::new("slots");
/// Platters that belong to far libraries.
pub(crate) const FAR: Space = Space::new("far");

/// Every space of the glass tier.
pub const SPACES: [Space; 8] = [SETS, FAULTS, PLATTERS, VERIFIED, MARGINS, PLANS, SLOTS, FAR];

/// The state of a platter-set. Each state is entered by one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum SetState {
    /// The plan is complete; platters may be half written.
    Planned,
    /// Every platter is written and sealed.
    Written,
    /// Every platter was read back completely.
    Verified,
    /// Every platter is in its slot.
    Stored,
    /// Rows point at glass; the staged copies are free.
    Released,
}

impl SetState {
    /// Its name, for display.
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
    /// Its state.
    pub(crate) state: SetState,
    /// Geometry of the platters and the set, as planned.
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
    /// Bodies whose staged bytes were damaged when they were written; never released.
    pub(crate) damaged: Vec<ObjectId>,
}

impl SetRow {
    /// Returns all platters with their positions in the set: information platters first.
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
    /// The set it belongs to.
    pub(crate) set: SetId,
    /// Position in the set: information platters first.
    pub(crate) position: u16,
    /// The slot where it is kept.
    pub(crate) slot: Option<u32>,
    /// Data bytes, without the file list, which follows them.
    pub(crate) data_bytes: u64,
    /// Bytes of the file list.
    pub(crate) list_bytes: u64,
    /// Number of entries in the file list.
    pub(crate) list_entries: u32,
    /// Ciphertext bytes on it that rows still refer to.
    pub(crate) live_bytes: u64,
    /// Information tracks that this platter alone could not give when it was verified.
    pub(crate) unreadable_tracks: Vec<u32>,
}

/// The result of the last verification of a platter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VerificationRow {
    /// The time of the verification.
    pub(crate) at: UnixTime,
    /// Sectors read.
    pub(crate) sectors: u64,
    /// Sectors that could not be read.
    pub(crate) failed: u64,
    /// Margins of the other sectors before they fail, if the medium decodes.
    pub(crate) margins: Option<SectorMargins>,
}

/// The result for a track: a byte for each sector, as [`fulgurite_platter::SectorReading`] defines
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrackRow(pub(crate) Vec<u8>);

/// One shard of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanRow {
    /// The place of its body in the queue.
    pub(crate) place: u64,
    /// The body.
    pub(crate) body_id: ObjectId,
    /// Ciphertext bytes of the body.
    pub(crate) body_bytes: u64,
    /// Its first user byte on the platter.
    pub(crate) offset: u64,
    /// Its first byte in the body's ciphertext.
    pub(crate) body_offset: u64,
    /// Number of bytes.
    pub(crate) bytes: u64,
    /// Length of its sealed entry in the platter's file list.
    pub(crate) sealed_bytes: u32,
    /// CRC-64/NVME of the shard as written; recorded for bodies of more than one shard.
    pub(crate) crc: Option<u64>,
}

/// The far library of a platter that goes to another site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarRow {
    /// Name of the library.
    pub(crate) library: String,
    /// Whether it is there and was read back, so that this archive no longer keeps it. Before that
    /// it is at home.
    pub(crate) is_there: bool,
    /// Bytes of the platter.
    pub(crate) bytes: u64,
}

impl Row for PlanRow {
    const VERSION: u8 = 1;
}

impl Row for SetRow {
    const VERSION: u8 = 1;
}

impl Row for PlatterRow {
    const VERSION: u8 = 1;
}

impl Row for VerificationRow {
    const VERSION: u8 = 1;
}

impl Row for FarRow {
    const VERSION: u8 = 1;
}

impl Row for TrackRow {
    const VERSION: u8 = 1;
}

/// Returns the key of a shard of a plan: its platter's position in the set, and its number there.
pub(crate) fn plan_key(set: SetId, position: u16, entry: u32) -> Vec<u8> {
    KeyWriter::new().fixed(&set.to_bytes()).u16(position).u32(entry).finish()
}

/// Returns the range of the plan rows of one platter of a set.
pub(crate) fn plan_range(set: SetId, position: u16) -> KeyRange {
    KeyRange::prefix(&KeyWriter::new().fixed(&set.to_bytes()).u16(position).finish())
}

/// Parses a key that is only an id.
pub(crate) fn id(key: &[u8]) -> Result<[u8; 16]> {
    let mut reader = KeyReader::new(key);
    let id = reader.fixed()?;
    reader.finish()?;
    Ok(id)
}

/// Returns the key of a slot.
pub(crate) fn slot_key(slot: u32) -> Vec<u8> {
    KeyWriter::new().u32(slot).finish()
}

/// Reads the row under `key`.
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

/// Returns the first rows of `range` with their keys, at most `limit`.
pub(crate) fn rows_in<T: Row>(
    view: &dyn ReadView,
    space: Space,
    range: &KeyRange,
    limit: usize,
) -> Result<Vec<(Vec<u8>, T)>> {
    Ok(row::rows_in(view, space, range, limit)?)
}

/// Rows, and the keys of unreadable ones with their errors.
pub(crate) struct Readable<T> {
    pub(crate) rows: Vec<(Vec<u8>, T)>,
    pub(crate) unreadable: Vec<(Vec<u8>, String)>,
}

/// Reads all rows of a space that can be read. An unreadable row is reported to the view as damage
/// of the catalog; the others are still used.
pub(crate) fn readable<T: Row>(view: &dyn ReadView, space: Space) -> Result<Readable<T>> {
    let mut found = Readable { rows: Vec::new(), unreadable: Vec::new() };
    let all = KeyRange::prefix(b"");
    for (key, value) in view.range(space, &all, Direction::Ascending, usize::MAX)? {
        match row::decode_row(view, space, &value) {
            Ok(row) => found.rows.push((key, row)),
            Err(error) => found.unreadable.push((key, error_chain(&error))),
        }
    }
    Ok(found)
}

/// Reads the row under `key`, or returns the error, which is also reported to the view.
pub(crate) fn get_readable<T: Row>(
    view: &dyn ReadView,
    space: Space,
    key: &[u8],
) -> Result<Result<Option<T>, String>> {
    let Some(value) = view.get(space, key)? else { return Ok(Ok(None)) };
    Ok(row::decode_row(view, space, &value).map(Some).map_err(|error| error_chain(&error)))
}

/// Decodes a row.
pub(crate) fn decode<T: Row>(space: Space, bytes: &[u8]) -> Result<T> {
    Ok(row::decode(space, bytes)?)
}

/// Subtracts shards that no body needs any more from the live bytes of their platters.
pub(crate) fn release_shards(tx: &mut Transaction<'_>, shards: &[Shard]) -> Result<()> {
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
