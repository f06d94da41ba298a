//! Maps errors of the backend to errors of the catalog.
//!
//! Missing or unreadable content is damage; a failing disk is not.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fjall::{Error, LsmError};

use crate::error::Cause;
use crate::{CatalogError, Space};

/// The version of the directory that fjall 3 reads and writes.
const ENGINE_VERSION: u8 = 3;

/// Returns an error for a directory that cannot be as it was written.
pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> CatalogError {
    CatalogError::Damaged { path: path.to_owned(), reason: reason.into(), source: None }
}

/// Maps an error of opening the directory at `path`.
pub(super) fn open(path: &Path, error: Error) -> CatalogError {
    let path = path.to_owned();
    if let Error::InvalidVersion(found) = error {
        let found = found.map(u8::from);
        return CatalogError::Version { path, found, expected: ENGINE_VERSION };
    }
    if matches!(error, Error::Locked) {
        return CatalogError::Locked { path };
    }
    if is_damage(&error) {
        let reason = "it cannot be recovered".to_owned();
        return CatalogError::Damaged { path, reason, source: Some(cause(error)) };
    }
    write("open the store", error)
}

/// Maps an error of reading rows of `space`.
pub(super) fn read(space: Space, error: Error) -> CatalogError {
    if is_damage(&error) {
        CatalogError::CorruptRow { space: space.name(), source: cause(error) }
    } else {
        CatalogError::Io { action: "read rows", source: cause(error) }
    }
}

/// Maps an error of writing.
pub(super) fn write(action: &'static str, error: Error) -> CatalogError {
    if matches!(error, Error::Poisoned) {
        let reason = "a write of rows to tables or to the journal failed".to_owned();
        return CatalogError::Poisoned { reason };
    }
    CatalogError::Io { action, source: cause(error) }
}

/// Maps an error of the file system while the directory at `path` is prepared.
pub(super) fn file(action: &'static str, error: io::Error) -> CatalogError {
    CatalogError::Io { action, source: Arc::new(error) }
}

fn is_damage(error: &Error) -> bool {
    match error {
        Error::Io(error) | Error::Storage(LsmError::Io(error)) => is_damaged_file(error),
        Error::Storage(_)
        | Error::JournalRecovery(_)
        | Error::InvalidVersion(_)
        | Error::Decompress(_)
        | Error::InvalidTrailer
        | Error::InvalidTag(_)
        | Error::KeyspaceDeleted
        | Error::Unrecoverable => true,
        Error::Poisoned | Error::Locked => false,
        // A kind added by a later release.
        _ => false,
    }
}

fn is_damaged_file(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::NotFound | Kind::UnexpectedEof | Kind::InvalidData)
}

fn cause(error: Error) -> Cause {
    Arc::new(error)
}
