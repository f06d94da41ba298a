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
use crate::InformationTrack;
use crate::PlatterSource;
use crate::audit::Audit;
use crate::geometry::{TrackMap, TrackRole};
use crate::medium::{Medium, SectorReading};
use crate::reader::PlatterReader;
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

/// A verification under way. It can rest behind any track and go on later, in another drive too:
/// what it found is kept. After an error it is of no use.
///
/// ```text
/// begin -> step: track 0, 1, 2 ... last -> step: each failed track with its large group -> finish
///               '-- a rest is possible between any two steps --'
/// ```
pub struct Verification {
    report: VerifyReport,
    map: TrackMap,
    audit: Option<Audit>,
    margins: MarginCounts,
    digest: RunningChecksum,
    /// Information tracks that failed, and how many of them were tried with their large groups.
    suspects: Vec<InformationTrack>,
    tried: usize,
    found: Sectors,
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
    /// The verification of a platter of which nothing was read yet.
    ///
    /// # Errors
    /// When its geometry has no codes.
    pub fn begin<R: PlatterSource>(reader: &PlatterReader<R>) -> Result<Self, GlassError> {
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
            audit: Audit::new(reader.header.format, &reader.map)?,
            margins: MarginCounts::new(),
            digest: RunningChecksum::new(),
            suspects: Vec::new(),
            tried: 0,
            found: Sectors::default(),
        })
    }

    /// Physical tracks that are done with: the last one only when the large groups are, too.
    #[must_use]
    pub const fn tracks_done(&self) -> u32 {
        let is_reading = self.report.tracks < self.map.tracks();
        let is_done = !is_reading && self.tried == self.suspects.len();
        if is_reading || is_done { self.report.tracks } else { self.report.tracks - 1 }
    }

    /// Reads the next track, or tries the next failed one with its large group; `false` when there
    /// was nothing left to do.
    ///
    /// # Errors
    /// When the source or the medium fails. Unreadable tracks are in the report.
    pub fn step<R: PlatterSource>(
        &mut self,
        reader: &PlatterReader<R>,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
    ) -> Result<bool, GlassError> {
        assert_eq!(reader.header.platter, self.report.platter, "a platter is verified by itself");
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
            Err(GlassError::Unreadable(_)) => self.report.unreadable.push(suspect),
            Err(error) => return Err(error),
        }
        self.tried += 1;
        Ok(true)
    }

    /// Adds what the pass found in a track.
    fn count<R: PlatterSource>(
        &mut self,
        reader: &PlatterReader<R>,
        scan: &TrackScan,
    ) -> Result<(), GlassError> {
        let geometry = &reader.header.geometry;
        let (report, found) = (&mut self.report, &self.found);
        if let Some(audit) = &mut self.audit {
            audit.track(scan.track, scan.role, &found.signatures)?;
        }
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

    /// What was found, when [`Self::step`] has nothing left to do.
    #[must_use]
    pub fn finish<R: PlatterSource>(mut self, reader: &PlatterReader<R>) -> VerifyReport {
        assert_eq!(self.tracks_done(), self.map.tracks(), "it is finished when it is done");
        self.report.margins = self.margins.sum();
        self.report.mismatched = self.audit.map(Audit::finish).unwrap_or_default();
        if self.report.failed_sectors == 0 {
            self.report.seal_matches = Some(self.digest.finish() == reader.seal().digest);
        }
        self.report
    }
}

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
        let mut verification = Verification::begin(self)?;
        let tracks = self.map.tracks();
        while verification.step(self, medium, buffer)? {
            progress(verification.tracks_done(), tracks);
        }
        Ok(verification.finish(self))
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
        let (mut digest, mut found) = (RunningChecksum::new(), Sectors::default());
        for track in (0..self.map.tracks()).map(TrackIndex::new) {
            map.tracks.push(self.scan_track(track, medium, buffer, &mut digest, &mut found)?);
        }
        Ok(map)
    }

    /// Reads one track as it comes in a pass; `digest` runs over all good sectors.
    fn scan_track(
        &self,
        track: TrackIndex,
        medium: &dyn Medium,
        buffer: &mut TrackBuffer,
        digest: &mut RunningChecksum,
        found: &mut Sectors,
    ) -> Result<TrackScan, GlassError> {
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
