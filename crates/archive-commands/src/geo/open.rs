//! Creates and opens a namespace over several sites from its map.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use fulgurite_archive::Archive;
use fulgurite_archive::config::{SharedOptions, TierName, TierOptions};
use fulgurite_archive::system_clock;
use fulgurite_geo::objects::{FragmentCache, GeoOptions, GeoStore, SiteMap};
use fulgurite_geo::remote::NetNodes;
use fulgurite_geo::stores::{Entropy, Opener};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_units::Duration;
use object_store::prefix::PrefixStore;

use super::shared::SharedSites;
use crate::config::{Geo, process_environment};
use crate::process::random_bytes;

/// Selects a namespace by its map, as seen from one of its sites or from none.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    /// The file of the map.
    pub(super) file: PathBuf,
    /// The map in the file.
    pub(super) map: SiteMap,
    /// The site where this program runs.
    pub(super) near: Option<String>,
    /// Age from which a fragment that no version references may be removed.
    pub(super) orphan_age: Duration,
}

impl Namespace {
    /// Reads the map of a tier.
    ///
    /// # Errors
    /// When there is none, or it is invalid, or does not fit the tier's settings.
    pub(super) fn read(geo: &Geo) -> anyhow::Result<Self> {
        let map = read_map(&geo.map)?;
        let age_min = Duration::from_nanos(map.lease.as_nanos() * 2);
        if geo.orphan_age < age_min {
            let message = format!(
                "orphan_age of a tier of kind geo must be at least {age_min}, twice the lease of \
                 its map"
            );
            return Err(ExitError::new(Exit::Config, message).into());
        }
        let (file, near) = (geo.map.clone(), geo.near.clone());
        Ok(Self { file, map, near, orphan_age: geo.orphan_age })
    }

    /// Returns the options to open it with.
    pub(super) fn options(&self) -> GeoOptions {
        GeoOptions {
            map: self.map.clone(),
            file: Some(self.file.clone()),
            near: self.near.clone(),
            clock: system_clock(),
            entropy: entropy(),
            opener: Arc::new(opener()),
            cache: None,
            orphan_age: self.orphan_age,
        }
    }

    /// Opens it, with this map or a later one from its sites.
    ///
    /// # Errors
    /// When too few sites answer, or they have no map or that of another namespace.
    async fn open(&self, cache: Option<FragmentCache>) -> anyhow::Result<GeoStore> {
        let opened = GeoStore::open(GeoOptions { cache, ..self.options() }).await;
        opened.map_err(|error| self.failed(error))
    }

    /// Adds the file of the map to an error.
    pub(super) fn failed(&self, error: fulgurite_geo::objects::GeoError) -> anyhow::Error {
        anyhow::Error::new(error).context(format!("the sites of \"{}\"", self.file.display()))
    }
}

/// Reads a map of sites.
///
/// # Errors
/// When there is none, or it is invalid.
pub(super) fn read_map(file: &Path) -> anyhow::Result<SiteMap> {
    let shown = || format!("the map of sites \"{}\"", file.display());
    let text = std::fs::read_to_string(file)
        .map_err(|error| ExitError::new(Exit::Config, format!("{}: {error}", shown())))?;
    SiteMap::parse(&text).with_context(shown)
}

/// Unpredictable random bytes.
pub(super) fn entropy() -> Entropy {
    Entropy::new(random_bytes)
}

/// Opens stores and remote nodes. Secrets come from this process's environment.
pub(super) fn opener() -> Opener {
    let nodes = Arc::new(NetNodes::new(entropy()));
    Opener::new(entropy(), process_environment()).with_nodes(nodes)
}

/// Refuses a namespace that `serve` cannot open, as far as that shows without asking its sites.
/// Creates nothing.
pub(crate) fn check(geo: &Geo) -> anyhow::Result<()> {
    Namespace::read(geo)?;
    geo.shared_key.iter().try_for_each(|key| Ok(Archive::check_shared_key(key)?))
}

/// Opens a namespace for `serve`, and starts its maintenance.
///
/// # Errors
/// Those of opening it.
pub(crate) async fn open_for_serve(geo: &Geo) -> anyhow::Result<GeoStore> {
    let store = Namespace::read(geo)?.open(cache(geo)?).await?;
    store.spawn_maintenance(geo.heal_every, geo.collect_every);
    Ok(store)
}

/// Opens the cache of the configuration. Only one program can use it, so commands have none.
fn cache(geo: &Geo) -> anyhow::Result<Option<FragmentCache>> {
    let Some(folder) = &geo.cache else { return Ok(None) };
    let cache = FragmentCache::open(folder, geo.cache_size, system_clock());
    Ok(Some(cache.context("the cache of fragments (cache)")?))
}

/// Opens a namespace for commands.
///
/// # Errors
/// Those of opening it.
pub(crate) async fn open(geo: &Geo) -> anyhow::Result<GeoStore> {
    Namespace::read(geo)?.open(None).await
}

/// Returns the options of buckets shared with other archives, if this tier names some.
pub(crate) fn shared(name: &TierName, store: &GeoStore, geo: &Geo) -> Option<SharedOptions> {
    Some(SharedOptions {
        place: name.to_string(),
        store: Arc::new(SharedSites::new(store.clone())),
        buckets: geo.shared.clone(),
        key: geo.shared_key.clone()?,
    })
}

/// Returns its tier of objects: a folder that belongs to this archive alone.
pub(crate) fn tier(store: &GeoStore, geo: &Geo) -> TierOptions {
    let folder = PrefixStore::new(store.clone(), geo.folder.as_str());
    let url = format!("geo:{}/{}", store.map().name, geo.folder);
    TierOptions {
        store_id: Some(url.clone()),
        url,
        store: Some(Arc::new(folder)),
        ..TierOptions::default()
    }
}
