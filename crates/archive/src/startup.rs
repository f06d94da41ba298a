//! Cleanup at startup: keys whose destruction a crash interrupted, and keys of uploads that never
//! got a row.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fulgurite_catalog::{Direction, KeyRange, KeyValue as _, Transaction};
use fulgurite_units::ObjectId;

use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::objects::commit::delete_shred_rows;
use crate::recover::logs::with_entries;
use crate::rows::lookup::rows_in;
use crate::rows::{self, BODIES, BodyRow, PARTS, PartRow, SHREDS, UNCONFIRMED, UnconfirmedRow};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// Destroys every key that a committed delete or overwrite marked for destruction. Blocks.
pub(crate) fn finish_shreds(state: &Arc<ArchiveState>) -> Result<()> {
    loop {
        let all = KeyRange::prefix(b"");
        let found: Vec<(Vec<u8>, u32)> =
            rows_in(&*state.kv, SHREDS, &all, ROWS_PER_TRANSACTION_MAX)?;
        if found.is_empty() {
            return Ok(());
        }
        let keys = found
            .into_iter()
            .map(|(key, slot)| {
                let body: [u8; 16] = key.try_into().map_err(|_| ArchiveError::Corrupt {
                    what: "the key of a shred row is not a body id".to_owned(),
                })?;
                Ok((slot, ObjectId::from_bytes(body)))
            })
            .collect::<Result<Vec<_>>>()?;
        state.keys.destroy_blocking(&keys)?;
        let done = keys.into_iter().map(|(_, body)| body).collect();
        state.committer.commit_blocking(|tx: &mut Transaction<'_>| delete_shred_rows(tx, done))?;
    }
}

/// The same for destructions that failed since the start; calls `on_begin` if any did.
pub(crate) fn finish_failed_shreds(
    state: &Arc<ArchiveState>,
    on_begin: &mut dyn FnMut(),
) -> Result<()> {
    if !state.has_failed_shreds.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    on_begin();
    let finished = finish_shreds(state);
    if finished.is_err() {
        state.has_failed_shreds.store(true, Ordering::SeqCst);
    }
    finished
}

/// Returns and counts the bodies of `orphans` that have an entry in a log of `run`.
fn unconfirmed(
    state: &ArchiveState,
    orphans: &BTreeSet<(u32, ObjectId)>,
    run: u64,
) -> Result<BTreeSet<ObjectId>> {
    let wanted = orphans.iter().map(|&(_, body)| body).collect();
    let unconfirmed = with_entries(&state.config.data, &wanted, run)?;
    if !unconfirmed.is_empty() {
        state.unconfirmed_parts.store(unconfirmed.len() as u64, Ordering::Relaxed);
        tracing::warn!(
            bodies = unconfirmed.len(),
            "parts of uploads in the logs have keys, but no row names them: a crash interrupted \
             the uploads, or the catalog is behind; they are kept, and `fulgurite recover \
             --salvage` recovers them"
        );
    }
    Ok(unconfirmed)
}

/// Logs how many platters the catalog has as stored without a file. Blocks.
pub(crate) fn name_missing_platters(state: &ArchiveState) -> Result<()> {
    let missing = state.platters.missing_count()?;
    if missing > 0 {
        tracing::error!(
            missing,
            "platters of the catalog are missing: bring them back, or the newer copy of their \
             whole folder; until then they are reconstructed from their sets where possible"
        );
    }
    Ok(())
}

/// Destroys the keys that the previous run created for uploads it never committed. Keys of older or
/// newer runs are left alone, because there the catalog may be the one that is behind. Keys of
/// bodies with an entry in a log are kept and counted: the bodies may have been acknowledged,
/// because the catalog may be a copy from the middle of that run, or have lost its last batch.
/// Blocks.
pub(crate) fn sweep_orphan_keys(state: &Arc<ArchiveState>) -> Result<usize> {
    let last_run = state.run - 1;
    let mut orphans: BTreeSet<(u32, ObjectId)> = state
        .keys
        .scan()?
        .into_iter()
        .filter(|slot| slot.run == last_run)
        .map(|slot| (slot.index, slot.body))
        .collect();
    if orphans.is_empty() {
        return Ok(0);
    }
    let mut failure = None;
    // One snapshot for all spaces: a part that is completed meanwhile moves between them.
    let view = state.kv.snapshot();
    for space in [BODIES, PARTS, UNCONFIRMED] {
        view.scan(space, &KeyRange::prefix(b""), Direction::Ascending, &mut |_, value| {
            let body = if space == BODIES {
                rows::decode::<BodyRow>(space, value)
            } else if space == PARTS {
                rows::decode::<PartRow>(space, value).map(|part| part.body)
            } else {
                rows::decode::<UnconfirmedRow>(space, value).map(|row| row.body)
            };
            match state.check_stopping().and(body) {
                Ok(body) => {
                    orphans.remove(&(body.key_slot, body.body_id));
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
    }
    if let Some(error) = failure {
        return Err(error);
    }
    if orphans.is_empty() {
        return Ok(0);
    }
    if let Some(platter) = state.platters.find_unknown()? {
        tracing::warn!(
            %platter,
            "a platter is not in the catalog, which may be older than the keys: the {} keys \
             that no row names are kept; run recover to find their bodies",
            orphans.len()
        );
        return Ok(0);
    }
    if let Some(cut) = state.kv.cut_batch() {
        tracing::warn!(
            journal = %cut.journal.display(),
            "the last batch of the catalog was torn and cut off: the {} keys that no row \
             names are kept",
            orphans.len()
        );
        return Ok(0);
    }
    let unconfirmed = unconfirmed(state, &orphans, last_run)?;
    let orphans: Vec<_> =
        orphans.into_iter().filter(|(_, body)| !unconfirmed.contains(body)).collect();
    state.keys.destroy_blocking(&orphans)?;
    Ok(orphans.len())
}

#[cfg(test)]
mod tests;
