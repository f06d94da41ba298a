//! Removes expired restored copies.

use std::sync::Arc;

use fulgurite_catalog::{KeyRange, Transaction};

use crate::Result;
use crate::bodies::copies;
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::rows::accounting::Retired;
use crate::rows::lookup::{find_object, rows_in};
use crate::rows::{self, EXPIRIES, ExpiryRow};
use crate::state::ArchiveState;

/// Drops every expired restored copy; calls `on_begin` if there are any. Blocks.
pub(crate) fn expire_due(state: &Arc<ArchiveState>, on_begin: &mut dyn FnMut()) -> Result<()> {
    let until = state.now();
    loop {
        let end = rows::expiry_key(until, fulgurite_units::ObjectId::from_bytes([0xFF; 16]));
        let due = KeyRange::between(Vec::new(), end);
        let found: Vec<(Vec<u8>, ExpiryRow)> =
            rows_in(&*state.kv, EXPIRIES, &due, ROWS_PER_TRANSACTION_MAX)?;
        if found.is_empty() {
            return Ok(());
        }
        on_begin();
        // All are submitted before the first result is awaited, so that they share syncs (group
        // commit).
        let mut waiting = Vec::new();
        for (key, row) in found {
            let commit = move |tx: &mut Transaction<'_>| expire(tx, key, &row);
            waiting.push(state.committer.submit_blocking(commit));
        }
        let mut result = Ok(());
        for ticket in waiting {
            match ticket.wait() {
                Ok(retired) => {
                    state.runtime.fail.pass("expire-committed");
                    state.free(&retired.extents);
                }
                Err(error) => result = Err(error),
            }
        }
        result?;
    }
}

fn expire(tx: &mut Transaction<'_>, expiry_key: Vec<u8>, row: &ExpiryRow) -> Result<Retired> {
    let (expiry, object_id) = rows::parse_expiry_key(&expiry_key)?;
    tx.delete(EXPIRIES, expiry_key)?;
    let (bucket, key) = (&row.name.bucket, &row.name.key);
    let none = Retired::default();
    let Some(object) = find_object(tx, bucket, key)? else { return Ok(none) };
    let is_this = object.object_id == object_id
        && object.restore.is_some_and(|mark| mark.expiry == Some(expiry));
    if !is_this {
        return Ok(none);
    }
    copies::remove(tx, bucket, key, object)
}
