//! Support for the archive's benches only: rows of sets whose platters do not exist.

use fulgurite_catalog::{Committer, Transaction};
use fulgurite_units::{PlatterId, SetId, UnixTime};

use crate::config::GlassConfig;
use crate::plan::random_id;
use crate::rows::{self, PLATTERS, PlatterRow, SETS, SetRow, SetState};
use crate::{GlassError, Result};

/// Writes the rows of a full-size set that was released at this time; returns its information
/// platters.
///
/// # Errors
/// When the catalog fails.
pub fn add_set(
    committer: &Committer,
    config: &GlassConfig,
    created: UnixTime,
) -> Result<Vec<PlatterId>> {
    let geometry = config.geometry.clone();
    let set = SetId::from_random(random_id()?);
    let platters = (0..geometry.set_platters())
        .map(|_| Ok(PlatterId::from_random(random_id()?)))
        .collect::<Result<Vec<_>>>()?;
    let (information, redundancy) =
        platters.split_at(usize::from(geometry.set_information_platters));
    let (information, bytes) = (information.to_vec(), geometry.platter_user_bytes());
    let row = SetRow {
        state: SetState::Released,
        created,
        generation: 1,
        information: information.clone(),
        redundancy: redundancy.to_vec(),
        bytes: geometry.set_user_bytes(),
        redundancy_bytes: bytes,
        damaged: Vec::new(),
        geometry,
    };
    committer.commit_blocking(move |tx: &mut Transaction<'_>| -> Result<(), GlassError> {
        for (position, platter) in row.platters() {
            let platter_row = PlatterRow {
                set,
                position,
                slot: None,
                data_bytes: bytes,
                list_bytes: 0,
                list_entries: 0,
                live_bytes: bytes,
                unreadable_tracks: Vec::new(),
            };
            rows::put(tx, PLATTERS, platter.to_bytes().to_vec(), &platter_row)?;
        }
        rows::put(tx, SETS, set.to_bytes().to_vec(), &row)
    })?;
    Ok(information)
}
