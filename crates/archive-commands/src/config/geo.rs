//! `[tiers.NAME]` of kind `geo`: a namespace over several sites, and this archive's own folder in
//! it.
//!
//! The sites are listed in a file of its own, the map of sites (docs/geo.md), since the sites agree
//! on it. Creating, opening and querying the namespace is in `crate::geo`.

use std::path::PathBuf;

use fulgurite_archive::BucketName;
use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use super::{ConfigError, refuse};

/// The folder of the namespace that holds shared buckets.
const SHARED: &str = "shared";

/// Most shared buckets: each is looked up when a server starts.
const SHARED_MAX: usize = 100;

/// Smallest cache: fragments of the largest chunks must fit its share.
const CACHE_BYTES_MIN: u64 = 64 << 20;

/// A tier of kind `geo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Geo {
    /// File of the map of sites; rewritten when the sites have a later one.
    pub map: PathBuf,
    /// The site of the map where this program runs, which is contacted first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<String>,
    /// Folder of the namespace for this archive's bodies: only one archive may use it.
    pub folder: String,
    /// Buckets that this archive shares with all others in the namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<BucketName>,
    /// File of the key that those archives share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_key: Option<PathBuf>,
    /// Cache folder for fragments that were read from other sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// Size of the cache.
    pub cache_size: ByteCount,
    /// How often objects that are known to be incomplete are healed.
    pub heal_every: Duration,
    /// How often obsolete versions are garbage collected.
    pub collect_every: Duration,
    /// Age from which a fragment that no version references may be removed: longer than any write
    /// takes.
    pub orphan_age: Duration,
}

impl Default for Geo {
    fn default() -> Self {
        Self {
            map: PathBuf::new(),
            near: None,
            folder: "archive".to_owned(),
            shared: Vec::new(),
            shared_key: None,
            cache: None,
            cache_size: ByteCount::new(10 << 30),
            heal_every: Duration::from_secs(30),
            collect_every: Duration::from_secs(3600),
            orphan_age: Duration::from_secs(86_400),
        }
    }
}

impl Geo {
    /// Rejects invalid settings, before anything is opened.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.map.as_os_str().is_empty() {
            return refuse("map", "name the file of the map of sites");
        }
        let is_plain =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'/';
        let parts = || self.folder.split('/');
        if !self.folder.bytes().all(is_plain) || parts().any(str::is_empty) {
            let reason =
                "write lower-case letters, digits and hyphens, with slashes between folders";
            return refuse("folder", reason);
        }
        if parts().next() == Some(SHARED) {
            return refuse("folder", "\"shared\" is the folder of shared buckets");
        }
        if self.shared.is_empty() != self.shared_key.is_none() {
            let reason = "shared buckets need a key, which all archives have that share them";
            return refuse("shared_key", reason);
        }
        if self.shared.len() > SHARED_MAX {
            return refuse("shared", "at most 100 buckets");
        }
        if self.cache.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            return refuse("cache", "name a folder, or leave it out");
        }
        if self.cache_size.get() < CACHE_BYTES_MIN {
            return refuse("cache_size", "it must be at least 64MiB");
        }
        if self.heal_every == Duration::ZERO {
            return refuse("heal_every", "it must be longer than zero");
        }
        if self.collect_every < self.heal_every {
            return refuse("collect_every", "it must be at least heal_every");
        }
        Ok(())
    }
}
