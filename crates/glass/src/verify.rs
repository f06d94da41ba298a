//! Reads platters completely: each on a drive, or later where decoding takes longer than a drive
//! waits.

use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_catalog::keys;
use fulgurite_glass_core::control::TrackSpan;
use fulgurite_platter::{PlatterReader, TrackBuffer, Verification, VerifyReport};
use fulgurite_tier::{Part, Progress};
use fulgurite_units::{PlatterId, SetId, SlotIndex, TrackIndex, error_chain};

use crate::context::Context;
use crate::far::{self, OpenPlatter};
use crate::library_driver::{self, LiveLibrary, Pace, Pass, Read, ReadDeadline, Verify};
use crate::medium::MediumHandle;
use crate::progress::platter_bytes;
use crate::rows::{self, PLATTERS, PlatterRow, SETS, SetRow, SetState};
use crate::status::VerifiedPlatter;
use crate::write_set::glass_error;
use crate::{GlassError, Result, verification};

/// Pause before a platter that could not be decoded is retried, and interval of checks whether to
/// stop.
const RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(10);
const STOP_POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// The result of a drive, once it is done.
pub(crate) type Outcome = Arc<Mutex<Option<Result<VerifyReport>>>>;

/// A platter in its slot, or in a library at another site.
#[derive(Clone, Debug)]
pub struct Stored {
    platter: PlatterId,
    /// `None` at another site, where it needs no machine of this library.
    slot: Option<SlotIndex>,
    set: SetId,
    tracks: u32,
    /// Bytes of all its tracks.
    pub bytes: u64,
    /// Why it cannot be read: its row in the catalog, or that of its set, is damaged.
    unreadable: Option<String>,
}

impl Stored {
    /// Creates a platter whose row, or whose set's row, cannot be read.
    fn unreadable(platter: PlatterId, set: SetId, reason: String) -> Self {
        let (slot, tracks, bytes, unreadable) = (None, 0, 0, Some(reason));
        Self { platter, slot, set, tracks, bytes, unreadable }
    }

    /// Returns the report of a platter that could not be read.
    fn failed(&self, reason: String) -> VerifiedPlatter {
        let (sectors, sectors_failed, margin_min, tracks_by_group) = (0, 0, 0, 0);
        VerifiedPlatter {
            platter: self.platter,
            set: self.set,
            sectors,
            sectors_failed,
            margin_min,
            tracks_by_group,
            tracks_unreadable: u64::from(self.tracks),
            sector_margins: None,
            error: Some(reason),
        }
    }
}

/// A verification in progress, with the platter open.
type Reading = (PlatterReader<OpenPlatter>, Verification);

/// Reads platters completely.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    context: Arc<Context>,
    library: LiveLibrary,
    medium: MediumHandle,
    progress: Arc<Progress>,
}

impl Verifier {
    /// Creates a verifier on this library, which counts what it reads.
    pub(crate) fn new(
        context: &Arc<Context>,
        library: &LiveLibrary,
        progress: &Arc<Progress>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            library: library.clone(),
            medium: MediumHandle::deferred(&context.medium),
            progress: Arc::clone(progress),
        }
    }

    /// Returns the result of a drive, or reads the platter later where decoding takes longer than a
    /// drive waits.
    pub(crate) fn outcome(&self, platter: PlatterId, outcome: &Outcome) -> Result<VerifyReport> {
        match outcome.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(Err(GlassError::Undecoded { .. })) => self.read_later(platter),
            None if self.context.medium.can_defer_decoding() => {
                let report = self.read_later(platter);
                self.context.fail.pass("verify-platter");
                report
            }
            Some(read) => read,
            None => Err(GlassError::Internal { what: "a drive read nothing".to_owned() }),
        }
    }

    /// Returns the work of a drive for the verification of a platter. It pauses when customers need
    /// the drive.
    pub(crate) fn verification(&self, platter: PlatterId) -> (Verify, Outcome) {
        let outcome = Outcome::default();
        let (verifier, shared) = (self.clone(), Arc::clone(&outcome));
        let mut paused: Option<Reading> = None;
        let mut part = self.progress.part();
        let mut is_done = self.context.medium.can_defer_decoding();
        let work = move |pace: &Pace| {
            if is_done {
                return Pass::Complete;
            }
            let report = match verifier.read_on(platter, (&mut paused, &mut part), pace) {
                Ok(None) => {
                    let done = paused.as_ref().map_or(0, |(_, found)| found.tracks_done());
                    return Pass::Paused { tracks_done: done };
                }
                Ok(Some(report)) => Ok(report),
                Err(error) => {
                    // A later read begins at its first track.
                    part.set(0);
                    Err(error)
                }
            };
            verifier.context.fail.pass("verify-platter");
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
            is_done = true;
            Pass::Complete
        };
        (Box::new(work), outcome)
    }

    /// Continues a verification; returns `None` if it has to pause.
    fn read_on(
        &self,
        platter: PlatterId,
        (paused, part): (&mut Option<Reading>, &mut Part),
        pace: &Pace,
    ) -> Result<Option<VerifyReport>> {
        let (reader, mut found) = match paused.take() {
            Some(reading) => reading,
            None => {
                let reader = self.open(platter)?;
                let begun = Verification::begin(&reader).map_err(glass_error(platter))?;
                (reader, begun)
            }
        };
        let mut buffer = TrackBuffer::new();
        let tracks = reader.map().tracks();
        let track_bytes = track_bytes(&reader);
        while found.step(&reader, &self.medium, &mut buffer).map_err(glass_error(platter))? {
            self.context.check_stopping()?;
            let done = found.tracks_done();
            part.set(u64::from(done) * track_bytes);
            if !pace.can_continue(done) && done < tracks {
                *paused = Some((reader, found));
                return Ok(None);
            }
        }
        Ok(Some(found.finish(&reader)))
    }

    pub(crate) fn open(&self, platter: PlatterId) -> Result<PlatterReader<OpenPlatter>> {
        let source = self.context.open_to_verify(platter)?;
        let expected = Some((self.context.archive, platter));
        PlatterReader::open(source, expected, &self.medium).map_err(glass_error(platter))
    }

    /// Reads a whole platter after its drive is done with it: its images wait for other machines,
    /// or for another hour. Nothing else can tell whether the platter is good, so it is retried
    /// forever.
    fn read_later(&self, platter: PlatterId) -> Result<VerifyReport> {
        let mut part = self.progress.part();
        loop {
            part.set(0);
            let error = match self.read_whole(platter, &mut part) {
                Err(error @ GlassError::Undecoded { .. }) => error,
                read => return read,
            };
            tracing::warn!(%platter, %error, "verification waits for the decode service");
            let retry_at = std::time::Instant::now() + RETRY_DELAY;
            while std::time::Instant::now() < retry_at {
                self.context.check_stopping()?;
                std::thread::sleep(STOP_POLL);
            }
        }
    }

    pub(crate) fn read_whole(&self, platter: PlatterId, part: &mut Part) -> Result<VerifyReport> {
        let reader = self.open(platter)?;
        let mut buffer = TrackBuffer::new();
        let track_bytes = track_bytes(&reader);
        let mut on_progress = |done: u32, _: u32| part.set(u64::from(done) * track_bytes);
        reader.verify(&self.medium, &mut buffer, &mut on_progress).map_err(glass_error(platter))
    }

    /// Reads a stored platter completely again. Defects of the platter are in the report.
    pub(crate) fn verify_stored(&self, stored: &Stored) -> Result<VerifiedPlatter> {
        self.context.check_stopping()?;
        if let Some(reason) = &stored.unreadable {
            return Ok(stored.failed(reason.clone()));
        }
        let &Stored { platter, slot, set, tracks, .. } = stored;
        let outcome = Outcome::default();
        let (verifier, shared) = (self.clone(), Arc::clone(&outcome));
        let mut part = self.progress.part();
        let work: Read = Box::new(move || {
            if verifier.context.medium.can_defer_decoding() {
                return;
            }
            let report = verifier.read_whole(platter, &mut part);
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        });
        let span = TrackSpan::new(TrackIndex::new(0), tracks);
        let brought = match slot {
            Some(slot) => {
                let answer =
                    self.library.read(platter, slot, span, ReadDeadline::OBJECTIVE, work)?;
                library_driver::wait(answer)
            }
            None => {
                work();
                Ok(())
            }
        };
        let report = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        let report = match (brought, report) {
            (Ok(()), None) if self.context.medium.can_defer_decoding() => {
                self.read_whole(platter, &mut self.progress.part())
            }
            (Ok(()), Some(read)) => read,
            (Err(GlassError::Stopping), _) => return Err(GlassError::Stopping),
            // If no machine brings this platter, the others can still be verified.
            (Err(error), _) => Err(error),
            (Ok(()), None) => Err(GlassError::Internal { what: "a drive read nothing".to_owned() }),
        };
        if let Ok(report) = &report {
            verification::record(&self.context, platter, report)?.wait()?;
        }
        Ok(match report {
            Ok(report) => VerifiedPlatter {
                platter,
                set,
                sectors: report.sectors,
                sectors_failed: report.failed_sectors,
                margin_min: u32::try_from(report.worst_margin).unwrap_or(0),
                tracks_by_group: u64::from(report.repaired_by_group),
                tracks_unreadable: report.unreadable.len() as u64,
                sector_margins: report.margins,
                error: mismatch(&report),
            },
            Err(error) => stored.failed(error_chain(&error)),
        })
    }
}

/// Returns the number of tracks of a platter of this set.
pub(crate) fn track_count(context: &Context, row: &SetRow, platter: PlatterId) -> Result<u32> {
    let found: Option<PlatterRow> = rows::get(&*context.catalog, PLATTERS, &platter.to_bytes())?;
    let bytes = found.map_or(0, |p| p.data_bytes + p.list_bytes);
    Ok(row.geometry.map(row.geometry.tracks_for(bytes)).tracks())
}

/// Returns the stored platters: one, or all.
pub(crate) fn stored_platters(context: &Context, only: Option<PlatterId>) -> Result<Vec<Stored>> {
    let all: rows::Readable<PlatterRow> = rows::readable(&*context.catalog, PLATTERS)?;
    let mut stored = Vec::new();
    for (key, reason) in all.unreadable {
        let platter = PlatterId::from_bytes(rows::id(&key)?);
        if only.is_none_or(|only| only == platter) {
            // Only the row named its set.
            let set = SetId::from_bytes([0; 16]);
            stored.push(Stored::unreadable(platter, set, damaged_row(&reason)));
        }
    }
    for (key, row) in all.rows {
        let platter = PlatterId::from_bytes(keys::KeyReader::new(&key).fixed::<16>()?);
        if only.is_some_and(|only| only != platter) {
            continue;
        }
        let slot = row.slot.map(SlotIndex::new);
        let is_far = || Ok::<_, GlassError>(far::place(&*context.catalog, platter)?.is_some());
        if slot.is_none() && !is_far()? {
            continue;
        }
        // A set in progress is verified by its sealing.
        let set = match rows::get_readable::<SetRow>(&*context.catalog, SETS, &row.set.to_bytes())?
        {
            Ok(set) => set,
            Err(reason) => {
                stored.push(Stored::unreadable(platter, row.set, damaged_row(&reason)));
                continue;
            }
        };
        if let Some(found) = set.filter(|set| set.state >= SetState::Stored) {
            let bytes = platter_bytes(&found.geometry, row.data_bytes + row.list_bytes);
            let set = row.set;
            let tracks = track_count(context, &found, platter)?;
            stored.push(Stored { platter, slot, set, tracks, bytes, unreadable: None });
        }
    }
    if let Some(only) = only.filter(|_| stored.is_empty()) {
        let what = format!("platter {only} is not stored in this archive");
        return Err(GlassError::InvalidArgument { what });
    }
    Ok(stored)
}

/// Returns the error of a platter whose row, or whose set's row, is damaged.
fn damaged_row(reason: &str) -> String {
    format!("the catalog is damaged: {reason}; stop the archive and run `fulgurite recover`")
}

/// Returns the bytes of each track of a platter.
fn track_bytes(reader: &PlatterReader<OpenPlatter>) -> u64 {
    reader.map().geometry().track_image_bytes() as u64
}

/// Returns what is wrong with the redundancy of a platter that was read completely, if anything.
pub(crate) fn mismatch(report: &VerifyReport) -> Option<String> {
    let tracks = report.mismatched.len();
    (tracks > 0).then(|| format!("the redundancy of {tracks} tracks does not match their data"))
}
