//! Opens the tiers of a configuration, each by its kind.

use std::collections::BTreeMap;
use std::path::Path;

use fulgurite_archive::config::{SharedOptions, TierName, TierOptions};
use fulgurite_gateway::{TierStore, Tiers};
use fulgurite_terminal::exit::{Exit, ExitError};

use crate::config::{Config, Tier, TierConfig, process_environment, tiers};
use crate::{geo, rack, tomes};

/// Opens a tier for `serve`.
pub(crate) async fn open_for_serve(
    name: &TierName,
    tier: &Tier,
    data: &Path,
) -> anyhow::Result<TierStore> {
    Ok(match tier {
        Tier::Rack(rack) => {
            let rack = TierConfig::rack(name, rack, data);
            TierStore::Rack(rack::open_for_serve(&rack).await?)
        }
        Tier::Tome(tome) => {
            let tome = TierConfig::tome(name, tome, data);
            TierStore::Tome(tomes::open_for_serve(&tome).await?)
        }
        Tier::Geo(geo) => TierStore::Geo(geo::open_for_serve(geo).await?),
        Tier::Objects(_) => TierStore::Objects,
    })
}

/// Opens an existing tier; nothing is created, and no maintenance is started.
pub(crate) async fn open(name: &TierName, tier: &Tier, data: &Path) -> anyhow::Result<TierStore> {
    Ok(match tier {
        Tier::Rack(rack) => TierStore::Rack(rack::open(&TierConfig::rack(name, rack, data))?),
        Tier::Tome(tome) => {
            TierStore::Tome(tomes::open(&TierConfig::tome(name, tome, data)).await?)
        }
        Tier::Geo(geo) => TierStore::Geo(geo::open(geo).await?),
        Tier::Objects(_) => TierStore::Objects,
    })
}

/// Spins disks down and closes indexes.
pub(crate) async fn close(tiers: Tiers) {
    for tier in tiers.into_values() {
        match tier {
            TierStore::Rack(rack) => rack::close(rack).await,
            TierStore::Tome(tomes) => tomes::close(tomes).await,
            TierStore::Geo(_) | TierStore::Objects => {}
        }
    }
}

/// Returns the archive's options of all tiers: those of kind `objects`, and open ones of others.
pub(crate) fn options(
    config: &Config,
    opened: &Tiers,
) -> anyhow::Result<BTreeMap<TierName, TierOptions>> {
    let mut options = tiers::objects(&config.tiers, process_environment())
        .map_err(|reason| ExitError::new(Exit::Config, format!("setting tiers: {reason}")))?;
    for (name, store) in opened {
        let tier = match (config.tiers.get(name), store) {
            (Some(Tier::Rack(rack)), TierStore::Rack(store)) => rack::tier(store, rack),
            (Some(Tier::Tome(_)), TierStore::Tome(store)) => tomes::tier(store),
            (Some(Tier::Geo(geo)), TierStore::Geo(store)) => geo::tier(store, geo),
            _ => continue,
        };
        options.insert(name.clone(), tier);
    }
    Ok(options)
}

/// Returns the options of buckets shared with other archives, if a tier names some.
pub(crate) fn shared(config: &Config, opened: &Tiers) -> Option<SharedOptions> {
    opened.iter().find_map(|(name, store)| match (config.tiers.get(name)?, store) {
        (Tier::Geo(geo), TierStore::Geo(store)) => geo::shared(name, store, geo),
        _ => None,
    })
}
