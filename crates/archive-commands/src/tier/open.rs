//! Opens the tiers of a configuration, each by its kind.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fulgurite_archive::config::{SharedOptions, TierName, TierOptions};
use fulgurite_gateway::{ObjectsTier, Tiers};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_tier::Tier as OperatedTier;
use object_store::memory::InMemory;

use crate::config::{Config, Tier, TierConfig, process_environment, tiers};
use crate::{geo, rack, tomes};

/// An open tier, for its operator and for the archive.
#[derive(Clone, Debug)]
pub struct OpenTier {
    /// What its operator sees and does.
    pub(crate) tier: Arc<dyn OperatedTier>,
    /// The archive's options; `None` if the configuration alone has them.
    options: Option<TierOptions>,
    /// The options of buckets shared with other archives, if it has some.
    shared: Option<SharedOptions>,
}

/// The open tiers, by name.
pub type OpenTiers = BTreeMap<TierName, OpenTier>;

impl OpenTier {
    fn new(tier: impl OperatedTier + 'static, options: TierOptions) -> Self {
        Self { tier: Arc::new(tier), options: Some(options), shared: None }
    }

    const fn objects(tier: Arc<dyn OperatedTier>) -> Self {
        Self { tier, options: None, shared: None }
    }
}

/// Refuses a tier that `serve` cannot open, as far as that shows without opening it. Returns
/// whether it would be created. Creates nothing.
pub(crate) fn check(name: &TierName, tier: &Tier, data: &Path) -> anyhow::Result<bool> {
    match tier {
        Tier::Rack(rack) => rack::check(&TierConfig::rack(name, rack, data)),
        Tier::Tome(tome) => tomes::check(&TierConfig::tome(name, tome, data)),
        Tier::Geo(geo) => geo::check(geo).map(|()| false),
        Tier::Objects(_) => Ok(false),
    }
}

/// Returns the options of tiers that are not open: enough to check a configuration with.
pub(crate) fn unopened(config: &Config) -> anyhow::Result<BTreeMap<TierName, TierOptions>> {
    let mut unopened = options(config, &OpenTiers::new())?;
    for name in config.tiers.keys() {
        unopened.entry(name.clone()).or_insert_with(|| TierOptions {
            store: Some(Arc::new(InMemory::new())),
            ..TierOptions::default()
        });
    }
    Ok(unopened)
}

/// Opens a tier for `serve`.
pub(crate) async fn open_for_serve(
    name: &TierName,
    tier: &Tier,
    data: &Path,
) -> anyhow::Result<OpenTier> {
    Ok(match tier {
        Tier::Rack(rack) => {
            let store = rack::open_for_serve(&TierConfig::rack(name, rack, data)).await?;
            let options = rack::tier(&store, rack);
            OpenTier::new(store, options)
        }
        Tier::Tome(tome) => {
            let store = tomes::open_for_serve(&TierConfig::tome(name, tome, data)).await?;
            let options = tomes::tier(&store);
            OpenTier::new(store, options)
        }
        Tier::Geo(geo) => open_geo(name, geo, geo::open_for_serve(geo).await?),
        Tier::Objects(_) => OpenTier::objects(Arc::new(ObjectsTier)),
    })
}

/// Opens an existing tier; nothing is created, and no maintenance is started.
pub(crate) async fn open(name: &TierName, tier: &Tier, data: &Path) -> anyhow::Result<OpenTier> {
    Ok(match tier {
        Tier::Rack(rack) => {
            let store = rack::open(&TierConfig::rack(name, rack, data))?;
            let options = rack::tier(&store, rack);
            OpenTier::new(store, options)
        }
        Tier::Tome(tome) => {
            let store = tomes::open(&TierConfig::tome(name, tome, data)).await?;
            let options = tomes::tier(&store);
            OpenTier::new(store, options)
        }
        Tier::Geo(geo) => open_geo(name, geo, geo::open(geo).await?),
        Tier::Objects(_) => OpenTier::objects(Arc::new(ObjectsTier)),
    })
}

fn open_geo(
    name: &TierName,
    geo: &crate::config::Geo,
    store: fulgurite_geo::objects::GeoStore,
) -> OpenTier {
    let (options, shared) = (geo::tier(&store, geo), geo::shared(name, &store, geo));
    OpenTier { shared, ..OpenTier::new(store, options) }
}

/// Stops tiers: their disks spin down.
pub(crate) async fn close(tiers: OpenTiers) {
    for (name, open) in tiers {
        stop(&name, open.tier).await;
    }
}

/// Stops a tier: its disks spin down.
pub(crate) async fn stop(name: &TierName, tier: Arc<dyn OperatedTier>) {
    // Stopping blocks on disks, so it must not run on an async worker thread.
    if tokio::task::spawn_blocking(move || tier.stop()).await.is_err() {
        tracing::error!("stopping tier {name} panicked; this is a bug");
    }
}

/// Returns the open tiers as the gateway knows them.
pub(crate) fn operated(tiers: &OpenTiers) -> Tiers {
    tiers.iter().map(|(name, open)| (name.clone(), Arc::clone(&open.tier))).collect()
}

/// Returns the archive's options of all tiers: those of kind `objects`, and open ones of others.
pub(crate) fn options(
    config: &Config,
    opened: &OpenTiers,
) -> anyhow::Result<BTreeMap<TierName, TierOptions>> {
    let mut options = tiers::objects(&config.tiers, process_environment())
        .map_err(|reason| ExitError::new(Exit::Config, format!("setting tiers: {reason}")))?;
    let own = opened.iter().filter_map(|(name, open)| Some((name.clone(), open.options.clone()?)));
    options.extend(own);
    Ok(options)
}

/// Returns the options of buckets shared with other archives, if a tier names some.
pub(crate) fn shared(opened: &OpenTiers) -> Option<SharedOptions> {
    opened.values().find_map(|open| open.shared.clone())
}
