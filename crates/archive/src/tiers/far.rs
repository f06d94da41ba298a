//! Far libraries: tiers of objects at another site that keep platters.

use std::sync::Arc;

use fulgurite_catalog::{Committer, FjallStore};
use fulgurite_glass::{FarLibrary, GlassError, ReadPlatter};
use fulgurite_units::PlatterId;
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Attributes, Error, Extensions, ObjectStoreExt as _};

use super::moves::claim_tier;
use super::upload_source::UploadSource;
use super::{ObjectTier, Tiers};
use crate::config::ArchiveConfig;
use crate::{ArchiveError, Result};

type PlattersResult<T> = Result<T, GlassError>;

/// Refuses far libraries that are no tiers, or too few of them.
///
/// # Errors
/// `InvalidArgument`.
pub(super) fn check(config: &ArchiveConfig) -> Result<()> {
    let refuse = |what: String| Err(ArchiveError::InvalidArgument { what });
    if config.far_libraries.is_empty() && config.glass.far_redundancy > 0 {
        let what = "glass.far_redundancy needs far libraries, but none is configured";
        return refuse(what.to_owned());
    }
    for (at, name) in config.far_libraries.iter().enumerate() {
        if !config.tiers.contains_key(name) {
            return refuse(format!("far library \"{name}\" is not a tier of objects"));
        }
        if config.far_libraries[..at].contains(name) {
            return refuse(format!("far library \"{name}\" is named twice"));
        }
    }
    Ok(())
}

/// Returns the configured tiers that are far libraries. Without a catalog they accept no platters.
///
/// # Errors
/// As for [`check`].
pub(crate) fn far_libraries(
    config: &ArchiveConfig,
    tiers: &Tiers,
    catalog: Option<(&Arc<FjallStore>, &Arc<Committer>)>,
) -> Result<Vec<Arc<dyn FarLibrary>>> {
    check(config)?;
    let library = |name| -> Result<Arc<dyn FarLibrary>> {
        let catalog = catalog.map(|(kv, committer)| (Arc::clone(kv), Arc::clone(committer)));
        Ok(Arc::new(FarTier { tier: Arc::clone(tiers.get(name)?), catalog }))
    };
    config.far_libraries.iter().map(library).collect()
}

/// A tier that keeps platters.
struct FarTier {
    tier: Arc<ObjectTier>,
    /// Records that the tier belongs to this archive, before anything is stored in it.
    catalog: Option<(Arc<FjallStore>, Arc<Committer>)>,
}

impl std::fmt::Debug for FarTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FarTier").field("tier", &self.tier).finish_non_exhaustive()
    }
}

/// A platter to put.
struct PlatterUpload<'a>(ReadPlatter<'a>);

impl UploadSource for PlatterUpload<'_> {
    fn read(&mut self, at: u64, buffer: &mut [u8]) -> Result<()> {
        Ok((self.0)(at, buffer)?)
    }

    /// Always succeeds: a platter is compared once it is in the tier.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

fn folder(root: &Path) -> Path {
    root.clone().join("platters")
}

fn path(root: &Path, platter: PlatterId) -> Path {
    folder(root).join(format!("{platter}.glass"))
}

impl FarTier {
    /// Waits for the store, and names the library that did not answer. Local failures are returned
    /// as they are.
    fn block_on<T>(&self, work: impl Future<Output = Result<T>>) -> PlattersResult<T> {
        self.tier.wait(work).map_err(|error| {
            if let ArchiveError::TierUnavailable { what, .. } = error {
                return self.refused(what);
            }
            error.into()
        })
    }

    fn refused(&self, what: String) -> GlassError {
        GlassError::FarUnavailable { library: self.name().to_owned(), what }
    }
}

impl FarLibrary for FarTier {
    fn name(&self) -> &str {
        self.tier.name().as_str()
    }

    fn put(&self, platter: PlatterId, bytes: u64, read: ReadPlatter<'_>) -> PlattersResult<()> {
        let Some((kv, committer)) = &self.catalog else {
            return Err(self.refused("there is no catalog to say what is in it".to_owned()));
        };
        self.block_on(async {
            claim_tier((kv, committer), &self.tier).await?;
            self.tier.confirm().await?;
            let (_, root) = self.tier.store().await?;
            let labels = (Attributes::default(), Extensions::default());
            let upload_source = &mut PlatterUpload(read);
            self.tier.put_source(&path(root, platter), bytes, labels, upload_source).await
        })
    }

    fn bytes(&self, platter: PlatterId) -> PlattersResult<Option<u64>> {
        self.block_on(async {
            let (store, root) = self.tier.store().await?;
            match store.head(&path(root, platter)).await {
                Ok(found) => Ok(Some(found.size)),
                // If a claimed tier's disk is not mounted, nothing is known about it.
                Err(Error::NotFound { .. }) if self.tier.was_claimed() => {
                    self.tier.confirm().await.map(|()| None)
                }
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(self.tier.unavailable(error)),
            }
        })
    }

    fn read_at(&self, platter: PlatterId, offset: u64, buffer: &mut [u8]) -> PlattersResult<()> {
        self.block_on(async {
            let (store, root) = self.tier.store().await?;
            let range = offset..offset + buffer.len() as u64;
            let found = store.get_range(&path(root, platter), range).await;
            let found = found.map_err(|error| self.tier.unavailable(error))?;
            if found.len() != buffer.len() {
                return Err(self.tier.unavailable(format!("platter {platter} is truncated")));
            }
            buffer.copy_from_slice(&found);
            Ok(())
        })
    }

    fn platters(&self) -> PlattersResult<Vec<PlatterId>> {
        self.block_on(async {
            self.tier.confirm().await?;
            let (store, root) = self.tier.store().await?;
            let folder = folder(root);
            let listed = store.list(Some(&folder)).map_ok(|meta| meta.location);
            let listed: Vec<Path> =
                listed.try_collect().await.map_err(|error| self.tier.unavailable(error))?;
            let id = |path: &Path| path.filename()?.strip_suffix(".glass")?.parse().ok();
            Ok(listed.iter().filter_map(id).collect())
        })
    }
}
