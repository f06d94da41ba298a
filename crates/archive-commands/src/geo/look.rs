//! What the stores of a map say when they are asked now: for `status`, and before a namespace is
//! begun.

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

/// A site, as it answers now.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SiteSeen {
    /// What it is called.
    pub(super) name: String,
    /// Whether what it held was lost and is being made again.
    pub(super) rebuilding: bool,
    /// Its table, if it votes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<StoreSeen>,
    /// Its blobs, if it holds fragments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) blobs: Option<StoreSeen>,
}

/// A store, as it answers now.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StoreSeen {
    /// Where.
    pub(super) place: String,
    /// How long its answer took, if one came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) milliseconds: Option<f64>,
    /// Why none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trouble: Option<String>,
}

impl SiteSeen {
    /// Whether all its stores answer and have what they held.
    pub(super) fn is_well(&self) -> bool {
        let answers =
            |store: &Option<StoreSeen>| store.as_ref().is_none_or(|store| store.trouble.is_none());
        !self.rebuilding && answers(&self.table) && answers(&self.blobs)
    }
}

/// Asks all stores of a map at once.
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

/// Refuses places that have rows: a namespace was begun there, or something else, and a table that
/// is missing beside one that is not was lost, so that an empty one must not take its place.
///
/// A beginning that was cut short has left the row of the map at most, and rows of the doctor; it
/// came to its end when the file of the map has an epoch.
///
/// # Errors
/// `Config` when a table has rows.
pub(super) async fn check_empty(map: &SiteMap) -> anyhow::Result<()> {
    let probe = probe().map_err(|error| Coded::new(Exit::Config, error))?;
    for site in &map.sites {
        let Some(place) = &site.table else { continue };
        let there = address(place).map_err(|error| Coded::new(Exit::Config, error))?;
        // What is not there has no rows; what does not answer is found by whoever begins.
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
