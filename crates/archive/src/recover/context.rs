//! A data directory opened for recovery: keys, platters' drives, and the new catalog.
//!
//! ```text
//! catalog.part --rows--> catalog.part --complete--> catalog.recovered
//! catalog (damaged) --> catalog.damaged-TIME        catalog.recovered --> catalog
//! ```
//!
//! A crash before `catalog.recovered` leaves everything as it was. A crash between the last two
//! steps leaves no `catalog`, and the next start or recovery does the third step. No log is opened,
//! because a log opened with an empty catalog would make orphans of all its segments.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use fulgurite_catalog::{FjallConfig, FjallStore};
use fulgurite_units::{ArchiveId, ObjectId, UnixTime};

use crate::bodies::key_files;
use crate::bodies::key_table::{KeyTable, UsedSlot};
use crate::catalog_mark;
use crate::config::ArchiveConfig;
use crate::directory::{
    Paths, is_empty_dir, lock_directory, make_dir, master_key, master_key_path, read_identity,
    sync_dir, write_identity,
};
use crate::rows::SPACES;
use crate::tiers::Tiers;
use crate::{ArchiveError, Result};

/// A data directory locked for this process.
pub(super) struct RecoveryContext {
    pub(super) config: ArchiveConfig,
    pub(super) paths: Paths,
    pub(super) archive: ArchiveId,
    pub(super) keys: KeyTable,
    /// Slots in use, by body.
    pub(super) slots: BTreeMap<ObjectId, UsedSlot>,
    pub(super) tiers: Tiers,
    /// Number of this run of the archive.
    pub(super) run: u64,
    _lock: File,
}

/// Locks the directory for this process.
pub(super) fn lock(config: &ArchiveConfig) -> Result<File> {
    let lock = lock_directory(&config.data)?;
    Paths::new(&config.data).settle_recovered_catalog()?;
    Ok(lock)
}

impl RecoveryContext {
    /// Opens everything but the catalog. `found` returns the archive id in platters or logs, for a
    /// directory that lost its identity.
    pub(super) fn open(
        config: ArchiveConfig,
        lock: File,
        found: impl FnOnce() -> Option<ArchiveId>,
    ) -> Result<Self> {
        let paths = Paths::new(&config.data);
        let tables = key_files::key_tables(&config);
        let archive = match read_identity(&config.data) {
            Ok(Some(identity)) => identity.archive,
            outcome => {
                let archive =
                    found().or_else(|| KeyTable::archive_of(&tables)).ok_or_else(|| {
                        let lost = "archive.json is missing or damaged, and no key table, \
                                platter or segment names the archive";
                        outcome.err().unwrap_or_else(|| ArchiveError::Unusable {
                            path: config.data.display().to_string(),
                            reason: lost.to_owned(),
                        })
                    })?;
                tracing::warn!(%archive, "archive.json is missing or damaged, and is recreated");
                write_identity(&config.data, archive)?;
                archive
            }
        };
        let master = master_key(&master_key_path(&config), false)?;
        let keys = KeyTable::open(&tables, master, archive, false)?;
        // Above every run that created a key: the next start destroys unnamed keys of the run
        // before it, and none of those may be a key whose platter merely was not found this time.
        // Also above every run that wrote a segment: the new catalog is newer than all of them.
        let run = keys.begin_recovery(catalog_mark::last_run(&paths, archive)?)?;
        let slots = keys.scan()?.into_iter().map(|slot| (slot.body, slot)).collect();
        let tiers = Tiers::open(&config, archive, |_| Ok(true))?;
        Ok(Self { config, paths, archive, keys, slots, tiers, run, _lock: lock })
    }

    /// Creates an empty catalog under a temporary name, replacing what an earlier recovery left.
    pub(super) fn begin_catalog(&self) -> Result<FjallStore> {
        let part = self.paths.catalog_part();
        if part.exists() {
            std::fs::remove_dir_all(&part).map_err(ArchiveError::io("remove", &part))?;
        }
        make_dir(&part)?;
        Ok(FjallStore::open(&part, &SPACES, &FjallConfig::default())?)
    }

    /// Renames the new catalog into place, and the damaged one away; returns the latter's path. The
    /// store must be closed.
    pub(super) fn publish(&self, now: UnixTime) -> Result<Option<PathBuf>> {
        let (part, whole) = (self.paths.catalog_part(), self.paths.catalog_recovered());
        let catalog = self.paths.catalog();
        rename(&part, &whole)?;
        sync_dir(self.paths.root())?;
        let mut moved_to = None;
        if is_empty_dir(&catalog) {
            if catalog.exists() {
                std::fs::remove_dir(&catalog).map_err(ArchiveError::io("replace", &catalog))?;
            }
        } else {
            let name = format!("catalog.damaged-{}", now.as_millis());
            let aside = self.paths.root().join(name);
            rename(&catalog, &aside)?;
            sync_dir(self.paths.root())?;
            moved_to = Some(aside);
        }
        rename(&whole, &catalog)?;
        sync_dir(self.paths.root())?;
        Ok(moved_to)
    }
}

fn rename(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    std::fs::rename(from, to).map_err(ArchiveError::io("rename", from))
}
