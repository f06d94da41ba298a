//! Bodies that wait for tiers of objects: for which tiers, since when, and waiting for their moves.

use fulgurite_catalog::{FjallStore, KeyRange, KeyValue as _, ReadView};
use fulgurite_units::UnixTime;

use super::Tiers;
use crate::Result;
use crate::rows::lookup::rows_in;
use crate::rows::{self, MOVES, QueueRow};
use crate::state::ArchiveState;
use crate::status::WaitingTier;

/// Returns the tiers that bodies wait for, each with the arrival of the first body.
pub(crate) fn waiting(kv: &FjallStore, tiers: &Tiers) -> Result<Vec<WaitingTier>> {
    let view = kv.snapshot();
    let mut waiting = Vec::new();
    for tier in tiers.iter() {
        let since = first_arrival(&*view, &rows::moves_range(tier.name()))?;
        let tier = tier.name().to_string();
        waiting.extend(since.map(|since| WaitingTier { tier, since }));
    }
    Ok(waiting)
}

fn first_arrival(view: &dyn ReadView, range: &KeyRange) -> Result<Option<UnixTime>> {
    let first: Vec<(Vec<u8>, QueueRow)> = rows_in(view, MOVES, range, 1)?;
    Ok(first.first().map(|(_, row)| row.arrived))
}

/// Waits until every body that waits now is in its tier, deleted or set aside. They are moved
/// immediately.
pub(crate) async fn wait_until_moved(state: &ArchiveState) -> Result<()> {
    let begun = state.now();
    loop {
        // Registered before the check, so that no notification is missed.
        let polled = state.runtime.moves_polled.notified();
        state.check_stopping()?;
        let waiting = waiting(&state.kv, &state.tiers)?;
        if waiting.iter().all(|tier| tier.since > begun) {
            return Ok(());
        }
        // A failed attempt has cleared the flag.
        state.tiers.iter().for_each(|tier| tier.request_move());
        polled.await;
    }
}
