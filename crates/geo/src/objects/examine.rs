//! Examines the stores of a site with the doctor, before the site has any rows.
//!
//! Unless the caller allows it, a missing table or folder is not created: a site that lost its
//! table must not get an empty one from an examination. For a directory, a temporary folder beside
//! it is examined, which is removed afterwards.

use std::path::{Path, PathBuf};

use fulgurite_units::{ErrorKind, error_chain};
use serde::Serialize;

use crate::objects::{GeoError, OpenSites, Result, SiteEntry};
use crate::stores::doctor::{DoctorError, Report, examine, examine_blobs};
use crate::stores::{Address, Entropy, Key, OpenError};

/// Prefix of the row keys that the doctor writes and removes.
pub const PROBE_PREFIX: &str = "doctor-";

/// The role of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreRole {
    /// Rows.
    Table,
    /// Fragments.
    Blobs,
}

impl std::fmt::Display for StoreRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Blobs => "blobs",
        })
    }
}

/// A store of a site.
#[derive(Clone, Debug)]
pub struct SiteStore {
    site: SiteEntry,
    role: StoreRole,
    address: Address,
}

impl std::fmt::Display for SiteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of site {:?}", self.role, self.site.name)
    }
}

impl SiteStore {
    /// Returns the stores of a site.
    ///
    /// # Errors
    /// If one of its addresses is invalid.
    pub fn of_site(site: &SiteEntry) -> Result<Vec<Self>> {
        let texts = [(StoreRole::Table, &site.table), (StoreRole::Blobs, &site.blobs)];
        let stores = texts.into_iter().filter_map(|(role, text)| Some((role, text.as_ref()?)));
        let parse = |(role, text): (StoreRole, &String)| {
            let place = format!("{role} of site {:?}", site.name);
            let address = text.parse().map_err(|source| GeoError::Address { place, source })?;
            Ok(Self { site: site.clone(), role, address })
        };
        stores.map(parse).collect()
    }

    /// Returns the name of the site.
    #[must_use]
    pub fn site(&self) -> &str {
        &self.site.name
    }

    /// Returns its role.
    #[must_use]
    pub const fn role(&self) -> StoreRole {
        self.role
    }

    /// Examines the store. It is created if it is missing and `may_create`.
    ///
    /// # Errors
    /// Why it could not be examined. Failed checks are in the report.
    pub async fn examine(
        &self,
        opener: &dyn OpenSites,
        entropy: &Entropy,
        may_create: bool,
    ) -> Result<Report, String> {
        let mark = format!("{PROBE_PREFIX}{}", hex::encode(entropy.draw()));
        let prefix = Key::new(mark.clone()).map_err(|error| error_chain(&error))?;
        let scratch = match self.address.directory() {
            Some(folder) => Some(ScratchFolder::make(folder, &mark)?),
            None => None,
        };
        let address = match &scratch {
            Some(scratch) => {
                Address::from_directory(&scratch.0).map_err(|error| error_chain(&error))?
            }
            None => self.address.clone(),
        };
        let may_create = may_create || scratch.is_some();
        let (site, shown) = (&self.site, self.address.to_string());
        // Opened twice, for separate connections, except for a store in memory.
        let examined = match self.role {
            StoreRole::Table => {
                let open = async |may_create| {
                    opener.table(site, &address, may_create).await.map_err(|e| open_error(&e))
                };
                let (one, two) = (open(may_create).await?, open(false).await?);
                examine(&shown, &*one, &*two, &prefix, entropy).await
            }
            StoreRole::Blobs => {
                let open = async |may_create| {
                    opener.blobs(site, &address, may_create).await.map_err(|e| open_error(&e))
                };
                let (one, two) = (open(may_create).await?, open(false).await?);
                examine_blobs(&shown, &*one, &*two, &prefix, entropy).await
            }
        };
        examined.map_err(|error| query_error(&error))
    }
}

fn open_error(error: &OpenError) -> String {
    let message = error_chain(error);
    if matches!(error, OpenError::Missing { .. }) {
        return format!("{message}: begin the namespace, or name this address alone");
    }
    message
}

fn query_error(error: &DoctorError) -> String {
    let hint = if error.kind() == ErrorKind::Unavailable { "; does it exist?" } else { "" };
    format!("{}{hint}", error_chain(error))
}

/// A temporary folder beside a directory that exists or would be created; removed on drop.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn make(folder: &Path, mark: &str) -> Result<Self, String> {
        let existing = folder.ancestors().find(|place| place.is_dir());
        let existing =
            existing.ok_or_else(|| format!("there is no folder of {}", folder.display()))?;
        let scratch = existing.join(format!(".fulgurite-{mark}"));
        std::fs::create_dir(&scratch)
            .map_err(|error| format!("cannot make \"{}\": {error}", scratch.display()))?;
        Ok(Self(scratch))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a folder of the doctor is left");
        }
    }
}
