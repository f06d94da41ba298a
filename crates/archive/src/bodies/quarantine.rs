//! Staged bodies that differ from what was ingested, set aside so that they cost no more platters.
//!
//! ```text
//! queue --(a set was written: its staged bytes are damaged)--> damaged --(start)--> queue
//! ```
//!
//! A staged body is the only copy, so only its disk can give lost bytes back. A damaged body is
//! therefore neither released nor deleted, and the status shows it by name. It goes back to the
//! queue at each start, in case an operator repaired the disk meanwhile.

use std::sync::Arc;

use fulgurite_catalog::keys::KeyReader;
use fulgurite_catalog::{KeyRange, Transaction};
use fulgurite_glass::Platters;

use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::rows::accounting::dequeue;
use crate::rows::lookup::{queued_body, rows_in};
use crate::rows::{self, BODIES, BodyRow, DAMAGED, LoggedBody, Place, QUEUE, QueueRow, Queued};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result, tiers};

/// Removes a damaged body from the queue. Its shards on glass are discarded, because it is unknown
/// which of them is wrong.
pub(crate) fn quarantine(tx: &mut Transaction<'_>, sequence: u64) -> Result<()> {
    let Some((queue, _, mut body)) = queued_body(tx, sequence)? else { return Ok(()) };
    tracing::error!(
        bucket = %queue.name.bucket, key = %queue.name.key, body = %body.body_id,
        "staged bytes differ from what was ingested; the body stays staged"
    );
    Platters::release_shards(tx, body.shards())?;
    if let Place::Log(LoggedBody { queued: Some(Queued::Glass { placed, .. }), .. }) =
        &mut body.place
    {
        placed.clear();
    }
    rows::put(tx, BODIES, rows::body_key(queue.object_id, queue.index), &body)?;
    rows::put(tx, DAMAGED, rows::sequence_key(sequence), &queue)?;
    dequeue(tx, sequence)
}

/// Puts every body that was set aside back into the queue, to be tried again.
pub(crate) fn requeue(state: &Arc<ArchiveState>) -> Result<()> {
    loop {
        let found: Vec<(Vec<u8>, QueueRow)> =
            rows_in(&*state.kv, DAMAGED, &KeyRange::prefix(b""), ROWS_PER_TRANSACTION_MAX)?;
        if found.is_empty() {
            return Ok(());
        }
        state.committer.commit_blocking(move |tx: &mut Transaction<'_>| {
            let mut bytes = 0;
            for (key, queue) in found {
                tx.delete(DAMAGED, key.clone())?;
                let body_key = rows::body_key(queue.object_id, queue.index);
                let body: Option<BodyRow> = rows::get(tx, BODIES, &body_key)?;
                if let Some(tier) = body.as_ref().and_then(BodyRow::tier) {
                    let sequence = KeyReader::new(&key).u64()?;
                    tiers::enqueue(tx, tier, sequence, &queue)?;
                    continue;
                }
                bytes += queue.bytes;
                rows::put(tx, QUEUE, key, &queue)?;
            }
            rows::with_totals(tx, |totals| totals.staged_bytes += bytes)?;
            Ok::<_, ArchiveError>(())
        })?;
    }
}
