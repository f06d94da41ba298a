//! Damage that was met while the store was open.

use std::sync::{Mutex, PoisonError};

use crate::{CatalogError, ErrorKind};

/// What was met of it; what says which file it is has the last word.
#[derive(Debug, Default)]
pub(super) struct MetDamage(Mutex<Option<CatalogError>>);

impl MetDamage {
    /// Keeps `error`, if it is damage. Said once, for every reader meets it again.
    pub(super) fn note(&self, error: &CatalogError) {
        if error.kind() != ErrorKind::Corrupt || is_gone(error) {
            return;
        }
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if met.as_ref().is_none_or(|old| names_a_file(error) && !names_a_file(old)) {
            tracing::error!(error = error.chain(), "damage was met in an open store of rows");
            *met = Some(error.clone());
        }
    }

    pub(super) fn get(&self) -> Option<CatalogError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The damaged file that keeps the store from being reopened, if one was met.
    pub(super) fn of_file(&self) -> Option<CatalogError> {
        self.get().filter(names_a_file)
    }
}

const fn names_a_file(error: &CatalogError) -> bool {
    matches!(error, CatalogError::Damaged { .. })
}

/// Whether the file is not there at this moment: with its disk it may come back whole.
fn is_gone(error: &CatalogError) -> bool {
    let has_gone = matches!(error, CatalogError::Damaged { path, .. } if !path.exists());
    has_gone || error.is_not_found()
}
