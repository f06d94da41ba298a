//! Creates a namespace over several sites, if every store passes the doctor.

use fulgurite_geo::objects::{GeoStore, PROBE_PREFIX, SiteMap};
use fulgurite_geo::stores::{Address, Key};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, pluralize};
use fulgurite_units::error_chain;
use futures::StreamExt as _;
use serde::Serialize;

use super::doctor;
use super::open::{Namespace, opener};
use crate::config::Geo;

/// The result of `init`.
#[derive(Debug, Serialize)]
struct Created {
    name: String,
    epoch: u32,
    sites: usize,
}

/// Creates the namespace of a tier.
pub(crate) async fn init(geo: &Geo, out: &Output) -> anyhow::Result<()> {
    let named = Namespace::read(geo)?;
    check_empty(&named.map).await?;
    let stores = doctor::stores_of(&named.map)?;
    // Print only refusals here; the doctor's own command prints each check.
    doctor::examine_all(&stores, true, &Output::silent()).await?;
    let store = GeoStore::init(named.options()).await;
    let map = store.map_err(|error| named.failed(error))?.map();
    let created = Created { name: map.name, epoch: map.epoch, sites: map.sites.len() };
    out.json("geo_init", &created)?;
    let (passed, sites) = (pluralize(stores.len() as u64, "store"), created.sites as u64);
    out.text(format_args!(
        "namespace {:?} is begun at {}; {passed} passed the doctor",
        created.name,
        pluralize(sites, "site")
    ))
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
async fn check_empty(map: &SiteMap) -> anyhow::Result<()> {
    let map_key = Key::new("map")?;
    for site in &map.sites {
        let Some(place) = &site.table else { continue };
        let there = place.parse::<Address>();
        let there = there.map_err(|error| ExitError::new(Exit::Config, error_chain(&error)))?;
        // A missing table has no rows; one that does not answer will be noticed at creation.
        let Ok(table) = opener().table(&there, false).await else { continue };
        let was_begun = map.epoch > 0;
        let mut rows = table.scan(None, None).filter(|row| {
            let is_left = |key: &Key| key == &map_key || key.as_str().starts_with(PROBE_PREFIX);
            let is_left = !was_begun && row.as_ref().is_ok_and(|(key, _)| is_left(key));
            std::future::ready(!is_left)
        });
        if let Some(Ok((key, _))) = rows.next().await {
            let message = format!(
                "the table of site {:?} has rows ({key}): a namespace was begun there already \
                 (`fulgurite tier status` says more), or it is somebody else's",
                site.name
            );
            return Err(ExitError::new(Exit::Config, message).into());
        }
    }
    Ok(())
}
