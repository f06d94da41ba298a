//! Probes the stores of a map: for `status`, and before a namespace is created.

use std::time::Instant;

use fulgurite_geo::objects::{SiteEntry, SiteMap};
use fulgurite_geo::stores::{Address, BlobError, Key};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_units::error_chain;
use futures::StreamExt as _;
use futures::future::join_all;
use serde::Serialize;

use super::doctor::PROBE_PREFIX;
use super::open::opener;
use crate::limits::SITE_TIMEOUT;

/// The state of a site when probed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SiteStatus {
    /// Its name.
    pub(super) name: String,
    /// Whether its contents were lost and are being rebuilt.
    pub(super) rebuilding: bool,
    /// Its table, if it is a voting member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<StoreStatus>,
    /// Its blobs, if it holds fragments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) blobs: Option<StoreStatus>,
}

/// The state of a store when probed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StoreStatus {
    /// Its address.
    pub(super) place: String,
    /// Response time, if it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) milliseconds: Option<f64>,
    /// The error if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

impl SiteStatus {
    /// Returns whether all its stores answer and none has lost its contents.
    pub(super) fn is_well(&self) -> bool {
        let is_reachable = |store: &Option<StoreStatus>| {
            store.as_ref().is_none_or(|store| store.failure.is_none())
        };
        !self.rebuilding && is_reachable(&self.table) && is_reachable(&self.blobs)
    }
}

/// Probes all stores of a map concurrently.
pub(super) async fn probe_sites(map: &SiteMap) -> Vec<SiteStatus> {
    join_all(map.sites.iter().map(probe_site)).await
}

async fn probe_site(site: &SiteEntry) -> SiteStatus {
    let table = async {
        let place = site.table.clone()?;
        Some(probe_store(place.clone(), probe_table(&place)).await)
    };
    let blobs = async {
        let place = site.blobs.clone()?;
        Some(probe_store(place.clone(), probe_blobs(&place)).await)
    };
    let (table, blobs) = tokio::join!(table, blobs);
    SiteStatus { name: site.name.clone(), rebuilding: site.rebuilding, table, blobs }
}

async fn probe_store(
    place: String,
    answer: impl Future<Output = Result<(), String>>,
) -> StoreStatus {
    let began = Instant::now();
    let late = format!("no answer within {} s", SITE_TIMEOUT.as_secs());
    let answer = tokio::time::timeout(SITE_TIMEOUT, answer).await.unwrap_or(Err(late));
    match answer {
        Ok(()) => {
            let milliseconds = Some(began.elapsed().as_secs_f64() * 1000.0);
            StoreStatus { place, milliseconds, failure: None }
        }
        Err(failure) => StoreStatus { place, milliseconds: None, failure: Some(failure) },
    }
}

fn address(place: &str) -> Result<Address, String> {
    place.parse::<Address>().map_err(|error| error_chain(&error))
}

fn probe() -> Result<Key, String> {
    Key::new("map").map_err(|error| error_chain(&error))
}

async fn probe_table(place: &str) -> Result<(), String> {
    let table = opener().table(&address(place)?, false).await;
    let table = table.map_err(|error| error_chain(&error))?;
    table.read(&probe()?).await.map(drop).map_err(|error| error_chain(&error))
}

async fn probe_blobs(place: &str) -> Result<(), String> {
    let blobs = opener().blobs(&address(place)?, false).await;
    let blobs = blobs.map_err(|error| error_chain(&error))?;
    match blobs.head(&probe()?).await {
        Ok(_) | Err(BlobError::NotFound) => Ok(()),
        Err(error) => Err(error_chain(&error)),
    }
}

/// Refuses sites whose tables have rows. Either a namespace was already created there, or the rows
/// belong to something else. If one table has rows and another is missing, that one was lost, and
/// an empty one must not replace it.
///
/// An interrupted creation leaves at most the row of the map, and rows of the doctor. Creation was
/// completed if the file of the map has an epoch.
///
/// # Errors
/// `Config` when a table has rows.
pub(super) async fn check_empty(map: &SiteMap) -> anyhow::Result<()> {
    let probe = probe().map_err(|error| ExitError::new(Exit::Config, error))?;
    for site in &map.sites {
        let Some(place) = &site.table else { continue };
        let there = address(place).map_err(|error| ExitError::new(Exit::Config, error))?;
        // A missing table has no rows; one that does not answer will be noticed at creation.
        let Ok(table) = opener().table(&there, false).await else { continue };
        let was_begun = map.epoch > 0;
        let mut rows = table.scan(None, None).filter(|row| {
            let is_left = |key: &Key| key == &probe || key.as_str().starts_with(PROBE_PREFIX);
            let is_left = !was_begun && row.as_ref().is_ok_and(|(key, _)| is_left(key));
            std::future::ready(!is_left)
        });
        if let Some(Ok((key, _))) = rows.next().await {
            let message = format!(
                "the table of site {:?} has rows ({key}): a namespace was begun there already \
                 (`fulgurite geo status` says more), or it is somebody else's",
                site.name
            );
            return Err(ExitError::new(Exit::Config, message).into());
        }
    }
    Ok(())
}
