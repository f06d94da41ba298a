//! One restore: its bodies, the sources of their pieces, and the space reserved for the copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use fulgurite_catalog::KeyValue as _;
use fulgurite_glass::{cipher_crc, joined_crc};
use fulgurite_restore::{self as restore, Piece, TierIndex};
use fulgurite_units::{ByteCount, ErrorKind, Instant, ObjectId, PlatterId};

use crate::bodies::cipher::cipher_bytes;
use crate::bodies::log::{Extent, LogReader, LogWriter};
use crate::limits::{CHUNK_BYTES, RESTORE_COPIES_MAX, RESTORE_DAMAGED_ROUNDS, RESTORE_ROUNDS_MAX};
use crate::model::classes::TierName;
use crate::rows::lookup::{bodies, find_object};
use crate::rows::{self, BODIES, BodyRow, Place, RestoreRow, Shard};
use crate::space::Admission;
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// A restore that was submitted to the controller.
#[derive(Debug)]
pub(super) struct CopyTask {
    pub(super) object: ObjectId,
    pub(super) row: RestoreRow,
    parts: Vec<Part>,
    pieces: Vec<Source>,
    /// The CRC of each piece that has arrived.
    arrived: BTreeMap<u32, u64>,
    /// Reserved space, one for each part; empty until the restore begins.
    reservations: Vec<Reservation>,
    /// When its last failure was recorded.
    pub(super) recorded: Option<Instant>,
    pub(super) tries: RestoreFailures,
}

/// The failures of a restore.
#[derive(Clone, Debug, Default)]
pub(super) struct RestoreFailures {
    /// Times that all of it had to start over.
    rounds: u32,
    /// Whether a piece was found damaged since the last start.
    is_damaged: bool,
    /// The last failure; the last damage, if there was any.
    error: String,
}

impl RestoreFailures {
    /// Records the failure of a piece.
    pub(super) fn failed(&mut self, error: &str, kind: ErrorKind) {
        let is_damage = kind == ErrorKind::Corrupt;
        if is_damage || !self.is_damaged {
            error.clone_into(&mut self.error);
        }
        self.is_damaged |= is_damage;
    }

    /// Counts a restart; returns the error if the limit is reached.
    pub(super) fn end_round(&mut self) -> Option<String> {
        self.rounds += 1;
        let most = if self.is_damaged { RESTORE_DAMAGED_ROUNDS } else { RESTORE_ROUNDS_MAX };
        self.is_damaged = false;
        (self.rounds >= most).then(|| self.error.clone())
    }

    /// Counts a copy whose bytes differ from the ingested ones; returns the error if the limit is
    /// reached.
    pub(super) fn record_mismatch(&mut self, error: &str) -> Option<String> {
        self.rounds += 1;
        (self.rounds >= RESTORE_COPIES_MAX).then(|| error.to_owned())
    }
}

/// A body without a readable copy, and its index in its object.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) index: u32,
    pub(super) body: BodyRow,
}

/// Space reserved for a body; freed when dropped before its copy is committed.
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) writer: Arc<LogWriter>,
    /// Held until the copy is committed: its bytes are on the disk only after the last of them.
    _admission: Admission,
}

/// The source of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Glass {
        part: usize,
        shard: Shard,
    },
    /// A whole staged body, which needs no drive.
    Whole {
        part: usize,
    },
    /// A whole body in a tier of objects, by the controller's index of the tier.
    Tier {
        part: usize,
        tier: TierIndex,
    },
    /// No bytes: the piece of an object that needs nothing fetched.
    Nothing,
    /// The sources could not be determined.
    Unknown,
}

/// A complete copy on its way into the catalog.
#[derive(Debug)]
pub(super) struct CompleteCopy {
    pub(super) object: ObjectId,
    pub(super) row: RestoreRow,
    pub(super) copies: Vec<(u32, ObjectId, Vec<Extent>)>,
    pub(super) reservations: Vec<Reservation>,
}

impl CopyTask {
    /// Plans the restore of an object; `None` when the object is gone or was replaced.
    pub(super) fn find(
        state: &ArchiveState,
        object: ObjectId,
        row: RestoreRow,
    ) -> Result<Option<Self>> {
        let name = &row.name;
        // One snapshot: the object may be overwritten between reading its row and its bodies.
        let view = state.kv.snapshot();
        let found = find_object(&*view, &name.bucket, &name.key)?;
        let Some(of_row) = found.filter(|found| found.object_id == object) else {
            return Ok(None);
        };
        let all = (0..).zip(bodies(&*view, &of_row)?);
        let parts: Vec<Part> = all
            .filter(|(_, body)| body.restored.is_none())
            .map(|(index, body)| Part { index, body })
            .collect();
        let mut pieces = Vec::new();
        for (part, item) in parts.iter().enumerate() {
            match &item.body.place {
                Place::Log(_) => pieces.push(Source::Whole { part }),
                Place::Tier(tier) => {
                    pieces.push(Source::Tier { part, tier: index_of(state, tier)? });
                }
                Place::Glass(shards) => {
                    pieces.extend(shards.iter().map(|&shard| Source::Glass { part, shard }));
                }
            }
        }
        if pieces.is_empty() {
            pieces.push(Source::Nothing);
        }
        let (arrived, reservations) = (BTreeMap::new(), Vec::new());
        let tries = RestoreFailures::default();
        Ok(Some(Self { object, row, parts, pieces, arrived, reservations, recorded: None, tries }))
    }

    /// Creates a restore whose sources are unknown yet.
    pub(super) fn unknown(object: ObjectId, row: RestoreRow) -> Self {
        let (parts, pieces, arrived) = (Vec::new(), vec![Source::Unknown], BTreeMap::new());
        let (reservations, tries) = (Vec::new(), RestoreFailures::default());
        Self { object, row, parts, pieces, arrived, reservations, recorded: None, tries }
    }

    /// Returns its pieces, in the controller's terms.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let first = TierIndex::default();
        let whole = |part: usize| ByteCount::new(cipher_bytes(self.parts[part].body.bytes));
        let piece = |source: &Source| match *source {
            Source::Glass { shard, .. } => {
                let offset = Some(ByteCount::new(shard.offset));
                let bytes = ByteCount::new(shard.bytes);
                Piece { tier: first, place: Some(place(shard.platter)), offset, bytes }
            }
            Source::Whole { part } => {
                Piece { tier: first, place: None, offset: None, bytes: whole(part) }
            }
            Source::Tier { part, tier } => {
                Piece { tier, place: None, offset: None, bytes: whole(part) }
            }
            Source::Nothing | Source::Unknown => {
                Piece { tier: first, place: None, offset: None, bytes: ByteCount::ZERO }
            }
        };
        self.pieces.iter().map(piece).collect()
    }

    pub(super) fn source(&self, index: u32) -> Source {
        self.pieces[index as usize]
    }

    /// Reserves space for its bodies, if that was not done; `false` when the object is gone, or
    /// already has its copy.
    pub(super) fn begin(&mut self, state: &ArchiveState) -> Result<bool> {
        let name = &self.row.name;
        let found = find_object(&*state.kv, &name.bucket, &name.key)?;
        let found = found.filter(|found| found.object_id == self.object);
        if found.and_then(|found| found.restore).is_none_or(|mark| mark.expiry.is_some()) {
            return Ok(false);
        }
        if self.reservations.is_empty() {
            self.reservations =
                self.parts.iter().map(|part| reservation(state, part)).collect::<Result<_>>()?;
        }
        Ok(true)
    }

    /// Whether a file of its reserved space has failed, so that no piece can be written there.
    pub(super) fn has_failed_writer(&self) -> bool {
        self.reservations.iter().any(|reservation| reservation.writer.is_failed())
    }

    pub(super) fn writer(&self, part: usize) -> Arc<LogWriter> {
        Arc::clone(&self.reservations[part].writer)
    }

    pub(super) fn part(&self, part: usize) -> &Part {
        &self.parts[part]
    }

    /// Records that a piece has arrived.
    pub(super) fn record_piece(&mut self, index: u32, crc: u64) {
        self.arrived.insert(index, crc);
    }

    /// Frees its space and forgets its pieces.
    pub(super) fn discard(&mut self) {
        self.reservations.clear();
        self.arrived.clear();
    }

    /// Returns the copy if all of its pieces are intact, otherwise the error. It holds no space
    /// afterwards.
    pub(super) fn finish(&mut self) -> Result<CompleteCopy, String> {
        let mut pieces: BTreeMap<usize, Vec<(u64, u64, u64)>> = BTreeMap::new();
        for (index, source) in (0..).zip(&self.pieces) {
            let crc = self.arrived.get(&index).copied().unwrap_or_default();
            match *source {
                Source::Glass { part, shard } => {
                    pieces.entry(part).or_default().push((shard.body_offset, shard.bytes, crc));
                }
                Source::Whole { part } | Source::Tier { part, .. } => {
                    let bytes = cipher_bytes(self.parts[part].body.bytes);
                    pieces.entry(part).or_default().push((0, bytes, crc));
                }
                Source::Nothing | Source::Unknown => {}
            }
        }
        let reservations = std::mem::take(&mut self.reservations);
        self.arrived.clear();
        for (number, part) in self.parts.iter().enumerate() {
            let pieces = pieces.remove(&number).unwrap_or_default();
            let body = &part.body;
            let joined = joined_crc(&pieces, cipher_bytes(body.bytes));
            let is_empty = body.bytes == 0 && pieces.iter().all(|&(_, bytes, _)| bytes == 0);
            if joined != Some(body.digest) && !is_empty {
                return Err(format!("body {} is not what was ingested", body.body_id));
            }
        }
        let copies = self
            .parts
            .iter()
            .zip(&reservations)
            .map(|(part, reservation)| {
                (part.index, part.body.body_id, reservation.writer.extents())
            })
            .collect();
        Ok(CompleteCopy { object: self.object, row: self.row.clone(), copies, reservations })
    }
}

/// Converts a platter to the controller's place.
fn place(platter: PlatterId) -> restore::Place {
    restore::Place::new(u128::from_le_bytes(platter.to_bytes()))
}

/// Converts the controller's place to the platter.
pub(super) fn platter(place: restore::Place) -> PlatterId {
    PlatterId::from_bytes(place.get().to_le_bytes())
}

fn reservation(state: &ArchiveState, part: &Part) -> Result<Reservation> {
    let bytes = cipher_bytes(part.body.bytes);
    let admission = state.space.admit(bytes)?;
    let mut writer = state.restored.writer(part.body.body_id, bytes)?;
    writer.set_written(bytes);
    Ok(Reservation { writer: Arc::new(writer), _admission: admission })
}

/// Pins the staged bytes of a body, if they still exist. The row is read again after pinning,
/// because sealing may have released the bytes before.
fn pin_staged(state: &ArchiveState, object: ObjectId, part: &Part) -> Result<Option<LogReader>> {
    let Some(log) = part.body.in_log() else { return Ok(None) };
    let reader = state.log(log.kind).reader(log.extents.clone());
    let now: Option<BodyRow> = rows::get(&*state.kv, BODIES, &rows::body_key(object, part.index))?;
    Ok(now.is_some_and(|row| row.in_log().is_some()).then_some(reader))
}

/// Returns the controller's index of a tier: glass is the first, tiers of objects follow by name.
fn index_of(state: &ArchiveState, tier: &TierName) -> Result<TierIndex> {
    let known = state.tiers.get(tier)?.name();
    let before = state.tiers.iter().take_while(|item| item.name() != known).count();
    Ok(TierIndex(u32::try_from(before + 1).unwrap_or(u32::MAX)))
}

/// Copies a body that is still staged and returns its CRC; `None` when it has moved.
pub(super) fn copy_staged(
    state: &ArchiveState,
    object: ObjectId,
    part: &Part,
    writer: &LogWriter,
) -> Result<Option<u64>> {
    let Some(mut reader) = pin_staged(state, object, part)? else { return Ok(None) };
    let bytes = cipher_bytes(part.body.bytes);
    let mut crc = cipher_crc();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut done = 0;
    while done < bytes {
        let now = usize::try_from(bytes - done).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        reader.read_at(done, &mut buffer[..now])?;
        crc.update(&buffer[..now]);
        writer.write_at(done, &buffer[..now])?;
        done += now as u64;
    }
    let crc = crc.finalize();
    if crc != part.body.digest {
        let what = format!("body {}, staged, is not what was ingested", part.body.body_id);
        return Err(ArchiveError::Corrupt { what });
    }
    Ok(Some(crc))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rounds until a restore with such failures is given up, and the final error.
    fn rounds(failures: &[(&str, ErrorKind)]) -> (u32, String) {
        let mut tries = RestoreFailures::default();
        for round in 1.. {
            failures.iter().for_each(|&(error, kind)| tries.failed(error, kind));
            if let Some(error) = tries.end_round() {
                return (round, error);
            }
        }
        unreachable!("the restore is given up")
    }

    #[test]
    fn damage_is_given_up_sooner_than_unavailability() {
        let (damaged, away) = (("damaged", ErrorKind::Corrupt), ("away", ErrorKind::Unavailable));
        let soon = (RESTORE_DAMAGED_ROUNDS, "damaged".to_owned());
        assert_eq!(rounds(&[damaged]), soon);
        assert_eq!(rounds(&[damaged, away]), soon, "damage is the reported reason");
        assert_eq!(rounds(&[away, damaged]), soon);
        assert_eq!(rounds(&[away]), (RESTORE_ROUNDS_MAX, "away".to_owned()));
    }

    #[test]
    fn wrong_copies_are_retried_a_few_times() {
        let mut tries = RestoreFailures::default();
        let ends = (0..RESTORE_COPIES_MAX)
            .map(|_| tries.record_mismatch("other bytes"))
            .collect::<Vec<_>>();
        let (last, others) = ends.split_last().unwrap();
        assert!(others.iter().all(Option::is_none));
        assert_eq!(last.as_deref(), Some("other bytes"));
    }
}
