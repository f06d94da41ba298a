//! Restored copies whose time is over.

use std::sync::Arc;

use fulgurite_catalog::{KeyRange, Transaction};

use crate::Result;
use crate::commit::{Retired, account};
use crate::commit::{bodies, find_object, rows_in};
use crate::limits::ROWS_PER_TRANSACTION_MAX;
use crate::log::LogKind;
use crate::names::{BucketName, ObjectKey};
use crate::rows::{self, BODIES, EXPIRIES, ExpiryRow, OBJECTS};
use crate::store::Store;

/// Drops every restored copy that expired by now. Blocks.
pub(crate) fn expire_due(store: &Arc<Store>) -> Result<()> {
    let until = store.now();
    loop {
        let end = rows::expiry_key(until, fulgurite_units::ObjectId::from_bytes([0xFF; 16]));
        let due = KeyRange::between(Vec::new(), end);
        let found: Vec<(Vec<u8>, ExpiryRow)> =
            rows_in(&*store.kv, EXPIRIES, &due, ROWS_PER_TRANSACTION_MAX)?;
        if found.is_empty() {
            return Ok(());
        }
        // All are handed in before the first answer is waited for, so that they share syncs.
        let mut waiting = Vec::new();
        for (key, row) in found {
            let commit = move |tx: &mut Transaction<'_>| expire(tx, key, &row);
            waiting.push(store.committer.submit_blocking(commit));
        }
        let mut result = Ok(());
        for ticket in waiting {
            match ticket.wait() {
                Ok(retired) => {
                    store.fail.pass("expire-committed");
                    store.free(&retired.extents);
                }
                Err(error) => result = Err(error),
            }
        }
        result?;
    }
}

fn expire(tx: &mut Transaction<'_>, expiry_key: Vec<u8>, row: &ExpiryRow) -> Result<Retired> {
    let mut retired = Retired::default();
    let (expiry, object_id) = rows::parse_expiry_key(&expiry_key)?;
    tx.delete(EXPIRIES, expiry_key)?;
    let (bucket, key) = (BucketName::new(&row.bucket)?, ObjectKey::new(&row.key)?);
    let Some(mut object) = find_object(tx, &bucket, &key)? else { return Ok(retired) };
    let is_this = object.object_id == object_id
        && object.restore.is_some_and(|mark| mark.expiry == Some(expiry));
    if !is_this {
        return Ok(retired);
    }
    for (index, mut body) in (0..).zip(bodies(tx, &object)?) {
        if let Some(extents) = body.restored.take() {
            account(tx, LogKind::Restored, &extents, false)?;
            retired.extents.extend(extents.iter().map(|&extent| (LogKind::Restored, extent)));
            rows::put(tx, BODIES, rows::body_key(object_id, index), &body)?;
        }
    }
    object.restore = None;
    rows::put(tx, OBJECTS, rows::object_key(&row.bucket, &row.key), &object)?;
    rows::with_totals(tx, |totals| totals.restored -= 1)?;
    Ok(retired)
}
