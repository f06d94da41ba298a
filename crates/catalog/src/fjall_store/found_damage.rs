//! Damage detected while the store is open.

use std::sync::{Mutex, PoisonError};

use crate::{CatalogError, ErrorKind};

/// The detected damage; an error that names a file takes precedence.
#[derive(Debug, Default)]
pub(super) struct FoundDamage(Mutex<Option<CatalogError>>);

impl FoundDamage {
    /// Records `error` if it is damage. Logged once, because every reader runs into it again.
    pub(super) fn record(&self, error: &CatalogError) {
        if error.kind() != ErrorKind::Corrupt || is_gone(error) {
            return;
        }
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if found.as_ref().is_none_or(|old| is_file_damage(error) && !is_file_damage(old)) {
            tracing::error!(error = error.chain(), "found damage in the open catalog");
            *found = Some(error.clone());
        }
    }

    pub(super) fn get(&self) -> Option<CatalogError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the damaged file that prevents reopening the store, if known.
    pub(super) fn damaged_file(&self) -> Option<CatalogError> {
        self.get().filter(is_file_damage)
    }
}

const fn is_file_damage(error: &CatalogError) -> bool {
    matches!(error, CatalogError::Damaged { .. })
}

/// Whether the file is missing at this moment: it may come back intact with its disk.
fn is_gone(error: &CatalogError) -> bool {
    let is_missing = matches!(error, CatalogError::Damaged { path, .. } if !path.exists());
    is_missing || error.is_not_found()
}
