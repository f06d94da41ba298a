//! A site map with its stores opened.

use std::str::FromStr as _;
use std::sync::Arc;

use async_trait::async_trait;
use fulgurite_geo_core::{Quorums, SiteIndex, SiteState, Terms};
use fulgurite_units::Duration;

use crate::objects::cache::FragmentCache;
use crate::objects::map::{SiteEntry, SiteMap};
use crate::objects::site::Site;
use crate::objects::{GeoError, Result};
use crate::stores::{Address, Blob, OpenError, Opener, Table};

/// Opens the stores of a site.
#[async_trait]
pub trait OpenSites: Send + Sync {
    /// Opens the table of a voting site, and creates it if it is missing and `may_create`.
    ///
    /// # Errors
    /// [`OpenError`].
    async fn table(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError>;

    /// Opens the blobs of a site that holds fragments.
    ///
    /// # Errors
    /// [`OpenError`].
    async fn blobs(
        &self,
        site: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError>;
}

#[async_trait]
impl OpenSites for Opener {
    async fn table(
        &self,
        _: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Table>, OpenError> {
        Self::table(self, address, may_create).await
    }

    async fn blobs(
        &self,
        _: &SiteEntry,
        address: &Address,
        may_create: bool,
    ) -> Result<Arc<dyn Blob>, OpenError> {
        Self::blobs(self, address, may_create).await
    }
}

/// An opened site map.
#[derive(Clone, Debug)]
pub(crate) struct LiveMap {
    pub(crate) map: SiteMap,
    quorums: Quorums,
    sites: Vec<Arc<Site>>,
    /// The site that this program runs at, if any.
    near: Option<SiteIndex>,
    /// Cache of other sites' fragments.
    pub(crate) cache: Option<FragmentCache>,
}

impl LiveMap {
    /// Opens all stores of a map. A site whose stores cannot be opened counts as not answering,
    /// unless `all` must be.
    pub(crate) async fn open(
        map: SiteMap,
        near: Option<&str>,
        opener: &dyn OpenSites,
        (may_create, all): (bool, bool),
    ) -> Result<Self> {
        map.check()?;
        let quorums = map.sizes()?;
        let near = match near {
            None => None,
            Some(name) => {
                let missing =
                    || GeoError::Invalid { reason: format!("the map has no site {name:?}") };
                Some(map.site(name).ok_or_else(missing)?)
            }
        };
        let epoch = map.epoch();
        let indices = (0..=u8::MAX).map(SiteIndex).zip(&map.sites);
        let open = indices.map(|(index, entry)| async move {
            let table = address(entry, entry.table.as_deref(), "table")?;
            let table = match table {
                Some(address) => {
                    opened(entry, opener.table(entry, &address, may_create).await, all)?
                }
                None => None,
            };
            let blobs = address(entry, entry.blobs.as_deref(), "blobs")?;
            let blobs = match blobs {
                Some(address) => {
                    opened(entry, opener.blobs(entry, &address, may_create).await, all)?
                }
                None => None,
            };
            let state = SiteState { epoch, rebuilding: entry.rebuilding };
            Ok::<_, GeoError>(Arc::new(Site::new((index, entry.name.clone()), table, blobs, state)))
        });
        let sites = futures::future::try_join_all(open).await?;
        Ok(Self { map, quorums, sites, near, cache: None })
    }

    pub(crate) fn site(&self, index: SiteIndex) -> Option<&Site> {
        self.sites.get(index.index()).map(|site| &**site)
    }

    /// Returns the same without the cache: all bytes are read from sites.
    pub(crate) fn without_cache(&self) -> Self {
        Self { cache: None, ..self.clone() }
    }

    /// Returns the cache, for a fragment of another site.
    pub(crate) fn cache_of(&self, site: SiteIndex) -> Option<&FragmentCache> {
        self.cache.as_ref().filter(|_| !self.is_near(site))
    }

    /// Whether a site is the one this program runs at.
    pub(crate) fn is_near(&self, site: SiteIndex) -> bool {
        self.near == Some(site)
    }

    pub(crate) fn shared(&self, index: SiteIndex) -> Option<Arc<Site>> {
        self.sites.get(index.index()).cloned()
    }

    pub(crate) fn sites(&self) -> &[Arc<Site>] {
        &self.sites
    }

    /// Number of stores of the map that could not be opened.
    pub(crate) fn missing_stores(&self) -> usize {
        let sites = self.sites.iter().zip(&self.map.sites);
        sites.map(|(site, entry)| count_missing_stores(site, entry)).sum()
    }

    /// Reuses the fully opened sites of an earlier instance of the same map: their measured health
    /// and cached rows are useful.
    pub(crate) fn reuse_sites(&mut self, before: &Self) {
        if self.map != before.map {
            return;
        }
        let entries = &self.map.sites;
        for ((own, earlier), entry) in self.sites.iter_mut().zip(&before.sites).zip(entries) {
            if count_missing_stores(earlier, entry) == 0 {
                *own = Arc::clone(earlier);
            }
        }
    }

    /// Reuses the stores of an earlier map for those that could not be opened now, if both maps
    /// have them in the same place.
    pub(crate) fn reuse_stores(&mut self, before: &Self) {
        for (own, entry) in self.sites.iter_mut().zip(&self.map.sites) {
            let Some(index) = before.map.site(&entry.name) else { continue };
            let (earlier_entry, Some(earlier)) =
                (&before.map.sites[index.index()], before.site(index))
            else {
                continue;
            };
            let Some(own) = Arc::get_mut(own) else { continue };
            if own.table.is_none() && earlier_entry.table == entry.table {
                own.table.clone_from(&earlier.table);
            }
            if own.blobs.is_none() && earlier_entry.blobs == entry.blobs {
                own.blobs.clone_from(&earlier.blobs);
            }
        }
    }

    pub(crate) const fn quorums(&self) -> Quorums {
        self.quorums
    }

    /// Returns a site with its blobs, if they could be opened.
    pub(crate) fn blobs(&self, index: SiteIndex) -> Option<(&Site, &dyn Blob)> {
        let site = self.site(index)?;
        Some((site, &**site.blobs.as_ref()?))
    }

    /// Returns the voting sites, nearest first.
    pub(crate) fn voters(&self) -> Vec<SiteIndex> {
        let mut voters = self.map.voters();
        let distance = |index: &SiteIndex| {
            let site = self.site(*index);
            let down = site.is_none_or(|site| site.is_down() || site.table.is_none());
            let own = Some(*index) != self.near;
            (down, own, site.map_or(f64::MAX, Site::distance))
        };
        let order = |a: &SiteIndex, b: &SiteIndex| {
            distance(a).partial_cmp(&distance(b)).unwrap_or(std::cmp::Ordering::Equal)
        };
        voters.sort_by(order);
        voters
    }

    /// Returns the terms of an operation that begins now.
    pub(crate) fn terms(&self) -> Terms {
        let voters = self.voters();
        let is_down = |index: &&SiteIndex| {
            let site = self.site(**index);
            site.is_none_or(|site| site.is_down() || site.table.is_none() || site.state.rebuilding)
        };
        let down = voters.iter().filter(is_down).copied().collect();
        let silent = self.sites.iter().filter(|site| site.is_down()).map(|site| site.index);
        let silent = silent.collect();
        // After a lost ballot, one round between sites is enough of a backoff.
        let nearest: Vec<f64> =
            voters.iter().filter_map(|site| self.site(*site)).map(Site::distance).collect();
        let median = nearest.get(nearest.len() / 2).copied().unwrap_or_default();
        let backoff = Duration::from_secs_f64(median).max(BACKOFF_MIN);
        Terms {
            quorums: self.quorums,
            epoch: self.map.epoch(),
            voters,
            down,
            silent,
            fast: self.map.fast,
            round: self.map.round,
            backoff,
            patience: self.map.patience,
        }
    }
}

/// Number of stores of a site that could not be opened.
fn count_missing_stores(site: &Site, entry: &SiteEntry) -> usize {
    let table = site.table.is_some() != entry.table.is_some();
    let blobs = site.blobs.is_some() != entry.blobs.is_some();
    usize::from(table) + usize::from(blobs)
}

/// Minimum backoff after a lost ballot.
const BACKOFF_MIN: Duration = Duration::from_millis(5);

fn address(site: &SiteEntry, text: Option<&str>, reason: &str) -> Result<Option<Address>> {
    let Some(text) = text else { return Ok(None) };
    let place = format!("{reason} of site {:?}", site.name);
    let address = Address::from_str(text);
    address.map(Some).map_err(|source| GeoError::Address { place, source })
}

fn opened<T>(site: &SiteEntry, store: Result<T, OpenError>, all: bool) -> Result<Option<T>> {
    match store {
        Ok(store) => Ok(Some(store)),
        Err(source) if all => Err(GeoError::Open { site: site.name.clone(), source }),
        Err(error) => {
            let error = fulgurite_units::error_chain(&error);
            tracing::warn!(site = %site.name, %error, "a store of a site could not be opened");
            Ok(None)
        }
    }
}
