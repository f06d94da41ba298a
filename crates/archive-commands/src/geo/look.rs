//! Probes the stores of a map: for `status`, and before a namespace is created.

use std::time::Instant;

use fulgurite_geo_store::{SiteEntry, SiteMap};
use fulgurite_sites::{Address, BlobError, Key};
use fulgurite_terminal::exit::{Coded, Exit};
use fulgurite_units::error_chain;
use futures::StreamExt as _;
use futures::future::join_all;
use serde::Serialize;

use super::doctor::MARK;
use super::open::opener;
use crate::limits::SITE_ANSWERS_WITHIN;

/// The state of a site when probed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SiteSeen {
    /// Its name.
    pub(super) name: String,
    /// Whether its contents were lost and are being rebuilt.
    pub(super) rebuilding: bool,
    /// Its table, if it is a voting member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<StoreSeen>,
    /// Its blobs, if it holds fragments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) blobs: Option<StoreSeen>,
}

/// The state of a store when probed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StoreSeen {
    /// Its address.
    pub(super) place: String,
    /// Response time, if it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) milliseconds: Option<f64>,
    /// The error if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trouble: Option<String>,
}

impl SiteSeen {
    /// Returns whether all its stores answer and none has lost its contents.
    pub(super) fn is_well(&self) -> bool {
        let answers =
            |store: &Option<StoreSeen>| store.as_ref().is_none_or(|store| store.trouble.is_none());
        !self.rebuilding && answers(&self.table) && answers(&self.blobs)
    }
}

/// Probes all stores of a map concurrently.
pub(super) async fn look(map: &SiteMap) -> Vec<SiteSeen> {
    join_all(map.sites.iter().map(look_at)).await
}

async fn look_at(site: &SiteEntry) -> SiteSeen {
    let table = async {
        let place = site.table.clone()?;
        Some(seen(place.clone(), ask_table(&place)).await)
    };
    let blobs = async {
        let place = site.blobs.clone()?;
        Some(seen(place.clone(), ask_blobs(&place)).await)
    };
    let (table, blobs) = tokio::join!(table, blobs);
    SiteSeen { name: site.name.clone(), rebuilding: site.rebuilding, table, blobs }
}

async fn seen(place: String, answer: impl Future<Output = Result<(), String>>) -> StoreSeen {
    let began = Instant::now();
    let late = format!("no answer within {} s", SITE_ANSWERS_WITHIN.as_secs());
    let answer = tokio::time::timeout(SITE_ANSWERS_WITHIN, answer).await.unwrap_or(Err(late));
    match answer {
        Ok(()) => {
            let milliseconds = Some(began.elapsed().as_secs_f64() * 1000.0);
            StoreSeen { place, milliseconds, trouble: None }
        }
        Err(trouble) => StoreSeen { place, milliseconds: None, trouble: Some(trouble) },
    }
}

fn address(place: &str) -> Result<Address, String> {
    place.parse::<Address>().map_err(|error| error_chain(&error))
}

fn probe() -> Result<Key, String> {
    Key::new("map").map_err(|error| error_chain(&error))
}

async fn ask_table(place: &str) -> Result<(), String> {
    let table = opener().table(&address(place)?, false).await;
    let table = table.map_err(|error| error_chain(&error))?;
    table.read(&probe()?).await.map(drop).map_err(|error| error_chain(&error))
}

async fn ask_blobs(place: &str) -> Result<(), String> {
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
    let probe = probe().map_err(|error| Coded::new(Exit::Config, error))?;
    for site in &map.sites {
        let Some(place) = &site.table else { continue };
        let there = address(place).map_err(|error| Coded::new(Exit::Config, error))?;
        // A missing table has no rows; one that does not answer will be noticed at creation.
        let Ok(table) = opener().table(&there, false).await else { continue };
        let was_begun = map.epoch > 0;
        let mut rows = table.scan(None, None).filter(|row| {
            let is_left = |key: &Key| key == &probe || key.as_str().starts_with(MARK);
            let is_left = !was_begun && row.as_ref().is_ok_and(|(key, _)| is_left(key));
            std::future::ready(!is_left)
        });
        if let Some(Ok((key, _))) = rows.next().await {
            let message = format!(
                "the table of site {:?} has rows ({key}): a namespace was begun there already \
                 (`fulgurite geo status` says more), or it is somebody else's",
                site.name
            );
            return Err(Coded::new(Exit::Config, message).into());
        }
    }
    Ok(())
}
