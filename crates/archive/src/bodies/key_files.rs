//! The key table's files in a data directory: where they are, and whether they cover every slot
//! that the catalog names.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fulgurite_catalog::ReadView;
use fulgurite_units::ArchiveId;

use crate::bodies::cipher::SecretKey;
use crate::bodies::key_table::{EMPTY_TABLE_BYTES, KeyTable};
use crate::config::ArchiveConfig;
use crate::directory::Paths;
use crate::limits::KEY_TABLES_MAX;
use crate::{ArchiveError, Result, rows};

/// Returns the key table files that `config` names, or the two default ones.
pub(crate) fn key_tables(config: &ArchiveConfig) -> Vec<PathBuf> {
    if !config.key_tables.is_empty() {
        return config.key_tables.clone();
    }
    let paths = Paths::new(&config.data);
    vec![paths.key_table(), paths.key_table_copy()]
}

/// Whether any file of the key table holds more than its probe.
pub(crate) fn has_any_key(config: &ArchiveConfig) -> bool {
    let has_keys =
        |path: &PathBuf| std::fs::metadata(path).is_ok_and(|table| table.len() > EMPTY_TABLE_BYTES);
    key_tables(config).iter().any(has_keys)
}

/// Whether any file of the key table exists.
pub(crate) fn any_exists(config: &ArchiveConfig) -> bool {
    key_tables(config).iter().any(|path| path.exists())
}

/// Opens the key table of an archive whose catalog is `view`.
///
/// # Errors
/// `Unusable` when the catalog names keys beyond the end of every copy, or all copies are gone.
pub(crate) fn open(
    config: &ArchiveConfig,
    master: SecretKey,
    archive: ArchiveId,
    view: &dyn ReadView,
) -> Result<KeyTable> {
    let paths = check_places(config)?;
    let named = rows::key_slots(view)?;
    let table = KeyTable::open(&paths, master, archive, named == 0)?;
    if table.count() < named {
        return Err(ArchiveError::Unusable {
            path: paths[0].display().to_string(),
            reason: format!(
                "the key table has {} slots, and the catalog names keys in {named}: every copy is \
                 truncated or older. Restore {} from a backup (any one of them is enough); if \
                 there is none, move the catalog away and run recover: it keeps the objects of \
                 these keys",
                table.count(),
                table.files()
            ),
        });
    }
    Ok(table)
}

/// Refuses files of the key table that are too many, or not different.
pub(crate) fn check_places(config: &ArchiveConfig) -> Result<Vec<PathBuf>> {
    let paths = key_tables(config);
    let distinct: std::collections::BTreeSet<&PathBuf> = paths.iter().collect();
    if paths.len() > KEY_TABLES_MAX || distinct.len() < paths.len() {
        let what = format!("keys.tables must name 1 to {KEY_TABLES_MAX} different files");
        return Err(ArchiveError::InvalidArgument { what });
    }
    Ok(paths)
}

/// Warns if the keys would be lost with the disk: then objects acknowledged at a tier would be
/// unreadable.
pub(crate) fn warn_if_same_disk(config: &ArchiveConfig) {
    let Some(tier) = &config.acknowledged_at else { return };
    let device = |path: &Path| {
        let folder = path.parent().unwrap_or(path);
        std::fs::metadata(folder).map(|found| found.dev()).ok()
    };
    let here = std::fs::metadata(&config.data).map(|found| found.dev()).ok();
    if key_tables(config).iter().all(|table| device(table) == here) {
        tracing::warn!(
            %tier,
            "puts are acknowledged at a tier, but all files of the key table are on the disk of \
             the data directory: acknowledged objects do not survive the loss of that disk until \
             [keys] tables names a file elsewhere"
        );
    }
}
