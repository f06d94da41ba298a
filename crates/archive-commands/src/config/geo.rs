//! `[geo]`: a namespace over several sites, and the folder of it that is this archive's own.
//!
//! Which sites there are stands in a file of its own, the map of sites (docs/geo.md), since the
//! sites agree on it. Not here: how it is begun, opened and asked (`crate::geo`).

use std::path::PathBuf;

use fulgurite_archive::BucketName;
use fulgurite_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// Name of the tier that it is.
pub const TIER: &str = "geo";

/// The folder of the namespace in which shared buckets are.
const SHARED: &str = "shared";

/// Shared buckets, at most: each is looked for when a server starts.
const SHARED_MAX: usize = 100;

/// Bytes of a cache, at least: fragments of the largest chunks have to be below its share.
const CACHE_BYTES_MIN: u64 = 64 << 20;

/// `[geo]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Geo {
    /// File of the map of sites, which is written when the sites have a later one.
    pub map: PathBuf,
    /// The site of the map at which this program is, which is asked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<String>,
    /// Folder of the namespace in which this archive's bodies are: one archive has it.
    pub folder: String,
    /// Buckets that this archive shares with all others that have the namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<BucketName>,
    /// File of the key that those archives have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_key: Option<PathBuf>,
    /// Folder in which fragments of other sites are kept that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// How many bytes it may take.
    pub cache_size: ByteCount,
    /// How often objects are healed that are known to be incomplete.
    pub heal_every: Duration,
    /// How often bytes are removed that nobody can ask for any more.
    pub collect_every: Duration,
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
        }
    }
}

impl Geo {
    /// Refuses what cannot be, before anything is opened.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let refuse =
            |name, reason: &str| Err(ConfigError::Value { name, reason: reason.to_owned() });
        if self.map.as_os_str().is_empty() {
            return refuse("geo.map", "name the file of the map of sites");
        }
        let is_plain =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'/';
        let parts = || self.folder.split('/');
        if !self.folder.bytes().all(is_plain) || parts().any(str::is_empty) {
            let reason =
                "write lower-case letters, digits and hyphens, with slashes between folders";
            return refuse("geo.folder", reason);
        }
        if parts().next() == Some(SHARED) {
            return refuse("geo.folder", "\"shared\" is the folder of shared buckets");
        }
        if self.shared.is_empty() != self.shared_key.is_none() {
            let reason = "shared buckets need a key, which all archives have that share them";
            return refuse("geo.shared_key", reason);
        }
        if self.shared.len() > SHARED_MAX {
            return refuse("geo.shared", "100 buckets are the most");
        }
        if self.cache.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            return refuse("geo.cache", "name a folder, or leave it out");
        }
        if self.cache_size.get() < CACHE_BYTES_MIN {
            return refuse("geo.cache_size", "64MiB is the least");
        }
        if self.heal_every == Duration::ZERO {
            return refuse("geo.heal_every", "healing takes some time");
        }
        if self.collect_every < self.heal_every {
            return refuse("geo.collect_every", "it is geo.heal_every at least");
        }
        Ok(())
    }
}
