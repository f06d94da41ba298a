//! How a namespace is created, is opened, and maintains its site map: an object over the sites
//! whose version is the map's epoch.
//!
//! ```text
//! init      version 1 of the map, where the sites have none
//! open      the file's map --> the sites' map, when they have a later one --> the file
//! confirm   every third of a lease: asks the sites. After a whole lease without an answer, reads
//!           and writes stop, since another map may be current
//! change    version e + 1, if the map is still version e; then waits for a lease
//! ```

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};

use fulgurite_geo_core::{Change, Condition, Data, Put, ReadTarget, Version};
use fulgurite_units::error_chain;
use futures::future::BoxFuture;

use crate::objects::driver::Work;
use crate::objects::live_map::LiveMap;
use crate::objects::map::SiteMap;
use crate::objects::store::{GeoOptions, GeoStore, Inner};
use crate::objects::{GeoError, Result, names};

impl GeoStore {
    /// Creates a namespace: writes the map to its sites. It is idempotent: after an interruption,
    /// sites that have this very map are accepted.
    ///
    /// # Errors
    /// If a site cannot be opened, or the sites have another map already.
    pub fn init(mut options: GeoOptions) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            options.map.epoch = 1;
            let live = LiveMap::open(
                options.map.clone(),
                options.near.as_deref(),
                &*options.opener,
                (true, true),
            );
            let inner = Inner::new(live.await?, &options);
            let live = inner.any_live();
            match inner.write_map(&live, &options.map, Condition::Absent).await? {
                Some(Version(1)) => {}
                Some(version) => {
                    let reason = format!(
                        "the sites already had a map: the new one became version {version}"
                    );
                    return Err(GeoError::Invalid { reason });
                }
                None => {
                    let found = inner.read_map(&live).await?;
                    if found != options.map {
                        let reason = format!(
                            "a site has rows of the namespace {:?} with another map; open that \
                             namespace, or use other places",
                            found.name
                        );
                        return Err(GeoError::Invalid { reason });
                    }
                }
            }
            inner.save_map(&options.map)?;
            spawn_map_confirmation(&inner);
            Ok(Self(inner))
        })
    }

    /// Opens a namespace by its map, or by a later one that its sites have.
    ///
    /// # Errors
    /// If too few sites answer, or they have no map, or that of another namespace.
    pub fn open(options: GeoOptions) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let live = LiveMap::open(
                options.map.clone(),
                options.near.as_deref(),
                &*options.opener,
                (false, false),
            );
            let inner = Inner::new(live.await?, &options);
            inner.confirm().await?;
            spawn_map_confirmation(&inner);
            Ok(Self(inner))
        })
    }

    /// Returns the current map.
    #[must_use]
    pub fn map(&self) -> SiteMap {
        self.0.any_live().map.clone()
    }
}

/// Confirms the map for as long as the store is in use.
fn spawn_map_confirmation(inner: &Arc<Inner>) {
    let weak: Weak<Inner> = Arc::downgrade(inner);
    tokio::spawn(async move {
        loop {
            let Some(inner) = weak.upgrade() else { return };
            let lease = inner.any_live().map.lease;
            drop(inner);
            tokio::time::sleep(std::time::Duration::from_nanos(lease.as_nanos() / 3)).await;
            let Some(inner) = weak.upgrade() else { return };
            if let Err(error) = inner.confirm().await {
                let error = error_chain(&error);
                tracing::warn!(%error, "the site map could not be confirmed");
            }
        }
    });
}

impl Inner {
    /// Asks the sites which map is current, and adopts a later one.
    pub(crate) async fn confirm(&self) -> Result<()> {
        // Each map may lead to a later one, but not forever.
        for _ in 0..MAPS_MAX {
            let started = tokio::time::Instant::now();
            let mut live = self.any_live();
            let map = match self.read_map(&live).await {
                // Sites that could not be opened before may be the ones that answer now.
                Err(GeoError::Unavailable { .. }) if self.reopen(&live).await => {
                    live = self.any_live();
                    self.read_map(&live).await?
                }
                read => read?,
            };
            if map.name != live.map.name {
                let (own_name, found_name) = (&live.map.name, &map.name);
                let reason = format!(
                    "these sites belong to the namespace {found_name:?}, but the map is of \
                     {own_name:?}: two namespaces cannot share a place"
                );
                return Err(GeoError::Invalid { reason });
            }
            if map.epoch == live.map.epoch && map == live.map {
                self.reopen(&live).await;
                self.check_starts(&self.any_live()).await;
                *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner) = started;
                return Ok(());
            }
            tracing::info!(epoch = map.epoch, "the sites have another map");
            self.switch_map(map).await?;
        }
        Err(GeoError::OldMap { reason: format!("it changed {MAPS_MAX} times in a row") })
    }

    /// Opens stores of the map that could not be opened before. Returns whether any could be now.
    async fn reopen(&self, live: &Arc<LiveMap>) -> bool {
        let missing = live.missing_stores();
        if missing == 0 {
            return false;
        }
        let near = self.near.as_deref();
        let again = LiveMap::open(live.map.clone(), near, &*self.opener, (false, false)).await;
        match again {
            Ok(mut again) => {
                again.reuse_sites(live);
                let is_better = again.missing_stores() < missing;
                if is_better {
                    self.adopt(again);
                }
                is_better
            }
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(%error, "sites could not be reopened");
                false
            }
        }
    }

    /// Opens another map and switches to it.
    pub(crate) async fn switch_map(&self, map: SiteMap) -> Result<()> {
        let near = self.near.as_deref().filter(|near| map.site(near).is_some());
        let mut live = LiveMap::open(map.clone(), near, &*self.opener, (false, false)).await?;
        live.reuse_stores(&self.any_live());
        self.adopt(live);
        self.save_map(&map)
    }

    async fn read_map(&self, live: &Arc<LiveMap>) -> Result<SiteMap> {
        let (found, _) = self.lookup(live, names::MAP, (ReadTarget::Latest, None)).await?;
        let found = found.ok_or_else(|| GeoError::Invalid {
            reason: "the sites have no map: create the namespace first (fulgurite tier init NAME)"
                .into(),
        })?;
        let Some(Put { data: Data::Inline(text), .. }) = found.put() else {
            return Err(GeoError::Corrupt { key: "the site map".into() });
        };
        let text = String::from_utf8_lossy(text);
        let mut map = SiteMap::parse(&text)?;
        map.epoch = u32::try_from(found.version.0).unwrap_or(u32::MAX);
        Ok(map)
    }

    /// Writes another map to the sites; none if the condition is not met.
    pub(crate) async fn write_map(
        &self,
        live: &Arc<LiveMap>,
        map: &SiteMap,
        condition: Condition,
    ) -> Result<Option<Version>> {
        let text = map.text().into_bytes();
        let put = Put {
            size: text.len() as u64,
            digest: blake3::hash(&text).into(),
            data: Data::Inline(text),
            attributes: Vec::new(),
        };
        let value = self.value(self.draw(), Change::Put(put));
        self.decide(live, &Work::for_object(names::MAP)?, value, condition).await
    }

    /// Writes the successor of the current map to the sites, and switches to it.
    pub(crate) async fn change_map(&self, mut map: SiteMap) -> Result<()> {
        let live = self.any_live();
        map.epoch = live.map.epoch + 1;
        map.check()?;
        let condition = Condition::Is(Version(u64::from(live.map.epoch)));
        match self.write_map(&live, &map, condition).await? {
            Some(version) if version.0 == u64::from(map.epoch) => self.switch_map(map).await,
            _ => {
                let reason = "another program changed it meanwhile; check it and retry".to_owned();
                Err(GeoError::OldMap { reason })
            }
        }
    }

    /// Writes the map to its file atomically.
    fn save_map(&self, map: &SiteMap) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let failed = |action: &'static str| {
            let path = file.display().to_string();
            move |source| GeoError::File { action, path, source }
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        // Several programs may share the file.
        let drawn = u128::from_le_bytes(self.ctx.entropy.draw());
        let temporary = file.with_extension(format!("{drawn:032x}.new"));
        let mut new =
            std::fs::File::create(&temporary).map_err(failed("create a new version of"))?;
        new.write_all(map.text().as_bytes()).map_err(failed("write"))?;
        new.sync_all().map_err(failed("sync"))?;
        std::fs::rename(&temporary, file).map_err(failed("replace"))?;
        let folder = std::fs::File::open(folder).map_err(failed("open the folder of"))?;
        folder.sync_all().map_err(failed("sync the folder of"))
    }
}

/// Maximum number of successive maps before it gives up.
const MAPS_MAX: usize = 8;
