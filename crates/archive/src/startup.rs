//! Cleanup at startup: keys whose destruction a crash interrupted, and keys of uploads that never
//! got a row.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fulgurite_catalog::{Direction, KeyRange, KeyValue as _, Transaction};
use fulgurite_units::ObjectId;

use crate::ground::Ground;
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::objects::commit::{forget_shreds, rows_in};
use crate::recover::logs::with_entries;
use crate::rows::{self, BODIES, BodyRow, DOUBTS, DoubtRow, PARTS, PartRow, SHREDS};
use crate::{ArchiveError, Result};

/// Destroys every key that a committed delete or overwrite marked for destruction. Blocks.
pub(crate) fn finish_shreds(ground: &Arc<Ground>) -> Result<()> {
    loop {
        let all = KeyRange::prefix(b"");
        let found: Vec<(Vec<u8>, u32)> =
            rows_in(&*ground.kv, SHREDS, &all, ROWS_PER_TRANSACTION_MAX)?;
        if found.is_empty() {
            return Ok(());
        }
        let keys = found
            .into_iter()
            .map(|(key, slot)| {
                let body: [u8; 16] = key.try_into().map_err(|_| ArchiveError::Corrupt {
                    what: "a shred row has a key that is no body id".to_owned(),
                })?;
                Ok((slot, ObjectId::from_bytes(body)))
            })
            .collect::<Result<Vec<_>>>()?;
        ground.keys.destroy_blocking(&keys)?;
        let done = keys.into_iter().map(|(_, body)| body).collect();
        ground.committer.commit_blocking(|tx: &mut Transaction<'_>| forget_shreds(tx, done))?;
    }
}

/// The same for destructions that failed since the start; calls `begins` if any did.
pub(crate) fn finish_failed_shreds(ground: &Arc<Ground>, begins: &mut dyn FnMut()) -> Result<()> {
    if !ground.has_failed_shreds.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    begins();
    let finished = finish_shreds(ground);
    if finished.is_err() {
        ground.has_failed_shreds.store(true, Ordering::SeqCst);
    }
    finished
}

/// Returns and counts the bodies of `orphans` that have an entry in a log of `run`.
fn in_doubt(
    ground: &Ground,
    orphans: &BTreeSet<(u32, ObjectId)>,
    run: u64,
) -> Result<BTreeSet<ObjectId>> {
    let wanted = orphans.iter().map(|&(_, body)| body).collect();
    let in_doubt = with_entries(&ground.config.data, &wanted, run)?;
    if !in_doubt.is_empty() {
        ground.parts_in_doubt.store(in_doubt.len() as u64, Ordering::Relaxed);
        tracing::warn!(
            bodies = in_doubt.len(),
            "parts of uploads in the logs have keys, and no row names them: uploads that a crash \
             cut short, or the catalog is behind; they are kept, and `fulgurite recover --salvage` \
             brings them back"
        );
    }
    Ok(in_doubt)
}

/// Logs how many platters the catalog has as stored without a file. Blocks.
pub(crate) fn name_missing_platters(ground: &Ground) -> Result<()> {
    let missing = ground.platters.missing_count()?;
    if missing > 0 {
        tracing::error!(
            missing,
            "platters of the catalog are not there: bring them back, or the newer copy of their \
             whole folder; what is on them comes from others of their sets as far as these suffice"
        );
    }
    Ok(())
}

/// Destroys the keys that the previous run created for uploads it never committed. Keys of older or
/// newer runs are left alone, because there the catalog may be the one that is behind. Keys of
/// bodies with an entry in a log are kept and counted: the bodies may have been acknowledged,
/// because the catalog may be a copy from the middle of that run, or have lost its last batch.
/// Blocks.
pub(crate) fn sweep_orphan_keys(ground: &Arc<Ground>) -> Result<usize> {
    let last_run = ground.run - 1;
    let mut orphans: BTreeSet<(u32, ObjectId)> = ground
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
    let view = ground.kv.snapshot();
    for space in [BODIES, PARTS, DOUBTS] {
        view.scan(space, &KeyRange::prefix(b""), Direction::Ascending, &mut |_, value| {
            let body = if space == BODIES {
                rows::decode::<BodyRow>(space, value)
            } else if space == PARTS {
                rows::decode::<PartRow>(space, value).map(|part| part.body)
            } else {
                rows::decode::<DoubtRow>(space, value).map(|doubt| doubt.body)
            };
            match ground.check_stopping().and(body) {
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
    if let Some(platter) = ground.platters.unknown()? {
        tracing::warn!(
            %platter,
            "a platter is not in the catalog, which may be older than the keys: none of {} keys \
             that nothing names is destroyed; run recover to find what they open",
            orphans.len()
        );
        return Ok(0);
    }
    if let Some(cut) = ground.kv.cut_batch() {
        tracing::warn!(
            journal = %cut.journal.display(),
            "the last batch of the catalog was torn, and cut off: none of {} keys that nothing \
             names is destroyed",
            orphans.len()
        );
        return Ok(0);
    }
    let in_doubt = in_doubt(ground, &orphans, last_run)?;
    let orphans: Vec<_> =
        orphans.into_iter().filter(|(_, body)| !in_doubt.contains(body)).collect();
    ground.keys.destroy_blocking(&orphans)?;
    Ok(orphans.len())
}

#[cfg(test)]
mod tests;
