//! Results of the last verification of each platter, sector by sector, in the catalog.

use fulgurite_catalog::keys::{KeyReader, KeyWriter};
use fulgurite_catalog::{KeyRange, Ticket, Transaction};
use fulgurite_platter::{SectorMargins, SectorReading, VerifyReport};
use fulgurite_units::{PlatterId, UnixTime};
use serde::{Deserialize, Serialize};

use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::rows::{self, MARGINS, TrackRow, VERIFIED, VerificationRow};
use crate::{Context, GlassError, Result};

/// The last verification of a platter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// The platter.
    pub platter: PlatterId,
    /// The time of the verification.
    pub at: UnixTime,
    /// Sectors read.
    pub sectors: u64,
    /// Sectors that could not be read.
    pub sectors_failed: u64,
    /// How far the other sectors are from failing, if the medium decodes.
    pub sector_margins: Option<SectorMargins>,
    /// Physical tracks with more to report than that all of their sectors were read.
    pub tracks: Vec<VerifiedTrack>,
}

/// A track of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedTrack {
    /// The physical track.
    pub track: u32,
    /// Its sectors, the deepest first.
    pub sectors: Vec<VerifiedSector>,
}

/// A sector of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerifiedSector {
    /// It could not be read.
    Lost,
    /// It was read, from a medium that does not decode.
    Read,
    /// It was read, with this many hundredths of the decoder's effort left.
    Margin(u8),
}

impl From<SectorReading> for VerifiedSector {
    fn from(reading: SectorReading) -> Self {
        match reading {
            SectorReading::Lost => Self::Lost,
            SectorReading::Read { margin: None } => Self::Read,
            SectorReading::Read { margin: Some(margin) } => Self::Margin(margin),
        }
    }
}

/// Removes the results for a platter that no longer exists.
pub(crate) fn forget(context: &Context, platter: PlatterId) -> Result<()> {
    forget_tracks(context, platter)?;
    context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
        Ok(tx.delete(VERIFIED, platter.to_bytes())?)
    })
}

fn forget_tracks(context: &Context, platter: PlatterId) -> Result<()> {
    let all = KeyRange::prefix(&platter.to_bytes());
    loop {
        let old: Vec<(Vec<u8>, TrackRow)> =
            rows::rows_in(&*context.catalog, MARGINS, &all, ROWS_PER_TRANSACTION_MAX)?;
        if old.is_empty() {
            return Ok(());
        }
        context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            old.into_iter().try_for_each(|(key, _)| Ok(tx.delete(MARGINS, key)?))
        })?;
    }
}

/// Replaces the results for a platter; they are durable when the ticket completes. A crash in
/// between leaves only some of the tracks, and the verification unfinished: it is done again.
pub(crate) fn record(
    context: &Context,
    platter: PlatterId,
    report: &VerifyReport,
) -> Result<Ticket<(), GlassError>> {
    let id = platter.to_bytes();
    forget_tracks(context, platter)?;
    for tracks in report.readings.chunks(ROWS_PER_TRANSACTION_MAX) {
        let rows = tracks.iter().map(|(track, readings)| {
            let key = KeyWriter::new().fixed(&id).u32(track.get()).finish();
            (key, TrackRow(readings.iter().map(|reading| reading.to_byte()).collect()))
        });
        let rows: Vec<(Vec<u8>, TrackRow)> = rows.collect();
        context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            rows.into_iter().try_for_each(|(key, row)| rows::put(tx, MARGINS, key, &row))
        })?;
    }
    let row = VerificationRow {
        at: context.now(),
        sectors: report.sectors,
        failed: report.failed_sectors,
        margins: report.margins,
    };
    let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
        rows::put(tx, VERIFIED, id.to_vec(), &row)
    };
    Ok(context.committer.submit_blocking(commit))
}

/// Returns the results for a platter, or `None` if it was never verified.
pub(crate) fn load(context: &Context, platter: PlatterId) -> Result<Option<Verification>> {
    let view = context.catalog.snapshot();
    let Some(row) = rows::get::<VerificationRow>(&*view, VERIFIED, &platter.to_bytes())? else {
        return Ok(None);
    };
    let range = KeyRange::prefix(&platter.to_bytes());
    let rows: Vec<(Vec<u8>, TrackRow)> = rows::rows_in(&*view, MARGINS, &range, usize::MAX)?;
    let track = |(key, TrackRow(bytes)): (Vec<u8>, TrackRow)| {
        let mut key = KeyReader::new(&key);
        key.fixed::<16>()?;
        let sectors = bytes.into_iter().map(|byte| {
            SectorReading::from_byte(byte).map(VerifiedSector::from).ok_or_else(|| {
                GlassError::Corrupt { what: format!("{byte} is not a valid sector reading") }
            })
        });
        Ok(VerifiedTrack { track: key.u32()?, sectors: sectors.collect::<Result<_>>()? })
    };
    Ok(Some(Verification {
        platter,
        at: row.at,
        sectors: row.sectors,
        sectors_failed: row.failed,
        sector_margins: row.margins,
        tracks: rows.into_iter().map(track).collect::<Result<_>>()?,
    }))
}
