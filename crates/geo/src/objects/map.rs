//! The site map: which sites exist, which of them vote or hold fragments, and how objects are coded
//! over them. It is a TOML file, and also an object that the sites themselves agree on; its version
//! is the epoch.
//!
//! ```toml
//! name = "records"            # of the namespace
//! data = 2                    # fragments that give an object back
//! parity = 1                  # sites that may be lost
//!
//! [[sites]]
//! name = "lisbon"
//! table = "postgres://archive@db.lisbon.example/geo"   # votes
//! blobs = "s3://lisbon-fragments?region=eu-west-1"      # holds fragments
//! ```
//!
//! Rows and objects refer to a site by its index in the list: new sites are appended, and a
//! replaced site keeps its index.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use fulgurite_geo_core::{Epoch, Error, QuorumRule, Quorums, SiteIndex, limits as geo_limits};
use fulgurite_units::{ByteCount, Duration, settings};
use serde::{Deserialize, Serialize};

use crate::objects::limits::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};
use crate::objects::{GeoError, Result};
use crate::stores::Address;

/// Which sites a listing asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listing {
    /// Enough sites to find every object that was acknowledged.
    #[default]
    Quorum,
    /// The nearest site that answers: half of the rows or less, and recent puts from elsewhere may
    /// be missing.
    Nearest,
}

/// How many versions of an object are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Versions {
    /// So many of the newest.
    Newest(u32),
    /// All, until they are deleted.
    All(All),
}

/// The keyword for all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum All {
    /// `"all"`.
    All,
}

impl Versions {
    /// Number of puts to keep, as garbage collection takes it.
    #[must_use]
    pub const fn newest(self) -> Option<usize> {
        match self {
            Self::Newest(count) => Some(count as usize),
            Self::All(All::All) => None,
        }
    }
}

/// The site map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteMap {
    /// Name of the namespace.
    pub name: String,
    /// Version of the map. The sites count it; in an operator's file it is 0, or that of the map a
    /// program last wrote to it.
    #[serde(default)]
    pub epoch: u32,
    /// Number of data fragments: as many decode an object.
    pub data: u8,
    /// Number of parity fragments.
    pub parity: u8,
    /// Rule that sets the sizes of quorums.
    #[serde(default)]
    pub quorums: QuorumRule,
    /// Whether writes begin with a fast round.
    #[serde(default = "enabled")]
    pub fast: bool,
    /// Chunk size in bytes.
    #[serde(default = "chunk")]
    pub chunk: ByteCount,
    /// Maximum size in bytes of an object stored inline in its rows.
    #[serde(default = "inline")]
    pub inline: ByteCount,
    /// Fragments that must be written before a put is acknowledged while sites are down; otherwise
    /// all of them. Defaults to `data`, plus one if `parity` is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragments_needed: Option<u8>,
    /// Number of versions kept per object.
    #[serde(default = "one")]
    pub versions: Versions,
    /// Grace period: how long a dead version is kept, for reads that have begun.
    #[serde(default = "grace")]
    pub grace: Duration,
    /// How long a small object waits for others, so that they share a stripe; zero: each has
    /// fragments of its own.
    #[serde(default)]
    pub batch: Duration,
    /// Which sites listings ask.
    #[serde(default)]
    pub listing: Listing,
    /// How long a round waits for answers of other sites.
    #[serde(default = "round")]
    pub round: Duration,
    /// How long an operation may take.
    #[serde(default = "patience")]
    pub patience: Duration,
    /// How long this map is trusted without asking the sites whether it is still current. Replacing
    /// a site takes at least this long.
    #[serde(default = "lease")]
    pub lease: Duration,
    /// The sites.
    pub sites: Vec<SiteEntry>,
}

/// A site of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteEntry {
    /// Its name.
    pub name: String,
    /// Address of its table; a site with a table votes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Address of its blobs; a site with blobs holds fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blobs: Option<String>,
    /// Whether its content was lost and is being rebuilt.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rebuilding: bool,
}

const fn enabled() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

const fn one() -> Versions {
    Versions::Newest(1)
}

const fn chunk() -> ByteCount {
    ByteCount::new(4 << 20)
}

const fn inline() -> ByteCount {
    ByteCount::new(2 << 10)
}

const fn grace() -> Duration {
    Duration::from_secs(3600)
}

const fn round() -> Duration {
    Duration::from_secs(2)
}

const fn patience() -> Duration {
    Duration::from_secs(30)
}

const fn lease() -> Duration {
    Duration::from_secs(60)
}

impl SiteMap {
    /// Parses a map.
    ///
    /// # Errors
    /// If the text is not a map, or is inconsistent.
    pub fn parse(text: &str) -> Result<Self> {
        let map: Self = settings::from_toml(text).map_err(|error| Error::Map(error.to_string()))?;
        map.check()?;
        Ok(map)
    }

    /// Returns the map as text.
    ///
    /// # Panics
    /// Never: every map can be written as text.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string_pretty(self).expect("every map can be written as TOML")
    }

    /// Returns its epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    /// Returns the voting sites.
    #[must_use]
    pub fn voters(&self) -> Vec<SiteIndex> {
        self.sites_where(|site| site.table.is_some())
    }

    /// Returns the sites that hold fragments.
    #[must_use]
    pub fn holders(&self) -> Vec<SiteIndex> {
        self.sites_where(|site| site.blobs.is_some())
    }

    /// Returns the sites that are being rebuilt.
    #[must_use]
    pub fn rebuilding(&self) -> BTreeSet<SiteIndex> {
        self.sites_where(|site| site.rebuilding).into_iter().collect()
    }

    fn sites_where(&self, has: impl Fn(&SiteEntry) -> bool) -> Vec<SiteIndex> {
        let sites = (0..=u8::MAX).map(SiteIndex).zip(&self.sites);
        sites.filter(|(_, site)| has(site)).map(|(index, _)| index).collect()
    }

    /// Returns the site with this name.
    #[must_use]
    pub fn site(&self, name: &str) -> Option<SiteIndex> {
        self.sites_where(|site| site.name == name).first().copied()
    }

    /// Returns the sizes of its quorums.
    ///
    /// # Errors
    /// If the number of voting sites is not supported.
    pub fn sizes(&self) -> Result<Quorums, Error> {
        Quorums::new(self.voters().len(), self.quorums)
    }

    /// Returns how many fragments must be written before a put is acknowledged while sites are
    /// down.
    #[must_use]
    pub fn needed(&self) -> u8 {
        let default = self.data + u8::from(self.parity > 1);
        self.fragments_needed.unwrap_or(default).clamp(self.data, self.data + self.parity)
    }

    /// Checks that the map is consistent.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<()> {
        let refuse = |problem: String| Err(GeoError::Map(Error::Map(problem)));
        let sizes = self.sizes()?;
        let mut names = BTreeSet::new();
        let mut places = BTreeSet::new();
        for site in &self.sites {
            if site.name.is_empty() || !names.insert(site.name.as_str()) {
                return refuse(format!("the site name {:?} is empty or used twice", site.name));
            }
            if site.table.is_none() && site.blobs.is_none() {
                return refuse(format!("site {:?} has neither a table nor blobs", site.name));
            }
            for (what, address) in [("table", &site.table), ("blobs", &site.blobs)] {
                let Some(address) = address else { continue };
                let place = format!("{what} of site {:?}", site.name);
                Address::from_str(address).map_err(|source| GeoError::Address { place, source })?;
                // If two sites are in the same place, a single loss takes both.
                let bare = address.split(['?', '#']).next().unwrap_or_default();
                if !places.insert((what, bare.trim_end_matches('/'))) {
                    return refuse(format!(
                        "two sites share the {what} {bare}: one failure would lose both"
                    ));
                }
            }
        }
        let (holders, fragments) =
            (self.holders().len(), u16::from(self.data) + u16::from(self.parity));
        if self.data == 0 || self.parity == 0 {
            return refuse("data and parity must be at least 1".into());
        }
        if usize::from(fragments) > holders.min(geo_limits::DATA_SITES_MAX) {
            return refuse(format!(
                "{fragments} fragments of an object need as many sites with blobs; there are \
                 {holders}, and at most {} are supported",
                geo_limits::DATA_SITES_MAX
            ));
        }
        if self.fragments_needed.is_some_and(|needed| needed != self.needed()) {
            return refuse(
                "fragments_needed must be at least data and at most data + parity".into(),
            );
        }
        if !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&self.chunk.get()) {
            return refuse("chunk must be 64KiB to 64MiB".into());
        }
        if self.inline.get() > geo_limits::INLINE_BYTES_MAX as u64 {
            return refuse(format!(
                "inline must be at most {} bytes",
                geo_limits::INLINE_BYTES_MAX
            ));
        }
        if self.versions.newest() == Some(0) {
            return refuse("versions must be at least 1, or \"all\"".into());
        }
        let rebuilding =
            self.voters().iter().filter(|site| self.rebuilding().contains(site)).count();
        if rebuilding > sizes.sites() - sizes.classic() {
            return refuse(format!(
                "{rebuilding} voting sites are being rebuilt at once, which is too many"
            ));
        }
        if self.round >= self.patience || self.patience >= self.lease {
            return refuse(
                "round must be shorter than patience, and patience shorter than lease".into(),
            );
        }
        Ok(())
    }
}
