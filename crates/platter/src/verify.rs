//! Verifies a whole platter by reading it once, as every later read will: is each byte readable,
//! and with what margin?
//!
//! It is one pass in the order of the file. Counting failed sectors is enough to know whether a
//! track can be restored within itself, so the pass decodes nothing; tracks with more failures are
//! tried with their large group afterwards. Whether the redundancy is correct is checked from
//! signatures, see [`crate::audit`].

use std::fmt;

use fulgurite_codes::{CHECKSUM_BYTES, RunningChecksum, Signature, signature};
use fulgurite_units::{PlatterId, TrackIndex};
use serde::{Deserialize, Serialize};

use crate::InformationTrack;
use crate::PlatterError;
use crate::PlatterSource;
use crate::audit::Audit;
use crate::geometry::{TrackMap, TrackRole};
use crate::medium::{Medium, SectorReading};
use crate::reader::PlatterReader;
use crate::sector::payload;
use crate::track::TrackBuffer;

/// Result of a pass for one physical track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrackScan {
    /// Physical track.
    pub track: TrackIndex,
    /// Role of the track.
    pub role: TrackRole,
    /// Number of sectors.
    pub sectors: u16,
    /// Number of failed sectors.
    pub failed: u16,
}

/// Result of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// ID of the platter.
    pub platter: PlatterId,
    /// Number of physical tracks read.
    pub tracks: u32,
    /// Number of sectors read.
    pub sectors: u64,
    /// Number of failed sectors.
    pub failed_sectors: u64,
    /// Further failures that the worst track could have had before its own redundancy was
    /// exhausted; negative when it was. Header tracks have no redundancy of this kind and do not
    /// count.
    pub worst_margin: i32,
    /// Number of information tracks that needed their large group and were restored.
    pub repaired_by_group: u32,
    /// Information tracks that this platter's codes cannot restore.
    pub unreadable: Vec<InformationTrack>,
    /// Decoding margins of the sectors read; `None` when the medium does not decode.
    pub margins: Option<SectorMargins>,
    /// Result of each sector, for tracks where not all sectors were simply read; for every track,
    /// where the medium decodes.
    #[serde(skip)]
    pub readings: Vec<(TrackIndex, Vec<SectorReading>)>,
    /// Number of bytes read in the pass.
    pub bytes: u64,
    /// Physical tracks whose redundancy, within the track or of the large group, does not match
    /// their information: it was wrong before it was written.
    pub mismatched: Vec<TrackIndex>,
    /// Whether the sectors match the digest in the final record; `None` when a sector failed,
    /// because then it is unknown.
    pub seal_matches: Option<bool>,
}

/// Decoding margins of the sectors of a platter, as the unused part of the decoder's effort in
/// hundredths: 100 for a sector read without an error, close to 0 for one that may be lost next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectorMargins {
    /// Number of sectors that were decoded.
    pub sectors: u64,
    /// Margin of the worst sector.
    pub least: u8,
    /// 10th percentile of the margins.
    pub tenth: u8,
    /// Median of the margins.
    pub median: u8,
}

/// Histogram of margins.
struct MarginHistogram([u64; 101]);

impl MarginHistogram {
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

    /// Summarizes the margins; `None` if there are none.
    fn sum(&self) -> Option<SectorMargins> {
        let sectors: u64 = self.0.iter().sum();
        // Returns the margin of the sector that has `worse` worse ones.
        let margin = |worse: u64| {
            let mut seen = 0;
            (0u8..).zip(&self.0).find_map(|(margin, count)| {
                seen += count;
                (seen > worse).then_some(margin)
            })
        };
        Some(SectorMargins {
            sectors,
            least: margin(0)?,
            tenth: margin(sectors / 10)?,
            median: margin(sectors / 2)?,
        })
    }
}

impl VerifyReport {
    /// Whether every user byte of the platter can be read, and redundancy and final record match.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.unreadable.is_empty() && self.mismatched.is_empty() && self.seal_matches != Some(false)
    }
}

/// Which sectors of a platter are good, as text and for `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SectorMap {
    /// The platter.
    pub platter: PlatterId,
    /// All physical tracks.
    pub tracks: Vec<TrackScan>,
}

/// Results of a pass for the sectors of a track.
#[derive(Default)]
struct SectorResults {
    /// Signatures of the payloads, `None` for failed sectors.
    signatures: Vec<Option<Signature>>,
    readings: Vec<SectorReading>,
}

/// A verification in progress. It can pause after any track and resume later, also in another
/// drive: its results are kept. After an error it must be discarded.
///
/// ```text
/// begin -> step: track 0, 1, 2 ... last -> step: each failed track with its large group -> finish
///               '-- it can pause between any two steps --'
/// ```
pub struct Verification {
    report: VerifyReport,
    map: TrackMap,
    audit: Audit,
    margins: MarginHistogram,
    digest: RunningChecksum,
    /// Information tracks that failed, and how many of them were tried with their large groups.
    suspects: Vec<InformationTrack>,
    tried: usize,
    found: SectorResults,
}

impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification")
            .field("platter", &self.report.platter)
            .field("tracks", &self.report.tracks)
            .finish_non_exhaustive()
    }
}

impl Verification {
    /// Begins the verification of a platter.
    ///
    /// # Errors
    /// When its geometry has no codes.
    pub fn begin<R: PlatterSource>(reader: &PlatterReader<R>) -> Result<Self, PlatterError> {
        let redundancy = reader.header.geometry.track_redundancy_sectors;
        let report = VerifyReport {
            platter: reader.header.platter,
            tracks: 0,
            sectors: 0,
            failed_sectors: 0,
            worst_margin: i32::from(redundancy),
            repaired_by_group: 0,
            unreadable: Vec::new(),
            margins: None,
            readings: Vec::new(),
            bytes: 0,
            mismatched: Vec::new(),
            seal_matches: None,
        };
        Ok(Self {
            report,
            map: reader.map.clone(),
            audit: Audit::new(&reader.map)?,
            margins: MarginHistogram::new(),
            digest: RunningChecksum::new(),
            suspects: Vec::new(),
            tried: 0,
            found: SectorResults::default(),
        })
    }

    /// Returns the number of physical tracks that are done; the last one only counts after the
    /// large groups.
    #[must_use]
    pub const fn tracks_done(&self) -> u32 {
        let is_reading = self.report.tracks < self.map.tracks();
        let is_done = !is_reading && self.tried == self.suspects.len();
        if is_reading || is_done { self.report.tracks } else { self.report.tracks - 1 }
    }

    /// Reads the next track, or tries the next failed one with its large group. Returns `false`
    /// when nothing is left to do.
    ///
    /// # Errors
    /// When the source or the medium fails. Unreadable tracks are in the report.
    pub fn step<R: PlatterSource>(
        &mut self,
        reader: &PlatterReader<R>,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
    ) -> Result<bool, PlatterError> {
        assert_eq!(
            reader.header.platter, self.report.platter,
            "a verification reads one platter only"
        );
        if self.report.tracks < self.map.tracks() {
            let track = TrackIndex::new(self.report.tracks);
            let (digest, found) = (&mut self.digest, &mut self.found);
            let scan = reader.scan_track(track, medium, buffer, digest, found)?;
            self.count(reader, &scan)?;
            return Ok(true);
        }
        let Some(&suspect) = self.suspects.get(self.tried) else { return Ok(false) };
        match reader.read_track(suspect, medium, buffer) {
            Ok(_) => self.report.repaired_by_group += 1,
            Err(PlatterError::Unreadable(_)) => self.report.unreadable.push(suspect),
            Err(error) => return Err(error),
        }
        self.tried += 1;
        Ok(true)
    }

    /// Adds the results of a track.
    fn count<R: PlatterSource>(
        &mut self,
        reader: &PlatterReader<R>,
        scan: &TrackScan,
    ) -> Result<(), PlatterError> {
        let geometry = &reader.header.geometry;
        let (report, found) = (&mut self.report, &self.found);
        self.audit.track(scan.track, scan.role, &found.signatures)?;
        found.readings.iter().for_each(|reading| self.margins.add(*reading));
        let plain = SectorReading::Read { margin: None };
        if found.readings.iter().any(|reading| *reading != plain) {
            report.readings.push((scan.track, found.readings.clone()));
        }
        report.tracks += 1;
        report.sectors += u64::from(scan.sectors);
        report.failed_sectors += u64::from(scan.failed);
        report.bytes += geometry.track_image_bytes() as u64;
        let margin = i32::from(geometry.track_redundancy_sectors) - i32::from(scan.failed);
        match scan.role {
            TrackRole::Header(_) => {}
            TrackRole::Redundancy { .. } => report.worst_margin = report.worst_margin.min(margin),
            TrackRole::Information(track) => {
                report.worst_margin = report.worst_margin.min(margin);
                if margin < 0 {
                    self.suspects.push(track);
                }
            }
        }
        Ok(())
    }

    /// Returns the report, when [`Self::step`] has nothing left to do.
    #[must_use]
    pub fn finish<R: PlatterSource>(mut self, reader: &PlatterReader<R>) -> VerifyReport {
        assert_eq!(
            self.tracks_done(),
            self.map.tracks(),
            "a verification is finished only when all tracks are done"
        );
        self.report.margins = self.margins.sum();
        self.report.mismatched = self.audit.finish();
        if self.report.failed_sectors == 0 {
            self.report.seal_matches = Some(self.digest.finish() == reader.seal().digest);
        }
        self.report
    }
}

impl<R: PlatterSource> PlatterReader<R> {
    /// Reads the whole platter and reports what later reads can expect. `progress` gets the tracks
    /// done and the total number of tracks.
    ///
    /// # Errors
    /// When the source fails. Unreadable tracks are in the report.
    pub fn verify(
        &self,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<VerifyReport, PlatterError> {
        let mut verification = Verification::begin(self)?;
        let tracks = self.map.tracks();
        while verification.step(self, medium, buffer)? {
            progress(verification.tracks_done(), tracks);
        }
        Ok(verification.finish(self))
    }

    /// Returns which sectors can be read.
    ///
    /// # Errors
    /// When the source fails.
    pub fn sector_map(
        &self,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
    ) -> Result<SectorMap, PlatterError> {
        let mut map = SectorMap { platter: self.header.platter, tracks: Vec::new() };
        let (mut digest, mut found) = (RunningChecksum::new(), SectorResults::default());
        for track in (0..self.map.tracks()).map(TrackIndex::new) {
            map.tracks.push(self.scan_track(track, medium, buffer, &mut digest, &mut found)?);
        }
        Ok(map)
    }

    /// Reads one track of a pass; `digest` covers all good sectors.
    fn scan_track(
        &self,
        track: TrackIndex,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
        digest: &mut RunningChecksum,
        found: &mut SectorResults,
    ) -> Result<TrackScan, PlatterError> {
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
        Ok(TrackScan { track, role, sectors: self.header.geometry.track_sectors(), failed })
    }
}

impl fmt::Display for SectorMap {
    /// Writes one line for each run of good tracks of one kind, and for each other track.
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
