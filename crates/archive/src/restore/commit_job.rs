//! The job that makes complete copies readable: syncs all that wait together, and commits them
//! (group commit).

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use fulgurite_catalog::Transaction;
use fulgurite_restore::RestoreId;
use fulgurite_units::{Duration, ObjectId, UnixTime, error_chain};

use super::copy_task::CompleteCopy;
use super::{Message, expiry};
use crate::bodies::log::{Extent, LogKind, LogWriter};
use crate::jobs::{Failed, Job, JobRun, Next, Pace};
use crate::limits::{JOB_BACKOFF_MAX, JOB_TICK, RESTORE_COMMITS_MAX};
use crate::rows::accounting::account;
use crate::rows::lookup::find_object;
use crate::rows::{
    self, BODIES, BodyRow, EXPIRIES, ExpiryRow, OBJECTS, RESTORES, RestoreMark, RestoreRow,
};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// The outcome of a copy.
#[derive(Debug)]
pub(crate) enum CopyOutcome {
    /// It is readable, or its object is gone.
    Done,
    /// Nothing of it was kept.
    Lost,
}

/// Syncs and commits copies.
#[derive(Debug)]
pub(super) struct CommitJob {
    state: Arc<ArchiveState>,
    copies: Receiver<(RestoreId, CompleteCopy)>,
}

impl CommitJob {
    pub(super) fn new(
        state: &Arc<ArchiveState>,
        copies: Receiver<(RestoreId, CompleteCopy)>,
    ) -> Self {
        Self { state: Arc::clone(state), copies }
    }
}

impl Job for CommitJob {
    fn name(&self) -> String {
        "restore-commit".to_owned()
    }

    fn pace(&self) -> Pace {
        Pace { tick: None, backoff: JOB_TICK, backoff_max: JOB_BACKOFF_MAX }
    }

    fn failing(&self) -> &'static str {
        "restored copies are not committed"
    }

    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed> {
        let group: Vec<_> = self.copies.try_iter().take(RESTORE_COMMITS_MAX).collect();
        if group.is_empty() {
            return Ok(Next::Tick);
        }
        run.doing("committing restored copies");
        let ids: Vec<RestoreId> = group.iter().map(|(id, _)| *id).collect();
        // A panic is caught here, because the restorer must get an answer.
        let ended = self.state.runtime.panics.catch("restoring", || commit_all(&self.state, group));
        let ended =
            ended.unwrap_or_else(|_| ids.into_iter().map(|id| (id, CopyOutcome::Lost)).collect());
        self.state.runtime.job_handles.restore.send(Message::Ended(ended));
        Ok(Next::Again)
    }
}

fn commit_all(
    state: &ArchiveState,
    group: Vec<(RestoreId, CompleteCopy)>,
) -> Vec<(RestoreId, CopyOutcome)> {
    let writers = group.iter().flat_map(|(_, whole)| whole.reservations.iter());
    if let Err(error) = LogWriter::sync_many(writers.map(|reservation| &*reservation.writer)) {
        log_error(&error);
        return group.into_iter().map(|(id, _)| (id, CopyOutcome::Lost)).collect();
    }
    // All are submitted before the first result is awaited, so that they share syncs.
    let mut waiting = Vec::new();
    for (id, CompleteCopy { object, row, copies, reservations }) in group {
        let (now, day) = (state.now(), state.config.day);
        let commit = move |tx: &mut Transaction<'_>| -> Result<bool> {
            commit_copies(tx, object, &row, copies, now, day)
        };
        waiting.push((id, state.committer.submit_blocking(commit), reservations));
    }
    let mut ended = Vec::new();
    for (id, ticket, reservations) in waiting {
        let outcome = ticket.wait();
        // If the catalog failed during the write, it is unknown whether the rows exist.
        let is_kept = match &outcome {
            Ok(is_there) => *is_there,
            Err(ArchiveError::Catalog(error)) => error.is_outcome_unknown(),
            Err(_) => false,
        };
        if is_kept {
            reservations.iter().for_each(|reservation| reservation.writer.keep());
        }
        state.runtime.fail.pass("restore-committed");
        let end = match outcome {
            Ok(_) => CopyOutcome::Done,
            Err(error) => {
                log_error(&error);
                CopyOutcome::Lost
            }
        };
        ended.push((id, end));
    }
    ended
}

fn log_error(error: &ArchiveError) {
    if !matches!(error, ArchiveError::Stopping) {
        let error = error_chain(error);
        tracing::error!(error, "cannot commit a restored copy; it is fetched again");
    }
}
/// Makes the copies of one object readable; `false` when the object is gone, or already has its
/// copy.
fn commit_copies(
    tx: &mut Transaction<'_>,
    object_id: ObjectId,
    row: &RestoreRow,
    copied: Vec<(u32, ObjectId, Vec<Extent>)>,
    now: UnixTime,
    day: Duration,
) -> Result<bool> {
    let name = &row.name;
    let found =
        find_object(tx, &name.bucket, &name.key)?.filter(|object| object.object_id == object_id);
    // An earlier commit with unknown outcome may have made a copy readable, and the object was
    // fetched again.
    let wanted = found.and_then(|object| {
        let mark = object.restore.filter(|mark| mark.expiry.is_none())?;
        Some((object, mark))
    });
    let Some((mut object, mark)) = wanted else {
        tx.delete(RESTORES, object_id.to_bytes())?;
        return Ok(false);
    };
    for (index, body_id, extents) in copied {
        let body_key = rows::body_key(object_id, index);
        let Some(mut body) = rows::get::<BodyRow>(tx, BODIES, &body_key)? else { continue };
        assert_eq!(body.body_id, body_id, "a body keeps its index in its object");
        account(tx, LogKind::Restored, &extents, true)?;
        body.restored = Some(extents);
        rows::put(tx, BODIES, body_key, &body)?;
    }
    // The days count from the request, but a late copy still gets its full number of days.
    let from_request = expiry(mark.requested, mark.days, day);
    let end = if from_request > now { from_request } else { expiry(now, mark.days, day) };
    object.restore = Some(RestoreMark { expiry: Some(end), ..mark });
    rows::put(tx, OBJECTS, rows::object_key_of(name), &object)?;
    let place = ExpiryRow { name: name.clone() };
    rows::put(tx, EXPIRIES, rows::expiry_key(end, object_id), &place)?;
    tx.delete(RESTORES, object_id.to_bytes())?;
    rows::with_totals(tx, |totals| {
        totals.restores_waiting -= 1;
        totals.restored += 1;
    })?;
    Ok(true)
}
