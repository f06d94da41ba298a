//! Restores that were given up: the object is not being restored any more, and a row has the
//! reason, until it is requested again or deleted.

use fulgurite_catalog::Transaction;
use fulgurite_units::ObjectId;

use crate::Result;
use crate::restore::watch::FailedRestore;
use crate::rows::lookup::find_object;
use crate::rows::{self, FAILED, OBJECTS, RESTORES, RestoreRow};

/// Ends the restore of an object, and returns its record; `None` when there was none.
pub(crate) fn give_up(
    tx: &mut Transaction<'_>,
    object: ObjectId,
    error: String,
) -> Result<Option<FailedRestore>> {
    let id = object.to_bytes().to_vec();
    let Some(mut row) = rows::get::<RestoreRow>(tx, RESTORES, &id)? else { return Ok(None) };
    tx.delete(RESTORES, id.clone())?;
    let found = find_object(tx, &row.name.bucket, &row.name.key)?;
    let found = found.filter(|found| {
        found.object_id == object && found.restore.is_some_and(|mark| mark.expiry.is_none())
    });
    let Some(mut found) = found else { return Ok(None) };
    found.restore = None;
    rows::put(tx, OBJECTS, rows::object_key_of(&row.name), &found)?;
    let failed = FailedRestore {
        bucket: row.name.bucket.to_string(),
        key: row.name.key.to_string(),
        failures: row.failures,
        error: error.clone(),
        is_given_up: true,
    };
    row.error = Some(error);
    rows::put(tx, FAILED, id, &row)?;
    rows::with_totals(tx, |totals| totals.restores_waiting -= 1)?;
    let count = rows::failed_count(tx)?;
    rows::set_failed_count(tx, count.saturating_add(1))?;
    Ok(Some(failed))
}
