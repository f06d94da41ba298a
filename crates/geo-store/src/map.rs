//! The map of sites: which sites there are, who votes and who holds fragments, and how objects are
//! coded over them. One file of TOML, and an object that the sites themselves agree on, whose
//! version is the epoch.
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
//! A site's place in the list is what rows and objects name: sites are added behind the others, and
//! one that is replaced keeps its place.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use fulgurite_geo::{Epoch, Error, Quorums, SiteIndex, Sizes, limits as geo_limits};
use fulgurite_sites::Address;
use fulgurite_units::{ByteCount, Duration, settings};
use serde::{Deserialize, Serialize};

use crate::limits::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};
use crate::{GeoError, Result};

/// Where a listing looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listing {
    /// At as many sites as it takes to find every object that was acknowledged.
    #[default]
    Quorum,
    /// At the nearest site that answers: half of the rows or less, and what was put a moment ago
    /// elsewhere may be missing.
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

/// The word for all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum All {
    /// `"all"`.
    All,
}

impl Versions {
    /// As collectors want it.
    #[must_use]
    pub const fn newest(self) -> Option<usize> {
        match self {
            Self::Newest(count) => Some(count as usize),
            Self::All(All::All) => None,
        }
    }
}

/// A map of sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteMap {
    /// What the namespace is called.
    pub name: String,
    /// Which state of the map it is. Sites count them; a file of an operator has 0, or the one it
    /// was written by a program with.
    #[serde(default)]
    pub epoch: u32,
    /// Fragments that give an object back.
    pub data: u8,
    /// Fragments beside them.
    pub parity: u8,
    /// How sizes of quorums are chosen.
    #[serde(default)]
    pub quorums: Sizes,
    /// Whether writes begin with a fast round.
    #[serde(default = "yes")]
    pub fast: bool,
    /// Bytes of a chunk.
    #[serde(default = "chunk")]
    pub chunk: ByteCount,
    /// Bytes up to which an object lies in its rows.
    #[serde(default = "inline")]
    pub inline: ByteCount,
    /// Fragments that must be written before a put is acknowledged, while sites are down; all of
    /// them otherwise. `data`, and one more where `parity` is more than one, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragments_needed: Option<u8>,
    /// Versions of an object that are kept.
    #[serde(default = "one")]
    pub versions: Versions,
    /// How long a version that nobody can ask for any more is left, for reads that have begun.
    #[serde(default = "grace")]
    pub grace: Duration,
    /// How long a small object waits for others, so that they share a stripe; zero: each has
    /// fragments of its own.
    #[serde(default)]
    pub batch: Duration,
    /// Where listings look.
    #[serde(default)]
    pub listing: Listing,
    /// How long answers of other sites are waited for.
    #[serde(default = "round")]
    pub round: Duration,
    /// How long an operation may take.
    #[serde(default = "patience")]
    pub patience: Duration,
    /// How long this map is believed without asking the sites whether it still holds. A site is
    /// replaced no sooner than that.
    #[serde(default = "lease")]
    pub lease: Duration,
    /// The sites.
    pub sites: Vec<SiteEntry>,
}

/// A site of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteEntry {
    /// What it is called.
    pub name: String,
    /// The address of its table: it votes if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The address of its blobs: it holds fragments if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blobs: Option<String>,
    /// Whether what it held was lost and is being made again.
    #[serde(default, skip_serializing_if = "is_no")]
    pub rebuilding: bool,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_no(it: &bool) -> bool {
    !*it
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
    /// A map out of its text.
    ///
    /// # Errors
    /// When it is none, or says something impossible.
    pub fn parse(text: &str) -> Result<Self> {
        let map: Self = settings::from_toml(text).map_err(|error| Error::Map(error.to_string()))?;
        map.check()?;
        Ok(map)
    }

    /// Its text.
    ///
    /// # Panics
    /// Never: a map has a text.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string_pretty(self).expect("a map has a text")
    }

    /// Its epoch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    /// Sites that vote.
    #[must_use]
    pub fn voters(&self) -> Vec<SiteIndex> {
        self.having(|site| site.table.is_some())
    }

    /// Sites that hold fragments.
    #[must_use]
    pub fn holders(&self) -> Vec<SiteIndex> {
        self.having(|site| site.blobs.is_some())
    }

    /// Sites that are being made again.
    #[must_use]
    pub fn rebuilding(&self) -> BTreeSet<SiteIndex> {
        self.having(|site| site.rebuilding).into_iter().collect()
    }

    fn having(&self, has: impl Fn(&SiteEntry) -> bool) -> Vec<SiteIndex> {
        let sites = (0..=u8::MAX).map(SiteIndex).zip(&self.sites);
        sites.filter(|(_, site)| has(site)).map(|(index, _)| index).collect()
    }

    /// The site of a name.
    #[must_use]
    pub fn site(&self, name: &str) -> Option<SiteIndex> {
        self.having(|site| site.name == name).first().copied()
    }

    /// Sizes of its quorums.
    ///
    /// # Errors
    /// When so few or many sites cannot vote.
    pub fn sizes(&self) -> Result<Quorums, Error> {
        Quorums::new(self.voters().len(), self.quorums)
    }

    /// Fragments that must be written before a put is acknowledged while sites are down.
    #[must_use]
    pub fn needed(&self) -> u8 {
        let usual = self.data + u8::from(self.parity > 1);
        self.fragments_needed.unwrap_or(usual).clamp(self.data, self.data + self.parity)
    }

    /// Holds the map against what is possible.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(GeoError::Map(Error::Map(what)));
        let sizes = self.sizes()?;
        let mut names = BTreeSet::new();
        let mut places = BTreeSet::new();
        for site in &self.sites {
            if site.name.is_empty() || !names.insert(site.name.as_str()) {
                return refuse(format!("the name {:?} of a site is empty or twice", site.name));
            }
            if site.table.is_none() && site.blobs.is_none() {
                return refuse(format!("site {:?} has neither a table nor blobs", site.name));
            }
            for (what, address) in [("table", &site.table), ("blobs", &site.blobs)] {
                let Some(address) = address else { continue };
                let place = format!("{what} of site {:?}", site.name);
                Address::from_str(address).map_err(|source| GeoError::Address { place, source })?;
                // Where two sites are one place, one loss takes both.
                let bare = address.split(['?', '#']).next().unwrap_or_default();
                if !places.insert((what, bare.trim_end_matches('/'))) {
                    return refuse(format!(
                        "two sites have the {what} {bare}: one loss takes both"
                    ));
                }
            }
        }
        let (holders, fragments) =
            (self.holders().len(), u16::from(self.data) + u16::from(self.parity));
        if self.data == 0 || self.parity == 0 {
            return refuse("data and parity are 1 at least".into());
        }
        if usize::from(fragments) > holders.min(geo_limits::DATA_SITES_MAX) {
            return refuse(format!(
                "{fragments} fragments of an object need as many sites with blobs, one each; there \
                 are {holders}, and {} are the most",
                geo_limits::DATA_SITES_MAX
            ));
        }
        if self.fragments_needed.is_some_and(|needed| needed != self.needed()) {
            return refuse("fragments_needed is data at least, and data + parity at most".into());
        }
        if !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&self.chunk.get()) {
            return refuse("chunk is 64KiB to 64MiB".into());
        }
        if self.inline.get() > geo_limits::INLINE_BYTES_MAX as u64 {
            return refuse(format!("inline is {} bytes at most", geo_limits::INLINE_BYTES_MAX));
        }
        if self.versions.newest() == Some(0) {
            return refuse("versions is 1 at least, or \"all\"".into());
        }
        let rebuilding =
            self.voters().iter().filter(|site| self.rebuilding().contains(site)).count();
        if rebuilding > sizes.sites() - sizes.classic() {
            return refuse(format!("{rebuilding} sites that vote are being made again at once"));
        }
        if self.round >= self.patience || self.patience >= self.lease {
            return refuse("round is shorter than patience, and patience than lease".into());
        }
        Ok(())
    }
}
