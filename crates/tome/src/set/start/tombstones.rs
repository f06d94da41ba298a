//! Removes objects with tombstones when their lost tome is opened again, before its objects are
//! listed.
//!
//! Not here: tomes in other processes, which get the requests when they answer.

use std::collections::BTreeSet;

use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::metadata::{Row, TomeMetadata};
use fulgurite_units::error_chain;

use super::{OpenTome, Startup};
use crate::FailPoints;
use crate::Result;
use crate::limits::LOAD_PAGE_MAX;
use crate::metadata_store::MetadataStore;
use crate::piece_store::OpenedPieces;

impl Startup {
    /// Removes a tome's objects with tombstones, and then the tombstones. Returns the reason if
    /// that fails.
    pub(super) fn apply_tombstones(
        &self,
        opened: &OpenTome,
        metadata: TomeMetadata,
        pieces: &OpenedPieces,
    ) -> Result<TomeMetadata, String> {
        let remove = || -> Result<TomeMetadata> {
            let names = pieces.removals(metadata.id())?;
            let metadata = apply_tombstones(&opened.store, metadata, &names, &self.fail)?;
            pieces.delete_tombstones(metadata.id(), &names)?;
            Ok(metadata)
        };
        remove().map_err(|error| error_chain(&error))
    }
}

/// Removes those of the objects that a tome has.
///
/// # Errors
/// When that cannot be committed.
pub(in crate::set) fn apply_tombstones(
    store: &MetadataStore,
    mut metadata: TomeMetadata,
    names: &[String],
    fail: &FailPoints,
) -> Result<TomeMetadata> {
    let there = names.iter().filter(|name| metadata.object(name).is_some());
    let rows: Vec<Row> = there.map(|name| Row::Removed { name: name.clone() }).collect();
    for some in rows.chunks(LOAD_PAGE_MAX) {
        store.commit(some, fail)?;
        some.iter().try_for_each(|row| metadata.apply(row))?;
    }
    Ok(metadata)
}

/// Deletes tombstones of tomes that have no member slot any more.
pub(super) fn forget(out: &BTreeSet<TomeId>, pieces: &OpenedPieces) -> Result<()> {
    out.iter().try_for_each(|tome| pieces.delete_tombstones(*tome, &pieces.removals(*tome)?))
}
