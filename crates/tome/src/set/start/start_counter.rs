//! Counts starts, in the store of the set and in each store that is opened with it.
//!
//! Not here: what the numbers are for ([`crate::start_counts`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fulgurite_tome_core::TomeId;
use fulgurite_units::error_chain;

use super::{LoadedTome, Startup, TomeHandle};
use crate::piece_store::OpenedPieces;
use crate::set_store::SetStore;
use crate::start_counts::{CopyAge, CountedStore, StartCountsRow, StartRow};
use crate::{Result, TomesError};

impl Startup {
    /// Whether a store with this start number is an older copy.
    ///
    /// # Errors
    /// [`TomesError::WrongStore`] when the set's own store is.
    pub(super) fn is_older(
        &self,
        store: &SetStore,
        counted: CountedStore,
        own: StartRow,
    ) -> Result<bool> {
        match store.starts(counted)?.age(own) {
            CopyAge::Latest => Ok(false),
            CopyAge::Older => Ok(true),
            CopyAge::SetOlder => Err(set_store_is_older(&self.options.directory, counted)),
        }
    }

    /// Whether the set's record of objects is missing, or an older copy.
    pub(super) fn is_behind(&self, store: &SetStore, pieces: &OpenedPieces) -> Result<bool> {
        let is_behind = self.is_older(store, CountedStore::Pieces, pieces.start_number()?)?;
        if is_behind {
            tracing::error!("the set's record of objects is missing or an older copy");
        }
        Ok(is_behind)
    }

    /// Counts a start of each tome. One that cannot record it is lost to this start.
    pub(super) fn count_tome_starts(
        &self,
        store: &SetStore,
        opened: &mut BTreeMap<TomeId, Result<LoadedTome, String>>,
    ) -> Result<()> {
        let mut starts: BTreeMap<CountedStore, StartCountsRow> = BTreeMap::new();
        for (tome, _) in opened.iter().filter(|(_, opened)| opened.is_ok()) {
            let counted = CountedStore::Tome(*tome);
            starts.insert(counted, store.starts(counted)?.next());
        }
        store.record_starts(&starts)?;
        for (tome, found) in opened {
            let counted = CountedStore::Tome(*tome);
            let (Ok(own), Some(begun)) = (&found, starts.get_mut(&counted)) else { continue };
            match own.opened.store.record_start(StartRow(begun.begun)) {
                Ok(()) => *begun = begun.ended(),
                Err(error) => {
                    tracing::error!(%tome, "not opened: {}", error_chain(&error));
                    *found = Err(error_chain(&error));
                }
            }
        }
        store.record_starts(&starts)
    }
}

/// Returns the error for a set store that is an older copy: something was opened with the set
/// since.
pub(in crate::set) fn set_store_is_older(directory: &Path, counted: CountedStore) -> TomesError {
    let since = match counted {
        CountedStore::Tome(tome) => format!("tome {tome} was"),
        CountedStore::Pieces => "its pieces were".to_owned(),
        CountedStore::Index => "the index was".to_owned(),
    };
    let path = directory.to_owned();
    let what = format!(
        "it is an older copy: {since} opened with the set since; restore the latest copy of its \
         folder \"set\""
    );
    TomesError::WrongStore { path, what }
}

/// Counts a start, or the end of one, of the set's record of objects.
pub(in crate::set) fn count(
    store: &SetStore,
    counted: CountedStore,
    record: impl FnOnce(StartRow) -> Result<()>,
) -> Result<()> {
    let begun = store.starts(counted)?.next();
    store.record_starts(&BTreeMap::from([(counted, begun)]))?;
    record(StartRow(begun.begun))?;
    store.record_starts(&BTreeMap::from([(counted, begun.ended())]))
}

/// Counts a start of the set's record of objects, which now agrees with the tomes. If it was behind
/// and names of lost tomes may be missing, it is not counted; returns those tomes.
pub(super) fn count_pieces(
    store: &SetStore,
    pieces: &OpenedPieces,
    handles: &BTreeMap<TomeId, TomeHandle>,
    is_behind: bool,
) -> Result<BTreeSet<TomeId>> {
    let out = store.out()?;
    let is_lost = |(tome, handle): &(&TomeId, &TomeHandle)| {
        matches!(handle, TomeHandle::Lost(_)) && is_behind && !out.contains(tome)
    };
    let unaccounted_tomes: BTreeSet<TomeId> =
        handles.iter().filter(is_lost).map(|(tome, _)| *tome).collect();
    if unaccounted_tomes.is_empty() {
        count(store, CountedStore::Pieces, |number| pieces.record_start(number))?;
    }
    Ok(unaccounted_tomes)
}
