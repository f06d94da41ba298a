//! Removes objects with tombstones when their lost tome is opened again, before its objects are
//! listed.
//!
//! Not here: tomes in other processes, which get the requests when they answer.

use std::collections::BTreeSet;

use fulgurite_tome::TomeId;
use fulgurite_tome::awake::{Awake, Row};
use fulgurite_units::error_chain;

use super::{Opened, Start};
use crate::Result;
use crate::awake_store::AwakeStore;
use crate::fail_point::FailPoints;
use crate::limits::LOAD_PAGE_MAX;
use crate::piece_store::OpenedPieces;

impl Start {
    /// Removes a tome's objects with tombstones, and then the tombstones. Returns the reason if
    /// that fails.
    pub(super) fn remove_put_off(
        &self,
        opened: &Opened,
        awake: Awake,
        pieces: &OpenedPieces,
    ) -> Result<Awake, String> {
        let remove = || -> Result<Awake> {
            let names = pieces.removals(awake.id())?;
            let awake = remove_put_off(&opened.store, awake, &names, &self.fail)?;
            pieces.removed(awake.id(), &names)?;
            Ok(awake)
        };
        remove().map_err(|error| error_chain(&error))
    }
}

/// Removes those of the objects that a tome has.
///
/// # Errors
/// When that cannot be committed.
pub(in crate::set) fn remove_put_off(
    store: &AwakeStore,
    mut awake: Awake,
    names: &[String],
    fail: &FailPoints,
) -> Result<Awake> {
    let there = names.iter().filter(|name| awake.object(name).is_some());
    let rows: Vec<Row> = there.map(|name| Row::Removed { name: name.clone() }).collect();
    for some in rows.chunks(LOAD_PAGE_MAX) {
        store.commit(some, fail)?;
        some.iter().try_for_each(|row| awake.apply(row))?;
    }
    Ok(awake)
}

/// Deletes tombstones of tomes that have no member slot any more.
pub(super) fn forget(out: &BTreeSet<TomeId>, pieces: &OpenedPieces) -> Result<()> {
    out.iter().try_for_each(|tome| pieces.removed(*tome, &pieces.removals(*tome)?))
}
