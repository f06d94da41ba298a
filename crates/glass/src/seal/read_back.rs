//! Reads back the platters of a set that was just written, and brings them to their slots.

use std::collections::BTreeMap;

use fulgurite_catalog::{Ticket, Transaction};
use fulgurite_platter::VerifyReport;
use fulgurite_units::{ErrorKind, PlatterId, SetId};

use super::Sealer;
use crate::rows::{self, PLATTERS, PlatterRow, SetRow, SetState};
use crate::verify::{mismatch, track_count};
use crate::{GlassError, Result, library_driver, verification};

/// The verdict on a set.
#[derive(Debug)]
pub(super) enum Verdict {
    Good,
    /// It is defective, for this reason, and has to be written again.
    Scrap(GlassError),
}

/// Judges a platter that was read completely. Unreadable tracks are no defect, because the set can
/// rebuild them.
fn verdict(platter: PlatterId, report: &VerifyReport) -> Verdict {
    let wrong = |reason: String| Verdict::Scrap(GlassError::PlatterUnreadable { platter, reason });
    if let Some(reason) = mismatch(report) {
        return wrong(reason);
    }
    if report.seal_matches == Some(false) {
        return wrong("it differs from its final record".to_owned());
    }
    Verdict::Good
}

impl Sealer {
    /// Has every platter of the set brought to a read drive, read completely, and brought on to its
    /// slot. The two go together, because a platter leaves the drive only for its slot; so each is
    /// brought on, whatever the result of the others.
    pub(super) fn verify(&self, set: SetId, row: &SetRow) -> Result<Verdict> {
        let platters: Vec<PlatterId> = row.platters().map(|(_, platter)| platter).collect();
        let slots = self.slots(&platters)?;
        let mut reading = Vec::new();
        for (&platter, &slot) in platters.iter().zip(&slots) {
            let (work, outcome) = self.verifier.verification(platter);
            let tracks = track_count(&self.context, row, platter)?;
            let answer = self.library.verify(platter, slot, tracks, work)?;
            reading.push((platter, slot, outcome, answer));
        }
        let mut carrying = Vec::new();
        let mut reports = BTreeMap::new();
        let (mut scrap, mut failed, mut recorded) = (None, None, Vec::new());
        for (platter, slot, outcome, answer) in reading {
            let brought = library_driver::wait(answer);
            carrying.push(self.library.store(platter, slot)?);
            let report = brought.and_then(|()| self.verifier.outcome(platter, &outcome));
            let verdict = report.and_then(|report| {
                // Not awaited yet: the results of the next platters share the same sync (group
                // commit).
                recorded.push(verification::record(&self.context, platter, &report)?);
                let verdict = verdict(platter, &report);
                let tracks = report.unreadable.iter().map(|track| track.get()).collect();
                reports.insert(platter, tracks);
                Ok(verdict)
            });
            match verdict {
                Ok(Verdict::Good) => {}
                Err(GlassError::Stopping) => return Err(GlassError::Stopping),
                Err(error) if error.kind() != ErrorKind::Corrupt => failed = Some(error),
                Ok(Verdict::Scrap(error)) | Err(error) => {
                    tracing::error!(%platter, %set, %error, "platter fails verification");
                    scrap = Some(error);
                }
            }
        }
        let carried: Vec<_> = carrying.into_iter().map(library_driver::wait).collect();
        if let Some(error) = scrap {
            return Ok(Verdict::Scrap(error));
        }
        failed.map_or(Ok(()), Err)?;
        carried.into_iter().collect::<Result<(), _>>()?;
        recorded.into_iter().try_for_each(Ticket::wait)?;
        self.record_unreadable(reports)?;
        self.advance(set, |row| row.state = SetState::Verified)?;
        self.context.fail.pass("seal-verified");
        Ok(Verdict::Good)
    }

    fn record_unreadable(&self, reports: BTreeMap<PlatterId, Vec<u32>>) -> Result<()> {
        self.context.committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<()> {
            for (platter, unreadable) in reports {
                let key = platter.to_bytes().to_vec();
                if let Some(mut row) = rows::get::<PlatterRow>(tx, PLATTERS, &key)? {
                    row.unreadable_tracks = unreadable;
                    rows::put(tx, PLATTERS, key, &row)?;
                }
            }
            Ok(())
        })
    }
}
