//! Tiers of objects: a directory, or a bucket of any S3, Azure or GCS store, that holds bodies
//! under their ids.
//!
//! ```text
//! <url>/fulgurite-tier.json     the owner: claimed once, by one archive
//! <url>/fulgurite-tier-run      the run that used it last
//! <url>/bodies/<id>             the ciphertext of a body, as it was in the log
//! <url>/bodies/<id>.entry       its metadata, for `recover` (docs/formats/tier.md)
//! <url>/platters/<id>.glass     a platter, where the tier is a far library
//! ```
//!
//! Some stores can lose small objects and keep large ones, as a rack that loses its index. For them
//! the entry is also stored with its body (`TierOptions::with_entries`), so that bodies are
//! self-describing.
//!
//! A tier need not be available. Its callers report which tier did not answer, and retry: an
//! archive starts and serves everything else without it.

mod ack_copies;
mod backlog;
mod claim;
mod entry_attribute;
mod entry_file;
mod far;
mod fetch;
mod missing;
mod move_policy;
mod moves;
mod objects;
mod reader;
mod runs;
mod store;
mod upload_source;
mod verification;

use std::collections::BTreeMap;
use std::sync::Arc;

use fulgurite_units::ArchiveId;
use tokio::runtime::Runtime;

pub(crate) use self::ack_copies::AcknowledgedCopies;
pub(crate) use self::backlog::{wait_until_moved, waiting};
use self::entry_file::EntryFile;
pub(crate) use self::far::far_libraries;
pub(crate) use self::missing::{refuse_missing, refuse_missing_unopened, refuse_swapped};
pub use self::move_policy::{Calm, MovePolicy};
pub(crate) use self::moves::{Mover, dequeue_move, enqueue, schedule_copy_removal};
pub(crate) use self::objects::{ObjectTier, TierBody};
pub(crate) use self::reader::TierReader;
pub use self::store::TierOptions;
pub(crate) use self::verification::{bytes_of_all, verify_all};
use crate::config::ArchiveConfig;
use crate::limits::TIER_THREADS;
use crate::model::classes::{Home, TierName};
use crate::{ArchiveError, Result};

/// The configured tiers of objects.
#[derive(Debug, Default)]
pub(crate) struct Tiers {
    by_name: BTreeMap<TierName, Arc<ObjectTier>>,
    /// `None` without tiers. Shut down in the background, because this may be dropped in async
    /// code, which must not block.
    runtime: Option<Runtime>,
}

impl Tiers {
    /// Creates the clients of the tiers, without contacting any store. `was_claimed` returns
    /// whether a tier belonged to this archive before.
    ///
    /// # Errors
    /// `InvalidArgument` when the configuration of a tier is invalid, or the home of a class is not
    /// among the tiers.
    pub(crate) fn open(
        config: &ArchiveConfig,
        archive: ArchiveId,
        was_claimed: impl Fn(&TierName) -> Result<bool>,
    ) -> Result<Self> {
        check(config)?;
        if config.tiers.is_empty() {
            return Ok(Self::default());
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(TIER_THREADS)
            .thread_name("tiers")
            .enable_all()
            .build()
            .map_err(|error| ArchiveError::Internal { what: format!("no threads: {error}") })?;
        let mut by_name = BTreeMap::new();
        for (name, options) in &config.tiers {
            let known = (archive, was_claimed(name)?);
            let tier = ObjectTier::open(name, options, known, runtime.handle())?;
            by_name.insert(name.clone(), Arc::new(tier));
        }
        Ok(Self { by_name, runtime: Some(runtime) })
    }

    /// Returns the tier of this name.
    ///
    /// # Errors
    /// `TierUnavailable` when the configuration does not have it: it was removed while objects were
    /// in it.
    pub(crate) fn get(&self, name: &TierName) -> Result<&Arc<ObjectTier>> {
        self.by_name.get(name).ok_or_else(|| ArchiveError::TierUnavailable {
            tier: name.to_string(),
            what: "the configuration has no tier of this name any more".to_owned(),
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ObjectTier>> {
        self.by_name.values()
    }
}

/// Refuses tiers that cannot be opened as configured. Nothing is contacted or created.
///
/// # Errors
/// `InvalidArgument` when the configuration of a tier is invalid, or one that a setting names is
/// not among the tiers.
pub(crate) fn check(config: &ArchiveConfig) -> Result<()> {
    let refuse = |what: String| Err(ArchiveError::InvalidArgument { what });
    for (class, home, _) in config.classes.iter() {
        if let Home::Tier(name) = home
            && !config.tiers.contains_key(name)
        {
            let class = class.name();
            return refuse(format!(
                "class {class} goes to tier \"{name}\", but there is no such tier"
            ));
        }
    }
    if config.tiers.contains_key(&TierName::glass()) {
        let what = "\"glass\" is the tier of kind glass: name the tier of objects otherwise";
        return refuse(what.to_owned());
    }
    if let Some(name) = &config.acknowledged_at
        && !config.tiers.contains_key(name)
    {
        return refuse(format!(
            "puts are acknowledged at tier \"{name}\", but there is no such tier"
        ));
    }
    config.tiers.iter().try_for_each(|(name, options)| store::address(name, options).map(drop))?;
    far::check(config)
}

impl Drop for Tiers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
