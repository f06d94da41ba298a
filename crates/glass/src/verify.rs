//! Reading a whole platter once, as every later read will read it: is each byte safe, and by how
//! much?
//!
//! One pass in the order of the file. Counting failed sectors is enough to know that a track can
//! be restored within itself, so nothing is decoded in the pass; tracks with more failures are
//! tried with their large group afterwards. That the redundancy is worth anything is told from
//! signatures, see [`crate::audit`].

use std::fmt;

use fulgurite_codes::{CHECKSUM_BYTES, RunningChecksum, Signature, signature};
use fulgurite_units::{PlatterId, TrackIndex};
use serde::{Deserialize, Serialize};

use crate::GlassError;
use crate::audit::Audit;
use crate::geometry::{InformationTrack, TrackRole};
use crate::medium::{Medium, SectorReading};
use crate::reader::{PlatterReader, PlatterSource};
use crate::sector::payload;
use crate::track::TrackBuffer;

/// What a pass over the platter found in one physical track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrackScan {
    /// The physical track.
    pub track: TrackIndex,
    /// What it holds.
    pub role: TrackRole,
    /// Its sectors.
    pub sectors: u16,
    /// Those of them that failed.
    pub failed: u16,
}

/// What verification found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// The platter.
    pub platter: PlatterId,
    /// Physical tracks read.
    pub tracks: u32,
    /// Sectors read.
    pub sectors: u64,
    /// Sectors that failed.
    pub failed_sectors: u64,
    /// Failures that the worst track could still have had before its own redundancy was used up;
    /// negative when it was. Header tracks have no redundancy of this kind and do not count.
    pub worst_margin: i32,
    /// Information tracks that needed their large group and came back.
    pub repaired_by_group: u32,
    /// Information tracks that this platter's codes cannot bring back.
    pub unreadable: Vec<InformationTrack>,
    /// How far the sectors that were read are from failing; `None` when the medium does not decode.
    pub margins: Option<SectorMargins>,
    /// What became of each sector of the tracks of which there is more to say than that all were
    /// read: of every track, where the medium decodes.
    #[serde(skip)]
    pub readings: Vec<(TrackIndex, Vec<SectorReading>)>,
    /// Bytes read in the pass.
    pub bytes: u64,
    /// Physical tracks whose redundancy, within the track or of the large group, is not what their
    /// information makes: it was wrong before it was written.
    pub mismatched: Vec<TrackIndex>,
    /// Whether the sectors are those that the final record was made over; `None` when a sector
    /// failed, because then it cannot be told.
    pub seal_matches: Option<bool>,
}

/// How much more the sectors of a platter could have borne, in hundredths of the decoder's effort
/// that were left: 100 for a sector read without an error, towards 0 for one that is lost next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectorMargins {
    /// Sectors that were decoded.
    pub sectors: u64,
    /// That of the worst of them.
    pub least: u8,
    /// That which a tenth of them do not reach.
    pub tenth: u8,
    /// That which half of them do not reach.
    pub median: u8,
}

/// How many sectors have which margin.
struct MarginCounts([u64; 101]);

impl MarginCounts {
    const fn new() -> Self {
        Self([0; 101])
    }

    fn add(&mut self, reading: SectorReading) {
        match reading {
            SectorReading::Read { margin: Some(margin) } => {
                self.0[usize::from(margin.min(100))] += 1;
            }
            SectorReading::Read { margin: None } | SectorReading::Lost => {}
        }
    }

    /// Their sum; `None` of none.
    fn sum(&self) -> Option<SectorMargins> {
        let sectors: u64 = self.0.iter().sum();
        // The margin of the sector with so many worse ones.
        let at = |worse: u64| {
            let mut seen = 0;
            (0u8..).zip(&self.0).find_map(|(margin, count)| {
                seen += count;
                (seen > worse).then_some(margin)
            })
        };
        Some(SectorMargins {
            sectors,
            least: at(0)?,
            tenth: at(sectors / 10)?,
            median: at(sectors / 2)?,
        })
    }
}

impl VerifyReport {
    /// Whether every user byte of the platter can be read.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.unreadable.is_empty() && self.mismatched.is_empty() && self.seal_matches != Some(false)
    }
}

/// Which sectors of a platter are good, for people and for `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SectorMap {
    /// The platter.
    pub platter: PlatterId,
    /// Each physical track.
    pub tracks: Vec<TrackScan>,
}

/// What a pass found in the sectors of a track.
#[derive(Default)]
struct Sectors {
    /// Of their payloads, `None` for those that failed.
    signatures: Vec<Option<Signature>>,
    readings: Vec<SectorReading>,
}

/// What gets each track of a pass.
type TrackSink<'a> = dyn FnMut(&TrackScan, &Sectors) -> Result<(), GlassError> + 'a;

impl<R: PlatterSource> PlatterReader<R> {
    /// Reads the whole platter and reports what every later read has to expect. `progress` gets
    /// tracks read and tracks in all.
    ///
    /// # Errors
    /// When the source fails. Unreadable tracks are in the report.
    pub fn verify(
        &self,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<VerifyReport, GlassError> {
        let geometry = &self.header.geometry;
        let redundancy = i32::from(geometry.track_redundancy_sectors);
        let tracks = self.map.tracks();
        let mut report = VerifyReport {
            platter: self.header.platter,
            tracks,
            sectors: 0,
            failed_sectors: 0,
            worst_margin: redundancy,
            repaired_by_group: 0,
            unreadable: Vec::new(),
            margins: None,
            readings: Vec::new(),
            bytes: 0,
            mismatched: Vec::new(),
            seal_matches: None,
        };
        let mut suspects = Vec::new();
        let mut audit = Audit::new(self.header.format, &self.map)?;
        let mut margins = MarginCounts::new();
        let plain = SectorReading::Read { margin: None };
        let digest = self.scan(medium, buffer, &mut |scan, sectors| {
            if let Some(audit) = &mut audit {
                audit.track(scan.track, scan.role, &sectors.signatures)?;
            }
            sectors.readings.iter().for_each(|reading| margins.add(*reading));
            if sectors.readings.iter().any(|reading| *reading != plain) {
                report.readings.push((scan.track, sectors.readings.clone()));
            }
            report.sectors += u64::from(scan.sectors);
            report.failed_sectors += u64::from(scan.failed);
            report.bytes += geometry.track_image_bytes() as u64;
            let margin = redundancy - i32::from(scan.failed);
            match scan.role {
                TrackRole::Header(_) => {}
                TrackRole::Redundancy { .. } => {
                    report.worst_margin = report.worst_margin.min(margin)
                }
                TrackRole::Information(track) => {
                    report.worst_margin = report.worst_margin.min(margin);
                    if margin < 0 {
                        suspects.push(track);
                    }
                }
            }
            progress(scan.track.get() + 1, tracks);
            Ok(())
        })?;
        report.margins = margins.sum();
        report.mismatched = audit.map(Audit::finish).unwrap_or_default();
        if report.failed_sectors == 0 {
            report.seal_matches = Some(digest.finish() == self.seal().digest);
        }
        for track in suspects {
            match self.read_track(track, medium, buffer) {
                Ok(_) => report.repaired_by_group += 1,
                Err(GlassError::Unreadable(_)) => report.unreadable.push(track),
                Err(error) => return Err(error),
            }
        }
        Ok(report)
    }

    /// Which sectors can be read.
    ///
    /// # Errors
    /// When the source fails.
    pub fn sector_map(
        &self,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
    ) -> Result<SectorMap, GlassError> {
        let mut map = SectorMap { platter: self.header.platter, tracks: Vec::new() };
        self.scan(medium, buffer, &mut |scan, _| {
            map.tracks.push(*scan);
            Ok(())
        })?;
        Ok(map)
    }

    /// One pass over all tracks; returns the running checksum of all good sectors.
    fn scan(
        &self,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
        each: &mut TrackSink<'_>,
    ) -> Result<RunningChecksum, GlassError> {
        let count = self.header.geometry.track_sectors();
        let mut digest = RunningChecksum::new();
        let mut found = Sectors::default();
        for track in (0..self.map.tracks()).map(TrackIndex::new) {
            let mut failed = 0;
            found.signatures.clear();
            found.readings.clear();
            self.load_each(track, medium, buffer, |sector, read| match read {
                Ok(margin) => {
                    digest.update(&sector[sector.len() - CHECKSUM_BYTES..]);
                    found.signatures.push(Some(signature(payload(sector))));
                    found.readings.push(SectorReading::Read { margin });
                }
                Err(_) => {
                    failed += 1;
                    found.signatures.push(None);
                    found.readings.push(SectorReading::Lost);
                }
            })?;
            let role = self.map.role(track).unwrap_or_else(|| unreachable!("below tracks()"));
            each(&TrackScan { track, role, sectors: count, failed }, &found)?;
        }
        Ok(digest)
    }
}

impl fmt::Display for SectorMap {
    /// One line for each run of tracks of one kind that are all good, and for each other track.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = |scan: &TrackScan| match scan.role {
            TrackRole::Header(_) => "header",
            TrackRole::Information(_) => "information",
            TrackRole::Redundancy { .. } => "redundancy",
        };
        let alike =
            |a: &TrackScan, b: &TrackScan| a.failed == 0 && b.failed == 0 && kind(a) == kind(b);
        for run in self.tracks.chunk_by(alike) {
            let (first, last) = (&run[0], &run[run.len() - 1]);
            let good = first.sectors - first.failed;
            write!(f, "track {}", first.track)?;
            if run.len() > 1 {
                write!(f, " to {}", last.track)?;
            }
            write!(f, ": {}, {good} of {} sectors good", kind(first), first.sectors)?;
            writeln!(f, "{}", if run.len() > 1 { " each" } else { "" })?;
        }
        Ok(())
    }
}
