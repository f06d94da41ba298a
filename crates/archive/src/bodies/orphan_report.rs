//! Reports segments that the catalog does not name to operators, and discards them on request.

use std::collections::BTreeSet;

use fulgurite_units::ObjectId;
use serde::{Deserialize, Serialize};

use crate::bodies::log::orphans::OrphanFile;
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// A segment that the catalog does not name, kept because it may hold acknowledged data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanedSegment {
    /// File name in the folder `orphaned`.
    pub file: String,
    /// Its log: `staging`, `online` or `restored`.
    pub log: String,
    /// Its number in that log.
    pub number: u32,
    /// The run of the archive that wrote it; unknown if its header is damaged.
    pub run: Option<u64>,
    /// Bytes used on the disk.
    pub disk_bytes: u64,
    /// Intact records in it.
    pub records: u64,
    /// Bodies that have a record in it.
    pub bodies: u64,
    /// Those of them whose keys still exist: what `recover` could bring back. The key of an
    /// interrupted upload is destroyed by the start that finds it.
    pub bodies_with_keys: u64,
    /// Why it could not be read, if it could not.
    pub error: Option<String>,
}

/// Lists all orphans, reading each of them. Blocks.
pub(crate) fn orphans(state: &ArchiveState) -> Result<Vec<OrphanedSegment>> {
    let files = state.orphans().list()?;
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let keys: BTreeSet<ObjectId> = state.keys.scan()?.into_iter().map(|slot| slot.body).collect();
    files
        .iter()
        .map(|file| {
            state.check_stopping()?;
            Ok(describe(file, &keys))
        })
        .collect()
}

/// Returns the number of orphans and their bytes on the disk.
pub(crate) fn orphan_totals(state: &ArchiveState) -> Result<(u64, u64)> {
    let files = state.orphans().list()?;
    Ok((files.len() as u64, files.iter().map(|file| file.disk_bytes).sum()))
}

/// Deletes the orphan named `name`. Blocks.
pub(crate) fn discard_orphan(state: &ArchiveState, name: &str) -> Result<()> {
    let orphans = state.orphans();
    // Only listed names are accepted: input never becomes a path.
    let found = orphans.list()?.into_iter().find(|file| file_name(file) == name);
    let Some(found) = found else {
        let what = format!("there is no orphaned segment \"{name}\"");
        return Err(ArchiveError::InvalidArgument { what });
    };
    orphans.discard(&found)?;
    tracing::warn!(orphan = name, "an orphaned segment was discarded on request");
    Ok(())
}

fn describe(file: &OrphanFile, keys: &BTreeSet<ObjectId>) -> OrphanedSegment {
    let (found, error) = match file.content() {
        Ok(found) => (found, None),
        Err(error) => ((0, Vec::new()), Some(error.to_string())),
    };
    let (records, bodies) = (found.0, found.1.into_iter().collect::<BTreeSet<_>>());
    OrphanedSegment {
        file: file_name(file),
        log: file.kind.folder().to_owned(),
        number: file.number,
        run: file.run,
        disk_bytes: file.disk_bytes,
        records,
        bodies: bodies.len() as u64,
        bodies_with_keys: bodies.intersection(keys).count() as u64,
        error,
    }
}

fn file_name(file: &OrphanFile) -> String {
    file.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
