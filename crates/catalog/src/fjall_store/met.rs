//! Damage detected while the store is open.

use std::sync::{Mutex, PoisonError};

use crate::{CatalogError, ErrorKind};

/// The detected damage; an error that names a file takes precedence.
#[derive(Debug, Default)]
pub(super) struct MetDamage(Mutex<Option<CatalogError>>);

impl MetDamage {
    /// Records `error` if it is damage. Logged once, because every reader runs into it again.
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

    /// Returns the damaged file that prevents reopening the store, if known.
    pub(super) fn of_file(&self) -> Option<CatalogError> {
        self.get().filter(names_a_file)
    }
}

const fn names_a_file(error: &CatalogError) -> bool {
    matches!(error, CatalogError::Damaged { .. })
}

/// Whether the file is missing at this moment: it may come back intact with its disk.
fn is_gone(error: &CatalogError) -> bool {
    let has_gone = matches!(error, CatalogError::Damaged { path, .. } if !path.exists());
    has_gone || error.is_not_found()
}
