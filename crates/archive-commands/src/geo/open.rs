//! Creates and opens a namespace over several sites from its map.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use fulgurite_archive::config::{SharedOptions, TierName, TierOptions};
use fulgurite_archive::system_clock;
use fulgurite_geo::objects::{FragmentCache, GeoOptions, GeoStore, SiteMap};
use fulgurite_geo::remote::NetNodes;
use fulgurite_geo::stores::{Entropy, Opener};
use fulgurite_terminal::exit::{Exit, ExitError};
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
}

impl Namespace {
    /// Reads a map.
    ///
    /// # Errors
    /// When there is none, or it is invalid.
    pub(super) fn read(file: &Path, near: Option<String>) -> anyhow::Result<Self> {
        let cannot = |error| {
            ExitError::new(
                Exit::Config,
                format!("the map of sites \"{}\": {error}", file.display()),
            )
        };
        let text = std::fs::read_to_string(file).map_err(cannot)?;
        let map = SiteMap::parse(&text).map_err(|error| {
            anyhow::Error::new(error).context(format!("the map of sites \"{}\"", file.display()))
        })?;
        Ok(Self { file: file.to_owned(), map, near })
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
        }
    }

    /// Opens it, with this map or a later one from its sites.
    ///
    /// # Errors
    /// When too few sites answer, or they have no map or that of another namespace.
    pub(super) async fn open(&self) -> anyhow::Result<GeoStore> {
        self.open_with(None).await
    }

    async fn open_with(&self, cache: Option<FragmentCache>) -> anyhow::Result<GeoStore> {
        let opened = GeoStore::open(GeoOptions { cache, ..self.options() }).await;
        opened.map_err(|error| self.failed(error))
    }

    /// Adds the file of the map to an error.
    pub(super) fn failed(&self, error: fulgurite_geo::objects::GeoError) -> anyhow::Error {
        anyhow::Error::new(error).context(format!("the sites of \"{}\"", self.file.display()))
    }
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

/// Opens a namespace for `serve`, and starts its maintenance.
///
/// # Errors
/// Those of opening it.
pub(crate) async fn open_for_serve(geo: &Geo) -> anyhow::Result<GeoStore> {
    let named = Namespace::read(&geo.map, geo.near.clone())?;
    let store = named.open_with(cache(geo)?).await?;
    store.spawn_maintenance(geo.heal_every, geo.collect_every);
    Ok(store)
}

/// Opens the cache of the configuration. Commands have none, because they inspect the sites' own
/// data.
fn cache(geo: &Geo) -> anyhow::Result<Option<FragmentCache>> {
    let Some(folder) = &geo.cache else { return Ok(None) };
    let cache = FragmentCache::open(folder, geo.cache_size, system_clock());
    Ok(Some(cache.context("the cache of fragments (cache)")?))
}

/// Opens a namespace for `recover`.
///
/// # Errors
/// Those of opening it.
pub(crate) async fn open(geo: &Geo) -> anyhow::Result<GeoStore> {
    Namespace::read(&geo.map, geo.near.clone())?.open().await
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
    TierOptions {
        url: format!("geo:{}/{}", store.map().name, geo.folder),
        store: Some(Arc::new(folder)),
        ..TierOptions::default()
    }
}
