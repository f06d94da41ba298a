//! File permissions of secrets: only the owner may read the data directory, the key table and the
//! master key.
//!
//! Inside the data directory they are fixed, with a line in the log. A master key elsewhere is the
//! operator's own file: if everyone may read it, the archive does not open.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::bodies::key_files;
use crate::config::ArchiveConfig;
use crate::directory::{Paths, master_key_path};
use crate::{ArchiveError, Result};

/// Mode bits of group and others.
const NOT_OWNER: u32 = 0o077;
/// Mode bits of others.
const OTHERS: u32 = 0o007;

/// Removes the permissions of group and others on the data directory and its keys.
///
/// # Errors
/// `Unusable` when something is open to others and cannot be fixed.
pub(crate) fn secure(config: &ArchiveConfig) -> Result<()> {
    let paths = Paths::new(&config.data);
    check(config)?;
    restrict(&config.data)?;
    restrict(&paths.keys())?;
    for table in key_files::key_tables(config) {
        restrict(&table)?;
    }
    if config.master_key.is_none() { restrict(&master_key_path(config)) } else { Ok(()) }
}

/// Refuses the operator's own keys if everyone may read them.
///
/// # Errors
/// `Unusable` with the file.
pub(crate) fn check(config: &ArchiveConfig) -> Result<()> {
    let shared = config.shared.iter().map(|shared| &shared.key);
    shared.chain(&config.master_key).try_for_each(|key| refuse_world_readable(key))
}

fn mode(path: &Path) -> Result<Option<u32>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.mode() & 0o7777)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ArchiveError::io("inspect", path)(error)),
    }
}

fn restrict(path: &Path) -> Result<()> {
    let Some(mode) = mode(path)?.filter(|mode| mode & NOT_OWNER != 0) else { return Ok(()) };
    let narrow = std::fs::Permissions::from_mode(mode & !NOT_OWNER);
    match std::fs::set_permissions(path, narrow) {
        Ok(()) => {
            let (path, mode) = (path.display(), format!("{mode:o}"));
            tracing::warn!(%path, mode, "removed the permissions of group and others");
            Ok(())
        }
        Err(error) => Err(ArchiveError::Unusable {
            path: path.display().to_string(),
            reason: format!("its mode {mode:o} lets others in and cannot be changed: {error}"),
        }),
    }
}

pub(crate) fn refuse_world_readable(path: &Path) -> Result<()> {
    match mode(path)?.filter(|mode| mode & OTHERS != 0) {
        None => Ok(()),
        Some(mode) => Err(ArchiveError::Unusable {
            path: path.display().to_string(),
            reason: format!(
                "every user of this machine may use this key (mode {mode:o}); set its mode to 600"
            ),
        }),
    }
}

#[cfg(test)]
mod tests;
