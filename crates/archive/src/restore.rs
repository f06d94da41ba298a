//! Restore: from a request row to a readable copy with an expiry.
//!
//! ```text
//! RestoreObject -> row in restores, object marked ongoing -> 202
//! restoring: queue --Asked--> fulgurite_restore::Restores --Fetch--> library -> drive
//!                                ^        |           -> tracks -> restored log
//!                                |      Commit -> CRC -> sync -> copies committed
//!                                '--- Came, Failed, Committed, Lost
//! ```
//!
//! The controller decides what is fetched when (design note 0020); this module drives it from the
//! rows, which alone define what is wanted. All shards fetched together from one platter are read
//! in one mount, each track once. A track that its own platter cannot return is reconstructed from
//! the platter's set. A failed restore stays requested: its row has the reason, and it is retried.
//! One that is given up is not requested any more: damaged bytes do not get better by rereading,
//! and data that is unreachable for hours needs an operator. A new request tries it again.

mod commit_job;
mod copy_task;
mod give_up;
mod log_file;
mod queue;
mod restorer;
pub(crate) mod watch;
mod worker_pool;

use std::sync::Arc;

use fulgurite_catalog::Transaction;
use fulgurite_units::{ObjectId, UnixTime};

pub(crate) use self::restorer::{Message, Restorer};
pub use self::watch::RestoreWatch;
use crate::bodies::cipher::cipher_bytes;
use crate::bodies::copies;
use crate::config::ExpeditedPolicy;
use crate::limits::{RESTORE_DAYS_MAX, RESTORE_QUEUE_MAX};
use crate::model::classes::Classes;
use crate::model::names::{BucketName, ObjectKey, ObjectName};
use crate::model::object::{RestoreOutcome, RestoreRequest, Retrieval, StorageClass};
use crate::objects::commit::delete_failed_row;
use crate::rows::lookup::require_object;
use crate::rows::{self, EXPIRIES, ExpiryRow, OBJECTS, RESTORES, RestoreMark, RestoreRow};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// Returns the expiry of a copy: `days` days of length `day` after `from`, rounded up to the next
/// midnight UTC.
pub(crate) fn expiry(from: UnixTime, days: u32, day: fulgurite_units::Duration) -> UnixTime {
    let day_ms = (day.as_nanos() / 1_000_000).max(1);
    let end = from.as_millis().saturating_add(day_ms.saturating_mul(u64::from(days)));
    UnixTime::from_millis(end.div_ceil(day_ms).saturating_mul(day_ms))
}

fn effective_retrieval(
    state: &ArchiveState,
    class: StorageClass,
    retrieval: Retrieval,
) -> Result<Retrieval> {
    match (class, retrieval, state.config.expedited) {
        (StorageClass::DeepArchive, Retrieval::Expedited, ExpeditedPolicy::Refuse) => {
            Err(ArchiveError::ExpeditedNotAvailable { class: class.name() })
        }
        (StorageClass::DeepArchive, Retrieval::Expedited, ExpeditedPolicy::Standard) => {
            Ok(Retrieval::Standard)
        }
        _ => Ok(retrieval),
    }
}

/// RestoreObject.
pub(crate) async fn request(
    state: &Arc<ArchiveState>,
    bucket: &BucketName,
    key: &ObjectKey,
    request: RestoreRequest,
) -> Result<RestoreOutcome> {
    if !(1..=RESTORE_DAYS_MAX).contains(&request.days) {
        return Err(ArchiveError::InvalidArgument {
            what: format!("Days must be a whole number from 1 to {RESTORE_DAYS_MAX}"),
        });
    }
    let current = require_object(&*state.kv, bucket, key)?;
    if !state.config.classes.needs_restore(current.class, &current.home) {
        return Err(ArchiveError::NotArchived { class: current.class.name() });
    }
    let retrieval = effective_retrieval(state, current.class, request.retrieval)?;
    if current.restore.is_none() {
        state.space.check(cipher_bytes(current.bytes))?;
    }
    let now = state.now();
    // An existing copy is checked before its expiry is extended.
    if current.restore.is_some_and(|mark| mark.expiry.is_some()) {
        let (state, bucket, key) = (Arc::clone(state), bucket.clone(), key.clone());
        let check = move || copies::check_before_extending(&state, &bucket, &key);
        let checked = tokio::task::spawn_blocking(check).await;
        checked.map_err(|e| ArchiveError::Internal {
            what: format!("the check of a copy panicked: {e}"),
        })??;
    }
    let mark = RestoreMark { days: request.days, retrieval, requested: now, expiry: None };
    let day = state.config.day;
    let (bucket, key) = (bucket.clone(), key.clone());
    let shared = Arc::clone(state);
    let commit = move |tx: &mut Transaction<'_>| {
        accept(tx, &shared.config.classes, (&bucket, &key), mark, expiry(now, mark.days, day))
    };
    let task_state = Arc::clone(state);
    // A separate task: if the client disconnected, the row would be committed and the restoring job
    // not notified.
    let accepted = tokio::spawn(async move {
        let outcome = task_state.committer.commit(commit).await;
        // After a commit with unknown outcome, the job finds the row when the catalog is reopened.
        if let Ok((RestoreOutcome::Accepted, object)) = &outcome {
            task_state.runtime.fail.pass("restore-accepted");
            task_state.request_restore(*object);
        }
        outcome.map(|(outcome, _)| outcome)
    });
    accepted
        .await
        .map_err(|e| ArchiveError::Internal { what: format!("a request panicked: {e}") })?
}

fn accept(
    tx: &mut Transaction<'_>,
    classes: &Classes,
    (bucket, key): (&BucketName, &ObjectKey),
    mark: RestoreMark,
    new_expiry: UnixTime,
) -> Result<(RestoreOutcome, ObjectId)> {
    let mut object = require_object(tx, bucket, key)?;
    if !classes.needs_restore(object.class, &object.home) {
        return Err(ArchiveError::NotArchived { class: object.class.name() });
    }
    let name = ObjectName::new(bucket, key, object.version);
    let object_key = rows::object_key_of(&name);
    match object.restore {
        Some(RestoreMark { expiry: Some(old), .. }) if old > mark.requested => {
            tx.delete(EXPIRIES, rows::expiry_key(old, object.object_id))?;
            rows::put(
                tx,
                EXPIRIES,
                rows::expiry_key(new_expiry, object.object_id),
                &ExpiryRow { name },
            )?;
            object.restore = Some(RestoreMark { expiry: Some(new_expiry), ..mark });
            rows::put(tx, OBJECTS, object_key, &object)?;
            return Ok((RestoreOutcome::Extended, object.object_id));
        }
        Some(RestoreMark { expiry: Some(old), .. }) => {
            // Expired but not yet removed: what is left of the copy is reused.
            tx.delete(EXPIRIES, rows::expiry_key(old, object.object_id))?;
            rows::with_totals(tx, |totals| {
                totals.restored -= 1;
                totals.restores_waiting += 1;
            })?;
        }
        Some(ongoing) if mark.retrieval > ongoing.retrieval && mark.days == ongoing.days => {}
        Some(_) => return Err(ArchiveError::RestoreAlreadyInProgress),
        None => {
            let waiting = rows::with_totals(tx, |totals| {
                totals.restores_waiting += 1;
                totals.restores_waiting
            })?;
            if waiting > RESTORE_QUEUE_MAX as u64 {
                return Err(ArchiveError::Busy { what: "restores".to_owned() });
            }
        }
    }
    delete_failed_row(tx, object.object_id)?;
    object.restore = Some(mark);
    rows::put(tx, OBJECTS, object_key, &object)?;
    let row = RestoreRow { name, mark, failures: 0, error: None };
    rows::put(tx, RESTORES, object.object_id.to_bytes().to_vec(), &row)?;
    Ok((RestoreOutcome::Accepted, object.object_id))
}

#[cfg(test)]
mod tests;
